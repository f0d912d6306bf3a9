"""Moving all metadata from one catalog to another: export, check, import, compare, report."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from lumos.core.controllers.migration_checks import everything_moved, migration_checks
from lumos.core.controllers.results import MigrationCheck, MigrationResult
from lumos.core.errors import GateFailedError, LumosError, StateError, UsageError
from lumos.core.models import LineageEdge
from lumos.core.platform.fidelity import FidelityCount, FidelityReport
from lumos.core.redaction import redact
from lumos.core.store.part_format import dataset_of, item_of
from lumos.feature.migration.page import Line, migration_page
from lumos.feature.snapshot.forms import SnapshotForm
from lumos.feature.snapshot.import_plan import ImportMode
from lumos.feature.snapshot.selection import ExportedPart
from lumos.feature.snapshot.source import section_lines

if TYPE_CHECKING:
    from lumos.core.controllers.diff_controller import DiffController
    from lumos.core.controllers.import_controller import ImportController
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.platform.fidelity import Keeper
    from lumos.feature.snapshot.diff import DiffTotals
    from lumos.feature.snapshot.source import SnapshotSource

DEFAULT_BATCH: Final = 500
_UNFINISHED: Final = "unfinished"
_MOST_FAILED: Final = 100
_COUNTED: Final = {
    "jobs": "job",
    "users": "user",
    "groups": "group",
    "tags": "tag_definition",
    "glossary": "glossary_term",
    "domains": "domain_definition",
    "identity_map": "identity",
    "extensions": "catalog_extension",
}


class MigrationController:
    """What `lumos migrate` does.

    The export is kept until the migration is over: one that was interrupted goes on with what it
    had exported, at the batch where the import stopped.
    """

    def __init__(
        self,
        *,
        snapshots: Callable[[], SnapshotController],
        diffs: Callable[[], DiffController],
        importer: Callable[[str], ImportController],
        keeper: Callable[[str], Keeper],
        place_of: Callable[[str], str],
        folder: Callable[[], Path],
    ) -> None:
        """Take the ways to the parts.

        Args:
            snapshots: exports and checks.
            diffs: compares.
            importer: imports into a catalog.
            keeper: what tells how a catalog keeps things.
            place_of: what tells a catalog from another that once had its name in the settings.
            folder: where exports and reports are kept.
        """
        self._snapshots = snapshots
        self._diffs = diffs
        self._importer = importer
        self._keeper = keeper
        self._place_of = place_of
        self._folder = folder

    def migrate(
        self,
        source: str,
        target: str,
        *,
        mode: ImportMode = ImportMode.UPDATE,
        dry_run: bool = False,
        restart: bool = False,
        batch_size: int = DEFAULT_BATCH,
    ) -> MigrationResult:
        """Bring all that one catalog holds into another, and compare both afterwards.

        Raises:
            UsageError: both are the same, or one is no catalog.
            GateFailedError: what was exported is not whole; nothing was written.
        """
        self._check(source, target)
        place = self._folder() / f"{_file_name(source)}-to-{_file_name(target)}"
        resumed = self._export(source, place, restart=restart or dry_run)
        snapshot = place / "snapshot"
        validation = self._snapshots().validate(str(snapshot))
        if validation.status == "fail":
            raise GateFailedError(
                f"what {_shown(source)} holds did not pass the checks; nothing was written",
                hint=f"see: lumos validate {snapshot}",
            )
        fidelity = counted_fidelity(self._snapshots().opened(str(snapshot)), self._keeper(target))
        result = MigrationResult(
            source=_shown(source),
            target=_shown(target),
            dry_run=dry_run,
            resumed=resumed,
            snapshot=str(snapshot),
            validation=validation,
            fidelity=fidelity,
        )
        if dry_run:
            (place / _UNFINISHED).unlink(missing_ok=True)
            return result
        imported = self._importer(target).run(
            str(snapshot), mode=mode, batch_size=batch_size, restart=restart
        )
        with self._diffs().streamed(str(snapshot), target) as found:
            totals = found.totals
        done = result.model_copy(update={"imported": imported, **_verdict(totals)})
        (place / _UNFINISHED).unlink(missing_ok=True)
        return _reported(done, place)

    def _check(self, source: str, target: str) -> None:
        if source == target:
            raise UsageError("a catalog cannot be migrated to itself", hint="give another --to")
        for name in (source, target):
            if not self._snapshots().is_catalog(name):
                raise UsageError(
                    f"'{_shown(name)}' is no catalog",
                    hint="give a platform's name, or sqlite:///FILE of another Lumos catalog",
                )

    def _export(self, source: str, place: Path, *, restart: bool) -> bool:
        """Write what the source holds, unless an unfinished migration has done so."""
        mark, origin = place / _UNFINISHED, self._place_of(source)
        if not restart and _read(mark) == origin and self._opens(place / "snapshot"):
            return True
        try:
            place.mkdir(parents=True, exist_ok=True)
            mark.unlink(missing_ok=True)
            self._snapshots().export(
                place / "snapshot", ExportedPart(platform=source), form=SnapshotForm.FOLDER
            )
            mark.write_text(origin, "utf-8")
        except OSError as error:
            raise _cannot_write(place, error) from error
        return False

    def _opens(self, snapshot: Path) -> bool:
        try:
            self._snapshots().opened(str(snapshot)).require_whole()
        except LumosError:
            return False
        return True


def _read(mark: Path) -> str | None:
    try:
        return mark.read_text("utf-8")
    except OSError:
        return None


def counted_fidelity(source: SnapshotSource, target: Keeper) -> FidelityReport:
    """Count by concept what would become of a snapshot in a catalog."""
    count = FidelityCount()
    for line in section_lines(source, "datasets"):
        count.add_dataset(dataset_of(line))
    for line in section_lines(source, "lineage_edges"):
        count.add_edge(LineageEdge.from_json(item_of(line)))
    for section, concept in _COUNTED.items():
        count.add(concept, source.section_count(section))
    return count.report(target)


def _verdict(totals: DiffTotals) -> dict[str, object]:
    checks = list(migration_checks(totals))
    differing = totals.datasets.changed
    if differing:
        noun, verb = ("dataset", "differs") if differing == 1 else ("datasets", "differ")
        message = f"{differing:,} {noun} {verb} from the source"
        checks.append(MigrationCheck(status="warn", message=message))
    return {
        "checks": tuple(checks),
        "differing": differing,
        "verified": everything_moved(totals),
    }


def _reported(result: MigrationResult, place: Path) -> MigrationResult:
    files = (place / "report.json", place / "report.html")
    done = result.model_copy(update={"reports": tuple(str(file) for file in files)})
    verdict = "Everything arrived." if done.verified else "Not everything arrived."
    failed = done.imported.report.failed if done.imported else ()
    page = migration_page(
        f"Migration from {done.source} to {done.target}",
        verdict,
        checks={
            "Exported": [Line(each.status, each.message) for each in done.validation.checks],
            "Compared": [Line(each.status, each.message) for each in done.checks],
        },
        concepts=[(row.concept, row.count, row.fidelity.value) for row in done.fidelity.rows],
        failed=[(item.item, item.reason or "") for item in failed[:_MOST_FAILED]],
    )
    try:
        files[0].write_bytes(orjson.dumps(done.as_json(), option=orjson.OPT_INDENT_2))
        files[1].write_text(page, "utf-8")
    except OSError as error:
        raise _cannot_write(place, error) from error
    return done


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
