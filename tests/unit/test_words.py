"""The words of the project: names and phrases that a newcomer does not understand are not used.

`docs/reference/glossary.md` has the words to use instead.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "Carriers", "Held", "Keeper", "Leaves", "Ledger", "Shelf", "Told", "Turns", "Wish", "in_short",
    "keeper", "wishes",
)  # fmt: skip
"""Names of classes and functions that the field has other words for."""
PHRASES = (
    r"(?:is|are|was|were|be|been|being) told",
    r"(?:can|could|cannot|do not|does not|will|would) tell",
    r"come about",
    r"costs? no other",
    r"events alone else",
    r"is no [a-z]+ of",
    r"lets? nobody",
    r"likewise",
    r"odd (?:thing|item|value)s?",
    r"of (?:its|their) own",
    r"speaks? of",
    r"tell (?:how|it|nothing|of|that|the|what|when|where|whether|which|who)",
    r"tells",
    r"told (?:again|apart|as|at|by|how|of|once|that|to|what|with)",
    r"what (?:became|becomes?|will become|would become) of",
    r"whoever",
)
"""Regular expressions: say who does what to what instead."""
PAGES = (
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/DECISIONS.md", "docs/index.md",
    "docs/how-to/**/*.md",
    "docs/reference/**/*.md", "docs/tutorials/**/*.md", "changes/*.md",
)  # fmt: skip


def files(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_the_code_is_a_metaphor(name: str) -> None:
    defined = re.compile(rf"(?:class|def) _?{name}\b|^_?{name} *[:=]", re.MULTILINE)

    assert [path.name for path in files("src/**/*.py") if defined.search(path.read_text())] == []


def test_no_text_has_a_phrase_that_has_to_be_guessed() -> None:
    found = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
    texts = files("src/**/*.py", "tools/*.py", *PAGES)

    assert len(texts) > 500
    assert [
        f"{path.relative_to(ROOT)}: {phrase}"
        for path in texts
        for phrase in found.findall(path.read_text("utf-8"))
    ] == []


@pytest.mark.parametrize("phrase", ["is told", "a thread of its own", "what becomes of it"])
def test_the_patterns_find_such_phrases(phrase: str) -> None:
    assert any(re.search(rf"\b{pattern}\b", phrase) for pattern in PHRASES)


def test_a_public_name_stands_for_one_thing_or_has_a_reason() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "module_sizes.py"))
    twice = tool["defined_twice"](tool["parsed_modules"]())
    listed = [name for names in tool["SHARED_NAMES"].values() for name in names]

    assert len(listed) == len(set(listed))
    without_reason = {name: where for name, where in twice.items() if name not in listed}
    assert without_reason == {}, "rename one, merge them, or list it in tools/module_sizes.py"
    assert sorted(set(listed) - twice.keys()) == [], "no longer defined twice"
