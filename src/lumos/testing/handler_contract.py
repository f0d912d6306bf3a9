"""What every source handler must keep, as pytest classes to subclass.

    class TestOrders(HandlerContract):
        @pytest.fixture
        @override
        def source(self, tmp_path: Path) -> SourceCase:
            ...

The subclass builds a small real source with at least two readable datasets and one broken item.
`HandlerContract` is for sources that yield records, `SourceContract` for storages of files. Both
run `lumos ingest` on a local Spark, which all tests of a process share.
"""
# ruff: noqa: S101 - asserting is what a contract does

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest

from lumos.core.errors import LumosError
from lumos.core.models import Contributor, LumosDataset, Urn
from lumos.core.settings import InvalidSettingsError
from lumos.core.settings.confidential import pickle_with_credentials
from lumos.feature.ingestion.handlers.factory import AnyHandler, HandlerFactory
from lumos.feature.ingestion.records import PreviousScan, ScannedScope
from lumos.feature.ingestion.scan.record_functions import scan_here
from lumos.spark.stages.rows import DATASET, PROBLEM_KINDS, UNIT_DONE, UNREADABLE, ScannedRow

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.controllers.results import IngestResult
    from lumos.feature.ingestion.handlers.base_ingestion_handler import RecordHandler
    from lumos.feature.ingestion.records import ScanUnit

_PLANTED = "pl4nted-s3cret-value"
_SPARK: Final[dict[str, JsonValue]] = {
    "master": "local[2]",
    "driver_memory": "1g",
    "conf": {"spark.sql.shuffle.partitions": 2},
}


@dataclass(frozen=True)
class SourceCase:
    """A real source for the contract."""

    config: Mapping[str, JsonValue]
    """Settings of the source as a person writes them, with `type` and `name`."""
    datasets: frozenset[str]
    """The URNs of all its readable datasets, two or more."""
    broken_item: str
    """Text that names the one item which cannot be read."""
    folder: Path | None = None
    """The folder that holds the source, where it is one on this machine."""
    missing: Mapping[str, JsonValue] = field(default_factory=dict)
    """Settings to replace so that the source as a whole is not there."""
    remove: Callable[[], str] | None = None
    """Removes one dataset from the source and returns its URN."""


@dataclass(frozen=True)
class ContractProject:
    """A project whose only source is that of the case."""

    folder: Path
    config: Mapping[str, JsonValue]

    def ingest(self, **replaced: JsonValue) -> IngestResult:
        """Do what `lumos ingest` does, with some settings of the source replaced.

        Raises:
            LumosError: the command would end with this error.
        """
        from lumos.bootstrap import Dispatcher
        from lumos.core.requests.sources import IngestRequest
        from lumos.core.runtime.project import Project

        source = _escaped({**self.config, **replaced})
        settings = {"sources": [source], "spark": _SPARK}
        self._settings_file.write_text(json.dumps(settings), encoding="utf-8")
        project = Project(config=self._settings_file, environment=os.environ)
        return Dispatcher(project).dispatch(IngestRequest())

    def show(self, urn: str) -> dict[str, Any]:
        """Return what `lumos show URN --json` prints."""
        from lumos.entry.cli.error_boundary import run_within_boundary
        from lumos.framework_cli import app

        words = ("--config", str(self._settings_file), "show", urn, "--json")
        printed = io.BytesIO()
        with redirect_stdout(io.TextIOWrapper(printed, encoding="utf-8", write_through=True)):
            code = run_within_boundary(app, words)
            content = printed.getvalue()
        assert code == 0, f"lumos show does not know {urn}"
        shown: dict[str, Any] = json.loads(content)
        return shown

    @property
    def _settings_file(self) -> Path:
        return self.folder / "lumos.yaml"


