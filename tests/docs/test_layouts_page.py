from __future__ import annotations

import re

from command_line import ROOT
from golden_layouts import BEGIN, listed
from lumos.feature.discovery.assembling import path_place

PAGE = (ROOT / "docs" / "reference" / "layouts.md").read_text("utf-8")
ROW = re.compile(r"^\| `([^`]+)` \| (?:`([^`]+)`|none[^|]*) \| ?(?:`([^`]+)`)? ?\|$", re.MULTILINE)


def test_every_file_of_the_page_has_the_place_that_it_shows() -> None:
    shown = ROW.findall(PAGE)
    places = {path: path_place(path) for path, _, _ in shown}
    found = [
        (path, "/".join(place.dataset), place.partitioning or "") if place else (path, "", "")
        for path, place in places.items()
    ]

    assert len(shown) == PAGE.count("\n| `") > 10
    assert found == shown


def test_the_page_has_the_rules_of_the_code() -> None:
    from lumos.feature.discovery import assembling

    def rules(text: str) -> list[str]:
        numbered = re.findall(r"^(\d\. .*(?:\n   .*)*)", text, re.MULTILINE)
        return [" ".join(rule.split()).split(":")[0].rstrip(".") for rule in numbered]

    assert rules(PAGE) == rules(assembling.__doc__ or "")
    assert len(rules(PAGE)) == 8


def test_the_page_lists_the_layouts_of_tools_and_what_is_missed() -> None:
    assert PAGE.partition(BEGIN)[2] == listed(), "run: python tests/golden_layouts.py"
