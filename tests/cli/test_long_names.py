"""Names near and over the limit: stored on every database, sent to every catalog, or named."""

from __future__ import annotations

import json
import random
import string
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from catalog_stations import STATIONS
from command_line import Lumos
from lumos.core.models import LumosDataset, Urn
from lumos.core.models.urn import LONGEST_URN
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_samples import AT
from migration_circle import exported, known_as
from state_databases import ENGINES, url_for

LETTERS = string.ascii_letters + string.digits + "-._"
OTHERS = tuple(name for name in STATIONS if name != "embedded")


def long_urn(seed: str, platform: str = "s3") -> Urn:
    """Return a URN of the greatest length that hardly compresses."""
    chance = random.Random(seed)
    parts = ["".join(chance.choices(LETTERS, k=200)) for _ in range(20)]
    urn = Urn.of_path(platform, *parts)
    assert urn.is_shortened
    return urn


def cjk_urn(name: str) -> Urn:
    return Urn.of_path("local", *["表" * 80] * 4, name)


def document(*urns: str) -> dict[str, Any]:
    """Return a snapshot of these datasets, each made of the one before."""
    datasets = [
        {
            "urn": urn,
            "name": f"table_{number}",
            "platform": Urn(urn).platform,
            "location": {"prefix": "/" + "表" * 400},
            "schema": {"fields": [{"name": "id", "type": "INT64"}]},
        }
        for number, urn in enumerate(urns)
    ]
    edges = [
        {"upstream_urn": one, "downstream_urn": two, "job_urn": str(long_urn("job", "airflow"))}
        for one, two in pairwise(urns)
    ]
    return {
        "snapshot_schema_version": 1,
        "lumos_version": "0.1.0",
        "export_timestamp": "2026-03-01T12:00:00Z",
        "source_platform": "embedded",
        "datasets": datasets,
        "lineage_edges": edges,
    }


LONG = (*sorted(long_urn(seed) for seed in "abc"), cjk_urn("one"), cjk_urn("two"))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_longest_names_are_stored_with_history_and_lineage(
    lumos: Lumos, engine: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUMOS_DATABASE_URL", url_for(engine, request))
    Path("long.json").write_text(json.dumps(document(*LONG)))

    done = lumos("import", "--input", "long.json", "--json")

    assert done.exit_code == 0, done.stderr
    assert done.json()["report"]["counts"]["failed"] == 0
    assert len(done.json()["created"]) == len(LONG)
    for urn in LONG:
        assert lumos("history", urn).exit_code == 0
        assert lumos("show", urn).exit_code == 0
    again = lumos("import", "--input", "long.json", "--json").json()
    assert again["unchanged"] == len(LONG)
    found = lumos("search", "table_1", "--json").json()["hits"]
    assert LONG[1] in {hit["urn"] for hit in found}
    assert lumos("sync", "--all", "--output", "sqlite:///team.db").exit_code == 0
    assert lumos("sync", "--all", "--output", "sqlite:///team.db", "--json").json()["writes"] == 0


def test_a_name_over_the_limit_in_a_snapshot_of_others_costs_no_other_dataset(
    lumos: Lumos,
) -> None:
    over = "lumos://s3/" + "x" * LONGEST_URN
    urns = ["lumos://s3/a", over, "lumos://s3/b"]
    given = document(*urns)
    given["lineage_edges"] = [
        {"upstream_urn": "lumos://s3/a", "downstream_urn": "lumos://s3/b"},
        {"upstream_urn": over, "downstream_urn": "lumos://s3/b"},
    ]
    Path("others.json").write_text(json.dumps(given))

    done = lumos("import", "--input", "others.json", "--json")

    result = done.json()
    assert result["created"] == ["lumos://s3/a", "lumos://s3/b"], result
    failed = [item for item in result["report"]["items"] if item["status"] == "failed"]
    assert {item["item"] for item in failed} >= {over}
    assert all("2,500 bytes" in item["reason"] for item in failed)
    with StateDatabase.open(Path(".lumos/lumos.db"), read_only=True) as database:
        held = EmbeddedHandler(database)
        assert [each.urn for each in held.list()] == ["lumos://s3/a", "lumos://s3/b"]
        (kept,) = [edge for page in [held.export_all(at=AT)] for edge in page.lineage_edges]
        assert kept.downstream_urn == "lumos://s3/b"


@pytest.mark.parametrize("engine", ENGINES)
def test_long_columns_and_odd_characters_are_stored(
    engine: str, request: pytest.FixtureRequest
) -> None:
    chance = random.Random(1)
    names = (
        "c" * 1_000_000,
        "".join(chance.choices(LETTERS, k=100_000)),
        "nul\0in",
        "\x01\x1b",
        "\u2028",
    )
    dataset = LumosDataset.from_json(
        {
            "urn": "lumos://s3/odd",
            "name": "odd\0name",
            "platform": "s3",
            "schema": {"fields": [{"name": name, "type": "INT64"} for name in names]},
            "properties": {"p" * 5_000: "\0" * 5_000},
            "tags": ["".join(chance.choices(LETTERS, k=5_000))],
        }
    )
    with StateDatabase.open(url_for(engine, request)) as database:
        catalog = EmbeddedHandler(database)
        catalog.emit_dataset(dataset)
        assert catalog.get_dataset(dataset.urn) == dataset


@pytest.mark.parametrize("catalog", OTHERS)
def test_long_names_come_back_from_every_catalog(
    lumos: Lumos, catalog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("long.json").write_text(json.dumps(document(*LONG)))
    assert lumos("import", "--input", "long.json").exit_code == 0
    with STATIONS[catalog](tmp_path) as station, known_as({catalog: station}, monkeypatch):
        done = lumos("sync", "--all", "--output", catalog, "--json")
        assert done.exit_code == 0, done.stderr
        assert done.json()["report"]["counts"]["failed"] == 0, done.json()["report"]
        assert lumos("sync", "--all", "--output", catalog, "--json").json()["writes"] == 0
        with station.connect() as platform:
            held = exported(platform)
    assert {each["urn"] for each in held["datasets"]} == set(LONG)  # type: ignore[index,call-overload,union-attr]
    assert len(held["lineage_edges"]) == len(LONG) - 1  # type: ignore[arg-type]
