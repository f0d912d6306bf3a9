from __future__ import annotations

from pathlib import Path

import orjson
from hypothesis import given

from lumos.core.models import Snapshot, load_snapshot
from lumos.feature.snapshot.export import document_chunks
from lumos.feature.snapshot.source import LoadedSource
from strategies import snapshots


def _exported(snapshot: Snapshot, *, pretty: bool = True) -> bytes:
    source = LoadedSource(snapshot, "memory")
    return b"".join(document_chunks(source, Path(), pretty=pretty))


DOCUMENT = {
    "snapshot_schema_version": 1,
    "lumos_version": "0.1.0",
    "export_timestamp": "2026-01-01T00:00:00Z",
    "source_platform": "embedded",
    "datasets": [
        {
            "tags": ["a"],
            "platform": "s3",
            "properties": {"z": 1, "b": {"y": 1, "a": 2}},
            "schema": {
                "primary_key": ["id"],
                "fields": [
                    {
                        "pii": True,
                        "type": "STRUCT",
                        "name": "id",
                        "fields": [{"type": "STRING", "length": 3, "name": "x"}],
                    }
                ],
            },
            "name": "a",
            "urn": "lumos://s3/a",
        }
    ],
    "users": [{"email": "a@b.example", "username": "ana"}],
}


def test_a_pretty_document_begins_everything_with_what_identifies_it() -> None:
    document = orjson.loads(_exported(load_snapshot(DOCUMENT)))

    (dataset,) = document["datasets"]
    (field,) = dataset["schema"]["fields"]
    assert list(dataset) == ["urn", "name", "platform", "schema", "tags", "properties"]
    assert list(dataset["schema"]) == ["fields", "primary_key"]
    assert list(field) == ["name", "type", "nullable", "fields", "pii"]
    assert list(field["fields"][0]) == ["name", "type", "nullable", "length"]
    assert list(document["users"][0]) == ["username", "email"]
    assert list(document["statistics"])[:3] == ["datasets", "fields", "jobs"]


def test_keys_of_ones_own_are_sorted_so_that_equal_content_gives_equal_bytes() -> None:
    snapshot = load_snapshot(DOCUMENT)
    (dataset,) = snapshot.datasets
    turned = {"b": {"a": 2, "y": 1}, "z": 1}
    other = snapshot.model_copy(
        update={"datasets": (dataset.model_copy(update={"properties": turned}),)}
    )

    assert _exported(other) == _exported(snapshot)
    properties = orjson.loads(_exported(snapshot))["datasets"][0]["properties"]
    assert [list(properties), list(properties["b"])] == [["b", "z"], ["a", "y"]]


@given(snapshots())
def test_both_layouts_of_any_snapshot_hold_the_same(snapshot: Snapshot) -> None:
    derived = snapshot.with_derived_parts()
    for pretty in (True, False):
        assert load_snapshot(orjson.loads(_exported(derived, pretty=pretty))) == derived


def test_an_export_without_edges_says_so() -> None:
    dataset = {"urn": "lumos://s3/a", "name": "a", "platform": "s3"}
    empty = {**DOCUMENT, "datasets": [dataset]}
    for pretty in (True, False):
        document = orjson.loads(_exported(load_snapshot(empty), pretty=pretty))
        assert document["lineage_edges"] == []
