"""Command line, SDK and chains dispatch the same requests, and nothing stays open after one."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Never

import pytest
import typer
from typing_extensions import override

from command_line import FEBRUARY, JANUARY, ORDERS
from lumos.bootstrap import Dispatcher
from lumos.core.controllers.chain_controller import STEPS
from lumos.core.errors import LumosError, NoCatalogError, PlatformUnavailableError
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.requests.base import Request
from lumos.core.requests.catalog import HistoryRequest, SearchRequest, ShowRequest
from lumos.core.requests.project import ReportRequest, RunRequest
from lumos.core.requests.registry import AREAS, request_class
from lumos.core.requests.snapshots import (
    DiffRequest,
    ExportRequest,
    ImportRequest,
    SnapshotCreateRequest,
)
from lumos.core.requests.sources import SyncRequest
from lumos.core.requests.versions import VersionApplyRequest
from lumos.core.runtime.project import Project
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.database import StateDatabase
from lumos.entry.sdk import Lumos
from lumos.framework_cli import app

COMMANDS: Mapping[str, str] = {
    "init": "init",
    "demo": "demo",
    "demo --clean": "demo-clean",
    "doctor": "doctor",
    "state move --to a.db": "state-move",
    "discover .": "discover",
    "ingest": "ingest",
    "sync --all --output other": "sync",
    "profile orders": "profile",
    "watch": "watch",
    "engine start": "engine-start",
    "engine stop": "engine-stop",
    "engine status": "engine-status",
    "search orders": "search",
    "list": "search",
    "show orders": "show",
    "show orders --trend": "show-trend",
    "history orders": "history",
    "history orders --blame": "history-blame",
    "compare orders": "compare",
    "version show": "version-show",
    "version compute": "version-compute",
    "version apply": "version-apply",
    "version history orders": "history",
    "alerts list": "alerts-list",
    "alerts send": "alerts-send",
    "alerts test mail": "alerts-test",
    "report": "report",
    "snapshot create": "snapshot-list",
    "snapshot list": "snapshot-list",
    "snapshot verify": "snapshot-verify",
    "snapshot sign latest --key k": "snapshot-sign",
    "snapshot prune --keep-last 1": "snapshot-prune",
    "export --output a.json": "export",
    "export --output -": "export",
    "validate a.json": "validate",
    "import a.json": "import",
    "diff --source a.json --target b.json": "diff",
    "migrate --from datahub --to atlas": "migrate",
    "rules": "rules",
    "ownership users a.yaml": "ownership-users",
    "ownership groups a.yaml": "ownership-groups",
    "ownership assign a.yaml": "ownership-assign",
    "enrich a.yaml": "enrich",
    "run snapshot": "run",
}
METHODS: Mapping[str, tuple[str, tuple[object, ...]]] = {
    "search": ("search", ("orders",)),
    "dataset": ("show", ("orders",)),
    "history": ("history", ("orders",)),
    "trend": ("show-trend", ("orders",)),
    "blame": ("history-blame", ("orders",)),
    "compute_versions": ("version-compute", ()),
    "apply_versions": ("version-apply", ()),
    "increment_version": ("version-increment", ("orders", "DATA_UPDATE")),
    "compare": ("compare", ("orders",)),
    "diff": ("diff", ("a", "b")),
    "snapshot": ("snapshot-create", ()),
    "export": ("export", ("a.json",)),
    "import_": ("import", ("a.json",)),
    "validate": ("validate", ("a.json",)),
    "sync": ("sync", ("datahub",)),
    "migrate": ("migrate", ("datahub", "atlas")),
    "ingest": ("ingest", ()),
    "profile": ("profile", ("orders",)),
    "report": ("report", ("a.html",)),
    "discover": ("discover", ("lake",)),
    "watch": ("watch", ()),
    "create_users": ("ownership-users", ("a.yaml",)),
    "create_groups": ("ownership-groups", ("a.yaml",)),
    "assign_owners": ("ownership-assign", ("a.yaml",)),
    "enrich": ("enrich", ("a.yaml",)),
    "alerts": ("alerts-list", ()),
    "send_alerts": ("alerts-send", ()),
}
NOT_OPERATIONS = {"close", "dispatch"}


class Dispatched(BaseException):
    """Carries the request that was dispatched, in place of carrying it out."""


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let every dispatch end with the request, and every unit of work with an error."""

    def dispatched(_self: Dispatcher, request: Request[object], *_: object) -> Never:
        raise Dispatched(request)

    def opened(*_: object, **__: object) -> Never:
        raise AssertionError("a unit of work was opened by a way around the dispatcher")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Dispatcher, "dispatch", dispatched)
    monkeypatch.setattr(Dispatcher, "stream", dispatched)
    monkeypatch.setattr(UnitOfWork, "__init__", opened)


