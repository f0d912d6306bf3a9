from __future__ import annotations

import re

from command_line import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def test_every_check_and_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:tests|docs|src)/[\w./*-]+|\.importlinter)`", PAGE)

    assert len(named) > 10
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []


def test_every_part_that_the_code_map_names_exists() -> None:
    rows = PAGE.split("## Code map")[1].split("## The model")[0]
    named = re.findall(r"`((?:core|entry|feature|spark|testing|bootstrap|framework)[\w./]*)`", rows)

    assert len(named) > 10
    assert [name for name in named if not (ROOT / "src" / "lumos" / name).exists()] == []


def test_every_invariant_names_what_holds_it() -> None:
    rows = PAGE.split("## Invariants")[1].strip().splitlines()[4:]
    invariants = [row for row in rows if row.startswith("|")]

    assert len(invariants) > 8
    assert [row for row in invariants if "`" not in row.split("|")[2]] == []
