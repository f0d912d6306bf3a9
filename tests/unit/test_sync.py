"""Another catalog is brought up to date with few writes, and edits of people stay."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import ClassVar

import pytest
from typing_extensions import override

from given_work import GivenWork, given_project, open_work
from lumos.core.controllers.sync_controller import SyncController
from lumos.core.controllers.system_controller import SystemController
from lumos.core.errors import (
    LeaseLostError,
    PlatformAuthError,
    PlatformConflictError,
    PlatformError,
    PlatformFailureError,
    PlatformForbiddenError,
    PlatformUnavailableError,
    UsageError,
    notes_of,
)
from lumos.core.models import (
    Contributor,
    Documentation,
    Domain,
    GlossaryTerm,
    LumosDataset,
    Tag,
    User,
    with_parts,
)
from lumos.core.platform.batch import Batch, Identity, Seen
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.fidelity import FidelityReport
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import Capability
from lumos.core.run_report import RunReport
from lumos.core.runtime.settings import settings_from_mapping
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.database import StateDatabase
from lumos.core.store.leases import WRITE_STATE, LeaseRequest, acquire
from lumos.feature.ingestion.state_writer import StateWriter
from lumos.feature.sync.results import SyncResult
from lumos.feature.sync.settings import SyncSettings, Truth, TruthSettings
from lumos.testing.platform_samples import dataset, edge, rich_dataset

AT = datetime(2026, 1, 2, tzinfo=UTC)
SETTINGS = settings_from_mapping(
    {
        "sources": [{"type": "local", "name": "lake", "path": "/nowhere"}],
        "features": {"schema_tracking": False},
    },
    {},
)


class Counting(EmbeddedHandler):
    """A catalog that counts what it is told, and fails where a test wants it to."""

    name = "other"
    CONCURRENCY: ClassVar[int] = 4
    BATCH: ClassVar[int] = 3

    def __init__(self, database: StateDatabase) -> None:
        super().__init__(database)
        self.emitted: list[str] = []
        self.lock = Lock()
        self.refuses: set[str] = set()
        self.after: dict[str, Callable[[], None]] = {}
        self.down_after: int | None = None
        self.refusal: PlatformError = PlatformError("other: it does not like it")
        self.down: PlatformError = PlatformUnavailableError("other: it is down")

    def told(self, what: str) -> None:
        with self.lock:
            if self.down_after is not None and len(self.emitted) >= self.down_after:
                raise self.down
            if what in self.refuses:
                raise self.refusal
            self.emitted.append(what)

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        for part, names in _told_of(batch):
            for name in names:
                self.told(name)
            super().apply(part, seen)
            for name in names:
                self.after.get(name, lambda: None)()


def _told_of(batch: Batch) -> Iterator[tuple[Batch, list[str]]]:
    """Yield a batch thing by thing, each with what a test calls it."""
    for entity in batch.entities:
        name = getattr(entity, "username", "") or getattr(entity, "name", "")
        yield Batch(entities=[entity]), [str(name)]
    for each in batch.models():
        yield Batch(datasets=[each]), [each.name]
    for step in batch.edges:
        ends = (urn.rpartition("/")[2] for urn in (step.upstream_urn, step.downstream_urn))
        yield Batch(edges=[step]), [">".join(ends)]
    for step in batch.removed_edges:
        yield Batch(removed_edges=[step]), ["-edge"]
    for urn in batch.removed_datasets:
        yield Batch(removed_datasets=[urn]), [f"-{urn.rpartition('/')[2]}"]
    yield Batch(identities=batch.identities, extensions=batch.extensions), []


class Plain(Counting):
    """A catalog that keeps datasets only, and removes none."""

    name = "plain"
    capabilities = frozenset({Capability.EXPORT})


@dataclass
class World:
    """Two catalogs, and the way from one to the other."""

    database: StateDatabase
    other: StateDatabase
    settings: SyncSettings = field(default_factory=lambda: SyncSettings(batch_size=4))
    kind: type[Counting] = Counting
    target: Counting = field(init=False)
    reports: list[RunReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.local = EmbeddedHandler(self.database)
        self.target = self.kind(self.other)
        tables = CatalogTables(self.database)
        self.writer = StateWriter(
            self.database, tables, versions=None, clock=lambda: AT, author="ada"
        )

    def fill(self, count: int = 10) -> None:
        for number in range(count):
            self.local.emit_dataset(dataset(f"t{number}"))

    def sync(self, output: str = "other", **options: object) -> SyncResult:
        settings = SETTINGS.model_copy(update={"sync": self.settings})
        work = GivenWork(
            given_project(Path("nowhere"), settings, clock=lambda: AT),
            database=self.database,
            platforms={output: self.target},
            reports=self.reports,
        )
        return SyncController(work).sync(output, **options)  # type: ignore[arg-type]

    def edit(self, name: str, **parts: object) -> None:
        held = self.target.get_dataset(dataset(name).urn)
        EmbeddedHandler.emit_dataset(self.target, with_parts(held, **parts))

    def held(self, name: str) -> LumosDataset:
        return self.target.get_dataset(dataset(name).urn)

    def change(self, name: str, **parts: object) -> None:
        held = self.local.get_dataset(dataset(name).urn)
        self.local.emit_dataset(with_parts(held, **parts))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state database to copy: making the tables takes most of the time of a test."""
    path = tmp_path_factory.mktemp("empty") / "lumos.db"
    StateDatabase.open(path).close()
    return path


