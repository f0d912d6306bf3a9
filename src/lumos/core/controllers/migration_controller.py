"""Moving all metadata from one catalog to another: export, check, import, compare, report."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from lumos.core.controllers.diff_controller import DiffController
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.results import MigrationResult
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.errors import GateFailedError, LumosError, StateError, UsageError
from lumos.core.events import running
from lumos.core.private_files import make_private_folder, tighten_below
from lumos.core.progress import SILENT, Progress
from lumos.core.redaction import redact
from lumos.core.run_report import ItemOutcome
from lumos.core.store.state_folder import MIGRATIONS
from lumos.feature.importing.plan import ImportMode
from lumos.feature.migration.checks import everything_moved
from lumos.feature.migration.page import Line, Listed, migration_page
from lumos.feature.migration.results import MigrationCheck, UnlikeDataset
from lumos.feature.snapshot.canonical_diff import MOST_NAMED
from lumos.feature.snapshot.fidelity_count import counted_fidelity
from lumos.feature.snapshot.forms import SnapshotForm
from lumos.feature.snapshot.pair_diff import Fate
from lumos.feature.snapshot.selection import ExportedPart

if TYPE_CHECKING:
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.feature.snapshot.diff import StreamedDiff

DEFAULT_BATCH: Final = 500
_UNFINISHED: Final = "unfinished"
_UNREADABLE: Final = "unreadable.json"


class MigrationController:
    """What `lumos migrate` does.

    The export is kept until the migration is over: one that was interrupted goes on with what it
    had exported, at the batch where the import stopped.
    """

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._snapshots = SnapshotController(work)
        self._diffs = DiffController(work)

    @running("migrate")
    def migrate(
        self,
        source: str,
        target: str,
        *,
        mode: ImportMode = ImportMode.UPDATE,
        dry_run: bool = False,
        restart: bool = False,
        batch_size: int = DEFAULT_BATCH,
        planned: Callable[[MigrationResult], None] = lambda _: None,
        progress: Progress = SILENT,
    ) -> MigrationResult:
        """Bring all that one catalog holds into another, and compare both afterwards.

        `planned` is called before the first write with what was exported and what the target keeps.

        Raises:
            UsageError: both are the same, or one is no catalog.
            GateFailedError: what was exported is not whole; nothing was written.
        """
        self._check(source, target)
        place = self._work.state_dir / MIGRATIONS / f"{_file_name(source)}-to-{_file_name(target)}"
        if dry_run:
            place /= "dry-run"  # beside what an interrupted migration goes on with
        progress.note(f"reading {_shown(source)}")
        resumed = self._export(source, place, restart=restart or dry_run, progress=progress)
        snapshot = place / "snapshot"
        validation = self._snapshots.validate(str(snapshot))
        if validation.status == "fail":
            raise GateFailedError(
                f"what {_shown(source)} holds did not pass the checks; nothing was written",
                hint=f"see: lumos validate {snapshot}",
            )
        fidelity = counted_fidelity(
            self._snapshots.opened(str(snapshot)), self._work.adapter_ref(target)
        )
        result = MigrationResult(
            source=_shown(source),
            target=_shown(target),
            dry_run=dry_run,
            resumed=resumed,
            snapshot=str(snapshot),
            validation=validation,
            fidelity=fidelity,
            unreadable=_kept_unreadable(place),
        )
        if dry_run:
            (place / _UNFINISHED).unlink(missing_ok=True)
            progress.note(f"comparing with {_shown(target)}")
            would = ImportController(self._work, target, migrating=True).run(
                str(snapshot), mode=mode, dry_run=True
            )
            return result.model_copy(update={"imported": would})
        planned(result)
        imported = ImportController(self._work, target, migrating=True).run(
            str(snapshot), mode=mode, batch_size=batch_size, restart=restart, progress=progress
        )
        progress.note(f"comparing with {_shown(target)}")
        compared = self._diffs.streamed(str(snapshot), target, canonical=True, progress=progress)
        with compared as found:
            checks = self._diffs.checks(
                found,
                source,
                target=target,
                own_versions=self._work.is_own(target),
                unreadable=_kinds(result.unreadable),
            )
            verdict = _verdict(found, checks or (), unreadable=result.unreadable)
            verdict.update(_named(found))
        done = result.model_copy(update={"imported": imported, **verdict})
        (place / _UNFINISHED).unlink(missing_ok=True)
        return _reported(done, place)

    def _check(self, source: str, target: str) -> None:
        known = ", ".join(self._snapshots.catalogs)
        for name in (source, target):
            if not self._snapshots.is_catalog(name):
                raise UsageError(
                    f"'{_shown(name)}' is no catalog",
                    hint=f"give one of {known}, or sqlite:///FILE of another Lumos catalog",
                )
        if self._work.is_same(source, target):
            raise UsageError("a catalog cannot be migrated to itself", hint="give another --to")

    def _export(self, source: str, place: Path, *, restart: bool, progress: Progress) -> bool:
        """Write what the source holds, unless an unfinished migration has done so."""
        mark, origin = place / _UNFINISHED, self._work.place(source)
        if not restart and _read(mark) == origin and self._opens(place / "snapshot"):
            return True
        try:
            make_private_folder(place)
            mark.unlink(missing_ok=True)
            exported = self._snapshots.export(
                place / "snapshot",
                ExportedPart(platform=source),
                form=SnapshotForm.FOLDER,
                progress=progress,
            )
            unreadable = [each.model_dump(mode="json") for each in exported.report.failed]
            (place / _UNREADABLE).write_bytes(orjson.dumps(unreadable))
            mark.write_text(origin, "utf-8")
            tighten_below(place)
        except OSError as error:
            raise _cannot_write(place, error) from error
        return False

    def _opens(self, snapshot: Path) -> bool:
        try:
            self._snapshots.opened(str(snapshot)).require_whole()
        except LumosError:
            return False
        return True


def _read(mark: Path) -> str | None:
    try:
        return mark.read_text("utf-8")
    except OSError:
        return None


def _kept_unreadable(place: Path) -> tuple[ItemOutcome, ...]:
    """Return what the export left out, also where an earlier run made it."""
    try:
        kept = orjson.loads((place / _UNREADABLE).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return ()
    return tuple(ItemOutcome.model_validate(each) for each in kept)


def _kinds(unreadable: tuple[ItemOutcome, ...]) -> tuple[str, ...]:
    return tuple(
        kind
        for each in unreadable
        for kind in ("dataset", "lineage_edge")
        if each.item.startswith(f"{kind.replace('_', ' ')} ")
    )


def _verdict(
    found: StreamedDiff,
    checks: tuple[MigrationCheck, ...],
    *,
    unreadable: tuple[ItemOutcome, ...],
) -> dict[str, object]:
    if unreadable:
        noun, verb = ("item", "was") if len(unreadable) == 1 else ("items", "were")
        message = f"{len(unreadable):,} {noun} of the source {verb} not readable"
        checks = (*checks, MigrationCheck(status="warn", message=message))
    verified = everything_moved(found.totals) and not unreadable
    return {
        "checks": checks,
        "differing": found.canonical.datasets if found.canonical else 0,
        "verified": verified,
        "arrived": verified and all(check.status == "ok" or check.declared for check in checks),
    }


def _named(found: StreamedDiff) -> dict[str, object]:
    """Name the datasets that a person has to look at, up to a number."""
    missing = (urn for fate, urn in found.urns() if fate in (Fate.REMOVED, Fate.UNOBSERVED))
    unlike = found.canonical.unlike if found.canonical else ()
    return {
        "missing": tuple(islice(missing, MOST_NAMED)),
        "unlike": tuple(UnlikeDataset(urn=each.urn, concepts=each.concepts) for each in unlike),
    }


def _reported(result: MigrationResult, place: Path) -> MigrationResult:
    files = (place / "report.json", place / "report.html")
    done = result.model_copy(update={"reports": tuple(str(file) for file in files)})
    try:
        files[0].write_bytes(orjson.dumps(done.as_json(), option=orjson.OPT_INDENT_2))
        files[1].write_text(_page(done), "utf-8")
        tighten_below(place)
    except OSError as error:
        raise _cannot_write(place, error) from error
    return done


def _page(done: MigrationResult) -> str:
    checks = {
        "Exported": [Line(each.status, each.message) for each in done.validation.checks],
        "Compared": [Line(each.status, each.message, each.examples) for each in done.checks],
    }
    lists = {
        "Not in the target": Listed.of(done.missing, of=len(done.missing)),
        "Not the same in the target": Listed.of(
            (f"{each.urn}: {', '.join(each.concepts).replace('_', ' ')}" for each in done.unlike),
            of=done.differing,
        ),
    }
    when = ""
    if done.imported is not None:
        report = done.imported.report
        when = f"{report.started_at:%Y-%m-%d %H:%M:%S} to {report.finished_at:%H:%M:%S} UTC"
        checks = {"Imported": [Line("ok", done.imported.in_words)], **checks}
        refused = (f"{item.item}: {item.reason or ''}" for item in report.failed)
        lists["Refused by the target"] = Listed.of(refused, of=len(report.failed))
    unreadable = (f"{item.item}: {item.reason or ''}" for item in done.unreadable)
    lists["Not readable in the source"] = Listed.of(unreadable, of=len(done.unreadable))
    return migration_page(
        f"Migration from {done.source} to {done.target}",
        _said(done),
        when=when,
        checks=checks,
        concepts=[(row.concept, row.count, row.fidelity.value) for row in done.fidelity.rows],
        lists={heading: found for heading, found in lists.items() if found.items},
    )


def _said(done: MigrationResult) -> str:
    """Say in a sentence how a migration ended, and no more than is true."""
    if not done.verified:
        return "Not everything arrived."
    if all(check.status == "ok" for check in done.checks):
        return "Everything arrived."
    if done.arrived:
        return f"Everything arrived that {done.target} keeps; what it drops is listed below."
    return "All datasets and lineage edges arrived, but not everything is the same: see below."


def _cannot_write(place: Path, error: OSError) -> StateError:
    reason = error.strerror or type(error).__name__
    return StateError(f"cannot write {place}: {reason}", hint="check the state folder and the disk")


def _file_name(catalog: str) -> str:
    """Return a name for files; an address gets a short hash, for it may hold anything."""
    if re.fullmatch(r"[a-z0-9_-]{1,40}", catalog):
        return catalog
    return f"catalog-{hashlib.sha256(catalog.encode()).hexdigest()[:12]}"


def _shown(catalog: str) -> str:
    """Return a catalog's name for people, without what an address may hold of secrets."""
    return redact(re.sub(r"://.*@", "://", catalog))
