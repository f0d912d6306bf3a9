from __future__ import annotations

import doctest
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Protocol

import pytest
from typing_extensions import override

import lumos
from command_line import FEBRUARY, JANUARY, ORDERS, ROOT
from documented_console import blocks_in
from lumos import Lumos
from lumos.core.changes import diff_datasets
from lumos.core.errors import DatasetNotFoundError, StateError, VersionNotFoundError
from lumos.core.models import LumosDataset, Urn
from lumos.core.platform.dataset_reference import UnresolvedReferenceError
from lumos.core.platform.interface import SearchHit
from lumos.entry.notebook import ROWS_SHOWN, Comparison, Dataset, SearchResults, answer, table
from lumos.entry.sdk import ImportMode
from lumos.feature.versioning.reported_change import ReportedChange

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


class Shown(Protocol):
    def _repr_html_(self) -> str: ...


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        assert {name for name, _ in attrs} <= {"style"}

    @override
    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def shop(tmp_path: Path) -> Lumos:
    shop = Lumos(state_dir=tmp_path / "state", environment={})
    shop.import_(JANUARY)
    return shop


def test_lumos_is_imported_only_when_it_is_asked_for() -> None:
    code = (
        "import sys, lumos; assert 'lumos.entry' not in sys.modules; "
        "assert 'pydantic' not in sys.modules; assert 'Lumos' in dir(lumos); "
        "from lumos import Lumos; assert Lumos.__module__ == 'lumos.entry.sdk'; "
        "assert not {'pyspark', 'sqlalchemy', 'jinja2'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_lumos_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Lumen'"):
        lumos.Lumen  # type: ignore[attr-defined]  # noqa: B018


def test_nothing_is_opened_before_the_first_call(tmp_path: Path) -> None:
    with Lumos(tmp_path / "lumos.yaml", state_dir=tmp_path / "state"):
        pass

    assert list(tmp_path.iterdir()) == []


def test_the_sdk_finds_shows_and_compares(shop: Lumos) -> None:
    shop.import_(FEBRUARY)

    assert shop.search("orders").hits[0].name == "orders"
    assert shop.search(platform="s3").total == 2
    orders = shop.dataset("orders")
    assert (orders.urn, orders.version) == (ORDERS, "2.0.0")
    assert [each.version for each in shop.history(ORDERS).schema_history] == ["1.0.0", "2.0.0"]
    compared = shop.compare("orders", "1.0.0", second="2.0.0")
    assert "field.removed" in {change.rule for change in compared.changes}


def test_the_sdk_numbers_and_blames(shop: Lumos) -> None:
    shop.import_(FEBRUARY)

    computed = shop.compute_versions(source=JANUARY, target=FEBRUARY)
    assert (computed.counts.major, computed.counts.minor, computed.dry_run) == (1, 1, True)
    assert repr(computed) == (
        "<Versions 5 datasets would get a version: 1 first, 1 major, 1 minor, 2 patch>"
    )
    assert "<table" in computed._repr_html_()
    assert shop.apply_versions().counts.new == 0
    update = shop.increment_version("orders", "DATA_UPDATE")
    assert (update.schema_version, update.cloud_version) == ("2.0.1", "S-3")
    assert shop.dataset("orders").version == "2.0.1"
    assert [each.version for each in shop.history("orders", limit=1).schema_history] == ["2.0.1"]
    assert shop.compare("orders", "S-1", second="S-2").to_version == "2.0.0"
    blame = shop.blame("orders")
    assert repr(blame) == f"<Blame {ORDERS}: 5 columns of version 2.0.1>"
    assert "<table" in blame._repr_html_()
    (total,) = (column for column in blame.columns if column.path == "total")
    assert (total.added.version, total.latest.version) == ("1.0.0", "2.0.0")