@pytest.fixture
def world(tmp_path: Path, empty: Path) -> Iterator[World]:
    for name in ("lumos.db", "other.db"):
        shutil.copy(empty, tmp_path / name)
    with (
        StateDatabase.open(tmp_path / "lumos.db") as database,
        StateDatabase.open(tmp_path / "other.db") as other,
    ):
        yield World(database, other)


@pytest.mark.parametrize("what", ["datasets", "users", "edges", "removals"])
def test_a_sync_that_lost_its_lease_sends_nothing_more(
    world: World, tmp_path: Path, what: str
) -> None:
    world.fill(3)
    if what == "users":
        world.local.apply(Batch(entities=[User(username=name) for name in ("ada", "bob", "cy")]))
    elif what == "edges":
        to = [dataset(f"t{number}") for number in range(3)]
        world.local.apply(Batch(edges=[edge(to[0], to[1]), edge(to[1], to[2])]))
        world.target.EDGE_BATCH = 1  # type: ignore[misc]
    elif what == "removals":
        world.sync()
        world.target.emitted.clear()
        for name in ("t0", "t1"):
            world.local.delete(dataset(name).urn)
    first = {"datasets": "t0", "users": "ada", "edges": "t0>t1", "removals": "-t0"}[what]
    world.settings = SyncSettings(batch_size=100, workers=1)
    world.target.BATCH = 1  # type: ignore[misc]

    def lose_the_lease() -> None:
        with StateDatabase.open(tmp_path / "lumos.db") as another_host:
            another_host.execute("UPDATE leases SET fence = fence + 1, token = 'another host'")
        fence = world.database.fence
        assert fence is not None
        with suppress(LeaseLostError):
            while True:  # until the heartbeat notices
                fence.require()

    world.target.after[first] = lose_the_lease

    request = LeaseRequest("sync", seconds=0.3)
    lease = acquire(world.database, WRITE_STATE, request=request, clock=lambda: AT)
    with lease, pytest.raises(LeaseLostError):
        world.sync()

    assert world.target.emitted[-1] == first


def everything(catalog: EmbeddedHandler) -> object:
    snapshot = catalog.export_all(at=AT).to_json()
    snapshot.pop("source_platform")
    return snapshot


def test_a_first_sync_brings_all_over_and_a_second_writes_nothing(world: World) -> None:
    world.local.emit_dataset(rich_dataset())
    world.fill()
    world.local.apply(
        Batch(
            edges=[
                edge(
                    dataset("t0"),
                    dataset("t1"),
                    column_mappings=[{"upstream_column": "a", "downstream_column": "b"}],
                )
            ]
        )
    )
    world.local.apply(Batch(entities=[User(username="ada")]))
    world.local.apply(Batch(entities=[GlossaryTerm(name="A child", parent="Parent")]))
    world.local.apply(Batch(entities=[GlossaryTerm(name="Parent")]))
    world.local.apply(Batch(entities=[Domain(name="d")]))
    world.local.apply(Batch(identities=[Identity(dataset("t0").urn, "x", "1")]))
    world.local.apply(Batch(extensions={"x": {"a": [1, None]}}))

    first = world.sync()
    assert first.kinds["dataset"].new == 11
    assert first.writes == 11 + 1 + 1 + 2 + 1 + 2
    assert everything(world.target) == everything(world.local)
    told = world.target.emitted
    assert told.index("Parent") < told.index("A child") < told.index("t0") < told.index("t0>t1")

    told.clear()
    second = world.sync()
    assert (second.writes, told) == (0, [])
    assert second.kinds["dataset"].unchanged == 11
    assert second.fidelity.rows == ()


