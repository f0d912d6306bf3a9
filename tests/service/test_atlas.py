"""The adapter of Atlas on the real thing: Atlas 2.1.0 with its graph and its index."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import httpx2
import pytest
from typing_extensions import override

from atlas_server import RealAtlas
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.testing.platform_contract import PlatformContract
from lumos.testing.platform_samples import dataset
from ports import closed_port

_MANY = 10_000
_SOME = 100
_OF_ONE_DATASET = frozenset(
    {
        "test_a_dataset_is_found_by_what_it_says",
        "test_what_it_does_not_say_does_not_find_it",
        "test_no_query_is_an_error_or_harms",
    }
)
"""Tests that write the same dataset and nothing else, so that nothing is removed between them."""
_before: dict[str, str] = {}


@pytest.fixture(scope="module")
def http(real_atlas: RealAtlas) -> Iterator[httpx2.Client]:
    """What speaks to the server besides the adapter."""
    with httpx2.Client(
        base_url=f"{real_atlas.url}/api/atlas/",
        auth=(real_atlas.username, real_atlas.password),
        timeout=120,
    ) as client:
        yield client


@pytest.fixture
def emptied(
    real_atlas: RealAtlas, http: httpx2.Client, request: pytest.FixtureRequest
) -> RealAtlas:
    """The server without entities, and without tags and terms that somebody defined."""
    alike = request.function.__name__ if request.function.__name__ in _OF_ONE_DATASET else None
    if alike is None or _before.get("test") not in _OF_ONE_DATASET:
        _empty(http)
    _before["test"] = alike or ""
    return real_atlas


@pytest.fixture
def atlas(emptied: RealAtlas) -> Iterator[AtlasHandler]:
    with AtlasHandler.from_config({**emptied.config(), "attempts": 1}) as platform:
        yield platform


class TestAtlas(PlatformContract):
    @pytest.fixture
    @override
    def platform(self, atlas: AtlasHandler) -> AtlasHandler:
        return atlas

    @pytest.fixture
    @override
    def broken_platform(self, platform: MetadataPlatformInterface) -> MetadataPlatformInterface:
        platform.emit_dataset(dataset())
        return AtlasHandler.from_config({"url": f"http://127.0.0.1:{closed_port()}", "attempts": 1})


def _empty(http: httpx2.Client) -> None:
    """Delete whatever a test wrote; types that Lumos defines for itself stay."""
    guids = _guids(http, without_deleted=True)
    for start in range(0, len(guids), _SOME):
        params = {"guid": guids[start : start + _SOME]}
        http.delete("v2/entity/bulk", params=params).raise_for_status()
    for glossary in http.get("v2/glossary").raise_for_status().json():
        if any(map(_is_defined, _terms(http, glossary["guid"]))):
            http.delete(f"v2/glossary/{glossary['guid']}").raise_for_status()
    types = http.get("v2/types/typedefs", params={"type": "classification"}).raise_for_status()
    for each in types.json()["classificationDefs"]:
        if each.get("options", {}).get("lumosImplied") != "true":
            _remove_classification(http, each["name"])


def _remove_classification(http: httpx2.Client, name: str) -> None:
    path = f"v2/types/typedef/name/{quote(name, safe='')}"
    gone = http.delete(path)
    if gone.status_code == httpx2.codes.CONFLICT:  # what was deleted still carries it
        http.put("admin/purge", json=_guids(http, without_deleted=False)).raise_for_status()
        gone = http.delete(path)
    gone.raise_for_status()


def _guids(http: httpx2.Client, *, without_deleted: bool) -> list[str]:
    asked = {
        "typeName": "Referenceable",
        "excludeDeletedEntities": without_deleted,
        "limit": _MANY,
    }
    found = http.post("v2/search/basic", json=asked).raise_for_status().json()
    return [each["guid"] for each in found.get("entities", ())]


def _terms(http: httpx2.Client, glossary: str) -> list[dict[str, object]]:
    found = http.get(f"v2/glossary/{glossary}/terms", params={"limit": _MANY}).raise_for_status()
    return [*found.json()]


def _is_defined(term: dict[str, object]) -> bool:
    more = term.get("additionalAttributes")
    return not isinstance(more, dict) or more.get("lumosImplied") != "true"
