"""Versions in bulk: from the catalog or from snapshots, as often as one likes, in few queries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from typing_extensions import override

from given_work import open_work
from lumos.core.controllers.catalog_controller import CatalogController
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.version_controller import VersionController
from lumos.core.errors import (
    NoCatalogError,
    StateError,
)
from lumos.core.models import ChangeLevel, LumosDataset
from lumos.core.progress import Progress
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.database import StateDatabase
from lumos.core.store.engine import Parameters, Row
from lumos.core.store.history import HistoryRepository
from lumos.feature.versioning.results import VersionCounts
from version_states import AT, fill_catalog, table, tables, versions_of, write_snapshot

LATER = AT + timedelta(days=30)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[UnitOfWork]:
    with open_work(state_dir=tmp_path / "state", environment={}, clock=lambda: LATER) as work:
        yield work


@pytest.fixture
def controller(work: UnitOfWork) -> VersionController:
    return VersionController(work)


class Heard(Progress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None]] = []
        self.done: list[int] = []

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        self.stages.append((name, total))

    @override
    def advance(self, done: int) -> None:
        self.done.append(done)

    @override
    def note(self, text: str) -> None:
        pass


def counts(**given: int) -> VersionCounts:
    return VersionCounts(**given)


def test_a_catalog_without_history_gets_first_versions_once(
    work: UnitOfWork, controller: VersionController
) -> None:
    fill_catalog(work, [*tables(3), table(3, version="4.5.6"), table(4, version="v2")])

    computed = controller.compute()
    assert (computed.dry_run, computed.counts) == (True, counts(first=5))
    assert versions_of(controller) == {}
    applied = controller.apply()
    assert (applied.dry_run, applied.counts) == (False, counts(first=5))
    assert applied.versions == computed.versions
    assert applied.report.counts.done == 5
    assert versions_of(controller) == {
        "table_000000": "1.0.0",
        "table_000001": "1.0.0",
        "table_000002": "1.0.0",
        "table_000003": "4.5.6",
        "table_000004": "1.0.0",
    }
    again = controller.apply()
    assert again.counts == counts(unchanged=5)
    assert again.versions == ()


def test_each_dataset_rises_by_its_own_worst_change(
    work: UnitOfWork, controller: VersionController
) -> None:
    fill_catalog(work, [table(each, "a", "b") for each in range(5)])
    controller.apply()
    fill_catalog(
        work,
        [
            table(0, "a"),
            table(1, "a", "b", "c"),
            table(2, "a", "b", tags=["gold"]),
            table(3, "b", "a", statistics={"row_count": 7}),
        ],
    )

    found = controller.apply()

    assert found.counts == counts(major=1, minor=1, patch=1, unchanged=2)
    told = [
        (each.version, each.previous_version, each.cloud_version, each.bump, each.change_type)
        for each in found.versions
    ]
    assert told == [
        ("2.0.0", "1.0.0", "S-2", "MAJOR", "COLUMN_REMOVED"),
        ("1.1.0", "1.0.0", "S-2", "MINOR", "COLUMN_ADDED"),
        ("1.0.1", "1.0.0", "S-2", "PATCH", "TAGS_CHANGED"),
    ]
    assert [each.category for each in found.versions] == [
        "SCHEMA_CHANGE",
        "SCHEMA_CHANGE",
        "METADATA_UPDATE",
    ]
    shown = CatalogController(work).show("table_000001")
    assert shown.version == "1.1.0"


def test_what_publishing_versioned_is_unchanged_to_a_scan(
    work: UnitOfWork, controller: VersionController, tmp_path: Path
) -> None:
    document = write_snapshot(tmp_path, tables(4))
    ImportController(work).run(document)

    assert controller.compute().counts == counts(unchanged=4)
    assert controller.compute(target=document).counts == counts(unchanged=4)


def test_datasets_that_are_gone_are_counted_and_retired_when_asked(
    work: UnitOfWork, controller: VersionController
) -> None:
    fill_catalog(work, tables(7))
    controller.apply()
    platform = work.platform(None, writing=True)
    for number in (0, 3, 6):
        platform.delete(table(number).urn)

    assert (controller.compute().gone, controller.compute().counts.major) == (3, 0)
    assert controller.compute(retire=True).counts == counts(major=3, unchanged=4)
    applied = controller.apply(retire=True, batch_size=2)
    assert (applied.gone, applied.counts) == (3, counts(major=3, unchanged=4))
    assert {each.change_type for each in applied.versions} == {"DATASET_REMOVED"}
    again = controller.apply(retire=True)
    assert (again.gone, again.counts) == (0, counts(unchanged=4))

    fill_catalog(work, tables(1))
    back = controller.apply()
    assert back.counts == counts(minor=1, unchanged=4)
    assert back.versions[0].change_type == "DATASET_ADDED"


def test_all_datasets_may_be_gone(work: UnitOfWork, controller: VersionController) -> None:
    fill_catalog(work, tables(3))
    controller.apply()
    platform = work.platform(None, writing=True)
    for dataset in tables(3):
        platform.delete(dataset.urn)

    assert controller.apply(retire=True).counts == counts(major=3)


def test_snapshots_are_applied_with_their_own_time_and_never_lead_back(
    work: UnitOfWork, controller: VersionController, tmp_path: Path
) -> None:
    days = [write_snapshot(tmp_path, tables(2, day), day=day) for day in range(3)]

    assert controller.apply(target=days[0]).counts == counts(first=2)
    assert controller.apply(target=days[2]).counts == counts(patch=2)
    outdated = controller.apply(target=days[1])
    assert (outdated.outdated, outdated.counts) == (2, counts())
    assert controller.compute(target=days[1]).outdated == 2
    assert controller.apply(target=days[2]).counts == counts(unchanged=2)

    history = HistoryRepository(work.reader)
    times = [each.timestamp for each in history.versions(table(0).urn)]
    assert times == [AT, AT + timedelta(days=2)]


def test_two_snapshots_are_applied_one_after_the_other(
    controller: VersionController, tmp_path: Path
) -> None:
    days = [write_snapshot(tmp_path, tables(2, day), day=day) for day in range(2)]

    applied = controller.apply(source=days[0], target=days[1])

    assert applied.counts == counts(first=2, patch=2)
    assert set(versions_of(controller).values()) == {"1.0.1"}
    again = controller.apply(source=days[0], target=days[1])
    assert (again.counts, again.outdated) == (counts(unchanged=2), 2)


def test_versions_between_two_snapshots_need_no_state(tmp_path: Path) -> None:
    old = write_snapshot(
        tmp_path,
        [
            table(0, "a", "b", version="3.1.0"),
            table(1, "a"),
            table(2, "a", version="0.9"),
            table(4, "a", version="7.0.0"),
        ],
    )
    new = write_snapshot(
        tmp_path,
        [
            table(0, "a", version="4.0.0"),
            table(1, "a", "b"),
            table(2, "a", version="0.9"),
            table(3, "a", version="2.0.0"),
        ],
        day=1,
    )
    with open_work(state_dir=tmp_path / "state", environment={}) as work:
        found = VersionController(work).compute(source=old, target=new)
        retired = VersionController(work).compute(source=old, target=new, retire=True)

    assert not (tmp_path / "state").exists()
    assert found.counts == counts(major=1, minor=1, first=1, unchanged=1)
    assert (found.gone, found.outdated, found.declared) == (1, 0, ())
    told = {each.dataset[-1]: (each.previous_version, each.version) for each in found.versions}
    assert told == {"0": ("3.1.0", "4.0.0"), "1": ("1.0.0", "1.1.0"), "3": (None, "2.0.0")}
    assert {each.cloud_version for each in found.versions} == {None}
    assert retired.counts.major == 2
    assert {each.version for each in retired.versions} >= {"8.0.0"}


@pytest.mark.parametrize(
    ("before", "after", "columns", "rule"),
    [
        ("1.2.0", "1.2.0", ("a",), "version.not_bumped"),
        ("1.2.0", "1.1.0", ("a",), "version.decreased"),
        ("1.2.0", "1.3.0", ("a",), "version.major_missing"),
        ("1.2.0", "2.0.0", ("a",), None),
        ("0.2.0", "0.3.0", ("a",), None),
        ("0.2.0", "0.2.0", ("a",), "version.not_bumped"),
        ("1.2.0", "1.3.0", ("a", "b", "c"), None),
        ("1.2.0", "1.2.0", ("a", "b", "c"), "version.not_bumped"),
        ("v1", "v1", ("a",), None),
        ("1.2", "1.2", ("a",), None),
        ("1.2.0", None, ("a",), None),
        (None, "1.0.0", ("a",), None),
        ("1.2.0", "1.2.0", ("a", "b"), None),
        ("1.2.0", "1.3.0", ("a", "b"), None),
        ("1.2.0", "1.1.0", ("a", "b"), "version.decreased"),
    ],
)
def test_a_declared_version_that_is_too_low_is_a_finding(
    tmp_path: Path,
    *,
    before: str | None,
    after: str | None,
    columns: tuple[str, ...],
    rule: str | None,
) -> None:
    old = write_snapshot(tmp_path, [table(0, "a", "b", version=before)])
    new = write_snapshot(tmp_path, [table(0, *columns, version=after)], day=1)
    with open_work(state_dir=tmp_path / "state", environment={}) as work:
        found = VersionController(work).compute(source=old, target=new)

    assert [change.rule for change in found.declared] == ([rule] if rule else [])


@pytest.mark.parametrize("history", [False, True], ids=["two snapshots", "the history"])
def test_a_policy_judges_declared_versions_too(tmp_path: Path, history: bool) -> None:
    old = write_snapshot(tmp_path, [table(0, "a", "b", version="1.2.0")])
    new = write_snapshot(tmp_path, [table(0, "a", version="1.3.0")], day=1)

    def declared(settings: str) -> list[ChangeLevel]:
        (tmp_path / "lumos.yaml").write_text(settings)
        config, state = tmp_path / "lumos.yaml", tmp_path / "state"
        with open_work(config=config, state_dir=state, environment={}) as work:
            if history:
                VersionController(work).apply(target=old)
            found = VersionController(work).compute(source=None if history else old, target=new)
            return [change.level for change in found.declared]

    rule = "version.major_missing"
    assert declared("{}") == [ChangeLevel.INFORMATIONAL]
    assert declared(f"change_policy: {{rules: {{{rule}: breaking}}}}") == [ChangeLevel.BREAKING]
    ignored = f"{{pattern: '*', rules: [{rule}], level: ignore, reason: ours}}"
    assert declared(f"change_policy: {{exceptions: [{ignored}]}}") == []


def test_a_version_declared_by_a_snapshot_is_held_against_the_history(
    controller: VersionController, tmp_path: Path
) -> None:
    controller.apply(target=write_snapshot(tmp_path, [table(0, "a", "b", version="1.2.0")]))
    new = write_snapshot(tmp_path, [table(0, "a", version="1.3.0")], day=1)

    (finding,) = controller.compute(target=new).declared

    assert (finding.rule, finding.old, finding.new) == ("version.major_missing", "1.2.0", "1.3.0")


def test_the_version_that_lumos_gave_is_no_declaration(
    work: UnitOfWork, controller: VersionController
) -> None:
    fill_catalog(work, [table(0, "a", "b")])
    controller.apply()
    fill_catalog(work, [table(0, "a")])

    assert controller.compute().counts.major == 1
    assert controller.compute().declared == ()


def test_no_more_versions_are_listed_than_asked_for(
    work: UnitOfWork, controller: VersionController
) -> None:
    fill_catalog(work, tables(5))

    found = controller.compute(limit=2)

    assert (len(found.versions), found.omitted, found.counts.first) == (2, 3, 5)
    assert len(controller.compute(limit=0).versions) == 5


def test_versions_are_shown_page_by_page(work: UnitOfWork, controller: VersionController) -> None:
    fill_catalog(work, tables(5))
    controller.apply()

    first = controller.show(limit=2)
    second = controller.show(limit=2, after=first.datasets[-1].dataset)
    third = controller.show(limit=2, after=second.datasets[-1].dataset)

    urns = [each.dataset for page in (first, second, third) for each in page.datasets]
    assert urns == [dataset.urn for dataset in tables(5)]
    assert {page.total for page in (first, second, third)} == {5}


def test_progress_is_told_after_each_batch(work: UnitOfWork, controller: VersionController) -> None:
    fill_catalog(work, tables(5))
    heard = Heard()
    controller.apply(batch_size=2, progress=heard)

    assert heard.stages == [("applying versions", 5)]
    assert heard.done == [2, 4, 5]


def test_without_a_state_there_is_nothing_to_scan(controller: VersionController) -> None:
    with pytest.raises(NoCatalogError):
        controller.compute()


class CountingDatabase(StateDatabase):
    """Counts the statements that it is asked to carry out."""

    statements = 0

    @override
    def query(self, sql: str, params: Parameters = {}) -> list[Row]:  # noqa: B006
        type(self).statements += 1
        return super().query(sql, params)


def test_a_scan_asks_a_fixed_number_of_questions_for_each_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scanned(count: int, *, changed: int) -> int:
        place = tmp_path / f"{count}-{changed}"
        with open_work(state_dir=place, environment={}, clock=lambda: LATER) as writing:
            fill_catalog(writing, tables(count))
            VersionController(writing).apply()
            fill_catalog(writing, tables(changed, state=1))
        monkeypatch.setattr("lumos.core.store.database.StateDatabase", CountingDatabase)
        CountingDatabase.statements = 0
        with open_work(state_dir=place, environment={}, clock=lambda: LATER) as reading:
            found = VersionController(reading).compute()
        monkeypatch.undo()
        assert found.counts == counts(patch=changed, unchanged=count - changed)
        return CountingDatabase.statements

    few, many = scanned(20, changed=3), scanned(1_100, changed=700)

    assert few <= 20
    assert many <= few * 3, "three pages"


def test_a_place_that_somebody_took_meanwhile_is_refused_whole(
    work: UnitOfWork, controller: VersionController
) -> None:
    from lumos.core.store.history import NewEntry

    fill_catalog(work, tables(2))
    controller.apply()
    history = HistoryRepository(work.writer)
    planner = controller._planner
    new: LumosDataset = table(9)
    fresh = planner.first(new, at=AT, author=None)
    taken = planner.first(table(0), at=AT, author=None)

    with pytest.raises(StateError):
        history.append_many(
            NewEntry(each.dataset.urn, 1, each.version, each.dataset, each.changes)
            for each in (fresh, taken)
        )

    assert history.versions(new.urn) == ()
