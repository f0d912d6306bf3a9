"""What holds for a whole process is left alone where Lumos is a library in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from command_line import FEBRUARY, JANUARY

SWITCHES = """
import gc, locale, logging, os, signal, sys, threading, warnings

freezes = []
gc.freeze = lambda: freezes.append("freeze")
real_threshold = gc.set_threshold
def noted_threshold(*numbers):
    freezes.append("threshold")
    real_threshold(*numbers)
gc.set_threshold = noted_threshold

def switches():
    umask = os.umask(0o22)
    os.umask(umask)
    return {
        "collection": (gc.get_threshold(), gc.isenabled()),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "warnings": list(warnings.filters),
        "recursion": sys.getrecursionlimit(),
        "umask": umask,
        "locale": locale.setlocale(locale.LC_ALL),
        "folder": os.getcwd(),
        "variables": dict(os.environ),
        "log": (logging.getLogger().level, list(logging.getLogger().handlers)),
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook),
    }
"""
AS_A_LIBRARY = (
    SWITCHES
    + """
before = switches()
from lumos import Lumos
with Lumos(state_dir="state") as project:
    project.import_(sys.argv[1])
    project.import_(sys.argv[2])
    project.sync("sqlite:///other.db")
    assert project.search("orders").total
after = switches()
differing = [name for name in before if before[name] != after[name]]
threads = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
print(freezes, differing, threads)
"""
)
AS_A_COMMAND = (
    SWITCHES
    + """
from lumos.framework_cli import main
sys.argv = ["lumos", "import", sys.argv[1]]
try:
    main()
finally:
    print(freezes)
"""
)


def run(code: str, *arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_a_program_that_uses_lumos_keeps_its_switches_and_has_no_thread_left(
    tmp_path: Path,
) -> None:
    assert run(AS_A_LIBRARY, JANUARY, FEBRUARY, folder=tmp_path) == "[] [] []"


def test_a_command_tunes_its_own_process(tmp_path: Path) -> None:
    said = run(AS_A_COMMAND, JANUARY, folder=tmp_path)

    assert "freeze" in said
    assert "threshold" in said
