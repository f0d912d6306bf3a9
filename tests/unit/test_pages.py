"""Every page that Lumos writes has a policy under which nothing in it can run or load anything."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typing_extensions import override

import lumos
from lumos.entry import notebook
from lumos.feature.migration.page import Line, Listed, migration_page
from report_samples import dataset, hostile_report

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</style><style>*{display:none}",
    "\"><a href='javascript:alert(1)'>x</a>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
)
PAGES = {"feature/extraction/templates/report.html.j2", "feature/migration/page.py"}
"""The files of the package that hold a whole page."""


class Parsed(HTMLParser):
    """The tags of a page, in order, and the content of its style sheets."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.styles: list[str] = []
        self._in_style = False
        self.feed(html)
        self.close()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_style = tag == "style"
        if self._in_style:
            self.styles.append("")

    @override
    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    @override
    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.styles[-1] += data

    @property
    def names(self) -> list[str]:
        return [tag for tag, _ in self.tags]

    @property
    def links(self) -> set[str]:
        named = ("href", "src", "action", "xlink:href", "formaction", "srcset", "poster")
        return {
            value or "" for _, each in self.tags for name, value in each.items() if name in named
        }


def report(text: str) -> str:
    from lumos.feature.extraction.report_page import report_page

    return report_page(hostile_report(text))


def migration(text: str) -> str:
    line = Line("ok", text, (text,))
    listed = Listed((text,), 3)
    return migration_page(
        text,
        text,
        when=text,
        checks={text: [line]},
        concepts=[(text, 1, text)],
        lists={text: listed},
    )


WRITERS = {"report": report, "migration": migration}


def test_every_page_of_the_package_is_known_here() -> None:
    package = Path(lumos.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*")
        if path.suffix in {".py", ".j2", ".html"}
        if re.search(r"<html[ >]", path.read_text("utf-8"), re.IGNORECASE)
    }
    assert found == PAGES
    assert len(WRITERS) == len(PAGES)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("writer", WRITERS)
def test_a_page_allows_its_own_style_sheet_and_nothing_else(writer: str, text: str) -> None:
    html = WRITERS[writer](text)
    page = Parsed(html)
    policies = [
        each["content"] or ""
        for tag, each in page.tags
        if tag == "meta" and (each.get("http-equiv") or "") == "Content-Security-Policy"
    ]

    (policy,) = policies
    (style,) = page.styles
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "unsafe" not in policy
    before_policy = page.names[: page.names.index("meta") + 2]
    assert set(before_policy) <= {"html", "head", "meta"}


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("writer", WRITERS)
def test_a_page_has_no_script_and_leads_nowhere(writer: str, text: str) -> None:
    page = Parsed(WRITERS[writer](text))

    assert page.names == Parsed(WRITERS[writer]("x")).names
    assert not {"script", "iframe", "object", "embed", "form", "base"} & set(page.names)
    assert not any(name.startswith("on") for _, each in page.tags for name in each)
    assert not any("style" in each for _, each in page.tags), "the policy allows none"
    assert all(link.startswith("#") or link == "data:," for link in page.links)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_a_notebook_shows_is_text(text: str) -> None:
    """A fragment has no policy of its own: it holds neither script nor link."""
    column = {"name": text, "type": "STRING", "description": text}
    described = dataset(text, schema={"fields": [column]}, documentation={"description": text})
    shown = (
        notebook.answer(notebook.Dataset, described)._repr_html_(),
        notebook.table(text, (text,), rows=[(text,)] * 200),
    )

    for html in shown:
        page = Parsed(html)
        assert set(page.names) <= {"p", "b", "br", "bdi", "table", "caption", "thead", "tbody",
                                   "tr", "th", "td"}  # fmt: skip
        assert {name for _, each in page.tags for name in each} <= {"style"}
        assert page.links == set()


def test_no_answer_of_the_sdk_writes_tags_of_its_own_making() -> None:
    """Whatever else is shown in a notebook has no tag that could run or load anything."""
    source = Path(notebook.__file__).read_text("utf-8")
    tags = set(re.findall(r"<([a-z]+)[ >]", source))

    assert tags <= {"p", "b", "bdi", "br", "table", "caption", "thead", "tbody", "tr", "th", "td"}
