"""Commands as the docs show them: read from pages, run, and held against what they print.

In a ```console block, a line that begins with `$ ` is a command and the lines below it are its
output. A command that ends with a backslash goes on in the next line, behind `> `. `…` stands for
any text within a line; a line of `...` stands for any lines. `# exit code 1` after a command says
how it ends. Values that differ from run to run (ids of snapshots, times and authors of versions,
durations, sizes) need only look alike. `$ cat FILE` shows a file: one of the examples, which must
hold what is shown, or a new one, which is written. `$ make demo` is run as `lumos demo`, which is
what it does once everything is installed; plain work on files, such as `mkdir` or `git add`, is
done by a shell.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^(`{3,})([^`\n]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
FILE_WORK = (
    "mkdir ",
    "printf ",
    "rm ",
    "mv ",
    "cp ",
    "git init ",
    "git add ",
    "git commit ",
    "git switch ",
)
_SOMEONE = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
NEEDS_SPARK = frozenset({"demo", "discover", "engine", "ingest", "profile", "watch"})
NOT_RUN = ("make ", "pip ", "git ", "cd ", "#", "export ", ".venv/")
_INCLUDE = re.compile(r"\{literalinclude\} *(\S+)")
_EXIT_CODE = re.compile(r"# exit code (\d)")
_LOOKS_LIKE = {
    "id": r"\d{8}T\d{6}Z-[0-9a-f]{8}",
    "version_time": r"(?<=  )\d{4}-\d\d-\d\d \d\d:\d\d(?=  )",
    "author": r"(?<=  by )\S+",
    "duration": r"(?<= in )\d+\.\d(?= s\b)",
    "size": r"(?<=, )[\d,]+(?= bytes)",
}
_VOLATILE = re.compile("|".join(f"(?P<{name}>{form})" for name, form in _LOOKS_LIKE.items()))


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    body: str


class Shown(NamedTuple):
    """A command in the docs and the output that they show."""

    command: str
    output: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        words = shlex.split(self.command, comments=True)
        return ["lumos", "demo"] if words == ["make", "demo"] else words

    @property
    def is_lumos(self) -> bool:
        return self.words[:1] == ["lumos"]

    @property
    def needs_spark(self) -> bool:
        return self.is_lumos and not NEEDS_SPARK.isdisjoint(self.words[1:2])

    @property
    def exit_code(self) -> int:
        found = _EXIT_CODE.search(self.command)
        return int(found[1]) if found else 0

    @property
    def shows_output(self) -> bool:
        return any(line.strip() for line in self.output)


def blocks_in(text: str) -> list[Block]:
    return [Block(language.strip(), body) for _, language, body in BLOCK.findall(text)]


class IncludedFile(NamedTuple):
    """What a `literalinclude` shows, and under which name."""

    content: str
    caption: str | None


def included_file(block: Block, page: Path) -> IncludedFile | None:
    """Return what Sphinx shows for a block that includes a file; None for any other block.

    Raises:
        ValueError: the block has an option that is not known here.
    """
    found = _INCLUDE.fullmatch(block.language)
    if found is None:
        return None
    options = dict(re.findall(r"^:([a-z-]+): *(.*)$", block.body, re.MULTILINE))
    caption = options.pop("caption", None)
    options.pop("language", None)
    lines = (page.parent / found[1]).read_text("utf-8").splitlines(keepends=True)
    if (start := options.pop("start-at", None)) is not None:
        lines = lines[_first_with(start, lines) :]
    if (end := options.pop("end-before", None)) is not None:
        lines = lines[: _first_with(end, lines)]
    if options:
        raise ValueError(f"{page.name}: literalinclude with {', '.join(options)}")
    return IncludedFile("".join(lines), caption)


def _first_with(text: str, lines: Sequence[str]) -> int:
    return next(number for number, line in enumerate(lines) if text in line)


def shown_in(text: str) -> Iterator[Shown]:
    """Yield the commands of all console blocks of a page, in order."""
    for block in blocks_in(text):
        if block.language != "console":
            continue
        command: str | None = None
        output: list[str] = []
        for line in block.body.splitlines():
            if command and command.endswith("\\") and line.startswith("> "):
                command = f"{command[:-1].rstrip()} {line[2:].strip()}"
            elif line.startswith("$ "):
                if command is not None:
                    yield Shown(command, tuple(output))
                command, output = line.removeprefix("$ "), []
            else:
                assert command is not None, f"output without a command: {line}"
                output.append(line)
        if command is not None:
            yield Shown(command, tuple(output))


def differs(shown: Shown, printed: str) -> bool:
    """Tell whether a command printed something else than the docs show, if they show anything."""
    if not shown.shows_output:
        return False
    pattern = "".join(map(_pattern_of, shown.output)).rstrip("\n")
    return re.fullmatch(pattern + r"\s*", printed) is None


def work_on_files(shown: Shown) -> None:
    """Let a shell make, move or remove files of the current folder."""
    environment = {**os.environ, **_SOMEONE}
    subprocess.run(["sh", "-c", shown.command], check=True, timeout=400, env=environment)


def show_file(shown: Shown) -> None:
    """Write the file that `cat` shows, or hold the one that is there against what is shown."""
    path = Path(shown.words[1])
    if path.exists():
        assert not differs(shown, path.read_text("utf-8")), f"{path} holds something else"
    else:
        path.write_text("\n".join(shown.output) + "\n", "utf-8")


def _pattern_of(line: str) -> str:
    if line.strip() == "...":
        return r"(?:.*\n)*?"
    pieces = []
    for piece in line.split("…"):
        place, pattern = 0, ""
        for found in _VOLATILE.finditer(piece):
            pattern += re.escape(piece[place : found.start()]) + _LOOKS_LIKE[found.lastgroup or ""]
            place = found.end()
        pieces.append(pattern + re.escape(piece[place:]))
    return ".*?".join(pieces) + "\n"
