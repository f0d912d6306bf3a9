"""`lumos migrate`: everything moves, or it is said what did not."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

import pytest
from pydantic import JsonValue
from typing_extensions import override

from command_line import Lumos, checked
from lumos.core.errors import PlatformError, PlatformUnavailableError
from lumos.core.models import Tag
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.fidelity import CONCEPTS, Fidelity
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.progress import Progress
from lumos.core.registry import Registry
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_samples import dataset, edge, rich_dataset

COUNT = 30


class Catalog(EmbeddedHandler):
    """A catalog of another name, with a database of its own, that fails where a test wants."""

    down_after: ClassVar[int | None] = None
    refused: ClassVar[str] = ""
    emitted: ClassVar[list[str]] = []

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls(StateDatabase.open(Path(f"{cls.name}.db")))

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        for each in batch.models():
            if Catalog.down_after is not None and len(Catalog.emitted) >= Catalog.down_after:
                raise PlatformUnavailableError(f"{self.name}: it is down")
            if each.name == Catalog.refused:
                raise PlatformError(f"{self.name}: it does not like it")
            Catalog.emitted.append(each.name)
        super().apply(batch, seen)


class Old(Catalog):
    name = "old"


class New(Catalog):
    """It knows no tags, and says so."""

    name = "new"
    FIDELITY: ClassVar[Mapping[str, Fidelity]] = {
        **dict.fromkeys(CONCEPTS, Fidelity.NATIVE),
        "tag_definition": Fidelity.DROPPED,
        "quality": Fidelity.STASHED,
    }

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        others = [each for each in batch.entities if not isinstance(each, Tag)]
        super().apply(replace(batch, entities=others), seen)


@pytest.fixture(autouse=True)
def catalogs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builtins = {"embedded": f"{EmbeddedHandler.__module__}:EmbeddedHandler"}
    registry: Registry[MetadataPlatformInterface] = Registry(
        "lumos.platforms", builtins=builtins, noun="platform"
    )
    registry.register("old", Old)
    registry.register("new", New)
    monkeypatch.setattr(PlatformFactory, "_registry", registry)
    for name, value in (("down_after", None), ("refused", ""), ("emitted", [])):
        monkeypatch.setattr(Catalog, name, value)
    with StateDatabase.open(Path("old.db")) as database, database.transaction():
        catalog = EmbeddedHandler(database)
        catalog.emit_dataset(rich_dataset())
        for number in range(COUNT - 1):
            catalog.emit_dataset(dataset(f"t{number:02d}"))
        catalog.apply(Batch(edges=[edge(dataset("t00"), dataset("t01"))]))
        for number in range(3):
            catalog.apply(Batch(entities=[Tag(name=f"tier-{number}")]))


def held() -> int:
    with StateDatabase.open(Path("new.db")) as database:
        return sum(1 for _ in EmbeddedHandler(database).list())


def test_everything_moves_and_it_is_proven(lumos: Lumos) -> None:
    moved = lumos("migrate", "--from", "old", "--to", "new")
    assert moved.exit_code == 0, moved.stderr
    assert "[ok] stashed: 1 quality\n" in moved.stdout
    assert "[warn] dropped: 3 tag definition\n" in moved.stdout
    assert "[ok] 30/30 datasets migrated\n" in moved.stdout
    assert "[ok] 1/1 lineage edges migrated\n" in moved.stdout
    assert "[warn] 3 tags require manual mapping\n" in moved.stdout
    assert "differ" not in moved.stdout
    folder = Path(".lumos/migrations/old-to-new")
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert report["verified"]
    page = (folder / "report.html").read_text("utf-8")
    assert "[ok] 30/30 datasets migrated" in page
    assert "Everything arrived that new keeps; what it drops is listed below." in page  # three tags
    assert "<script" not in page


@pytest.mark.parametrize("mode", [(), ("--overwrite",)])
def test_versions_that_went_on_in_the_source_go_on_in_the_target(
    lumos: Lumos, mode: tuple[str, ...]
) -> None:
    for version in ("1.0.0", "1.1.0", "1.1.0"):
        with StateDatabase.open(Path("old.db")) as database:
            EmbeddedHandler(database).emit_dataset(dataset("t00", version=version))
        moved = lumos("migrate", "--from", "old", "--to", "new", *mode)
        assert moved.exit_code == 0, moved.stderr
        assert "differ" not in moved.stdout
    again = lumos("migrate", "--from", "old", "--to", "new", *mode, "--json")
    assert checked(again, "migrate")["imported"]["updated"] == []


def test_a_dry_run_reports_and_writes_nothing(lumos: Lumos) -> None:
    planned = checked(
        lumos("migrate", "--from", "old", "--to", "new", "--dry-run", "--json"), "migrate"
    )
    assert len(planned["imported"]["created"]) == COUNT
    assert planned["validation"]["status"] == "ok"
    fates = {row["concept"]: row["fidelity"] for row in planned["fidelity"]["rows"]}
    assert (fates["dataset"], fates["tag_definition"]) == ("native", "dropped")
    assert Catalog.emitted == []
    assert held() == 0


@pytest.mark.parametrize("command", ["migrate", "import"])
def test_what_becomes_of_each_concept_is_told_before_anything_is_written(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    arguments = ("migrate", "--from", "old", "--to", "new")
    if command == "import":
        lumos("export", "--platform", "old", "--output", "old.json")
        arguments = ("import", "old.json", "--platform", "new", "--strict")
        planned = checked(lumos(*arguments, "--dry-run", "--json"), "import")
        fates = {row["concept"]: row["fidelity"] for row in planned["fidelity"]["rows"]}
        assert (fates["dataset"], fates["tag_definition"]) == ("native", "dropped")
        assert "[warn] dropped: 3 tag definition\n" in lumos(*arguments, "--dry-run").stdout
    monkeypatch.setattr(Catalog, "down_after", 0)
    stopped = lumos(*arguments)
    assert stopped.exit_code == 3
    assert "[warn] dropped: 3 tag definition\n" in stopped.stdout
    assert held() == 0


def test_a_catalog_that_keeps_datasets_alone_is_sent_them_and_the_rest_is_counted(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    lumos("export", "--platform", "old", "--output", "old.json")
    monkeypatch.setattr(New, "capabilities", frozenset())
    arguments = ("import", "old.json", "--platform", "new", "--json")
    done = checked(lumos(*arguments), "import")
    assert (len(done["created"]), done["lineage_edges"]) == (COUNT, 0)
    assert done["report"]["warnings"] == [
        "new keeps no people, tags, terms, domains or jobs: 3 were left out",
        "new keeps no lineage edges: 1 were left out",
    ]
    assert held() == COUNT
    again = checked(lumos(*arguments), "import")
    assert (again["unchanged"], again["updated"]) == (COUNT, [])


@pytest.mark.parametrize(
    "command",
    [
        ("sync", "--all", "--output", "new"),
        ("import", "--platform", "new", "old.json"),
        ("migrate", "--from", "old", "--to", "new"),
    ],
    ids=lambda command: command[0],
)
def test_what_is_told_in_between_has_the_line_to_itself(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    lumos("export", "--platform", "old", "--output", "old.json")
    lumos("import", "old.json")
    shown: list[bool] = []
    told: list[bool] = []

    @contextmanager
    def progress(_title: str) -> Iterator[Told]:
        shown.append(True)
        yield Told()
        shown.pop()

    monkeypatch.setattr("lumos.entry.cli.snapshot_options.progress", progress)
    monkeypatch.setattr("lumos.entry.cli.sync.print_badge", lambda *_: told.append(bool(shown)))
    assert lumos(*command).exit_code == 0
    assert told
    assert not any(told)


def test_those_who_wait_are_told_how_far_it_is(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    monkeypatch.setattr("lumos.entry.cli.snapshot_options.progress", lambda _: nullcontext(told))
    assert lumos("migrate", "--from", "old", "--to", "new").exit_code == 0
    assert told.words == [
        "reading old",
        "comparing datasets, 30 datasets", "30",
        "sending tags, 3 tags",
        "sending datasets, 30 datasets", "10", "20", "30",
        "sending lineage edges, 1 lineage edges",
        "comparing with new",
    ]  # fmt: skip
    told.words.clear()
    lumos("export", "--platform", "old", "--output", "old.json")
    lumos("import", "old.json")
    told.words.clear()
    assert lumos("sync", "--all", "--output", "new").exit_code == 0
    assert [word for word in told.words if "dataset" in word] == ["sending datasets, 30 datasets"]
    assert "30" in told.words


class Told(Progress):
    """Writes down what is told."""

    def __init__(self) -> None:
        self.words: list[str] = []

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        self.words.append(name if total is None else f"{name}, {total} {unit}")

    @override
    def advance(self, done: int) -> None:
        self.words.append(str(done))

    @override
    def note(self, text: str) -> None:
        self.words.append(text)


def test_a_dry_run_leaves_what_was_interrupted_alone(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Catalog, "down_after", 17)
    command = ("migrate", "--from", "old", "--to", "new", "--batch-size", "5", "--json")
    assert lumos(*command).exit_code == 3
    assert lumos(*command, "--dry-run").exit_code == 0
    monkeypatch.setattr(Catalog, "down_after", None)
    done = checked(lumos(*command), "migrate")
    assert (done["resumed"], done["imported"]["unchanged"]) == (True, 17)


def test_a_migration_that_was_interrupted_goes_on(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Catalog, "down_after", 17)
    command = ("migrate", "--from", "old", "--to", "new", "--batch-size", "5", "--json")
    stopped = lumos(*command)
    assert stopped.exit_code == 3
    assert "it is down" in stopped.stderr
    monkeypatch.setattr(Catalog, "down_after", None)
    Catalog.emitted.clear()
    done = checked(lumos(*command), "migrate")
    assert done["resumed"]
    assert done["imported"]["unchanged"] == 17  # what had arrived is as wanted
    assert len(Catalog.emitted) == COUNT - 17
    assert done["verified"]
    assert held() == COUNT
    again = checked(lumos(*command), "migrate")
    assert not again["resumed"]
    assert again["imported"]["unchanged"] == COUNT


def test_that_a_migration_goes_on_is_told(lumos: Lumos, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Catalog, "down_after", 17)
    assert lumos("migrate", "--from", "old", "--to", "new").exit_code == 3
    monkeypatch.setattr(Catalog, "down_after", None)
    told = "[warn] goes on with what an interrupted migration had read of old; --restart reads it"
    assert told in lumos("migrate", "--from", "old", "--to", "new").stdout
    assert told not in lumos("migrate", "--from", "old", "--to", "new").stdout


@pytest.mark.parametrize("moved", ["old", "new"])
def test_a_migration_goes_on_only_between_the_same_two_servers(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch, moved: str
) -> None:
    monkeypatch.setattr(Catalog, "down_after", 17)
    command = ("migrate", "--from", "old", "--to", "new", "--batch-size", "5", "--json")
    assert lumos(*command).exit_code == 3
    monkeypatch.setattr(Catalog, "down_after", None)
    Path(f"{moved}.db").rename("elsewhere.db")
    StateDatabase.open(Path(f"{moved}.db")).close()
    Path("lumos.yaml").write_text(f"platform_config: {{{moved}: {{server: another}}}}\n", "utf-8")

    done = checked(lumos(*command), "migrate")

    assert done["resumed"] is (moved == "new")
    assert done["imported"]["unchanged"] == 0
    assert done["verified"]


def test_what_does_not_arrive_is_told_and_fails(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Catalog, "refused", "t07")
    moved = lumos("migrate", "--from", "old", "--to", "new")
    assert moved.exit_code == 1
    assert "[warn] 29/30 datasets migrated\n" in moved.stdout
    assert "[warn] 1 item refused by new" in moved.stdout
    assert "imported: 29 new, 0 changed, 0 unchanged, 0 skipped datasets" in moved.stdout
    folder = Path(".lumos/migrations/old-to-new")
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert report["missing"] == [dataset("t07").urn]
    page = (folder / "report.html").read_text("utf-8")
    for heading in ("Not in the target", "Refused by the target"):
        assert f"<h2>{heading}</h2><ul>\n<li>{dataset('t07').urn}" in page


def test_what_is_not_the_same_is_named_with_its_concepts(lumos: Lumos) -> None:
    lumos("migrate", "--from", "old", "--to", "new")
    with StateDatabase.open(Path("old.db")) as database:
        other = dataset("t00", tags=["gold"], documentation={"description": "Other."})
        EmbeddedHandler(database).emit_dataset(other)
    would = lumos("migrate", "--from", "old", "--to", "new", "--skip-existing", "--dry-run")
    said = "would import: 0 new, 0 changed, 0 unchanged, 30 skipped datasets; 0 lineage edges\n"
    assert said in would.stdout
    assert lumos("migrate", "--from", "old", "--to", "new", "--skip-existing").exit_code == 0
    folder = Path(".lumos/migrations/old-to-new")
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert report["unlike"] == [{"urn": other.urn, "concepts": ["description", "tag"]}]
    page = (folder / "report.html").read_text("utf-8")
    assert "<h2>Not the same in the target</h2>" in page
    assert f"<li>{other.urn}: description, tag</li>" in page
    assert "0 new, 0 changed, 0 unchanged, 30 skipped datasets" in page


def test_a_circle_through_other_catalogs_is_identity(lumos: Lumos) -> None:
    stations = ("old", "sqlite:///a.db", "sqlite:///b.db")
    for start, end in itertools.pairwise(stations):
        assert lumos("migrate", "--from", start, "--to", end).exit_code == 0
    compared = checked(lumos("diff", "--source", "old", "--target", stations[-1], "--json"), "diff")
    assert compared["summary"]["changes"] == 0
    assert not any(
        section["added"] or section["removed"] or section["changed"]
        for section in compared["summary"]["sections"].values()
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("embedded", "sqlite:///.lumos/lumos.db"),
        ("sqlite:///.lumos/lumos.db", "embedded"),
        ("embedded", "sqlite:///link.db"),
        ("sqlite:///link.db", "sqlite:///.lumos/../link.db"),
    ],
)
def test_a_catalog_is_not_migrated_to_itself_by_another_address(
    lumos: Lumos, source: str, target: str
) -> None:
    assert lumos("migrate", "--from", "old", "--to", "embedded").exit_code == 0
    Path("link.db").symlink_to(".lumos/lumos.db")
    refused = lumos("migrate", "--from", source, "--to", target)
    assert refused.exit_code == 2
    assert "cannot be migrated to itself" in refused.error_line


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("old", "old", "to itself"),
        ("old", "nowhere", "'nowhere' is no catalog"),
        ("nowhere", "new", "'nowhere' is no catalog"),
        ("sqlite:///nothing.db", "new", "no catalog yet"),
    ],
)
def test_what_is_no_migration_is_told(lumos: Lumos, source: str, target: str, said: str) -> None:
    assert said in lumos("migrate", "--from", source, "--to", target).error_line
    assert (
        lumos("migrate", "--from", "old", "--to", "new", "--skip-existing", "--overwrite").exit_code
        == 2
    )
