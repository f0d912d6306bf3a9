"""Every behaviour of a server that the page lists says where it was learnt and what holds it."""

from __future__ import annotations

import re

from command_line import ROOT

PAGE = (ROOT / "docs/reference/server-behaviour.md").read_text("utf-8")
ROWS = [
    line.split(" | ")
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| behaviour")
]


def test_every_row_says_where_it_was_learnt_and_names_a_test() -> None:
    assert ROWS
    assert [row for row in ROWS if len(row) != 3 or not row[1].strip()] == []
    assert [row[0] for row in ROWS if "::test_" not in row[2]] == []


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)

    missing = [
        f"{path}::{name}"
        for path, name in named
        if not re.search(rf"^ *def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)
    ]
    assert named
    assert missing == []
