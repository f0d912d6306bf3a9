from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from command_line import FEBRUARY, JANUARY, ORDERS
from given_work import open_work
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.report_controller import ReportController
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.errors import StateError, UnreadableItemError, UsageError
from lumos.core.models import LumosDataset, OperationalMetadata
from lumos.core.run_report import RunRecorder
from lumos.core.runtime.project import Project
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import HistoryRepository
from lumos.core.store.runs import RunRepository
from lumos.feature.extraction.catalog_report import CatalogReport
from lumos.feature.extraction.inventory import ReportLimits, inventory_of, limited_list
from lumos.feature.extraction.report_page import report_page
from lumos.feature.extraction.wording import ago, short, size, verdict
from report_samples import NOW, dataset, hostile_report, report_on

ALLOWED_TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "link",
        "style",
        "body",
        "header",
        "main",
        "footer",
        "p",
        "b",
        "h1",
        "h2",
        "h3",
        "ul",
        "li",
        "a",
        "strong",
        "span",
        "section",
        "div",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "svg",
        "rect",
        "bdi",
        "code",
    ]
)
ALLOWED_ATTRIBUTES = frozenset(
    [
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "rel",
        "href",
        "class",
        "id",
        "scope",
        "role",
        "viewbox",
        "width",
        "height",
        "rx",
        "x",
        "preserveaspectratio",
        "aria-hidden",
        "aria-label",
        "aria-labelledby",
    ]
)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>alert(1)</script>",
    "</title></bdi></th></table><iframe src=//evil.example>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% include 'x' %}",
    "\u202egnp.exe\u2066",
    "שלום עולם",
    "nul\x00bell\x07 escape\x1b[31m",
    "<!-- --><![CDATA[ ]]>",
    "a" * 5_000,
)


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)

    @override
    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def structure(self) -> tuple[list[str], list[str]]:
        return self.tags, [name for name, _ in self.attributes]


