"""Every `lumos` command in the docs runs and prints what the docs say.

The blocks of one page run one after the other in one folder, which has the `examples` beside it.
What a block may hold is said in `documented_console.py`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from command_line import ROOT, run_here
from documented_console import (
    FILE_WORK,
    NOT_RUN,
    Shown,
    blocks_in,
    differs,
    show_file,
    shown_in,
    work_on_files,
)

# Only the folders of pages: docs/_build may be written while these tests run.
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs").glob("[!_]*/**/*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "changes").glob("*.md"),
    ]
)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")
CODE = re.compile(r"`[^`\n]+`")
LONE_COMMAND = re.compile(r"^\s*(\$ )?lumos [a-z-]", re.MULTILINE)


# The commands of these pages need a package that the page builds; test_example_plugins.py has it.
PAGES_WITH_A_PACKAGE = {ROOT / "docs" / "how-to" / "add-a-source.md"}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def needs_spark(page: Path) -> bool:
    return any(shown.needs_spark for shown in shown_in(page.read_text("utf-8")))


PAGES_TO_RUN = [page for page in PAGES if page not in PAGES_WITH_A_PACKAGE]
PAGES_ON_SPARK = [page for page in PAGES_TO_RUN if needs_spark(page)]
PAGES_WITHOUT_SPARK = [page for page in PAGES_TO_RUN if page not in PAGES_ON_SPARK]


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LUMOS_PLATFORM", "LUMOS_DATABASE_URL", "LUMOS_STATE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("page", PAGES_WITHOUT_SPARK, ids=name_of)
def test_the_commands_of_a_page_run(page: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_commands_of(page, capfd)


@pytest.mark.usefixtures("own_folder", "spark")
@pytest.mark.parametrize("page", PAGES_ON_SPARK, ids=name_of)
def test_the_commands_of_a_page_run_on_spark(page: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_commands_of(page, capfd)


@pytest.mark.parametrize("name", ["move-metadata.md", "owners-and-docs.md"])
def test_the_commands_of_a_page_do_the_same_on_postgresql(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    postgres_database_url: str,
) -> None:
    monkeypatch.setenv("LUMOS_DATABASE_URL", postgres_database_url)
    monkeypatch.chdir(tmp_path)
    run_commands_of(ROOT / "docs" / "how-to" / name, capfd)

    assert not list(tmp_path.rglob("*.db"))


def run_commands_of(page: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / "examples", "examples")
    for shown in shown_in(page.read_text("utf-8")):
        if shown.command.startswith("cat "):
            show_file(shown)
        elif shown.command.startswith(FILE_WORK):
            work_on_files(shown)
        elif not shown.is_lumos:
            assert shown.command.startswith(NOT_RUN), shown.command
        else:
            capfd.readouterr()
            code = run_here(*shown.words[1:])
            printed = capfd.readouterr()
            assert code == shown.exit_code, (shown.command, printed)
            text = printed.out + printed.err
            assert not differs(shown, text), f"{shown.command} printed:\n{text}"


def test_no_page_shows_lumos_commands_that_are_not_checked() -> None:
    unchecked = [
        (name_of(page), block.body)
        for page in PAGES
        for block in blocks_in(page.read_text("utf-8"))
        if block.language not in {"console", "yaml", "python", "text"}
        and LONE_COMMAND.search(block.body)
    ]
    assert unchecked == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_to_files(page: Path) -> None:
    links = LINK.findall(CODE.sub("", page.read_text("utf-8")))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_command_is_shown_somewhere() -> None:
    from lumos.framework_cli import COMMANDS

    shown = {
        each.words[1]
        for page in PAGES
        for each in shown_in(page.read_text("utf-8"))
        if each.is_lumos
    }
    assert {command.name for command in COMMANDS} <= shown


PAGE = """
```{toctree}
one
```

```console
$ lumos diff --source a \\
>   --target b  # exit code 1
took … s
...
2 changes
$ lumos search
```
"""


def test_the_demo_is_shown_once_for_it_takes_its_time() -> None:
    shown = [
        name_of(page)
        for page in PAGES
        for each in shown_in(page.read_text("utf-8"))
        if each.words[:2] == ["lumos", "demo"] and "--clean" not in each.words
    ]
    assert shown == ["README.md"]


@pytest.mark.parametrize(
    ("command", "words", "on_spark"),
    [
        ("make demo", ["lumos", "demo"], True),
        ("lumos ingest --strict  # exit code 1", ["lumos", "ingest", "--strict"], True),
        ("lumos search ingest", ["lumos", "search", "ingest"], False),
        ("make test", ["make", "test"], False),
    ],
)
def test_commands_that_need_spark_are_known(command: str, words: list[str], on_spark: bool) -> None:
    shown = Shown(command, ())

    assert shown.words == words
    assert shown.needs_spark is on_spark


def test_a_page_is_read_block_by_block() -> None:
    first, second = shown_in(PAGE)

    assert first.words == ["lumos", "diff", "--source", "a", "--target", "b"]
    assert first.exit_code == 1
    assert second == Shown("lumos search", ())


@pytest.mark.parametrize(
    ("printed", "as_shown"),
    [
        ("took 3 s\n2 changes\n", True),
        ("took 3 s\none\ntwo\n2 changes\n", True),
        ("took 3 s\n3 changes\n", False),
        ("took 3 s\n2 changes\nand more\n", False),
        ("took 3\ns\n2 changes\n", False),
        ("", False),
    ],
)
def test_what_a_command_prints_is_held_against_the_page(printed: str, as_shown: bool) -> None:
    first, second = shown_in(PAGE)

    assert differs(first, printed) is not as_shown
    assert not differs(second, printed), "a command may stand without its output"


@pytest.mark.parametrize(
    ("line", "printed", "as_shown"),
    [
        (
            "  1.0.0    2026-02-01 09:30  FIRST  by ada",
            "  1.0.0    2031-12-24 00:01  FIRST  by x",
            True,
        ),
        (
            "  1.0.0    2026-02-01 09:30  FIRST  by ada",
            "  1.1.0    2026-02-01 09:30  FIRST  by ada",
            False,
        ),
        ("Last updated: 2026-01-31 23:58 UTC", "Last updated: 2026-01-31 23:59 UTC", False),
        ("enrich: 2 done in 0.1 s", "enrich: 2 done in 12.3 s", True),
        ("enrich: 2 done in 0.1 s", "enrich: 3 done in 0.1 s", False),
        (
            "20260228T180000Z-d8f5c049: 6 parts, 2 bytes",
            "20270101T000000Z-00000000: 6 parts, 1,234 bytes",
            True,
        ),
        ("20260228T180000Z-d8f5c049: 6 parts, 2 bytes", "latest: 6 parts, 2 bytes", False),
    ],
)
def test_values_that_differ_from_run_to_run_need_only_look_alike(
    line: str, printed: str, as_shown: bool
) -> None:
    assert differs(Shown("lumos", (line,)), printed + "\n") is not as_shown


def test_a_file_that_a_page_shows_is_written_or_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = Shown("cat users.yaml", ("users:", "  - username: ada"))
    show_file(shown)
    show_file(shown)

    assert Path("users.yaml").read_text("utf-8") == "users:\n  - username: ada\n"
    Path("users.yaml").write_text("users: []\n")
    with pytest.raises(AssertionError, match="something else"):
        show_file(shown)
