"""A change whose answer is lost is made anew from what the server has then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doubles.openmetadata_store import OpenMetadataStore
from faulty_wire import FAULTS, Fault, faulty_wire
from lumos.core.errors import PlatformUnavailableError
from lumos.core.http.connections import Answer, Connections, Request, TooSlowError
from lumos.core.models import LumosDataset, Tag, Urn
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.testing.platform_samples import dataset, edge

PASSING = [name for name in FAULTS if name != "an expired token"]
ATTEMPTS = 4
NOT_NULL = {"name": "id is set", "kind": "not_null", "column": "id"}


def orders(**parts: object) -> LumosDataset:
    document: dict[str, object] = {
        "urn": "lumos://snowflake/shop/public/orders",
        "name": "orders",
        "platform": "snowflake",
        "schema": {"fields": [{"name": "id", "type": "INT64"}]},
    }
    return LumosDataset.from_json({**document, **parts})


BEFORE = orders(
    tags=["gold", "old"],
    ownership=[{"user": "ada"}, {"group": "shop"}],
    documentation={"description": "All of them"},
    assertions=[NOT_NULL],
)
AFTER = orders(
    tags=["gold"],
    properties={"number": 7},
    assertions=[{**NOT_NULL, "description": "By contract"}],
    quality={
        "checks": [{"name": "id is set", "status": "PASSED", "timestamp": "2026-01-02T03:04:05Z"}]
    },
)


def hitting(fault: str, method: str) -> Fault:
    """Return a fault that hits every request of a method, each once."""
    return FAULTS[fault]._replace(one_in=1, only=method)


@pytest.mark.parametrize("fault", PASSING)
def test_a_change_is_made_once_whatever_happens_to_its_patches(
    platform: OpenMetadataHandler, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    platform.emit_dataset(BEFORE)

    with faulty_wire(hitting(fault, "PATCH"), monkeypatch) as wire:
        platform.emit_dataset(AFTER)

    assert wire.hits
    assert platform.get_dataset(AFTER.urn) == AFTER


@pytest.mark.parametrize("fault", ["500", "reset, though done", "an answer that is no JSON"])
def test_a_result_is_there_once_whatever_happens_to_its_answer(
    platform: OpenMetadataHandler,
    store: OpenMetadataStore,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
) -> None:
    with faulty_wire(hitting(fault, "POST"), monkeypatch) as wire:
        platform.emit_dataset(AFTER)

    assert wire.hits
    assert platform.get_dataset(AFTER.urn) == AFTER
    store.requests.clear()
    platform.emit_dataset(AFTER)
    assert store.writes() == []


def _emit_identity(platform: OpenMetadataHandler, value: str) -> object:
    platform.apply(Batch(identities=[Identity(AFTER.urn, "other", value)]))
    return platform.identity_map()[AFTER.urn]["other"] == value


def _emit_extension(platform: OpenMetadataHandler, value: str) -> object:
    platform.apply(Batch(extensions={"other": value}))
    return platform.extensions()["other"] == value


def _emit_tag(platform: OpenMetadataHandler, value: str) -> object:
    platform.apply(Batch(entities=[Tag(name="gold", description=value)]))
    return [*platform.list_entities("tag")] == [Tag(name="gold", description=value)]


def _connect(platform: OpenMetadataHandler, value: str) -> object:
    made = edge(dataset("left"), dataset("right"), created_by=value, provenance="sql")
    platform.apply(Batch(edges=[made]))
    return [*platform.list_edges()] == [made]


@pytest.mark.parametrize("act", [_emit_identity, _emit_extension, _emit_tag, _connect])
@pytest.mark.parametrize("fault", ["502 with a web page, though done", "no answer in time"])
def test_other_writes_are_repeated_too(
    platform: OpenMetadataHandler,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    act: Callable[[OpenMetadataHandler, str], object],
) -> None:
    assert act(platform, "one")

    with faulty_wire(hitting(fault, "PATCH"), monkeypatch) as wire:
        assert act(platform, "two")

    assert wire.hits


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_what_is_deleted_is_gone_though_the_answer_was_lost(
    platform: OpenMetadataHandler, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    bucket, within = (
        dataset(urn=Urn.of("s3", *path), platform="s3") for path in (("lake",), ("lake", "raw"))
    )
    platform.emit_dataset(bucket)
    platform.emit_dataset(within)
    platform.apply(Batch(edges=[edge(within, bucket)]))

    with faulty_wire(hitting("reset, though done", method), monkeypatch) as wire:
        platform.delete((bucket if method == "PATCH" else within).urn)

    assert wire.hits
    left = within if method == "PATCH" else bucket
    assert [each.urn for each in platform.list()] == [left.urn]


def test_a_server_that_never_answers_a_change_is_told_after_a_few_tries(
    platform: OpenMetadataHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.emit_dataset(BEFORE)
    sent: list[str] = []
    send = Connections.send

    def handle(connections: Connections, request: Request) -> Answer:
        if request.method == "PATCH":
            sent.append(request.target)
            raise TooSlowError("slow")
        return send(connections, request)

    monkeypatch.setattr(Connections, "send", handle)
    with pytest.raises(PlatformUnavailableError, match="did not answer in time"):
        platform.emit_dataset(AFTER)

    assert len(sent) == ATTEMPTS
