"""Moving a snapshot through catalogs by the command line, and what may differ at the end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import pytest
from pydantic import JsonValue

from command_line import ROOT, Lumos
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_samples import AT
from whole_snapshot import whole_snapshot

if TYPE_CHECKING:
    from catalog_stations import Station
    from lumos.core.platform.interface import MetadataPlatformInterface

Json = dict[str, JsonValue]
PAGE = ROOT / "docs" / "reference" / "round-trips.md"
_ROW = re.compile(r"\| `([a-z_.]+)` \| ([a-z, ]+) \| (.+) \|\Z")


class Normalisation(NamedTuple):
    """Something that may differ after a way through a catalog, and why."""

    path: str
    catalogs: frozenset[str]
    reason: str


class Compared(NamedTuple):
    """How two catalogs compare."""

    datasets: int
    equal: int
    differing: tuple[str, ...]
    """The places where they differ, as paths."""


def declared() -> tuple[Normalisation, ...]:
    """Return the normalisations that the reference page declares."""
    found = [_ROW.match(line) for line in PAGE.read_text("utf-8").splitlines()]
    return tuple(
        Normalisation(row[1], frozenset(row[2].split(", ")), row[3]) for row in found if row
    )


def compared(before: Json, after: Json, *, through: set[str]) -> Compared:
    """Compare two exports, leaving out what is declared for the catalogs between them."""
    allowed = {each.path for each in declared() if each.catalogs & {*through, "all"}}
    kept = [_by_urn(side) for side in (before, after)]
    same = sum(
        not [*_differences(one, kept[1].get(urn), f"datasets.{urn}")]
        for urn, one in kept[0].items()
    )
    places = [*_differences(before, after, "")]
    left = tuple(place for place in places if re.sub(r"\[.*?\]", "", place) not in allowed)
    return Compared(len(kept[0]), same, left)


def exported(catalog: MetadataPlatformInterface) -> Json:
    """Return all that a catalog holds."""
    return catalog.export_all(at=AT).to_json()


def exported_file(path: str) -> Json:
    """Return all that the embedded catalog of a file holds."""
    with StateDatabase.open(Path(path), read_only=True) as database:
        return exported(EmbeddedHandler(database))


def import_everything(lumos: Lumos) -> Json:
    """Fill the catalog of this project with every concept, and return what it then holds."""
    document = json.dumps(whole_snapshot().to_json())
    Path("whole.json").write_text(document, "utf-8")
    assert lumos("import", "--input", "whole.json").exit_code == 0
    return exported_file(".lumos/lumos.db")


def migrate(lumos: Lumos, source: str, target: str) -> None:
    """Migrate, and hold the command to its word."""
    done = lumos("migrate", "--from", source, "--to", target, "--json")
    assert done.exit_code == 0, done.stderr
    result = done.json()
    assert result["verified"]
    assert result["arrived"], result["checks"]
    assert result["differing"] == 0
    assert result["imported"]["report"]["counts"]["failed"] == 0


@contextmanager
def known_as(stations: Mapping[str, Station], patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the names of platforms stand for running catalogs."""
    of_settings = PlatformFactory.create

    def create(name: str, config: Mapping[str, JsonValue]) -> MetadataPlatformInterface:
        return stations[name].connect() if name in stations else of_settings(name, config)

    patch.setattr(PlatformFactory, "create", staticmethod(create))
    yield


def _by_urn(side: Json) -> dict[str, JsonValue]:
    datasets = cast("list[Json]", side["datasets"])
    return {str(each["urn"]): each for each in datasets}


def _differences(one: JsonValue, other: JsonValue, path: str) -> Iterator[str]:
    """Yield where two documents differ; members of lists are told by their place."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            below = f"{path}.{name}" if path else name
            yield from _differences(one.get(name), other.get(name), below)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{path}[{place}]")
    elif json.dumps(one) != json.dumps(other):
        yield path