def test_the_sdk_writes_reads_and_diffs_snapshots(shop: Lumos, tmp_path: Path) -> None:
    stored = shop.snapshot()
    written = shop.export(tmp_path / "backup.json", snapshot=stored.id)
    assert written.statistics.datasets == stored.statistics.datasets == 5

    assert shop.diff("latest", tmp_path / "backup.json").changes == ()
    writers = shop.diff("latest", FEBRUARY, profile="writers", observations=True)
    assert "BREAKING" not in {change.level for change in writers.changes}
    changed = shop.diff("latest", FEBRUARY)
    assert changed.summary.worst_level == "BREAKING"
    assert changed.checks == ()
    itself = shop.diff("embedded", "embedded")
    assert [check.message for check in itself.checks] == [
        "5/5 datasets migrated",
        "3/3 lineage edges migrated",
    ]

    planned = shop.import_(FEBRUARY, dry_run=True)
    assert len(planned.created) == 1
    assert shop.dataset("orders").version == "1.0.0"
    skipped = shop.import_(FEBRUARY, mode=ImportMode.SKIP_EXISTING)
    assert skipped.skipped == 5


def test_the_sdk_writes_the_report(shop: Lumos, tmp_path: Path) -> None:
    report = shop.report(tmp_path / "report.html")

    assert report.inventory.datasets == 5
    assert "5 datasets on 4 platforms" in (tmp_path / "report.html").read_text("utf-8")


def test_settings_come_from_the_file(tmp_path: Path) -> None:
    settings = tmp_path / "lumos.yaml"
    settings.write_text(f"state_dir: {tmp_path / 'elsewhere'}\n")
    with Lumos(str(settings), environment={}) as shop:
        shop.import_(JANUARY)

    assert (tmp_path / "elsewhere" / "lumos.db").exists()


def test_errors_are_raised_as_they_are(shop: Lumos, tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError):
        shop.dataset("lumos://s3/nowhere")
    with pytest.raises(UnresolvedReferenceError, match="nowhere"):
        shop.history("nowhere")
    with pytest.raises(VersionNotFoundError):
        shop.compare("orders", "1.0.0", second="9.0.0")
    with pytest.raises(StateError):
        Lumos(state_dir=tmp_path / "none", environment={}).search("x")


def test_what_was_not_there_at_first_is_found_after_an_import(tmp_path: Path) -> None:
    with Lumos(state_dir=tmp_path / "state", environment={}) as shop:
        with pytest.raises(StateError):
            shop.search("orders")
        shop.import_(JANUARY)
        assert shop.search("orders").hits
        shop.import_(FEBRUARY)
        assert shop.dataset("orders").version == "2.0.0"


def test_an_answer_is_the_canonical_model(shop: Lumos) -> None:
    orders = shop.dataset("orders")
    plain = LumosDataset.from_json(orders.to_json())

    assert isinstance(orders, LumosDataset)
    assert orders.contract_hash == plain.contract_hash
    assert diff_datasets(plain, orders) == ()


@pytest.mark.parametrize("kind", ["search", "dataset", "history", "compare", "diff", "snapshot"])
def test_answers_are_short_in_a_shell_and_tables_in_a_notebook(shop: Lumos, kind: str) -> None:
    shop.import_(FEBRUARY)
    answers: dict[str, Callable[[], Shown]] = {
        "search": shop.search,
        "dataset": lambda: shop.dataset("orders"),
        "history": lambda: shop.history("orders"),
        "compare": lambda: shop.compare("orders", "1.0.0", second="2.0.0"),
        "diff": lambda: shop.diff(JANUARY, FEBRUARY),
        "snapshot": shop.snapshot,
    }
    given = answers[kind]()

    assert repr(given).startswith(f"<{type(given).__name__} ")
    assert str(given) in repr(given)
    assert len(repr(given)) < 300
    tags = Tags(given._repr_html_())
    assert tags.found
    assert ("table" in tags.found) is (kind != "snapshot")


def test_what_a_repr_says(shop: Lumos, tmp_path: Path) -> None:
    shop.import_(FEBRUARY)

    assert repr(Lumos("lumos.yaml")) == "Lumos('lumos.yaml')"
    assert repr(Lumos()) == "Lumos()"
    assert repr(shop.search("customers")) == "<SearchResults 1 of 1 datasets>"
    assert repr(shop.dataset("orders")) == f"<Dataset {ORDERS}: 5 columns, version 2.0.0>"
    assert repr(shop.history("orders")) == f"<History {ORDERS}: 2 versions, newest 2.0.0>"
    written = shop.export(tmp_path / "out.json")
    assert repr(written) == f"<Export {tmp_path / 'out.json'}: 6 datasets of embedded>"
    again = shop.import_(FEBRUARY)
    assert repr(again).startswith("<Import imported: 0 new, 0 changed, 6 unchanged")


