"""Starting a project and checking that everything it needs is there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.controllers.results import DoctorCheck, DoctorReport, InitResult
from lumos.core.errors import LumosError, NoCatalogError, StateError, StateReadOnlyError
from lumos.core.events import running
from lumos.core.progress import SILENT, Progress
from lumos.core.redaction import PROCESS_SECRETS, redact
from lumos.core.settings import SETTINGS_FILE, InvalidSettingsError

if TYPE_CHECKING:
    from lumos.core.store.integrity import DocumentCheck
    from lumos.feature.ingestion.reaching import SourceAttempts
    from lumos.spark.settings import SparkSettings

_LOW_DISK_BYTES = 1 << 30
_SETTINGS = "settings"
_VARIABLES = "environment variables"
_SOURCE = "source "
_STATE = "state database"
_DOCUMENTS = "stored documents"
_MINIMUM_PYTHON = (3, 11)


class SystemController:
    """What `lumos init` and `lumos doctor` do."""

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        load_settings: Callable[[], str],
        unset_variables: Callable[[], InvalidSettingsError | None],
        spark_settings: Callable[[], SparkSettings],
        state_dir: Callable[[], Path],
        make_state: Callable[[], str],
        look_at_state: Callable[[], str],
        check_documents: Callable[[Progress], DocumentCheck],
        reach_platform: Callable[[str | None], str],
        other_platforms: Callable[[], tuple[str, ...]],
        reach_sources: Callable[[], SourceAttempts],
        clock_warnings: Callable[[], tuple[str, ...]],
    ) -> None:
        """Take the parts as functions: each may fail, and doctor must then still check the rest."""
        self._environment = environment
        self._load_settings = load_settings
        self._unset_variables = unset_variables
        self._spark_settings = spark_settings
        self._state_dir = state_dir
        self._make_state = make_state
        self._look_at_state = look_at_state
        self._check_documents = check_documents
        self._reach_platform = reach_platform
        self._other_platforms = other_platforms
        self._reach_sources = reach_sources
        self._clock_warnings = clock_warnings

    def init(self, folder: Path) -> InitResult:
        """Write a commented `lumos.yaml` unless there is one, and make the state database.

        Raises:
            StateReadOnlyError: the folder cannot be written.
        """
        target = folder / SETTINGS_FILE
        template = files("lumos").joinpath("templates", SETTINGS_FILE).read_text("utf-8")
        try:
            with target.open("x", encoding="utf-8") as stream:
                stream.write(template)
            created = True
        except FileExistsError:
            created = False
        except OSError as error:
            raise StateReadOnlyError(
                f"cannot write {target}: {os.strerror(error.errno or 0)}",
                hint="run lumos init in a folder that you may write to",
            ) from None
        self._load_settings()
        return InitResult(
            settings_file=str(target), settings_created=created, state=self._make_state()
        )

    @running("doctor")
    def doctor(self, progress: Progress = SILENT) -> DoctorReport:
        """Run every check, which only looks; one that fails does not stop the others."""
        checks: list[tuple[str, Callable[[], str]]] = [
            ("python", self._python),
            ("java", self._java),
            ("spark", self._spark),
            (_SETTINGS, self._load_settings),
            (_VARIABLES, self._variables),
            (_STATE, self._look_at_state),
            (_DOCUMENTS, partial(self._documents, progress)),
            ("disk", self._disk),
            ("clock", self._clock),
            ("catalog", partial(self._reach_platform, None)),
        ]
        with suppress(LumosError):  # the check of the settings reports it
            attempts = self._reach_sources()  # they answer while other things are checked
            checks += (
                (f"{_SOURCE}{PROCESS_SECRETS.redact(name)}", partial(attempts.outcome, name))
                for name in attempts.names
            )
            others = self._other_platforms()
            checks += (
                (f"catalog {redact(name)}", partial(self._reach_platform, name)) for name in others
            )
        done: list[DoctorCheck] = []
        for name, check in checks:
            if name == _DOCUMENTS and done[-1].status != "ok":
                continue  # without a state database there are none
            told = {
                line: each.name
                for each in done
                if each.name == _SETTINGS or (each.name == _VARIABLES and name.startswith(_SOURCE))
                for line in each.detail.splitlines()
            }
            done.append(_checked(name, check, told=told))
        return DoctorReport(checks=tuple(done))

    def _python(self) -> str:
        version = ".".join(map(str, sys.version_info[:3]))
        if sys.version_info < _MINIMUM_PYTHON:
            raise LumosError(f"Python {version} is too old", hint="use Python 3.11 or newer")
        return f"Python {version}"

    def _java(self) -> str:
        from lumos.spark.java import find_java

        runtime = find_java(self._environment)
        return f"Java {runtime.version} from {runtime.origin}"

    def _spark(self) -> str:
        from lumos.spark.options import exposures

        try:
            version = f"PySpark {metadata.version('pyspark')}"
        except metadata.PackageNotFoundError:
            raise LumosError("PySpark is not installed", hint="pip install pyspark") from None
        try:
            settings = self._spark_settings()
        except LumosError:  # the check of the settings reports it
            return version
        if found := exposures(settings):
            raise _Warning("; ".join([version, *found]))
        return version

    def _documents(self, progress: Progress) -> str:
        found = self._check_documents(progress)
        if not found.damaged:
            return f"{found.documents:,} match their checksums"
        names = ", ".join(f"{each.kind} {each.name}" for each in found.named)
        left = found.damaged - len(found.named)
        more = f" and {left:,} more" if left else ""
        raise StateError(
            f"{found.damaged:,} of {found.documents:,} do not match their checksums: {names}{more}",
            hint="import them from a snapshot, or restore a backup of the state",
        )

    def _disk(self) -> str:
        folder = self._state_dir()
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free
        if free < _LOW_DISK_BYTES:
            raise _Warning(f"{free / (1 << 20):.0f} MiB free for the state folder")
        return f"{free / (1 << 30):.0f} GiB free"

    def _variables(self) -> str:
        if unset := self._unset_variables():
            raise _Warning("\n".join(unset.lines()))
        return "all that the settings need are set"

    def _clock(self) -> str:
        if warnings := self._clock_warnings():
            raise _Warning("\n".join(warnings))
        return "no snapshot is dated in the future"


class _Warning(Exception):  # noqa: N818 - not an error: it carries a finding out of a check
    pass


def _checked(name: str, check: Callable[[], str], *, told: Mapping[str, str]) -> DoctorCheck:
    """Carry out a check; what an earlier one said of the settings is not said again.

    Args:
        name: of the check.
        check: what it does.
        told: the lines that were printed, and by which check.
    """
    try:
        return DoctorCheck(name=name, status="ok", detail=check())
    except _Warning as finding:
        return DoctorCheck(name=name, status="warn", detail=str(finding))
    except NoCatalogError as error:
        return DoctorCheck(name=name, status="warn", detail=error.message, hint=error.hint)
    except InvalidSettingsError as error:
        detail = "\n".join(error.lines())
        if detail and all(line in told for line in detail.splitlines()):
            see = told[detail.splitlines()[0]]
            return DoctorCheck(name=name, status="warn", detail=f"not checked: see {see}")
        return DoctorCheck(name=name, status="fail", detail=detail, hint=error.hint)
    except LumosError as error:
        return DoctorCheck(name=name, status="fail", detail=error.message, hint=error.hint)