def test_what_becomes_of_each_concept_is_told_before_anything_is_written(world: World) -> None:
    world.local.emit_dataset(rich_dataset())
    world.local.apply(Batch(entities=[User(username="ada")]))
    world.local.apply(Batch(edges=[edge(dataset("t0"), rich_dataset())]))
    told: list[dict[str, int]] = []

    def planned(fidelity: FidelityReport) -> None:
        assert world.target.emitted == []
        told.append({row.concept: row.count for row in fidelity.rows})

    result = world.sync(planned=planned)
    assert told == [{row.concept: row.count for row in result.fidelity.rows}]
    assert told[0]["dataset"] == told[0]["user"] == told[0]["lineage_edge"] == 1
    assert told[0]["field"] == 3


def test_a_full_sync_counts_as_changed_only_what_it_had_to_write(world: World) -> None:
    world.fill(3)
    world.local.apply(Batch(entities=[User(username="ada")]))
    world.local.apply(Batch(edges=[edge(dataset("t0"), dataset("t1"))]))
    world.local.apply(Batch(identities=[Identity(dataset("t0").urn, "x", "1")]))
    world.local.apply(Batch(extensions={"x": {"a": 1}}))
    world.sync()
    world.edit("t1", documentation=Documentation(description="of people"))
    EmbeddedHandler.delete(world.target, dataset("t2").urn)
    world.target.emitted.clear()
    result = world.sync(full=True)
    assert world.target.emitted == ["t2"]
    of_datasets = result.kinds["dataset"]
    assert (of_datasets.new, of_datasets.changed, of_datasets.unchanged) == (0, 1, 2)
    assert (result.writes, result.same_there) == (1, 0)
    assert world.held("t2") == dataset("t2")
    assert world.held("t1").documentation.description == "of people"


def test_steps_of_lineage_are_told_together(world: World) -> None:
    world.fill(12)
    for number in range(11):
        world.local.apply(
            Batch(edges=[edge(dataset(f"t{number}"), dataset(f"t{(number * 5 + 1) % 12}"))])
        )
    told: list[list[str]] = []

    class Bulk(Counting):
        EDGE_BATCH: ClassVar[int] = 5

        @override
        def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
            if batch.edges:
                with self.lock:
                    told.append([each.downstream_urn for each in batch.edges])
            super().apply(batch, seen)

    world.target = Bulk(world.other)
    assert world.sync().kinds["lineage_edge"].new == 11
    assert sorted(map(len, told)) == [1, 5, 5]
    assert sorted(chain.from_iterable(told)) == [*chain.from_iterable(sorted(told))]
    assert [*world.target.list_edges()] == [*world.local.list_edges()]


def test_a_damaged_dataset_is_named_and_the_others_are_sent(world: World) -> None:
    world.fill(3)
    world.sync()
    world.database.execute(
        "UPDATE datasets SET document = '{\"urn\": ' WHERE urn = :urn", {"urn": dataset("t1").urn}
    )
    world.local.emit_dataset(dataset("t2", format="avro"))
    world.target.emitted.clear()
    result = world.sync()
    assert [item.item for item in result.report.failed] == [f"dataset {dataset('t1').urn}"]
    assert world.target.emitted == ["t2"]
    assert result.kinds["dataset"].removed == 0


def test_a_damaged_memory_of_what_was_sent_is_a_warning(world: World) -> None:
    world.fill(3)
    world.sync()
    world.database.execute("UPDATE sync_states SET kept = replace(kept, 'sent', 'tens')")
    world.local.emit_dataset(dataset("t1", format="avro"))
    result = world.sync()
    assert not result.report.failed
    assert any("as if it had never been sent" in each for each in result.report.warnings)
    assert "as if" not in str(world.sync().report.warnings)


def test_only_what_changed_is_sent(world: World) -> None:
    world.fill()
    world.sync()
    world.target.emitted.clear()
    world.change("t3", tags=("new",))
    world.local.emit_dataset(dataset("later"))
    result = world.sync()
    assert sorted(world.target.emitted) == ["later", "t3"]
    assert (result.kinds["dataset"].new, result.kinds["dataset"].changed) == (1, 1)
    assert world.held("t3").tags == ("new",)


