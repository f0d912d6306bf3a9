"""The pages for newcomers: they are short, and every place that they name exists."""

from __future__ import annotations

import re

import pytest

from command_line import ROOT

PAGES = {
    name: (ROOT / name).read_text("utf-8")
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/reference/invariants.md")
}
MAP = PAGES["ARCHITECTURE.md"]
MOST_WORDS = 2_000
TASKS = (
    "CSV header", "rule", "facet", "alert", "S3", "sync", "source", "lineage", "report", "parts",
)  # fmt: skip


def rows_of(text: str) -> list[str]:
    """Return the rows of the first table of a text, without its head."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


@pytest.mark.parametrize("page", PAGES)
def test_every_check_and_file_that_a_page_names_exists(page: str) -> None:
    named = re.findall(r"`((?:tests|docs|src)/[\w./*-]+|\.importlinter)`", PAGES[page])

    assert len(named) > 10
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []


def test_every_part_of_the_package_that_the_map_names_exists() -> None:
    named = re.findall(r"`((?:core|entry|feature|spark|testing|bootstrap|framework)[\w./]*)`", MAP)

    assert len(named) > 10
    assert [name for name in named if not (ROOT / "src" / "lumos" / name).exists()] == []


def test_the_map_can_be_read_in_ten_minutes() -> None:
    assert len(MAP.split()) <= MOST_WORDS


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/reference/invariants.md"])
def test_every_invariant_names_what_holds_it(page: str) -> None:
    invariants = rows_of(PAGES[page].partition("## Invariants")[2] or PAGES[page])

    assert len(invariants) > 8
    assert [row for row in invariants if "`" not in row.split("|")[2]] == []


def test_a_newcomer_finds_one_place_for_each_task() -> None:
    rows = rows_of(PAGES["CONTRIBUTING.md"].partition("## Find the place")[2])
    tasks = {row.split("|")[1]: re.findall(r"`(src/[\w./]+)`", row.split("|")[2]) for row in rows}

    assert [task for task, places in tasks.items() if len(places) != 1] == []
    assert [word for word in TASKS if not any(word in task for task in tasks)] == []
