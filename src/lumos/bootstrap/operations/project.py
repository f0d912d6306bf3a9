"""Carries out the requests on a project as a whole, and those that need none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.requests.project import (
    DemoCleanRequest,
    DemoRequest,
    DoctorRequest,
    EngineStartRequest,
    EngineStatusRequest,
    EngineStopRequest,
    InitRequest,
    ReportRequest,
    RulesRequest,
    RunRequest,
    StateMoveRequest,
)

if TYPE_CHECKING:
    from lumos.bootstrap.dispatcher import Call
    from lumos.core.controllers.engine_controller import EngineController
    from lumos.core.controllers.results import (
        ChainResult,
        DemoCleanResult,
        DemoResult,
        DoctorReport,
        EngineResult,
        InitResult,
        StateMoveResult,
    )
    from lumos.core.controllers.rules_controller import RuleListing
    from lumos.feature.extraction.catalog_report import CatalogReport


def init(call: Call, request: InitRequest) -> InitResult:
    from lumos.core.controllers.system_controller import SystemController

    return SystemController(call.work).init(request.folder)


def doctor(call: Call, _request: DoctorRequest) -> DoctorReport:
    from lumos.core.controllers.system_controller import SystemController

    return SystemController(call.work).doctor(call.listener.progress)


def move_state(call: Call, request: StateMoveRequest) -> StateMoveResult:
    from lumos.core.controllers.state_controller import StateController

    return StateController(call.work).move(request.to, call.listener.progress)


def report(call: Call, request: ReportRequest) -> CatalogReport:
    from lumos.core.controllers.report_controller import ReportController

    reports = ReportController(call.work)
    return reports.build() if request.output is None else reports.write(request.output)


def rules(_call: Call, request: RulesRequest) -> RuleListing:
    from lumos.core.controllers.rules_controller import list_rules

    return list_rules(request.rule, profile=request.profile)


def start_engine(call: Call, request: EngineStartRequest) -> EngineResult:
    return _engine(call).start(request.idle_minutes)


def stop_engine(call: Call, _request: EngineStopRequest) -> EngineResult:
    return _engine(call).stop()


def engine_status(call: Call, _request: EngineStatusRequest) -> EngineResult:
    return _engine(call).status()


def demo(call: Call, request: DemoRequest) -> DemoResult:
    from lumos.core.controllers.demo_controller import DemoController

    return DemoController(call.work).run(request.folder, progress=call.listener.progress)


def clean_demo(call: Call, request: DemoCleanRequest) -> DemoCleanResult:
    from lumos.core.controllers.demo_controller import DemoController
    from lumos.core.controllers.results import DemoCleanResult

    return DemoCleanResult(removed=DemoController(call.work).clean(request.folder))


def run(call: Call, request: RunRequest) -> ChainResult:
    from lumos.core.controllers.chain_controller import ChainController

    return ChainController(call.dispatcher).run(request.steps, on_step=call.listener.on_interim)


def _engine(call: Call) -> EngineController:
    from lumos.core.controllers.engine_controller import EngineController

    return EngineController(call.work)


OPERATIONS = {
    InitRequest: init,
    DoctorRequest: doctor,
    StateMoveRequest: move_state,
    ReportRequest: report,
    RulesRequest: rules,
    EngineStartRequest: start_engine,
    EngineStopRequest: stop_engine,
    EngineStatusRequest: engine_status,
    DemoRequest: demo,
    DemoCleanRequest: clean_demo,
    RunRequest: run,
}
