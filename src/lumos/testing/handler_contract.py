"""What every source handler must keep, as a pytest class to subclass.

    class TestOrc(HandlerContract):
        @pytest.fixture
        @override
        def source(self, tmp_path: Path) -> SourceCase:
            ...

The subclass builds a small real source with at least two readable datasets and one broken item.
"""
# ruff: noqa: S101 - asserting is what a contract does

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lumos.core.errors import LumosError
from lumos.core.models import LumosDataset, Urn
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.settings import InvalidSettingsError
from lumos.core.settings.confidential import pickle_with_credentials
from lumos.feature.ingestion.handlers.base_ingestion_handler import BaseIngestionHandler
from lumos.feature.ingestion.handlers.factory import AnyHandler, HandlerFactory
from lumos.feature.ingestion.records import PreviousScan

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.feature.ingestion.records import ScanUnit

_START = datetime(2024, 1, 1, tzinfo=UTC)
_PLANTED = "pl4nted-s3cret-value"


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


class HandlerContract:
    """The contract of a source handler."""

    @pytest.fixture
    @abstractmethod
    def source(self, tmp_path: Path) -> SourceCase:
        """A real source: two or more datasets, one broken item."""

    @pytest.fixture
    def handler(self, source: SourceCase) -> AnyHandler:
        """The handler of the source, made the way that users get it."""
        return HandlerFactory.get_handler(source.config)

    def test_it_says_its_type_and_the_name_of_its_source(
        self, handler: AnyHandler, source: SourceCase
    ) -> None:
        assert handler.source_type == source.config["type"]
        assert handler.name == source.config["name"]
        assert handler.source_type in HandlerFactory.names()

    def test_the_join_of_plan_and_scan_is_the_shared_one(self, handler: AnyHandler) -> None:
        assert type(handler).ingest is BaseIngestionHandler.ingest

    def test_planning_reads_no_data(self, handler: AnyHandler, source: SourceCase) -> None:
        if source.folder is None:
            pytest.skip("the source is not a folder of this machine")
        with _opened_files() as opened:
            units = tuple(handler.plan(PreviousScan()))
        inside = [path for path in opened if Path(path).is_relative_to(source.folder)]
        assert units, "a source that is there has something to scan"
        assert inside == [], "plan opened files of the source"

    def test_planning_twice_gives_the_same_units_in_the_same_order(
        self, handler: AnyHandler
    ) -> None:
        assert tuple(handler.plan(PreviousScan())) == tuple(handler.plan(PreviousScan()))

    def test_handler_and_units_travel_to_executors(
        self, handler: AnyHandler, source: SourceCase
    ) -> None:
        units = tuple(handler.plan(PreviousScan()))
        copies: tuple[ScanUnit, ...] = pickle.loads(pickle.dumps(units))  # noqa: S301
        assert copies == units
        assert len(pickle.dumps(units)) <= 10_000 * len(units), "units are small"
        twin: AnyHandler = pickle.loads(pickle_with_credentials(handler))  # noqa: S301
        assert _found(twin, copies) == _found(handler, units)

    def test_credentials_are_in_no_ordinary_pickle(self, handler: AnyHandler) -> None:
        if not handler.settings.has_credentials:
            pytest.skip("the source has no credentials")
        with pytest.raises(TypeError, match="must not be pickled"):
            pickle.dumps(handler)

    def test_every_dataset_is_found_once_under_its_name(
        self, handler: AnyHandler, source: SourceCase
    ) -> None:
        datasets, _ = _ingested(handler)
        urns = [str(dataset.urn) for dataset in datasets]
        assert len(urns) == len(set(urns)), "two datasets of one URN"
        assert set(urns) == set(source.datasets)
        assert len(urns) >= 2, "the contract needs a source with two datasets"  # noqa: PLR2004

    def test_datasets_are_canonical(self, handler: AnyHandler) -> None:
        for dataset in _ingested(handler)[0]:
            assert isinstance(dataset, LumosDataset)
            assert Urn(str(dataset.urn)).platform == dataset.platform
            assert dataset.name
            assert LumosDataset.from_json(dataset.to_json()) == dataset
            assert dataset.schema.fields, "a dataset without columns"

    def test_scanning_one_unit_never_yields_a_dataset_twice(self, handler: AnyHandler) -> None:
        for unit in handler.plan(PreviousScan()):
            urns = [record.urn for record in handler.scan(unit) if isinstance(record, LumosDataset)]
            assert len(urns) == len(set(urns))

    def test_running_twice_gives_equal_datasets_in_the_same_order(
        self, handler: AnyHandler, source: SourceCase
    ) -> None:
        first, first_report = _ingested(handler)
        second, second_report = _ingested(HandlerFactory.get_handler(source.config))
        assert first == second
        assert first_report == second_report

    def test_a_broken_item_is_named_with_its_reason_and_stops_nothing(
        self, handler: AnyHandler, source: SourceCase
    ) -> None:
        datasets, report = _ingested(handler)
        assert len(datasets) == len(source.datasets)
        named = [item for item in report.failed if source.broken_item in item.item]
        assert named, f"{source.broken_item} is missing in the failed items"
        assert named[0].reason
        assert named[0].code, "the reason is an error of Lumos, not a foreign one"
        assert len(report.failed) == 1
        assert report.counts.done == len(source.datasets)

    def test_a_broken_item_does_not_make_the_run_incomplete(self, handler: AnyHandler) -> None:
        assert _ingested(handler)[1].complete, "an item that exists is not a hole in the listing"

    def test_scanning_yields_lazily(self, handler: AnyHandler) -> None:
        unit = next(iter(handler.plan(PreviousScan())))
        records = handler.scan(unit)
        assert isinstance(records, Iterator), "scan returns everything at once"
        next(records)

    def test_a_missing_source_is_an_error_of_lumos_with_a_hint(self, source: SourceCase) -> None:
        if not source.missing:
            pytest.skip("the source has no settings that could point nowhere")
        handler = HandlerFactory.get_handler({**source.config, **source.missing})
        with pytest.raises(LumosError) as raised:
            _ingested(handler)
        assert raised.value.hint
        assert handler.name in raised.value.message

    def test_it_writes_nothing_to_the_source(self, handler: AnyHandler, source: SourceCase) -> None:
        if source.folder is None:
            pytest.skip("the source is not a folder of this machine")
        before = _fingerprint(source.folder)
        _ingested(handler)
        assert _fingerprint(source.folder) == before

    def test_an_unknown_setting_is_refused_by_name(self, source: SourceCase) -> None:
        with pytest.raises(InvalidSettingsError) as raised:
            HandlerFactory.get_handler({**source.config, "no_such_setting": "x"})
        assert "no_such_setting" in raised.value.message

    def test_a_refused_setting_is_never_echoed(self, source: SourceCase) -> None:
        config: dict[str, JsonValue] = {**source.config, "passwort": _PLANTED, "tokens": [_PLANTED]}
        with pytest.raises(InvalidSettingsError) as raised:
            HandlerFactory.get_handler(config)
        told = [str(raised.value), *raised.value.lines(), repr(raised.value)]
        assert not [text for text in told if _PLANTED in text]

    def test_settings_are_closed_and_frozen(self, handler: AnyHandler) -> None:
        config = handler.settings_model.model_config
        assert config.get("extra") == "forbid"
        assert config.get("frozen") is True
        assert config.get("hide_input_in_errors") is True


def _recorder() -> RunRecorder:
    return RunRecorder("ingest", started_at=_START, keep_done=True)


def _ingested(handler: BaseIngestionHandler[Any]) -> tuple[list[LumosDataset], RunReport]:
    recorder = _recorder()
    datasets = list(handler.ingest(recorder))
    return datasets, recorder.finish(at=_START)


def _found(handler: AnyHandler, units: tuple[ScanUnit, ...]) -> list[LumosDataset]:
    records = (record for unit in units for record in handler.scan(unit))
    return [record for record in records if isinstance(record, LumosDataset)]


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