@pytest.mark.parametrize(("arguments", "operation"), COMMANDS.items(), ids=COMMANDS)
@pytest.mark.usefixtures("stopped")
def test_a_command_dispatches_its_request(arguments: str, operation: str) -> None:
    with pytest.raises(Dispatched) as dispatched:
        app(arguments.split(), standalone_mode=False)

    (request,) = dispatched.value.args
    assert request.operation == operation


def test_every_command_is_listed_here() -> None:
    assert {_leaf(each) for each in COMMANDS} == set(_commands())


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.usefixtures("stopped")
def test_a_method_of_the_sdk_dispatches_its_request(name: str) -> None:
    operation, arguments = METHODS[name]
    with pytest.raises(Dispatched) as dispatched:
        getattr(Lumos(environment={}), name)(*arguments)

    (request,) = dispatched.value.args
    assert request.operation == operation


def test_every_method_of_the_sdk_is_listed_here() -> None:
    public = {name for name, _ in inspect.getmembers(Lumos, inspect.isfunction)}

    assert {name for name in public if not name.startswith("_")} - NOT_OPERATIONS == set(METHODS)


def test_every_step_of_a_chain_is_a_request_of_the_registry() -> None:
    for operation in STEPS.values():
        request = operation.request("argument")

        assert type(request) is request_class(request.operation)
    assert request_class("run") is RunRequest
    assert "run" in AREAS


