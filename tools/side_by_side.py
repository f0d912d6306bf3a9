"""Run targets of the Makefile at the same time: `side_by_side.py TARGET…`.

The last one writes straight to the terminal; what another one wrote is shown when it has ended.
All are run to their end, then a table says how long each took and which failed. `A+B` runs B after
A, if A passed. An interrupt ends them all.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

# How long an interrupted target may take to stop its servers.
_STOP_SECONDS = 60
_CHUNK = 65_536


@dataclass
class Target:
    """One target of the Makefile: what it wrote, how long it took and how it ended."""

    name: str
    is_live: bool
    after: Target | None = None
    output: bytearray = field(default_factory=bytearray)
    seconds: float = 0.0
    code: int | None = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def result(self) -> str:
        if self.code is None:
            return "not run"
        return "failed" if self.code else "passed"


class Terminal:
    """Writes what several threads have to say, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_line_start = True

    def write(self, content: bytes) -> None:
        with self._lock:
            self._write(content)

    def write_block(self, title: str, content: bytes) -> None:
        with self._lock:
            start = b"" if self._at_line_start else b"\n"
            end = b"" if not content or content.endswith(b"\n") else b"\n"
            self._write(start + f"=== {title}\n".encode() + content + end)

    def _write(self, content: bytes) -> None:
        if content:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
            self._at_line_start = content.endswith(b"\n")


def main(words: list[str]) -> int:
    """Return 0 if every target passed, otherwise 1; 130 after an interrupt."""
    if not words:
        print(__doc__)
        return 2
    chains = [chain_of(word, is_live=word is words[-1]) for word in words]
    targets = [target for chain in chains for target in chain]
    terminal = Terminal()
    started = time.monotonic()
    threads = [threading.Thread(target=run, args=(chain, terminal)) for chain in chains]
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        stop(targets, threads)
        return 130
    terminal.write_block("time", table(targets, time.monotonic() - started).encode())
    return int(any(target.code != 0 for target in targets))


def chain_of(word: str, *, is_live: bool) -> list[Target]:
    """Return the targets that run one after the other; the last one may be live."""
    names = word.split("+")
    chain: list[Target] = []
    for name in names:
        last = name is names[-1]
        chain.append(Target(name, is_live and last, chain[-1] if chain else None))
    return chain


def run(chain: list[Target], terminal: Terminal) -> None:
    for target in chain:
        if target.after and target.after.code != 0:
            return
        run_one(target, terminal)


def run_one(target: Target, terminal: Terminal) -> None:
    started = time.monotonic()
    # A separate session: an interrupt of the terminal reaches it once, through stop().
    process = subprocess.Popen(
        ["make", "--no-print-directory", target.name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=colored(os.environ) if target.is_live else None,
    )
    target.process = process
    if process.stdout:
        while chunk := os.read(process.stdout.fileno(), _CHUNK):
            if target.is_live:
                terminal.write(chunk)
            else:
                target.output += chunk
        process.stdout.close()
    target.code = process.wait()
    target.seconds = time.monotonic() - started
    if not target.is_live:
        terminal.write_block(f"{target.name} {target.result}", bytes(target.output))


def colored(environment: os._Environ[str]) -> dict[str, str]:
    """Return the environment with colours for pytest, if somebody is there to see them."""
    return {**environment, **({"PY_COLORS": "1"} if sys.stdout.isatty() else {})}


def stop(targets: list[Target], threads: list[threading.Thread]) -> None:
    """Interrupt all targets, and kill those that do not end."""
    try:
        signal_all(targets, signal.SIGINT)
        deadline = time.monotonic() + _STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
    finally:  # also after a second interrupt
        signal_all(targets, signal.SIGKILL)


def signal_all(targets: list[Target], number: signal.Signals) -> None:
    for target in targets:
        if target.process and target.process.returncode is None:
            try:
                os.killpg(target.process.pid, number)
            except ProcessLookupError:
                continue


def table(targets: list[Target], seconds: float) -> str:
    """Return the seconds and the result of each target, and of the whole."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    width = max(8, *(len(target.name) for target in targets))
    rows = [f"{each.name:<{width}}  {each.seconds:7.0f} s  {each.result}" for each in targets]
    cpu = f"CPU {used.ru_utime + used.ru_stime:.0f} s"
    return "\n".join([*rows, f"{'in all':<{width}}  {seconds:7.0f} s  {cpu}"]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