class SourceContract:
    """What every source keeps: safe settings, and `lumos ingest` over it."""

    scans_records: ClassVar[bool] = False

    @pytest.fixture
    @abstractmethod
    def source(self, tmp_path: Path) -> SourceCase:
        """A real source: two or more datasets, one broken item."""

    @pytest.fixture
    def handler(self, source: SourceCase) -> AnyHandler:
        """The handler of the source, made the way that users get it."""
        return HandlerFactory.get_handler(source.config)

    @pytest.fixture
    def contract_spark(self, pytestconfig: pytest.Config) -> None:
        """A local Spark that runs until the test run ends.

        Override it where the tests have a Spark session, which is then shared.
        """
        _SharedSpark.start(pytestconfig)

    @pytest.fixture
    def project(
        self,
        source: SourceCase,
        contract_spark: None,
        tmp_path_factory: pytest.TempPathFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> ContractProject:
        """A project of this test alone, whose only source is that of the case."""
        for variable in ("LUMOS_PLATFORM", "LUMOS_DATABASE_URL", "LUMOS_STATE_DIR"):
            monkeypatch.delenv(variable, raising=False)
        folder = tmp_path_factory.mktemp("project")
        monkeypatch.chdir(folder)
        return ContractProject(folder, source.config)

    def test_it_says_its_type_and_the_name_of_its_source(
        self, handler: AnyHandler, source: SourceCase
    ) -> None:
        assert handler.source_type == source.config["type"]
        assert handler.name == source.config["name"]
        assert handler.source_type in HandlerFactory.names()

    def test_it_is_read_either_as_files_or_by_records(self, handler: AnyHandler) -> None:
        scanner = handler.scanner()
        assert bool(handler.storages()) is (scanner is None)
        if scanner is not None:
            assert self.scans_records, "hold a source of records against HandlerContract"

    def test_credentials_are_in_no_ordinary_pickle(self, handler: AnyHandler) -> None:
        if not handler.settings.has_credentials:
            pytest.skip("the source has no credentials")
        with pytest.raises(TypeError, match="must not be pickled"):
            pickle.dumps(handler)

    def test_an_unknown_setting_is_refused_by_name(self, source: SourceCase) -> None:
        with pytest.raises(InvalidSettingsError) as raised:
            HandlerFactory.get_handler({**source.config, "no_such_setting": "x"})
        assert "no_such_setting" in raised.value.message

    def test_a_refused_setting_is_never_echoed(self, source: SourceCase) -> None:
        config: dict[str, JsonValue] = {**source.config, "passwort": _PLANTED, "tokens": [_PLANTED]}
        with pytest.raises(InvalidSettingsError) as raised:
            HandlerFactory.get_handler(config)
        shown = [str(raised.value), *raised.value.lines(), repr(raised.value)]
        assert not [text for text in shown if _PLANTED in text]

    def test_settings_are_closed_and_frozen(self, handler: AnyHandler) -> None:
        config = handler.settings_model.model_config
        assert config.get("extra") == "forbid"
        assert config.get("frozen") is True
        assert config.get("hide_input_in_errors") is True

    def test_lumos_ingest_stores_what_is_there_and_reports_what_is_gone(
        self, project: ContractProject, handler: AnyHandler, source: SourceCase
    ) -> None:
        """One project through four ingests: each starts Spark jobs, so no state is made twice."""
        first = self.check_that_every_dataset_is_stored(project, handler, source)
        self.check_that_a_second_ingest_finds_no_news(project, source, first=first)
        if source.missing:
            self.check_that_a_missing_source_removes_nothing(project, source)
        if source.remove is not None:
            self.check_that_a_removed_dataset_is_reported(project, source)
        if not source.missing:
            pytest.skip("passed; but the case has no settings that could point nowhere")
        if source.remove is None:
            pytest.skip("passed; but the case has no way to remove a dataset")

    def check_that_every_dataset_is_stored(
        self, project: ContractProject, handler: AnyHandler, source: SourceCase
    ) -> IngestResult:
        """Check that all datasets are stored and that the broken item is named."""
        before = _fingerprint(source.folder) if source.folder else {}

        result = project.ingest()

        assert result.datasets.found == result.datasets.created == len(source.datasets)
        assert len(source.datasets) >= 2, "the contract needs a source with two datasets"  # noqa: PLR2004
        _check_failures(result, source)
        contributor = str(Contributor(handler.contributes_as, handler.name))
        for urn in sorted(source.datasets):
            shown = project.show(urn)
            assert shown["schema"]["fields"], f"{urn} has no columns"
            assert contributor in {each["contributor"] for each in shown["contributions"]}
        if source.folder:
            assert _fingerprint(source.folder) == before, "the source was written to"
        return result

    def check_that_a_second_ingest_finds_no_news(
        self, project: ContractProject, source: SourceCase, *, first: IngestResult
    ) -> None:
        """Check that nothing changed and that the same snapshot is stored."""
        second = project.ingest()

        assert second.datasets.unchanged == second.datasets.found == len(source.datasets)
        assert (second.changes, second.versions) == ((), ())
        assert second.snapshot == first.snapshot
        _check_failures(second, source)

    def check_that_a_missing_source_removes_nothing(
        self, project: ContractProject, source: SourceCase
    ) -> None:
        """Check that it is named with a hint, and that all datasets stay."""
        with pytest.raises(LumosError) as raised:
            project.ingest(**source.missing)

        assert raised.value.hint
        assert str(source.config["name"]) in raised.value.message
        for urn in source.datasets:
            project.show(urn)

    def check_that_a_removed_dataset_is_reported(
        self, project: ContractProject, source: SourceCase
    ) -> None:
        """Check that what is gone from the source, and nothing else, is reported as removed."""
        assert source.remove is not None
        removed = source.remove()

        result = project.ingest()

        assert removed in source.datasets
        assert (result.datasets.removed, result.datasets.unchanged) == (
            1,
            len(source.datasets) - 1,
        ), "yield a ScannedScope for what a unit has listed in full"
        assert [(str(each.dataset), each.rule) for each in result.changes] == [
            (removed, "dataset.removed")
        ]


class HandlerContract(SourceContract):
    """What a source of records keeps: all of `SourceContract`, and how it plans and scans."""

    scans_records: ClassVar[bool] = True

    @pytest.fixture
    def scanner(self, handler: AnyHandler) -> RecordHandler:
        """The handler, as what plans and scans."""
        scanner = handler.scanner()
        assert scanner is not None, "a source of files is held against SourceContract"
        return scanner

    def test_planning_reads_no_data(self, scanner: RecordHandler, source: SourceCase) -> None:
        if source.folder is None:
            pytest.skip("the source is not a folder of this machine")
        with _opened_files() as opened:
            units = scanner.planned_units(PreviousScan())
        inside = [path for path in opened if Path(path).is_relative_to(source.folder)]
        assert units, "a source that is there has something to scan"
        assert inside == [], "plan opened files of the source"

    def test_planning_twice_gives_the_same_units_in_the_same_order(
        self, scanner: RecordHandler
    ) -> None:
        units = scanner.planned_units(PreviousScan())
        assert scanner.planned_units(PreviousScan()) == units

    def test_handler_and_units_travel_to_executors(self, scanner: RecordHandler) -> None:
        units = scanner.planned_units(PreviousScan())
        copies: tuple[ScanUnit, ...] = pickle.loads(pickle.dumps(units))  # noqa: S301
        assert copies == units
        assert len(pickle.dumps(units)) <= 10_000 * len(units), "units are small"
        twin: RecordHandler = pickle.loads(pickle_with_credentials(scanner))  # noqa: S301
        assert _found(twin, copies) == _found(scanner, units)

    def test_datasets_are_canonical(self, scanner: RecordHandler) -> None:
        for dataset in _found(scanner, scanner.planned_units(PreviousScan())):
            assert Urn(str(dataset.urn)).platform == dataset.platform
            assert dataset.name
            assert LumosDataset.from_json(dataset.to_json()) == dataset
            assert dataset.schema.fields, "a dataset without columns"

    def test_a_scan_never_yields_a_dataset_twice(
        self, scanner: RecordHandler, source: SourceCase
    ) -> None:
        found = _found(scanner, scanner.planned_units(PreviousScan()))
        urns = [str(dataset.urn) for dataset in found]
        assert len(urns) == len(set(urns)), "two datasets of one URN"
        assert set(urns) == set(source.datasets)

    def test_scanning_twice_gives_equal_records_in_the_same_order(
        self, scanner: RecordHandler, source: SourceCase
    ) -> None:
        again = HandlerFactory.get_handler(source.config).scanner()
        assert again is not None
        assert _rows(scanner) == _rows(again)

    def test_a_broken_item_is_named_with_its_reason_and_stops_nothing(
        self, scanner: RecordHandler, source: SourceCase
    ) -> None:
        rows = _rows(scanner)
        assert {row.key for row in rows if row.kind == DATASET} == source.datasets
        (broken,) = [row for row in rows if row.kind in PROBLEM_KINDS and row.code]
        assert broken.kind == UNREADABLE, "an item that exists is not a hole in the listing"
        assert source.broken_item in broken.key
        assert broken.reason

    def test_scanning_yields_lazily(self, scanner: RecordHandler) -> None:
        unit = scanner.planned_units(PreviousScan())[0]
        records = scanner.scan(unit)
        assert isinstance(records, Iterator), "scan returns everything at once"
        next(records)

    def test_every_dataset_lies_in_a_scope_that_its_unit_listed_in_full(
        self, scanner: RecordHandler
    ) -> None:
        for unit in scanner.planned_units(PreviousScan()):
            records = list(scanner.records(unit))
            scopes = [each.urn_prefix for each in records if isinstance(each, ScannedScope)]
            for dataset in (each for each in records if isinstance(each, LumosDataset)):
                assert any(_is_within(str(dataset.urn), scope) for scope in scopes), (
                    f"{dataset.urn} could never be removed: yield a ScannedScope"
                )


class _SharedSpark:
    """The Spark of this process, which the first test that needs it starts."""

    is_started = False

    @classmethod
    def start(cls, config: pytest.Config) -> None:
        from lumos.spark.java import cache_folder
        from lumos.spark.session import spark_session
        from lumos.spark.settings import SparkSettings

        if cls.is_started:
            return
        stack = ExitStack()
        config.add_cleanup(stack.close)
        settings = SparkSettings.model_validate(_SPARK)
        cache = cache_folder(os.environ)
        stack.enter_context(spark_session(settings, environment=os.environ, cache_dir=cache))
        cls.is_started = True


def _check_failures(result: IngestResult, source: SourceCase) -> None:
    """Check that the broken item failed, with an error of Lumos, and nothing else."""
    assert len(result.failed) == 1, [item.item for item in result.failed]
    (failure,) = result.failed
    assert source.broken_item in failure.item
    assert failure.reason
    assert failure.code, "the reason is an error of Lumos, not a foreign one"
    assert result.complete, "an item that exists is not a hole in the listing"


def _rows(scanner: RecordHandler) -> list[ScannedRow]:
    """Scan in this process, with the functions that executors use.

    Rows that say how long a unit took are left out: no two scans take the same time.
    """
    rows = scan_here(scanner, scanner.planned_units(PreviousScan()))
    return [row for row in rows if row.kind != UNIT_DONE]


def _found(scanner: RecordHandler, units: tuple[ScanUnit, ...]) -> list[LumosDataset]:
    records = (record for unit in units for record in scanner.records(unit))
    return [record for record in records if isinstance(record, LumosDataset)]


def _is_within(urn: str, prefix: str) -> bool:
    return urn == prefix or urn.startswith(prefix.rstrip("/") + "/")


def _escaped(value: JsonValue) -> JsonValue:
    """Return a value in which nothing is a variable."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_escaped(each) for each in value]
    if isinstance(value, dict):
        return {name: _escaped(each) for name, each in value.items()}
    return value


def _fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every entry below a folder: its mode, its time and what it holds."""
    entries = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = os.lstat(path)
        readable = path.is_file() and not path.is_symlink() and os.access(path, os.R_OK)
        content = hashlib.sha256(path.read_bytes()).hexdigest() if readable else ""
        entries[os.fsdecode(path)] = (status.st_mode, status.st_mtime_ns, content)
    return entries


class _OpenWatch:
    """Sees every file that this process opens; an audit hook cannot be taken away again."""

    installed = False
    lists: list[list[str]] = []  # noqa: RUF012 - shared on purpose, the hook is for ever

    @classmethod
    def install(cls) -> None:
        if not cls.installed:
            sys.addaudithook(cls._hook)
            cls.installed = True

    @classmethod
    def _hook(cls, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and cls.lists and isinstance(arguments[0], str | bytes):
            for opened in cls.lists:
                opened.append(os.fsdecode(arguments[0]))


@contextmanager
def _opened_files() -> Iterator[list[str]]:
    """Collect the path of every file that Python code opens meanwhile."""
    _OpenWatch.install()
    opened: list[str] = []
    _OpenWatch.lists.append(opened)
    try:
        yield opened
    finally:
        _OpenWatch.lists.remove(opened)
