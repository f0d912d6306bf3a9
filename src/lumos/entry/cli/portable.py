"""`lumos export`, `validate` and `import`: metadata that moves."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED, InputUnreadableError, UsageError
from lumos.core.requests.base import Listener
from lumos.core.requests.snapshots import ExportRequest, ImportRequest, ValidateRequest
from lumos.entry.cli.output import (
    AsJson,
    counted,
    print_badge,
    print_json,
    print_line,
    print_report,
    print_unread,
    print_warnings,
    refuse_if_behind,
    writing_output,
)
from lumos.entry.cli.snapshot_options import Edited, shown_late
from lumos.entry.cli.sync import print_planned
from lumos.feature.snapshot.forms import SnapshotForm

if TYPE_CHECKING:
    from pydantic import BaseModel

_STANDARD_STREAM = "-"
_LARGEST_BATCH = 100_000
SnapshotArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="SNAPSHOT",
        help="A file, a snapshot folder, an id or `latest`; - for standard input.",
        show_default=False,
    ),
]
SnapshotOption = Annotated[
    str | None, typer.Option("--input", "-i", help="The same as SNAPSHOT.", show_default=False)
]


def export(
    context: typer.Context,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file or folder to write; - for stdout.")
    ],
    platform: Annotated[
        str | None, typer.Option(help="The catalog to export; else that of the settings.")
    ] = None,
    snapshot: Annotated[
        str | None,
        typer.Option(help="A snapshot instead: an id, `latest`, a file or a folder."),
    ] = None,
    form: Annotated[
        SnapshotForm | None,
        typer.Option(help="One document, or a folder; else a folder where --output ends with /."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Only datasets of this URN or name; * stands for anything."),
    ] = None,
    dataset_platform: Annotated[
        list[str] | None, typer.Option(help="Only datasets of this platform, such as s3.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only datasets with this tag.")] = None,
    owner: Annotated[
        list[str] | None, typer.Option(help="Only datasets of this user or group.")
    ] = None,
    compact: Annotated[bool, typer.Option("--compact", help="One item on each line.")] = False,
    edited: Edited = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 1 if an item cannot be read.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a catalog or a snapshot as one portable file or folder, or turn one into the other.

    Options that choose datasets can be given more than once; several kinds narrow each other.

    Example: lumos export --output backup.json

    Example of a part: lumos export --output orders.json --dataset "lumos://*/orders*" --tag pii

    Example of turning a file into a folder: lumos export --snapshot backup.json --output backup/
    """
    dispatcher: Dispatcher = context.obj
    if platform and snapshot:
        raise UsageError("give either --platform or --snapshot, not both")
    request = ExportRequest(
        output=Path(output),
        platform=platform,
        snapshot=snapshot,
        form=form or _form_of(output),
        datasets=tuple(dataset or ()),
        dataset_platforms=tuple(dataset_platform or ()),
        tags=tuple(tag or ()),
        owners=tuple(owner or ()),
        pretty=not compact,
        edited=edited,
    )
    if output == _STANDARD_STREAM:
        if form is SnapshotForm.FOLDER:
            raise UsageError("a folder cannot go to standard output", hint="give --output FOLDER/")
        unread = _export_to_stdout(dispatcher, request)
        if strict and unread:
            raise typer.Exit(EXIT_GATE_FAILED)
        return
    with shown_late("export") as shown:
        result = dispatcher.dispatch(request, Listener(shown))
    if as_json:
        print_json(result.as_json())
    else:
        counts = result.statistics
        print_line(
            f"wrote {counted(counts.datasets, 'dataset')} and "
            f"{counted(counts.lineage_edges, 'lineage edge')} to {result.output}"
        )
        if result.report.failed:
            print_report(result.report)
    if strict and result.report.failed:
        raise typer.Exit(EXIT_GATE_FAILED)


def _form_of(output: str) -> SnapshotForm:
    is_folder = output.endswith("/") or Path(output).is_dir()
    return SnapshotForm.FOLDER if is_folder else SnapshotForm.DOCUMENT


def _export_to_stdout(dispatcher: Dispatcher, request: ExportRequest) -> list[BaseModel]:
    """Write the document; what was not readable goes to standard error, and is returned."""
    unread: list[BaseModel] = []
    with dispatcher.stream(request, Listener(on_interim=unread.append)) as chunks:
        for chunk in chunks:
            with writing_output():
                sys.stdout.buffer.write(chunk)
    with writing_output():
        sys.stdout.buffer.flush()
    print_unread(unread)
    return unread


