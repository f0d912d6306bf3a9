"""The words of the project: names and phrases that a newcomer does not understand are not used.

`docs/reference/glossary.md` has the words to use instead.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "Carriers", "Held", "Keeper", "Leaves", "Ledger", "Shelf", "Told", "Turns", "Wish", "in_short",
    "keeper", "wishes",
)  # fmt: skip
"""Names of classes and functions that the field has other words for."""
PHRASES = (
    "events alone else",
    "costs no other",
    "it is told for",
    "let nobody",
    "lets nobody",
    "likewise",
    "odd thing",
    "what is told",
    "what tells how",
)
PAGES = (
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/index.md", "docs/how-to/**/*.md",
    "docs/reference/**/*.md", "docs/tutorials/**/*.md", "changes/*.md",
)  # fmt: skip


def files(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_the_code_is_a_metaphor(name: str) -> None:
    defined = re.compile(rf"(?:class|def) _?{name}\b|^_?{name} *[:=]", re.MULTILINE)

    assert [path.name for path in files("src/**/*.py") if defined.search(path.read_text())] == []


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_text_has_a_phrase_that_has_to_be_guessed(phrase: str) -> None:
    found = re.compile(rf"\b{phrase}\b", re.IGNORECASE)
    texts = files("src/**/*.py", *PAGES)

    assert len(texts) > 500
    assert [path.name for path in texts if found.search(path.read_text("utf-8"))] == []