def test_breaking_changes_come_first_in_a_notebook(shop: Lumos) -> None:
    html = shop.diff(JANUARY, FEBRUARY)._repr_html_()

    assert 0 < html.rindex("BREAKING<") < html.index("INFORMATIONAL<")


def test_hostile_names_are_only_text_in_a_notebook() -> None:
    dataset = Dataset.model_validate(
        {
            "urn": "lumos://s3/a",
            "name": HOSTILE,
            "platform": HOSTILE,
            "version": HOSTILE,
            "schema": {"fields": [{"name": HOSTILE, "type": "STRING", "description": HOSTILE}]},
            "documentation": {"description": HOSTILE},
            "ownership": [{"user": HOSTILE}],
        }
    )
    hit = SearchHit(urn=dataset.urn, name=HOSTILE, platform=HOSTILE, owners=(HOSTILE,))
    change = ReportedChange(
        dataset=dataset.urn,
        path=HOSTILE,
        rule=HOSTILE,
        level="BREAKING",
        scope="SCHEMA",
        bump="MAJOR",
        old=None,
        new=None,
        caution=False,
        widening=False,
        message=HOSTILE,
        fingerprint="0",
    )
    comparison = Comparison(
        dataset=dataset.urn, from_version=HOSTILE, to_version=HOSTILE, changes=(change,)
    )
    known = {"table", "caption", "thead", "tbody", "tr", "th", "td", "bdi", "p", "b", "br"}
    for shown in (dataset, SearchResults(hits=(hit,), total=1), comparison):
        tags = Tags(shown._repr_html_())
        assert set(tags.found) <= known
        assert HOSTILE in tags.text


def test_a_long_table_is_cut_and_the_rest_is_counted() -> None:
    html = table("numbers", ("n",), rows=((number,) for number in range(ROWS_SHOWN + 7)))

    assert Tags(html).found.count("td") == ROWS_SHOWN
    assert "and 7 more" in html


def test_an_answer_keeps_what_was_set() -> None:
    plain = LumosDataset(urn=Urn("lumos://s3/a"), name="a", platform="s3")

    shown = answer(Dataset, plain)
    assert shown.model_fields_set == plain.model_fields_set
    assert shown.to_json() == plain.to_json()


def test_the_python_of_the_guide_gives_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LUMOS_PLATFORM", "LUMOS_DATABASE_URL", "LUMOS_STATE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    guide = ROOT / "docs" / "how-to" / "python-sdk.md"
    blocks = [
        each.body for each in blocks_in(guide.read_text("utf-8")) if each.language == "python"
    ]
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "guide", str(guide), 0)
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=printed.append)

    assert runner.tries > 10
    assert runner.failures == 0, "".join(printed)


def test_other_catalogs_are_synced_and_filled_from_python(shop: Lumos, tmp_path: Path) -> None:
    team, new = (f"sqlite:///{tmp_path / name}" for name in ("team.db", "new.db"))

    planned = shop.sync(team, dry_run=True)
    sent = shop.sync(team)
    again = shop.sync(team)
    would = shop.migrate("embedded", new, dry_run=True)
    moved = shop.migrate("embedded", new)
    checked = shop.validate(JANUARY)

    assert repr(planned).startswith("<Sync would bring to embedded: 5 new, ")
    assert sent.writes == 17
    assert again.writes == 0
    assert str(again).startswith("brought to embedded: 0 new, 0 changed, 5 unchanged")
    assert str(would).endswith("nothing was written")
    assert moved.verified
    assert "5/5 datasets migrated" in str(moved)
    assert checked.status == "ok"
    assert "5 datasets" in str(checked)
    for shown in (sent, would, moved, checked):
        assert Tags(shown._repr_html_()).found.count("table") == 1