def validate(
    context: typer.Context,
    snapshot: SnapshotArgument = None,
    input_: SnapshotOption = None,
    edited: Edited = False,
    as_json: AsJson = False,
) -> None:
    """Check a snapshot: shape, references, counts and checksums. Ends with 1 when a check fails.

    Example: lumos validate backup.json
    """
    dispatcher: Dispatcher = context.obj
    with _given_snapshot(snapshot, input_) as reference:
        result = dispatcher.dispatch(ValidateRequest(snapshot=reference, edited=edited))
    if as_json:
        print_json(result.as_json())
    else:
        for check in result.checks:
            print_badge(check.status, check.message)
    if result.status == "fail":
        raise typer.Exit(EXIT_GATE_FAILED)


def import_(
    context: typer.Context,
    snapshot: SnapshotArgument = None,
    input_: SnapshotOption = None,
    platform: Annotated[
        str | None, typer.Option(help="The catalog to fill; else that of the settings.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Leave what exists as it is.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Give what exists the snapshot's state alone.")
    ] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="Keep all that exists, columns too; add what is new.")
    ] = False,
    batch_size: Annotated[
        int, typer.Option(min=1, max=_LARGEST_BATCH, help="Datasets in one transaction.")
    ] = 500,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, also where an import was interrupted.")
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option(help="A file with a public key: the snapshot has to be signed with it."),
    ] = None,
    edited: Edited = False,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 if an item failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read a snapshot into a catalog. Datasets that the snapshot lacks stay.

    Where the settings name another catalog, it is written to the state and then synced.
    Existing datasets get the snapshot's technical state; owners, tags, documentation and
    properties that people added stay, unless --overwrite. Lineage into a dataset is removed only
    with --overwrite, and only where a complete snapshot has the dataset without it. Ends with 3
    when --key, or trusted_keys of the settings, asks for a signature that is not there.

    Example: lumos import backup.json --dry-run
    """
    from lumos.feature.importing.plan import ImportMode

    if sum((skip_existing, overwrite, merge)) > 1:
        raise UsageError("give one of --skip-existing, --overwrite and --merge")
    chosen = {
        ImportMode.SKIP_EXISTING: skip_existing,
        ImportMode.OVERWRITE: overwrite,
        ImportMode.MERGE: merge,
    }
    mode = next((mode for mode, asked in chosen.items() if asked), ImportMode.UPDATE)
    dispatcher: Dispatcher = context.obj
    with _given_snapshot(snapshot, input_) as reference, shown_late("import") as shown:
        request = ImportRequest(
            snapshot=reference,
            platform=platform,
            mode=mode,
            dry_run=dry_run,
            batch_size=batch_size,
            restart=restart,
            key=key,
            edited=edited,
            fidelity=True,
        )
        listener = Listener(shown) if as_json else Listener(shown, partial(print_planned, shown))
        result = dispatcher.dispatch(request, listener)
    if as_json:
        print_json(result.as_json())
    else:
        verb = "would import" if dry_run else "imported"
        print_line(f"{verb}: {result.in_words}")
        if result.report.failed:
            print_report(result.report)
        else:
            print_warnings(result.report)
    refuse_if_behind(result.report)
    if strict and result.report.failed:
        raise typer.Exit(EXIT_GATE_FAILED)


@contextmanager
def _given_snapshot(argument: str | None, option: str | None) -> Iterator[str]:
    """Give the snapshot that was named in one of both ways; standard input becomes a file."""
    from lumos.feature.snapshot.scratch import scratch_folder

    given = [each for each in (argument, option) if each is not None]
    if len(given) != 1:
        raise UsageError(
            "give one snapshot, as an argument or with --input",
            hint="a file, a snapshot folder, an id, `latest`, or - for standard input",
        )
    if given != [_STANDARD_STREAM]:
        yield given[0]
        return
    with scratch_folder() as folder:
        file = folder / "standard-input.json"
        try:
            with file.open("wb") as stream:
                shutil.copyfileobj(sys.stdin.buffer, stream)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InputUnreadableError(
                f"cannot keep standard input: {reason}", hint="give a file instead"
            ) from error
        yield str(file)
