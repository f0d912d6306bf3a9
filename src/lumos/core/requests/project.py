"""Requests on a project as a whole, and those that need none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from lumos.core.requests.base import Request

if TYPE_CHECKING:
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


class InitRequest(Request["InitResult"]):
    """Write a first lumos.yaml and make the state database; nothing is overwritten."""

    operation: ClassVar[str] = "init"
    result: ClassVar[str] = "init"

    folder: Path = Field(default=Path(), description="Where to write it.")


class DoctorRequest(Request["DoctorReport"]):
    """Check Python, Java, Spark, settings, state and disk; connect to sources and catalogs."""

    operation: ClassVar[str] = "doctor"
    result: ClassVar[str] = "doctor"


class StateMoveRequest(Request["StateMoveResult"]):
    """Copy the whole state, history included, to another database, and compare both."""

    operation: ClassVar[str] = "state-move"
    result: ClassVar[str] = "state-move"

    to: str = Field(description="An empty place: a file, sqlite:///PATH or postgresql://….")


class ReportRequest(Request["CatalogReport"]):
    """Report on the catalog, and write one HTML page if a file is given."""

    operation: ClassVar[str] = "report"
    result: ClassVar[str] = "report"

    output: Path | None = Field(default=None, description="The file of the page.")


class RulesRequest(Request["RuleListing"]):
    """List the rules by which changes are judged."""

    operation: ClassVar[str] = "rules"
    result: ClassVar[str] = "rules"

    rule: str | None = Field(default=None, description="A rule, or the beginning of some.")
    profile: str = Field(default="lumos", description="Whom changes are judged for.")


class EngineStartRequest(Request["EngineResult"]):
    """Start a Spark that later commands on this machine use."""

    operation: ClassVar[str] = "engine-start"
    result: ClassVar[str] = "engine"

    idle_minutes: float = Field(default=30.0, description="It ends after so long without use.")


class EngineStopRequest(Request["EngineResult"]):
    """End the engine, also while it is used."""

    operation: ClassVar[str] = "engine-stop"
    result: ClassVar[str] = "engine"


class EngineStatusRequest(Request["EngineResult"]):
    """Return whether an engine runs and fits this project."""

    operation: ClassVar[str] = "engine-status"
    result: ClassVar[str] = "engine"


class DemoRequest(Request["DemoResult"]):
    """Make a small data lake, ingest it, change it, and show what Lumos noticed."""

    operation: ClassVar[str] = "demo"
    result: ClassVar[str] = "demo"

    folder: Path = Field(description="The folder to work in.")


class DemoCleanRequest(Request["DemoCleanResult"]):
    """Remove an earlier demo."""

    operation: ClassVar[str] = "demo-clean"
    result: ClassVar[str] = "demo-clean"

    folder: Path = Field(description="The folder of the demo.")


class RunRequest(Request["ChainResult"]):
    """Run operations in order; an error ends the chain."""

    operation: ClassVar[str] = "run"
    result: ClassVar[str] = "run"
    interim: ClassVar[str | None] = "run-report"

    steps: tuple[str, ...] = Field(description="Each is `operation` or `operation:argument`.")