def test_a_dry_run_writes_nothing_and_tells_what_would_become_of_it(world: World) -> None:
    world.local.emit_dataset(rich_dataset())
    result = world.sync(dry_run=True)
    assert world.target.emitted == []
    assert result.dry_run
    assert result.kinds["dataset"].new == 1
    counts = {row.concept: row.count for row in result.fidelity.rows}
    assert counts["dataset"] == 1
    assert counts["field"] == 3
    assert world.sync().kinds["dataset"].new == 1


class Hiding(Counting):
    """A catalog that does not show this token any tags, owners and domains."""

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        super().apply(batch)

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        found = super().find_datasets(urns)
        return {
            urn: Seen(
                seen.dataset and with_parts(seen.dataset, tags=(), ownership=(), governance={}),
                hidden=frozenset({"tags", "owners", "governance:domains"}),
                version=seen.version,
            )
            for urn, seen in found.items()
        }


@pytest.mark.parametrize("policy", [Truth.NEWEST, Truth.CATALOG])
def test_what_a_catalog_hides_from_the_token_was_not_removed_by_people(
    world: World, policy: Truth
) -> None:
    truth = TruthSettings(tags=policy, owners=policy, governance=policy)
    hiding = World(world.database, world.other, SyncSettings(truth=truth), kind=Hiding)
    kept = dataset("t0", tags=["gold"], ownership=[{"user": "ada"}],
                   governance={"domains": ["sales"], "glossary_terms": ["Order"]})  # fmt: skip
    hiding.local.emit_dataset(kept)
    hiding.sync()

    hiding.target.emitted.clear()
    again = hiding.sync(full=True)
    assert hiding.local.get_dataset(kept.urn).tags == ("gold",)
    assert hiding.local.get_dataset(kept.urn).ownership == kept.ownership
    assert hiding.local.get_dataset(kept.urn).governance.domains == ("sales",)
    # What is shown and empty was removed.
    assert hiding.local.get_dataset(kept.urn).governance.glossary_terms == ()
    assert again.report.failed == ()

    hiding.change("t0", tags=("gold", "new"))
    hiding.sync()
    newest = policy is Truth.NEWEST
    assert hiding.held("t0").tags == (("gold", "new") if newest else ("gold",))


def test_one_forbidden_dataset_of_a_hundred_is_reported_and_the_others_arrive(
    world: World,
) -> None:
    world.fill(100)
    world.target.refuses = {"t42"}
    world.target.refusal = PlatformForbiddenError("other: not yours (403): t42 belongs to sales")
    for arrived in (99, 0):  # the second one has nothing else to send, and ends in the same way
        result = world.sync()
        assert result.report.counts.done == arrived
        assert [(each.item, each.reason) for each in result.report.failed] == [
            (f"dataset {dataset('t42').urn}", world.target.refusal.message)
        ]
    assert len([*world.target.list()]) == 99


def test_a_catalog_that_allows_nothing_ends_the_sync(world: World) -> None:
    world.fill(3)
    world.target.refuses = {"t0", "t1", "t2"}
    world.target.refusal = PlatformForbiddenError("other: not yours")
    with pytest.raises(PlatformForbiddenError) as raised:
        world.sync()
    assert notes_of(raised.value) == ("sent before it ended: 0 of 3 datasets; run again to go on",)


@pytest.mark.parametrize("error", [PlatformUnavailableError, PlatformAuthError])
def test_a_sync_that_lost_the_catalog_goes_on_where_it_was(
    world: World, error: type[PlatformError]
) -> None:
    world.fill(20)
    world.target.down_after = 9
    world.target.down = error("other: no more")
    with pytest.raises(error) as raised:
        world.sync()
    (report,) = world.reports
    assert report.warnings == ("it ended early: other: no more",)
    (note,) = notes_of(raised.value)
    sent = re.fullmatch(r"sent before it ended: (\d+) of 20 datasets; run again to go on", note)
    assert sent is not None
    assert int(sent[1]) == report.counts.done
    assert len(report.failed) == 1
    assert 4 <= len(world.target.emitted) <= 9
    world.target.down_after = None
    world.target.emitted.clear()
    world.sync()
    assert len(world.target.emitted) <= 16  # what a whole batch acknowledged is not sent again
    assert everything(world.target) == everything(world.local)
    world.target.emitted.clear()
    assert world.sync().writes == 0


