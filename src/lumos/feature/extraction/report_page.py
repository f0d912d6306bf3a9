"""The report as one page of HTML that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from lumos.core.page_policy import page_policy
from lumos.feature.extraction.wording import ago, day, moment, plural, short, size, verdict

if TYPE_CHECKING:
    from lumos.feature.extraction.catalog_report import CatalogReport, Share

_LONGEST = 240
_JOINERS = "\u200c\u200d"


class Bar(NamedTuple):
    """One bar of a chart."""

    name: str
    datasets: int
    percent: float
    detail: str


def report_page(report: CatalogReport) -> str:
    """Return the report as a self-contained HTML document.

    Everything that people or files named is text in it: markup is escaped, characters that steer
    the reading direction or cannot be seen are spelt out, and long names are cut.
    """
    inventory = report.inventory
    style = _style()
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            style=style,
            policy=Markup(page_policy(style)),  # noqa: S704 - it is of our own making
            report=report,
            inventory=inventory,
            verdict=verdict(report),
            platforms=_bars(inventory.platforms.items, inventory.datasets),
            formats=_bars(inventory.formats.items, inventory.datasets),
            coverage=_coverage(report),
            levels=_level_bars(report),
            ago=lambda then: ago(then, now=report.generated_at),
        )
    )


def _bars(shares: tuple[Share, ...], datasets: int) -> list[Bar]:
    return [
        Bar(
            share.name,
            share.datasets,
            _percent(share.datasets, datasets),
            size(share.size_bytes) if share.size_bytes else "",
        )
        for share in shares
    ]


def _coverage(report: CatalogReport) -> list[Bar]:
    inventory = report.inventory
    total = inventory.datasets
    known = (
        ("an owner", total - inventory.without_owner.total),
        ("a description", total - inventory.without_description.total),
        ("a known age", total - inventory.undated),
    )
    return [
        Bar(name, count, percent := _percent(count, total), f"{percent:.0f} %")
        for name, count in known
    ]


def _level_bars(report: CatalogReport) -> list[Bar]:
    if report.changes is None:
        return []
    total = report.changes.changes.total
    return [
        Bar(level, count, _percent(count, total), "")
        for level, count in report.changes.levels.items()
    ]


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


@cache
def _style() -> Markup:
    """Return the style sheet, which is a file of this package and no template."""
    source = resources.files("lumos.feature.extraction") / "templates" / "report.css"
    return Markup(source.read_text("utf-8"))  # noqa: S704 - it is of our own making


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("lumos.feature.extraction", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=lambda number: f"{number:,}",
        short=short,
        size=size,
        moment=moment,
        day=day,
        level=lambda name: name.lower().replace("_", "-"),
        kind=lambda name: name.lower().replace("_", " "),
        plural=plural,
        place=lambda urn: urn.removeprefix("lumos://"),
    )
    return environment


def _shown(value: object) -> object:
    """Make text safe to read before it is escaped; markup of the templates passes."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = " ".join(value.split())
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    return "".join(
        char if char.isprintable() or char in _JOINERS else f"\\u{ord(char):04x}" for char in text
    )
