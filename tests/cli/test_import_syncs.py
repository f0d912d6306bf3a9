"""An import into the catalog of the settings goes to the state, and a sync follows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from command_line import JANUARY, Lumos, checked
from doubles.datahub_server import DataHubDouble, datahub_double
from lumos.core.errors import PlatformError
from lumos.core.models import LumosDataset
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.impl.datahub.handler import DataHubHandler


@pytest.fixture
def server(project: Path) -> Iterator[DataHubDouble]:
    with datahub_double() as (url, double):
        settings = {"platform": "datahub", "platform_config": {"datahub": {"gms_server": url}}}
        (project / "lumos.yaml").write_text(json.dumps(settings), "utf-8")
        yield double


def exported(lumos: Lumos, platform: str) -> dict[str, Any]:
    assert lumos("export", "--platform", platform, "--output", "out.json").exit_code == 0
    document: dict[str, Any] = json.loads(Path("out.json").read_text("utf-8"))
    names = ("datasets", "lineage_edges", "tags", "users")
    return {name: document.get(name, []) for name in names}


@pytest.mark.parametrize("option", [(), ("--platform", "datahub")])
def test_it_is_written_to_the_state_and_sent_in_one_run(
    lumos: Lumos, server: DataHubDouble, option: tuple[str, ...]
) -> None:
    result = checked(lumos("import", JANUARY, *option, "--json"), "import")
    assert (len(result["created"]), result["lineage_edges"]) == (5, 3)
    fates = {row["concept"]: row["count"] for row in result["fidelity"]["rows"]}
    assert fates["dataset"] == 5
    state = exported(lumos, "embedded")
    assert len(state["datasets"]) == 5
    assert {each["version"] for each in state["datasets"]} == {"1.0.0"}
    assert exported(lumos, "datahub") == state

    server.requests.clear()
    again = checked(lumos("import", JANUARY, *option, "--json"), "import")
    assert (again["unchanged"], again["created"], again["updated"]) == (5, [], [])
    assert [method for method, target, _ in server.requests if "?async=" in target] == []


def test_a_catalog_that_does_not_answer_is_told_and_the_next_run_sends(
    lumos: Lumos, server: DataHubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: DataHubHandler) -> str:
        raise PlatformError("nobody answers")

    with monkeypatch.context() as patch:
        patch.setattr(DataHubHandler, "reached", refuse)
        behind = lumos("import", JANUARY)
    assert behind.exit_code == 3
    assert "imported: 5 new" in behind.stdout
    assert "the state is written, and the catalog is not up to date: nobody answers" in (
        behind.error_line
    )
    assert lumos("import", JANUARY).exit_code == 0
    assert exported(lumos, "datahub") == exported(lumos, "embedded")


def test_a_dataset_that_the_catalog_refuses_is_named_and_costs_no_other(
    lumos: Lumos, server: DataHubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = DataHubHandler.apply

    def refusing(
        self: DataHubHandler, batch: Batch, seen: Mapping[str, Seen] | None = None
    ) -> None:
        if any(each["name"] == "orders" for each in batch.documents()):
            raise PlatformError("not this one")
        apply(self, batch, seen)

    with monkeypatch.context() as patch:
        patch.setattr(DataHubHandler, "apply", refusing)
        outcome = lumos("import", JANUARY, "--strict")
    assert outcome.exit_code == 1
    assert "failed: not this one" in outcome.stdout
    assert len(exported(lumos, "embedded")["datasets"]) == 5
    there = exported(lumos, "datahub")["datasets"]
    assert len(there) < 5
    assert "orders" not in [each["name"] for each in there]


def test_a_dry_run_writes_nothing(lumos: Lumos, server: DataHubDouble, project: Path) -> None:
    planned = lumos("import", JANUARY, "--dry-run")
    assert "would import: 5 new" in planned.stdout
    assert server.requests == []
    assert not (project / ".lumos" / "lumos.db").exists()


def test_another_catalog_gets_it_alone(lumos: Lumos, server: DataHubDouble) -> None:
    assert lumos("import", JANUARY, "--platform", "sqlite:///other.db").exit_code == 0
    assert server.requests == []
    assert len(exported(lumos, "sqlite:///other.db")["datasets"]) == 5
    assert exported(lumos, "embedded")["datasets"] == []


def test_the_state_alone_gets_it_if_so_asked(lumos: Lumos, server: DataHubDouble) -> None:
    assert lumos("import", JANUARY, "--platform", "embedded").exit_code == 0
    assert server.requests == []
    assert len(exported(lumos, "embedded")["datasets"]) == 5


def test_one_dataset_more_than_the_state_has_is_not_removed_by_the_next_sync(
    lumos: Lumos, server: DataHubDouble
) -> None:
    other = LumosDataset.from_json({"urn": "lumos://s3/x", "name": "x", "platform": "s3"})
    Path("lumos.yaml").write_text(
        Path("lumos.yaml").read_text("utf-8").replace('"platform": "datahub", ', ""), "utf-8"
    )
    document = {**json.loads(Path(JANUARY).read_text("utf-8")), "datasets": [other.to_json()]}
    for name in ("checksum", "statistics", "lineage_edges"):
        document.pop(name, None)
    Path("one.json").write_text(json.dumps(document), "utf-8")
    assert lumos("import", "one.json", "--platform", "datahub").exit_code == 0
    assert lumos("import", JANUARY).exit_code == 0
    assert lumos("sync", "--all", "--output", "datahub", "--strict").exit_code == 0
    names = {each["name"] for each in exported(lumos, "datahub")["datasets"]}
    assert "x" in names
    assert len(names) == 6