@pytest.mark.parametrize("error", [PlatformError, PlatformConflictError])
def test_one_dataset_that_is_refused_spares_the_others_and_is_tried_again(
    world: World, error: type[PlatformError]
) -> None:
    world.target.refusal = error("other: not this one")
    world.fill(7)
    world.sync()
    world.local.delete(dataset("t0").urn)
    for name in ("t1", "t2", "t3"):
        world.change(name, tags=("x",))
    world.target.refuses = {"t2"}
    result = world.sync()
    assert [item.item for item in result.report.failed] == [f"dataset {dataset('t2').urn}"]
    assert world.held("t1").tags == world.held("t3").tags == ("x",)
    assert dataset_or_none(world.target, dataset("t0").urn) is not None  # an incomplete sync
    assert any("nothing is removed" in warning for warning in result.report.warnings)
    world.target.refuses = set()
    assert world.sync().kinds["dataset"].removed == 1
    assert world.held("t2").tags == ("x",)


def test_a_dataset_that_the_catalog_fails_at_is_named_and_costs_no_other(world: World) -> None:
    world.fill(60)
    world.target.refuses = {"t7"}
    world.target.refusal = PlatformFailureError("other: it failed at it (500)")
    result = world.sync()
    assert [item.item for item in result.report.failed] == [f"dataset {dataset('t7').urn}"]
    assert len(world.target.emitted) == 59
    world.target.refuses.clear()
    assert world.sync().writes == 1


def test_a_catalog_that_fails_at_everything_ends_the_sync(world: World) -> None:
    world.fill(300)
    world.target.refuses = {f"t{number}" for number in range(300)}
    world.target.refusal = PlatformFailureError("other: it failed at it (500)")
    with pytest.raises(PlatformFailureError):
        world.sync()
    assert len(world.reports[0].failed) == 50


def test_what_is_gone_here_is_removed_there_but_only_what_lumos_put_there(world: World) -> None:
    world.fill(4)
    world.local.apply(Batch(edges=[edge(dataset("t0"), dataset("t1"))]))
    world.local.apply(Batch(edges=[edge(dataset("t2"), dataset("t3"))]))
    EmbeddedHandler.emit_dataset(world.target, dataset("theirs"))
    world.sync()
    world.local.delete(dataset("t0").urn)
    world.local.apply(Batch(removed_edges=[edge(dataset("t2"), dataset("t3"))]))
    assert world.sync(dry_run=True).kinds["dataset"].removed == 1
    assert dataset_or_none(world.target, dataset("t0").urn) is not None
    result = world.sync()
    assert result.kinds["dataset"].removed == 1
    assert result.kinds["lineage_edge"].removed == 2
    assert [each.name for each in world.target.list()] == ["t1", "t2", "t3", "theirs"]
    assert list(world.target.list_edges()) == []
    world.target.emitted.clear()
    assert world.sync().writes == 0


def test_lineage_into_a_dataset_that_is_refused_waits_for_it(world: World) -> None:
    world.fill(3)
    for upstream, downstream in (("t0", "t1"), ("t1", "t2")):
        world.local.apply(Batch(edges=(edge(dataset(upstream), dataset(downstream)),)))
    world.target.refuses = {"t1"}
    assert [item.item for item in world.sync().report.failed] == [f"dataset {dataset('t1').urn}"]
    assert [held.downstream_urn for held in world.target.list_edges()] == [dataset("t2").urn]
    world.target.refuses = set()
    assert world.sync().report.failed == ()
    assert len([*world.target.list_edges()]) == 2


def test_a_removal_that_is_refused_spares_the_others_and_is_tried_again(world: World) -> None:
    world.fill(4)
    world.sync()
    for name in ("t0", "t1", "t2"):
        world.local.delete(dataset(name).urn)
    world.target.refuses = {"-t1"}
    result = world.sync()
    assert [item.item for item in result.report.failed] == [f"dataset {dataset('t1').urn}"]
    assert [each.name for each in world.target.list()] == ["t1", "t3"]
    world.target.refuses = set()
    assert world.sync().kinds["dataset"].removed == 1
    assert [each.name for each in world.target.list()] == ["t3"]