class Opened:
    """Which databases and adapters are open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.databases: set[StateDatabase] = set()
        self.most = 0
        self.adapters: list[_Adapter] = []
        begin, end = StateDatabase.__init__, StateDatabase.close

        def opened(database: StateDatabase, *arguments: Any, **options: Any) -> None:
            begin(database, *arguments, **options)
            self.databases.add(database)
            self.most = max(self.most, len(self.databases))

        def closed(database: StateDatabase) -> None:
            end(database)
            self.databases.discard(database)

        def create(name: str, given: Mapping[str, object]) -> _Adapter:
            adapter = _Adapter(StateDatabase.open(str(given["database"])))
            self.adapters.append(adapter)
            return adapter

        monkeypatch.setattr(StateDatabase, "__init__", opened)
        monkeypatch.setattr(StateDatabase, "close", closed)
        monkeypatch.setattr(PlatformFactory, "create", staticmethod(create))


class _Adapter(EmbeddedHandler):
    name = "datahub"
    is_open = True
    fails = False

    @override
    def close(self) -> None:
        self.is_open = False
        super().close()

    @override
    def reached(self) -> str:
        if self.fails:
            raise PlatformUnavailableError("the catalog is away")
        return self.name


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    return Opened(monkeypatch)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "lumos.yaml"
    other = tmp_path / "other.db"
    config.write_text(f"platform_config: {{datahub: {{database: {other}}}}}\n", "utf-8")
    return Project(config=config, environment={})


def _requests(folder: Path) -> list[Request[object]]:
    return [
        ImportRequest(snapshot=JANUARY),
        ShowRequest(dataset=ORDERS, contributions=True),
        SearchRequest(text="orders", catalogs=("embedded", "datahub")),
        HistoryRequest(dataset=ORDERS),
        SnapshotCreateRequest(),
        SyncRequest(output="datahub"),
        SyncRequest(output=f"sqlite:///{folder / 'third.db'}"),
        DiffRequest(source="datahub", target="embedded"),
        VersionApplyRequest(),
        ReportRequest(),
        RunRequest(steps=(f"import:{FEBRUARY}", "snapshot", "sync:datahub")),
    ]


def test_after_each_request_nothing_is_open_and_anybody_may_write(
    project: Project, opened: Opened, tmp_path: Path
) -> None:
    for request in _requests(tmp_path):
        opened.most = 0
        Dispatcher(project).dispatch(request)

        assert opened.most, request
        assert not opened.databases, request
        assert not any(adapter.is_open for adapter in opened.adapters), request
        with StateDatabase.open(tmp_path / ".lumos" / "lumos.db") as database:
            assert database.query("SELECT * FROM leases WHERE token <> ''") == [], request
    assert len(opened.adapters) >= 4, "each request has adapters of its own"


def test_after_a_stream_nothing_is_open(project: Project, opened: Opened, tmp_path: Path) -> None:
    dispatcher = Dispatcher(project)
    dispatcher.dispatch(ImportRequest(snapshot=JANUARY))
    with dispatcher.stream(DiffRequest(source=JANUARY, target="embedded")) as compared:
        assert compared.found.totals is not None
    with dispatcher.stream(ExportRequest(output=Path("-"))) as pieces:
        assert b"".join(pieces).startswith(b"{")
    stopped = dispatcher.stream(ExportRequest(output=Path("-")))
    with pytest.raises(ZeroDivisionError), stopped as pieces:
        raise ZeroDivisionError(next(pieces))

    assert not opened.databases


def test_nothing_is_open_after_a_request_that_fails(
    project: Project, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = Dispatcher(project)
    with pytest.raises(NoCatalogError):
        dispatcher.dispatch(ShowRequest(dataset=ORDERS))
    dispatcher.dispatch(ImportRequest(snapshot=JANUARY))
    monkeypatch.setattr(_Adapter, "fails", True)
    for request in (
        ShowRequest(dataset="lumos://s3/nowhere"),
        SyncRequest(output="datahub"),
        RunRequest(steps=("snapshot", "sync:datahub")),
    ):
        with pytest.raises(LumosError):
            dispatcher.dispatch(request)

        assert not opened.databases, request
        assert not any(adapter.is_open for adapter in opened.adapters), request


def test_a_unit_of_work_closes_the_rest_when_one_of_its_parts_does_not_close(
    project: Project, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    Dispatcher(project).dispatch(ImportRequest(snapshot=JANUARY))

    def refused(_: _Adapter) -> Never:
        raise ZeroDivisionError

    monkeypatch.setattr(_Adapter, "close", refused)
    work = UnitOfWork(project)
    _ = work.reader, work.platform("datahub")
    assert len(opened.databases) == 2
    with pytest.raises(ZeroDivisionError):
        work.__exit__(None, None, None)

    (left,) = opened.databases
    left.close()


def test_two_projects_of_one_process_share_nothing(tmp_path: Path) -> None:
    sides = []
    for name, snapshot in (("a", JANUARY), ("b", FEBRUARY)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lumos.yaml").write_text(f"cloud_version_prefix: {name}-\n", "utf-8")
        project = Project(config=tmp_path / name / "lumos.yaml", environment={"NAME": name})
        sides.append((Dispatcher(project), snapshot))
    for dispatcher, snapshot in sides:
        dispatcher.dispatch(ImportRequest(snapshot=snapshot))
    (one, _), (other, _) = sides

    assert one.project.settings.cloud_version_prefix == "a-"
    assert other.project.settings.cloud_version_prefix == "b-"
    assert one.dispatch(SearchRequest()).total != other.dispatch(SearchRequest()).total
    assert one.of(other.project.config).project.state_dir == other.project.state_dir
    assert one.of(None) is one.of(one.project.config) is one


def test_a_project_never_changes(tmp_path: Path) -> None:
    environment = {"A": "1"}
    project = Project(environment=environment, given_state_dir=tmp_path)
    environment["A"] = "2"

    assert project.environment["A"] == "1"
    assert "A" not in repr(project), "it may hold a secret"
    with pytest.raises(AttributeError):
        project.given_state_dir = None  # type: ignore[misc]
    with pytest.raises(TypeError):
        project.environment["A"] = "3"  # type: ignore[index]


def _leaf(arguments: str) -> str:
    words = arguments.split()
    groups = {"state", "engine", "version", "alerts", "snapshot", "ownership"}
    return " ".join(words[:2] if words[0] in groups else words[:1])


def _commands() -> Iterator[str]:
    top: Any = typer.main.get_command(app)
    context = top.make_context("lumos", [], resilient_parsing=True)
    for name in top.list_commands(context):
        command = top.get_command(context, name)
        inner = getattr(command, "commands", None)
        if inner:
            yield from (f"{name} {each}" for each in inner)
        else:
            yield name
