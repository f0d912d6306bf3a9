"""Every `lumos` command in the docs runs and prints what the docs say.

In a ```console block, a line that begins with `$ lumos` is a command and the lines below it are
its output. `…` stands for any text within a line; a line of `...` stands for any lines. The blocks
of one page run one after the other in one folder, which has the `examples` beside it.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from command_line import ROOT, run_here

PAGES = sorted(
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    if "_build" not in path.parts
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALLOWED_ELSEWHERE = ("make ", "pip ", "git ", "cd ", "#", "export ", ".venv/")


class Shown(NamedTuple):
    """A command in the docs and the output that they show."""

    command: str
    output: tuple[str, ...]


def shown_in(page: Path) -> Iterator[Shown]:
    for language, body in BLOCK.findall(page.read_text("utf-8")):
        if language != "console":
            continue
        command: str | None = None
        output: list[str] = []
        for line in body.splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield Shown(command, tuple(output))
                command, output = line.removeprefix("$ "), []
            else:
                output.append(line)
        if command is not None:
            yield Shown(command, tuple(output))


def test_there_are_commands_to_check() -> None:
    assert sum(1 for page in PAGES for _ in shown_in(page)) > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for shown in shown_in(page):
        if not shown.command.startswith("lumos "):
            assert shown.command.startswith(ALLOWED_ELSEWHERE), shown.command
            continue
        words = shlex.split(shown.command, comments=True)
        capfd.readouterr()
        code = run_here(*words[1:])
        printed = capfd.readouterr()
        expected = re.search(r"# exit code (\d)", shown.command)
        assert code == int(expected[1] if expected else 0), (shown.command, printed)
        assert_shows(shown, printed.out + printed.err)


def assert_shows(shown: Shown, printed: str) -> None:
    if not any(line.strip() for line in shown.output):
        return
    pattern = "".join(map(_pattern_of, shown.output)).rstrip("\n")
    assert re.fullmatch(pattern + r"\s*", printed), f"{shown.command} printed:\n{printed}"


def _pattern_of(line: str) -> str:
    if line.strip() == "...":
        return r"(?:.*\n)*?"
    return ".*?".join(map(re.escape, line.split("…"))) + "\n"


def test_no_page_shows_lumos_commands_that_are_not_checked() -> None:
    for page in PAGES:
        for language, body in BLOCK.findall(page.read_text("utf-8")):
            if language in {"bash", "sh", "shell"}:
                assert not re.search(r"^\s*(\$ )?lumos ", body, re.MULTILINE), page