def test_more_removals_than_allowed_are_refused(world: World) -> None:
    world.fill(5)
    world.sync()
    for number in range(4):
        world.local.delete(dataset(f"t{number}").urn)
    result = world.sync(max_removals=3)
    assert result.kinds["dataset"].removed == 0
    assert "4 datasets are gone, more than sync.max_removals (3)" in result.report.warnings[0]
    assert len(list(world.target.list())) == 5
    assert world.sync(max_removals=4).kinds["dataset"].removed == 4


@pytest.mark.parametrize(("gone", "removed"), [(5, 5), (6, 6), (7, 0), (12, 0)])
def test_most_of_all_are_not_removed_unless_it_is_said(
    world: World, gone: int, removed: int
) -> None:
    world.fill(12)
    world.sync()
    for number in range(gone):
        world.local.delete(dataset(f"t{number}").urn)
    result = world.sync()
    assert sum(kind.removed for kind in result.kinds.values()) == removed
    if not removed:
        told = f"{gone} of 12 datasets that were sent are gone: none is removed; if that is right"
        assert told in result.report.warnings[0]
        assert len([*world.target.list()]) == 12
        assert world.sync(max_removals=gone).kinds["dataset"].removed == gone
    assert [*world.target.list()] == [*world.local.list()]


def test_the_last_dataset_is_not_removed_unless_it_is_said(world: World) -> None:
    world.fill(1)
    world.sync()
    world.local.delete(dataset("t0").urn)
    assert "1 of 1 datasets" in world.sync().report.warnings[0]
    assert world.sync(max_removals=1).kinds["dataset"].removed == 1


def test_what_people_changed_there_is_not_removed(world: World) -> None:
    world.fill(3)
    world.sync()
    world.edit("t1", tags=("precious",))
    world.local.delete(dataset("t1").urn)
    result = world.sync()
    assert result.kinds["dataset"].removed == 0
    assert [item.item for item in result.report.skipped] == [dataset("t1").urn]
    assert world.held("t1").tags == ("precious",)


def test_edits_of_people_stay_when_lumos_changes_something_else(world: World) -> None:
    world.local.emit_dataset(
        dataset(
            "t0",
            tags=["ours", "old"],
            ownership=[{"user": "ada"}],
            schema={"fields": [{"name": "id", "type": "INT64", "description": "ours"}]},
        )
    )
    world.sync()
    world.edit(
        "t0",
        tags=("ours", "theirs"),
        documentation=Documentation(description="By hand."),
        ownership=[{"user": "ada"}, {"group": "finance"}],
        schema={"fields": [{"name": "id", "type": "INT64", "description": "by hand"}]},
    )
    world.change("t0", format="parquet", tags=("ours", "old", "newer"))
    result = world.sync()
    held = world.held("t0")
    assert held.format == "parquet"
    assert held.tags == ("newer", "ours", "theirs")
    assert held.documentation.description == "By hand."
    assert held.schema.fields[0].description == "by hand"
    assert [owner.name for owner in held.ownership.owners] == ["finance", "ada"]
    assert result.conflicts == ()

    world.change("t0", format="orc")
    world.sync()
    assert world.held("t0") == with_parts(held, format="orc")


def test_where_both_changed_the_same_the_catalog_wins_and_it_is_told(world: World) -> None:
    world.local.emit_dataset(dataset("t0", documentation={"description": "first"}))
    world.sync()
    world.edit("t0", documentation=Documentation(description="theirs"))
    world.change("t0", documentation=Documentation(description="ours"))
    result = world.sync()
    assert world.held("t0").documentation.description == "theirs"
    assert result.conflicts == (f"{dataset('t0').urn} documentation:description",)
    world.change("t0", documentation=Documentation(description="ours again"))
    assert world.sync().conflicts == ()
    assert world.held("t0").documentation.description == "ours again"


@pytest.mark.parametrize(
    ("truth", "description", "tags"),
    [(Truth.LUMOS, "ours", ("ours",)), (Truth.CATALOG, "theirs", ("theirs",)),
     (Truth.NEWEST, "theirs", ("ours", "theirs"))],
)  # fmt: skip
def test_the_settings_say_who_is_right(
    world: World, truth: Truth, description: str, tags: Sequence[str]
) -> None:
    world.settings = SyncSettings(truth=TruthSettings(documentation=truth, tags=truth))
    for catalog, word in ((world.local, "ours"), (world.target, "theirs")):
        EmbeddedHandler.emit_dataset(
            catalog, dataset("t0", tags=[word], documentation={"description": word, "sla": None})
        )
    world.change("t0", documentation=Documentation(description="ours", sla="99%"))
    world.sync()
    held = world.held("t0")
    assert held.documentation == Documentation(description=description, sla="99%")
    assert held.tags == tuple(tags)


