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
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.errors import LumosError, NoCatalogError, StateError, StateReadOnlyError
from lumos.core.events import running
from lumos.core.platform.http import impatient
from lumos.core.private_files import write_private_text
from lumos.core.progress import SILENT, Progress
from lumos.core.redaction import PROCESS_SECRETS, redact
from lumos.core.settings import SETTINGS_FILE, InvalidSettingsError
from lumos.core.settings.models import STATE_FOLDER
from lumos.core.store.integrity import check_documents, check_structure
from lumos.core.store.state_folder import SETTINGS_SCHEMA
from lumos.feature.ingestion.reaching import SourceAttempts
from lumos.feature.ingestion.source_types import is_planned

if TYPE_CHECKING:
    from lumos.core.runtime.unit_of_work import UnitOfWork

_LOW_DISK_BYTES = 1 << 30
_SETTINGS = "settings"
_VARIABLES = "environment variables"
_SOURCE = "source "
_STATE = "state database"
_DOCUMENTS = "stored documents"
_MINIMUM_PYTHON = (3, 11)
DOCTOR_SECONDS = 10.0
"""How long somebody who asks for the state of a catalog waits for one answer of it."""


class SystemController:
    """What `lumos init` and `lumos doctor` do."""

    def __init__(self, work: UnitOfWork) -> None:
        """Take what a project holds; any part of it may fail, and the other checks go on."""
        self._work = work

    def init(self, folder: Path) -> InitResult:
        """Write a commented `lumos.yaml` unless there is one, and make the state database.

        Beside the state lies the JSON Schema of the settings, which the first line of `lumos.yaml`
        names for editors. `.gitignore` gets the state and `.env`.

        Raises:
            StateReadOnlyError: the folder cannot be written.
        """
        target = folder / SETTINGS_FILE
        template = files("lumos").joinpath("templates", SETTINGS_FILE).read_text("utf-8")
        try:
            with target.open("x", encoding="utf-8") as stream:
                stream.write(f"# yaml-language-server: $schema={self._schema_place(folder)}\n")
                stream.write(template)
            created = True
        except FileExistsError:
            created = False
        except OSError as error:
            raise _not_writable(target, error) from None
        _ = self._work.settings
        state = self._work.writer.place
        try:
            self._work.prepare_state_folder()
            schema = files("lumos").joinpath("schemas", SETTINGS_SCHEMA).read_text("utf-8")
            write_private_text(self._work.state_dir / SETTINGS_SCHEMA, schema)
            ignored = _ignore_in_git(folder / ".gitignore", (f"{STATE_FOLDER}/", ".env"))
        except OSError as error:
            raise _not_writable(folder, error) from None
        return InitResult(
            settings_file=str(target), settings_created=created, state=state, ignored=ignored
        )

    def _schema_place(self, folder: Path) -> str:
        """Return where the schema of the settings will be, as seen from a new settings file."""
        given = self._work.project.given_state_dir
        place = (given or folder / STATE_FOLDER) / SETTINGS_SCHEMA
        return Path(os.path.relpath(place.absolute(), folder.absolute())).as_posix()

    @running("doctor")
    def doctor(self, progress: Progress = SILENT) -> DoctorReport:
        """Run every check, which only looks; one that fails does not stop the others."""
        checks: list[tuple[str, Callable[[], str]]] = [
            ("python", self._python),
            ("java", self._java),
            ("spark", self._spark),
            (_SETTINGS, self._settings),
            (_VARIABLES, self._variables),
            (_STATE, self._state),
            (_DOCUMENTS, partial(self._documents, progress)),
            ("disk", self._disk),
            ("clock", self._clock),
            ("catalog", partial(self._platform, None)),
        ]
        with suppress(LumosError):  # the check of the settings reports it
            attempts = self._source_attempts()  # they answer while other things are checked
            checks += (
                (f"{_SOURCE}{PROCESS_SECRETS.redact(name)}", partial(attempts.outcome, name))
                for name in attempts.names
            )
            others = self._other_platforms()
            checks += (
                (f"catalog {redact(name)}", partial(self._platform, name)) for name in others
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

        runtime = find_java(self._work.environment)
        return f"Java {runtime.version} from {runtime.origin}"

    def _spark(self) -> str:
        from lumos.spark.options import exposures

        try:
            version = f"PySpark {metadata.version('pyspark')}"
        except metadata.PackageNotFoundError:
            raise LumosError("PySpark is not installed", hint="pip install pyspark") from None
        try:
            settings = self._work.settings.spark
        except LumosError:  # the check of the settings reports it
            return version
        if found := exposures(settings):
            raise _Warning("; ".join([version, *found]))
        return version

    def _settings(self) -> str:
        file = self._work.settings.file
        if file is None:
            return "no lumos.yaml here; the defaults are used"
        if not self._work.settings.change_policy.exceptions:
            return f"{file} is valid"
        expired = len(self._work.policy.expired(self._work.clock()))
        counted = f"; expired exceptions of the change policy: {expired}" if expired else ""
        return f"{file} is valid{counted}"

    def _state(self) -> str:
        check_structure(self._work.reader)
        return self._work.reader.place

    def _platform(self, name: str | None) -> str:
        with impatient(DOCTOR_SECONDS):
            return f"{self._work.platform(name).reached()} answers"

    def _source_attempts(self) -> SourceAttempts:
        entries = self._work.settings.sources
        read = [entry for entry in entries if not is_planned(entry.type)]
        return SourceAttempts(read, seconds=DOCTOR_SECONDS)

    def _other_platforms(self) -> tuple[str, ...]:
        """Return the catalogs of the settings that are not the project's own."""
        settings = self._work.settings
        named = {*settings.platform_config, *settings.platforms}
        return tuple(sorted(named - {settings.platform}))

    def _documents(self, progress: Progress) -> str:
        found = check_documents(self._work.reader, progress)
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
        folder = self._work.state_dir
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free
        if free < _LOW_DISK_BYTES:
            raise _Warning(f"{free / (1 << 20):.0f} MiB free for the state folder")
        return f"{free / (1 << 30):.0f} GiB free"

    def _variables(self) -> str:
        if unset := self._work.settings.unset_variables():
            raise _Warning("\n".join(unset.lines()))
        return "all that the settings need are set"

    def _clock(self) -> str:
        if warnings := SnapshotController(self._work).list().warnings:
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


def _ignore_in_git(file: Path, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Add lines to a `.gitignore` that it lacks, and return them."""
    text = file.read_text("utf-8") if file.exists() else ""
    known = {line.strip().strip("/") for line in text.splitlines()}
    missing = tuple(line for line in wanted if line.strip("/") not in known)
    if missing:
        separator = "\n" if text and not text.endswith("\n") else ""
        with file.open("a", encoding="utf-8") as stream:
            stream.write(separator + "".join(f"{line}\n" for line in missing))
    return missing


def _not_writable(place: Path, error: OSError) -> StateReadOnlyError:
    return StateReadOnlyError(
        f"cannot write {place}: {os.strerror(error.errno or 0)}",
        hint="run lumos init in a folder that you may write to",
    )