class Shop:
    """The example shop with its own clock, and the report on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = NOW - timedelta(days=40)

    def do(self, *steps: str) -> None:
        with open_work(state_dir=self.folder, environment={}, clock=self._tick) as work:
            for step in steps:
                if step == "snapshot":
                    SnapshotController(work).create()
                else:
                    ImportController(work).run(step)

    def save_run(self, operation: str, *failed: str, warning: str | None = None) -> None:
        recorder = RunRecorder(operation, started_at=self._tick())
        for item in failed:
            recorder.failed(item, UnreadableItemError("the file is cut off", hint="write it anew"))
        if warning:
            recorder.warning(warning)
        report = recorder.finish(at=self._tick())
        with StateDatabase.open(self.folder / "lumos.db") as database:
            RunRepository(database).save(
                f"{report.started_at.isoformat()} {operation}",
                report.as_json(),
                operation=operation,
                started_at=report.started_at,
            )

    def build(self, limits: ReportLimits | None = None) -> CatalogReport:
        with self.opened() as work:
            return ReportController(work, limits=limits or ReportLimits()).build()

    def opened(self) -> UnitOfWork:
        project = Project(given_state_dir=self.folder, environment={}, clock=lambda: NOW)
        return UnitOfWork(project)

    def _tick(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "state")


@pytest.fixture
def evolved(shop: Shop) -> Shop:
    shop.do(JANUARY, "snapshot", FEBRUARY, "snapshot")
    return shop


def test_the_report_says_what_changed_with_the_breaking_changes_first(evolved: Shop) -> None:
    report = evolved.build()

    assert report.changes is not None
    levels = [change.level.value for change in report.changes.changes.items]
    assert levels == sorted(levels, key=["BREAKING", "NON_BREAKING", "INFORMATIONAL"].index)
    assert report.changes.levels["BREAKING"] == levels.count("BREAKING") > 0
    assert report.breaking == report.changes.levels["BREAKING"]
    assert [urn.name for urn in report.changes.added.items] == ["customer_features"]


def test_versions_of_the_period_are_those_after_the_previous_snapshot(evolved: Shop) -> None:
    report = evolved.build()

    assert report.versions_since is not None
    assert report.versions_since == report.since
    versions = {each.dataset.name: each.version for each in report.versions.items}
    assert versions["orders"] == "2.0.0"
    assert versions["customer_features"] == "1.0.0"
    assert all(each.timestamp > report.versions_since for each in report.versions.items)


def test_without_two_snapshots_there_is_nothing_to_compare_and_all_versions_are_new(
    shop: Shop,
) -> None:
    shop.do(JANUARY, "snapshot")
    report = shop.build()

    assert report.changes is None
    assert report.versions.total == report.inventory.datasets == 5
    assert "no earlier snapshot" in verdict(report)
    assert "needs two snapshots" in Page(report_page(report)).text


def test_two_equal_snapshots_are_said_to_be_without_change(shop: Shop) -> None:
    shop.do(JANUARY, "snapshot", "snapshot")
    report = shop.build()

    assert report.changes is not None
    assert report.changes.changes.total == 0
    assert verdict(report).startswith("Nothing changed since")
    assert "No dataset changed." in report_page(report)


def test_a_damaged_snapshot_is_named_and_the_others_are_compared(evolved: Shop) -> None:
    damaged = sorted((evolved.folder / "snapshots").glob("*Z-*"))[0]
    evolved.do("snapshot")
    (damaged / "manifest.json").write_text("{}")
    report = evolved.build()

    assert any(damaged.name in text for text in report.warnings.items)
    assert report.changes is not None
    assert report.changes.previous.id != damaged.name


def test_unreadable_items_are_those_of_the_newest_run_of_each_operation(evolved: Shop) -> None:
    evolved.save_run("ingest", "lake/mended.parquet")
    evolved.save_run("ingest", "lake/broken.parquet", warning="lake/odd.csv holds Parquet")
    evolved.save_run("enrich", "no_such_dataset")
    report = evolved.build()

    assert {each.item for each in report.unreadable.items} == {
        "lake/broken.parquet",
        "no_such_dataset",
    }
    assert {each.code for each in report.unreadable.items} == {"LUM-221"}
    text = Page(report_page(report)).text
    assert "lake/broken.parquet" in text
    assert "the file is cut off" in text
    assert "write it anew" in text
    assert "lake/odd.csv holds Parquet" in text
    assert "2 items could not be read." in text


def test_a_run_that_this_version_cannot_read_is_an_error_and_not_left_out(evolved: Shop) -> None:
    with StateDatabase.open(evolved.folder / "lumos.db") as database:
        RunRepository(database).save("x", {"new": 1}, operation="ingest", started_at=NOW)

    with pytest.raises(StateError, match="the run x"):
        evolved.build()


def test_the_page_holds_what_the_report_says(evolved: Shop) -> None:
    report = evolved.build()
    page = Page(report_page(report))

    assert "6 datasets on 4 platforms" in page.text
    assert verdict(report) in page.text
    for line in report.inventory.listing.items:
        assert line.urn in page.text
    assert report.changes is not None
    for change in report.changes.changes.items:
        assert change.message in page.text
        assert change.rule in page.text
    assert page.tags.count("table") == page.tags.count("caption") > 5


def test_the_page_needs_nothing_but_itself(evolved: Shop) -> None:
    html = report_page(evolved.build())
    page = Page(html)

    assert not re.search(r"https?:|//[a-z]|@import|url\(", html.replace("lumos://", ""))
    assert set(page.tags) <= ALLOWED_TAGS
    assert {name for name, _ in page.attributes} <= ALLOWED_ATTRIBUTES
    targets = {value or "" for name, value in page.attributes if name == "href"}
    ids = {f"#{value}" for name, value in page.attributes if name == "id"}
    assert targets - {"data:,"} <= ids


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_only_text(text: str) -> None:
    harmless = Page(report_page(hostile_report("x")))
    page = Page(report_page(hostile_report(text)))

    assert page.structure == harmless.structure
    assert not any(text in (value or "") for _, value in page.attributes)


@given(st.text(min_size=1).filter(str.strip))
def test_no_name_adds_to_the_page_anything_but_text(text: str) -> None:
    harmless = Page(report_page(hostile_report("x")))

    assert Page(report_page(hostile_report(text))).structure == harmless.structure


def test_what_cannot_be_seen_is_spelt_out_and_long_names_are_cut() -> None:
    text = Page(report_page(hostile_report("\u202egnp\x1b[31m"))).text
    assert "\\u202egnp\\u001b[31m" in text
    assert not any("\u202a" <= char <= "\u202e" for char in text)

    assert "a" * 300 not in report_page(hostile_report("a" * 5_000))


def test_a_name_that_is_no_unicode_can_be_written() -> None:
    report = report_on(dataset("x"), item="lake/\udcff.csv")

    assert b"\\udcff.csv" in report_page(report).encode()


def test_lists_are_cut_and_the_rest_is_counted(evolved: Shop) -> None:
    limits = ReportLimits(datasets=2, shares=1, findings=1, changes=3, dated=1)
    report = evolved.build(limits)

    assert report.inventory.datasets == report.inventory.listing.total == 6
    assert report.inventory.listing.more == 4
    assert len(report.inventory.platforms.items) == 1
    assert report.changes is not None
    assert len(report.changes.changes.items) == 3
    assert sum(report.changes.levels.values()) == report.changes.changes.total
    assert len(report.versions.items) == 1
    text = Page(report_page(report)).text
    assert "and 4 more" in text
    assert f"and {report.changes.changes.more} more" in text


def luminance(colour: str) -> float:
    digits = colour * 2 if len(colour) == 3 else colour
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "dark", "print"])
def test_every_text_can_be_read_on_its_ground(scheme: int) -> None:
    html = report_page(report_on())
    block = re.findall(r":root \{(.*?)\}", html, re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([a-z-]+): #([0-9a-f]{3,6})", block))
    texts = ("ink", "soft", "accent", "bad", "warn", "note", "good")
    pairs = [(text, ground) for text in texts for ground in ("page", "card")]
    pairs += [(text, f"{text}-tint") for text in ("bad", "warn", "note", "good")]
    for text, ground in pairs:
        dark, light = sorted((luminance(colours[text]), luminance(colours[ground])))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def test_a_run_with_a_clock_ahead_hides_neither_later_versions_nor_later_runs(shop: Shop) -> None:
    shop.do(JANUARY, "snapshot")
    shop.now += timedelta(days=365)
    shop.do("snapshot")
    shop.save_run("ingest", "ahead.csv")
    shop.now -= timedelta(days=365)
    shop.save_run("ingest", "now.csv")
    shop.do(FEBRUARY, "snapshot")

    report = shop.build()

    assert report.changes is not None
    assert report.changes.latest.stored_at == shop.now
    assert report.versions.total == 5
    assert [each.item for each in report.unreadable.items] == ["now.csv"]


def test_the_versions_of_a_period_are_found_on_postgresql_too(
    tmp_path: Path, postgres_database_url: str
) -> None:
    moments = iter(NOW + timedelta(seconds=number) for number in range(1_000))
    environment = {"LUMOS_DATABASE_URL": postgres_database_url}
    with open_work(
        state_dir=tmp_path, environment=environment, clock=lambda: next(moments)
    ) as work:
        ImportController(work).run(JANUARY)
        between = next(moments)
        ImportController(work).run(FEBRUARY)
    with StateDatabase.open(postgres_database_url, read_only=True) as database:
        total, newest = HistoryRepository(database).since(between, limit=2)
        assert HistoryRepository(database).since(None, limit=1)[0] == total + 5

    assert total == 5
    assert len(newest) == 2
    assert newest[0][1].timestamp >= newest[1][1].timestamp > between


def test_an_empty_catalog_has_a_page_too() -> None:
    page = Page(report_page(report_on()))

    assert "0 datasets on 0 platforms" in page.text
    assert "The catalog is empty." in page.text


def test_the_freshest_and_the_stalest_are_found_among_many() -> None:
    def dated() -> Iterator[LumosDataset]:
        for number in range(100):
            moment = NOW - timedelta(days=(number * 37) % 100)
            yield dataset(f"d{number:02}", statistics=OperationalMetadata(last_modified=moment))
        yield dataset("undated")

    inventory = inventory_of(dated())

    def ages(lines: tuple[object, ...]) -> list[int]:
        return [(NOW - line.last_modified).days for line in lines]  # type: ignore[attr-defined]

    assert ages(inventory.freshest) == [0, 1, 2, 3, 4]
    assert ages(inventory.stalest) == [99, 98, 97, 96, 95]
    assert inventory.undated == 1


def test_a_dataset_without_a_format_counts_by_its_kind() -> None:
    inventory = inventory_of(
        [
            dataset("a", kind="TABLE"),
            dataset("b", kind="TABLE"),
            dataset("c"),
            dataset("d", format="csv"),
        ]
    )

    assert [(share.name, share.datasets) for share in inventory.formats.items] == [
        ("table", 2),
        ("csv", 1),
        ("not known", 1),
    ]


@given(st.lists(st.integers(), max_size=30), st.integers(min_value=0, max_value=40))
def test_a_cut_list_counts_everything(items: list[int], limit: int) -> None:
    cut = limited_list(iter(items), limit)

    assert cut.items == tuple(items[:limit])
    assert len(cut.items) + cut.more == cut.total == len(items)


@pytest.mark.parametrize(
    ("number", "as_size", "as_number"),
    [
        (0, "0 B", "0"),
        (999, "999 B", "999"),
        (1_000, "1.0 kB", "1.0K"),
        (45_000_000_000, "45 GB", "45B"),
        (999_700, "1.0 MB", "1.0M"),
        (10**21, "1,000,000 PB", "1,000,000,000T"),
        (None, "", ""),
    ],
)
def test_numbers_are_short(number: int | None, as_size: str, as_number: str) -> None:
    assert size(number) == as_size
    assert short(number) == as_number


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (60, "1 minute ago"),
        (7_200, "2 hours ago"),
        (86_400 * 40, "40 days ago"),
        (86_400 * 800, "2 years ago"),
        (-5, "in the future"),
    ],
)
def test_an_age_is_told_in_its_largest_unit(seconds: int, words: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), now=NOW) == words


def test_the_same_state_gives_the_same_page(evolved: Shop) -> None:
    assert report_page(evolved.build()) == report_page(evolved.build())


def test_the_json_of_a_report_reads_back(evolved: Shop) -> None:
    report = evolved.build()

    assert CatalogReport.model_validate(report.as_json()) == report
    jsonschema.validate(report.as_json(), CatalogReport.model_json_schema(mode="serialization"))


def test_writing_replaces_a_page_and_refuses_what_is_no_file(evolved: Shop, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    with evolved.opened() as work:
        controller = ReportController(work)
        controller.write(target)

        assert ORDERS in target.read_text("utf-8")
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["report.html"]
        with pytest.raises(UsageError, match="not a file"):
            controller.write(tmp_path)