def test_what_the_catalog_has_already_is_not_written(world: World) -> None:
    world.fill(5)
    world.sync()
    world.target.emitted.clear()
    result = world.sync("a new name for the same catalog")
    assert (result.writes, result.same_there) == (0, 5)
    assert world.sync("a new name for the same catalog", full=True).writes == 0


def test_a_catalog_that_keeps_little_is_sent_little(world: World) -> None:
    world.target = Plain(world.other)
    world.fill(2)
    world.local.apply(Batch(edges=[edge(dataset("t0"), dataset("t1"))]))
    world.local.apply(Batch(entities=[Tag(name="x")]))
    result = world.sync()
    assert sorted(world.target.emitted) == ["t0", "t1"]
    assert any("keeps no lineage edges" in warning for warning in result.report.warnings)
    world.local.delete(dataset("t0").urn)
    assert any("removes no datasets" in text for text in world.sync().report.warnings)


def test_a_source_that_is_not_set_up_is_told(world: World) -> None:
    with pytest.raises(UsageError, match="no source nowhere"):
        world.sync(sources=("nowhere",))


def test_only_datasets_of_a_source_are_sent_if_so_asked_and_none_is_removed(world: World) -> None:
    world.fill(3)
    world.sync()
    world.target.emitted.clear()
    world.local.emit_dataset(
        dataset("mine", extensions={"lumos": {"source": "lake", "dataset": "mine"}})
    )
    world.local.emit_dataset(dataset("another"))
    world.local.delete(dataset("t0").urn)
    world.sync(sources=("lake",))
    assert world.target.emitted == ["mine"]


def test_the_catalog_that_is_read_cannot_be_the_one_that_is_written(tmp_path: Path) -> None:
    with open_work(state_dir=tmp_path / "s", environment={}, clock=lambda: AT) as work:
        SystemController(work)
        with (
            StateDatabase.open(tmp_path / "s" / "lumos.db"),
            pytest.raises(UsageError, match="writes another one"),
        ):
            SyncController(work).sync("embedded")


def test_what_people_changed_there_is_kept_here_as_their_word(world: World) -> None:
    lake, people = Contributor.of("source:lake"), Contributor.of("people:other")
    tables = world.writer.tables
    tables.put_found(with_parts(dataset("t0"), tags=("pii", "raw")), lake, hash="1", at=AT)
    world.sync()
    world.edit("t0", tags=("gold", "raw"))  # `pii` is taken away
    tables.put_found(with_parts(dataset("t0"), tags=("new", "pii", "raw")), lake, hash="2", at=AT)
    world.sync()

    assert world.held("t0").tags == ("gold", "new", "raw")
    here = world.local.get_dataset(dataset("t0").urn)
    assert here.tags == ("gold", "new", "raw")
    said = tables.contributions.of(here.urn)
    assert {each.contributor for each in said.said} == {lake, people}
    assert said.without(people).dataset().tags == ("new", "pii", "raw")
    assert tables.contributions.found_states(lake) == [(here.urn, "2")]
    assert world.sync().writes == 0


def test_edits_of_one_catalog_reach_the_next(world: World) -> None:
    world.writer.tables.put_found(dataset("t0"), Contributor.of("source:lake"), hash="1", at=AT)
    world.sync("first")
    world.edit("t0", documentation=Documentation(description="said there"))
    world.change("t0", format="orc")
    world.sync("first")
    assert world.local.get_dataset(dataset("t0").urn).documentation.description == "said there"


def test_a_sync_of_a_source_sends_what_that_source_speaks_of(world: World) -> None:
    tables = world.writer.tables
    tables.put_found(dataset("t0"), Contributor.of("source:lake"), hash="1", at=AT)
    tables.put_found(dataset("t1"), Contributor.of("declared:lake"), hash="1", at=AT)
    tables.put_found(dataset("t2"), Contributor.of("source:other"), hash="1", at=AT)
    world.sync(sources=("lake",))
    assert {each.name for each in world.target.list()} == {"t0", "t1"}
