"""Errors name what a person can look for: the key, the item, the indentation."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from lumos.core.errors import InvalidModelError
from lumos.core.models import LumosDataset
from lumos.core.runtime.settings import load_settings
from lumos.core.settings import InvalidSettingsError
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.ingestion.source_types import type_problems
from lumos.feature.snapshot.source import open_source

DATASET = {"urn": "lumos://s3/lake/orders", "name": "orders", "platform": "s3"}


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("sources:\n\t- type: local\n", 2, "a tab indents this line"),
        ("sources:\n  - type: local\n   path: x\n", 3, "begins after 3 spaces, the one before it"),
        ("sources:\n- type: local\n   path: x\n", 3, "check the indentation"),
        ("platform: a: b\n", 1, "a line has two colons"),
        ("platforms: [a, b\nplatform: c\n", 2, "a bracket or brace is not closed"),
        ('platform: "embedded\n', 2, "a quote, bracket or brace is not closed"),
    ],
)
def test_a_mistake_in_yaml_is_named_in_the_words_of_people(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_text(text)

    with pytest.raises(InvalidSettingsError, match=reason) as refused:
        load_settings(file, {})

    assert f"lumos.yaml:{line}: not valid YAML" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"namme": "x"}, "namme: unknown key; did you mean 'name'?"),
        (
            {"ownership": {"owners": [{"usr": "a"}]}},
            "owners.0.usr: unknown key; did you mean 'user'?",
        ),
        ({"schema": {"fields": [{"name": "x", "typ": "STRING"}]}}, "did you mean 'type'?"),
        ({"xyzzy": 1}, "xyzzy: unknown key"),
        ({"schema": {"fields": [{"name": "x"}]}}, "schema.fields.0.type: this key is required"),
    ],
)
def test_an_unknown_key_comes_with_the_nearest_known_one(
    change: dict[str, object], told: str
) -> None:
    with pytest.raises(InvalidModelError) as refused:
        LumosDataset.from_json({**DATASET, **change})

    assert told in refused.value.message


def test_an_item_of_a_handwritten_snapshot_is_named_by_its_urn(tmp_path: Path) -> None:
    head = {
        "snapshot_schema_version": 1,
        "lumos_version": "0.1.0",
        "export_timestamp": "2026-01-01T00:00:00Z",
        "source_platform": "files",
    }
    file = tmp_path / "snapshot.json"
    file.write_bytes(orjson.dumps({**head, "datasets": [{**DATASET, "tag": []}]}))

    with pytest.raises(InvalidModelError, match="did you mean 'tags'") as refused:
        open_source(str(file), store=SnapshotStore(tmp_path / "store"))

    assert "datasets, item 1 (lumos://s3/lake/orders)" in refused.value.message


@pytest.mark.parametrize(
    ("source_type", "told"),
    [
        ("csv", "names a file format; give the storage that holds the files"),
        ("Excel", "names a file format"),
        ("postgresql", "did you mean 'postgres'?"),
        ("s33", "did you mean 's3'?"),
    ],
)
def test_a_source_type_that_does_not_exist_is_answered_with_what_was_meant(
    tmp_path: Path, source_type: str, told: str
) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_text(f"sources:\n  - {{type: {source_type}, name: x}}\n")

    ((_, message),) = type_problems(load_settings(file, {}).sources)

    assert told in message
    assert "gcs" not in message
