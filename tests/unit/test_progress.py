"""What a person sees of a long command, on a real pseudo terminal."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lumos.core.progress import SILENT
from lumos.entry.cli.progress import progress

COMMAND = """
import signal, sys, time
from lumos.entry.cli.progress import progress

# No thread takes a signal before the end, so that none meets Python where it ignores exceptions.
STOPS = {signal.SIGINT, signal.SIGTERM}
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the one who started it had
signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)

def until_it_is_seen():
    sys.stdin.readline()

with progress("ingest") as shown:
    shown.note("starting Spark on local[*]")
    until_it_is_seen()
    shown.stage("reading [b]files", total=20_000)
    until_it_is_seen()
    shown.advance(5_000)
    shown.advance(12_000)
    print('{"answer": 1}', flush=True)
    until_it_is_seen()
    shown.stage("publishing", total=0, unit="datasets")
    until_it_is_seen()
    if "stop" in sys.argv:
        sys.stderr.write("up\\n")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        time.sleep(600)
"""
STEPS = ("starting Spark", "0/20,000 files", "12,000/20,000 files", "publishing")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def watched(*arguments: str, stop: signal.Signals | None = None, **variables: str) -> Watched:
    """Run the command with a terminal as its standard error; it goes on when a step is seen."""
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "120", **variables}
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as child:
        os.close(theirs)
        assert child.stdin is not None
        seen, steps = b"", [*STEPS] if environment["TERM"] == "xterm" else []
        if not steps:
            child.stdin.close()
        while chunk := _read(ours):
            seen += chunk
            text = CONTROL.sub("", seen.decode(errors="replace"))
            if steps and steps[0] in text:
                del steps[0]
                child.stdin.write(b"\n")
                child.stdin.flush()
            if stop is not None and "up\r\n" in text:
                child.send_signal(stop)
                stop = None
        os.close(ours)
        assert child.stdout is not None
        return Watched(child.stdout.read().decode(), seen.decode())


class Watched:
    """What a command printed and what the terminal got."""

    def __init__(self, printed: str, terminal: str) -> None:
        self.printed = printed
        self.terminal = terminal
        self.text = CONTROL.sub("", terminal)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux says so when the other side is closed
        return b""


def test_a_terminal_shows_stage_counts_and_rate_and_is_clean_afterwards() -> None:
    seen = watched()

    assert seen.printed == '{"answer": 1}\n'
    assert "ingest: starting Spark on local[*]" in seen.text
    assert "ingest: reading [b]files" in seen.text
    assert "0/20,000 files" in seen.text
    assert re.search(r"12,000/20,000 files [\d,]+/s \d:\d\d:\d\d", seen.text)
    assert "ingest: publishing" in seen.text
    assert "answer" not in seen.text
    assert seen.terminal.endswith("\x1b[1A\x1b[2K"), "the last line is taken away"
    assert seen.terminal.rindex(SHOW) > seen.terminal.rindex(HIDE)


def test_without_colours_none_are_sent() -> None:
    assert re.search(r"\x1b\[[\d;]*m", watched().terminal)
    assert not re.search(r"\x1b\[(3|4|9|10)\d", watched(NO_COLOR="1").terminal)


def test_a_dumb_terminal_gets_a_line_for_each_stage() -> None:
    seen = watched(TERM="dumb")

    assert seen.terminal.splitlines() == [
        "ingest: starting Spark on local[*]",
        "ingest: reading [b]files, 20,000 files",
        "ingest: publishing, 0 datasets",
    ]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_stopped_leaves_a_cursor(end: signal.Signals) -> None:
    seen = watched("stop", stop=end)

    assert seen.terminal.rindex(SHOW) > seen.terminal.rindex(HIDE)
    if end is signal.SIGINT:
        assert "KeyboardInterrupt" in seen.text


def test_nothing_is_written_where_nobody_watches(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with progress("ingest") as shown:
        shown.note("starting")
        shown.stage("reading", total=3)
        shown.advance(3)
        shown.note("stopping")
    SILENT.stage("reading")
    SILENT.advance(1)
    SILENT.note("stopping")

    assert capfd.readouterr() == ("", "")
