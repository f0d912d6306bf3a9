"""`lumos watch`: the catalog is kept current from events."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.requests.base import Listener
from lumos.core.requests.sources import WatchRequest
from lumos.entry.cli.output import (
    AsJson,
    counted,
    print_changes,
    print_json_line,
    print_line,
    print_notice,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lumos.core.controllers.results import WatchRefresh
    from lumos.feature.ingestion.results import DatasetCounts

_SHOWN_FOLDERS = 3


def watch(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Settings file with the sources.")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Only this source; may be repeated.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Do what is waiting, then end: for schedulers.")
    ] = False,
    listing: Annotated[
        bool,
        typer.Option(
            "--listing/--no-listing", help="List everything at the start, or wait for events only."
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Keep the catalog current: refresh what file events and queues of notifications name.

    Spark stays up as long as the command. With --json each refresh is one line. Ctrl-C ends it
    after the refresh that is running; a second one ends it at once.

    Example: lumos watch --config sources.yaml
    """
    dispatcher: Dispatcher = context.obj
    request = WatchRequest(sources=tuple(source or ()), once=once, listing=listing)
    with stopped_by_signals() as stop:
        listener = Listener(on_interim=_print_as_json if as_json else _print, stop=stop)
        dispatcher.of(config).dispatch(request, listener)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Yield what is set by the first Ctrl-C or SIGTERM; a second one interrupts as usual."""
    stop = threading.Event()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        print_notice(f"{signal.Signals(number).name}: ending after the running refresh")

    wanted = (signal.SIGINT, signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, on_signal) for number in wanted}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_as_json(refresh: BaseModel) -> None:
    print_json_line(refresh.model_dump(mode="json"))


def _print(answer: BaseModel) -> None:
    from lumos.core.controllers.results import WatchRefresh

    if isinstance(answer, WatchRefresh):
        _print_refresh(answer)


def _print_refresh(refresh: WatchRefresh) -> None:
    time = f"{refresh.finished_at.astimezone():%H:%M:%S}"
    for warning in refresh.warnings:
        print_line(f"{time} warning: {warning}")
    if refresh.error is not None:
        print_line(f"{time} {_places(refresh)}: failed: {refresh.error.message}")
        print_line(f"  tried again in {refresh.retry_seconds:g} s")
    if refresh.files is None or refresh.datasets is None:
        return
    seconds = (refresh.finished_at - refresh.started_at).total_seconds()
    print_line(
        f"{time} {_places(refresh)}: {counted(refresh.files.opened, 'file')} opened, "
        f"{_what_happened(refresh.datasets)} in {seconds:.1f} s"
    )
    print_changes(refresh.changes)
    for version in refresh.versions:
        print_line(f"  {version.previous_version or 'new'} -> {version.version}  {version.dataset}")
    for item in refresh.failed:
        print_line(f"  failed: {item.item}: {item.reason}")


def _places(refresh: WatchRefresh) -> str:
    places = []
    for source, folders in refresh.folders.items():
        shown = list(folders[:_SHOWN_FOLDERS])
        if len(folders) > _SHOWN_FOLDERS:
            shown.append(f"{len(folders) - _SHOWN_FOLDERS} more")
        places.append(source if folders == ("/",) else f"{source} ({', '.join(shown)})")
    return ", ".join(places) or "events"


def _what_happened(datasets: DatasetCounts) -> str:
    counts = {
        "new": datasets.created,
        "updated": datasets.updated,
        "removed": datasets.removed,
    }
    told = [f"{count:,} {what}" for what, count in counts.items() if count]
    return f"datasets: {', '.join(told)}" if told else "nothing changed"
