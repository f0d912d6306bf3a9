"""The platform contract fails for adapters that are broken, each in a way of its own."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest

ADAPTERS = """
import shutil
import sqlite3
from dataclasses import replace

import pytest
from hypothesis import settings

from lumos.core.errors import DatasetNotFoundError
from lumos.core.models import with_parts
from lumos.core.platform.batch import Seen
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import Capability
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_contract import PlatformContract

settings.register_profile("short", max_examples=5, deadline=None, derandomize=True)
settings.load_profile("short")


class ReturnsNothingForMissing(EmbeddedHandler):
    def get_dataset(self, urn):
        try:
            return super().get_dataset(urn)
        except DatasetNotFoundError:
            return None


class DropsAField(EmbeddedHandler):
    def apply(self, batch, seen=None):
        kept = [with_parts(each, assertions=()) for each in batch.models()]
        super().apply(replace(batch, datasets=kept), seen)


class DropsNestedDescriptions(EmbeddedHandler):
    def get_dataset(self, urn):
        found = super().get_dataset(urn)
        fields = [field.model_copy(update={"description": None}) for field in found.schema.fields]
        return with_parts(found, schema={**dict(found.schema), "fields": fields})


class RepeatsAtThePageEdge(EmbeddedHandler):
    def list(self, *, platform=None, page_size=500):
        for number, found in enumerate(super().list(platform=platform, page_size=page_size), 1):
            yield found
            if number % page_size == 0:
                yield found


class ForgetsTheLastPage(EmbeddedHandler):
    def list(self, *, platform=None, page_size=500):
        found = [*super().list(platform=platform, page_size=page_size)]
        yield from found[: len(found) - len(found) % page_size]


class ListsInOrderOfArrival(EmbeddedHandler):
    def list(self, *, platform=None, page_size=500):
        return iter([*super().list(platform=platform, page_size=page_size)][::-1])


class LeaksTheDriversError(EmbeddedHandler):
    def close(self):
        self._raw = sqlite3.connect(":memory:")
        self._raw.close()
        super().close()

    def get_dataset(self, urn):
        if hasattr(self, "_raw"):
            self._raw.execute("SELECT 1")
        return super().get_dataset(urn)


class AcceptsWhatItDoesNotDeclare(EmbeddedHandler):
    capabilities = frozenset(Capability) - {Capability.SEARCH}


AcceptsWhatItDoesNotDeclare.search = lambda self, query, filters=None, *, limit=20, offset=0: None


class DeclaresWhatItCannot(EmbeddedHandler):
    def apply(self, batch, seen=None):
        if batch.identities:
            raise NotImplementedError
        super().apply(batch, seen)


class OverridesAFinalMethod(EmbeddedHandler):
    def emit_dataset(self, dataset):
        super().emit_dataset(dataset)


class TouchesOnEveryEmit(EmbeddedHandler):
    def apply(self, batch, seen=None):
        touched = [with_parts(each, format="x") for each in batch.models()]
        super().apply(replace(batch, datasets=touched))
        super().apply(batch)


class IgnoresWhatWasSeen(EmbeddedHandler):
    def apply(self, batch, seen=None):
        super().apply(batch)


class ForgetsThatNothingWasThere(EmbeddedHandler):
    def apply(self, batch, seen=None):
        super().apply(batch, {urn: each for urn, each in (seen or {}).items() if each.dataset})


class TakesOtherArguments(EmbeddedHandler):
    def search(self, query, filters=None, *, limit=10, offset=0):
        return super().search(query, filters, limit=limit, offset=offset)


class AppendsEdges(EmbeddedHandler):
    def list_edges(self):
        for edge in super().list_edges():
            yield edge
            if edge.provenance == "sql":
                yield edge


class ReplacesOwners(EmbeddedHandler):
    def find_datasets(self, urns):
        found = super().find_datasets(urns)
        return {
            urn: Seen(seen.dataset and with_parts(seen.dataset, ownership=()))
            for urn, seen in found.items()
        }


class ListsNoGlossary(EmbeddedHandler):
    def list_entities(self, kind):
        return iter(()) if kind == "glossary_term" else super().list_entities(kind)


class PassesQueriesThrough(EmbeddedHandler):
    def search(self, query, filters=None, *, limit=20, offset=0):
        self._database.query(
            "SELECT rowid FROM search_index WHERE search_index MATCH :query", {"query": query}
        )
        return super().search(query, filters, limit=limit, offset=offset)


class DeletesInSilence(EmbeddedHandler):
    def apply(self, batch, seen=None):
        found = self.find_datasets(batch.removed_datasets)
        there = [urn for urn, each in found.items() if each.dataset]
        super().apply(replace(batch, removed_datasets=there), seen)


class LimitedButSound(EmbeddedHandler):
    capabilities = frozenset()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "lumos.db"
    StateDatabase.open(path).close()
    return path


def case(adapter):
    class Case(PlatformContract):
        @pytest.fixture
        def platform(self, tmp_path, empty_database):
            path = shutil.copy(empty_database, tmp_path / "lumos.db")
            with adapter(StateDatabase.open(path)) as platform:
                yield platform

    return Case


TestReturnsNothingForMissing = case(ReturnsNothingForMissing)
TestDropsAField = case(DropsAField)
TestDropsNestedDescriptions = case(DropsNestedDescriptions)
TestRepeatsAtThePageEdge = case(RepeatsAtThePageEdge)
TestForgetsTheLastPage = case(ForgetsTheLastPage)
TestListsInOrderOfArrival = case(ListsInOrderOfArrival)
TestLeaksTheDriversError = case(LeaksTheDriversError)
TestAcceptsWhatItDoesNotDeclare = case(AcceptsWhatItDoesNotDeclare)
TestDeclaresWhatItCannot = case(DeclaresWhatItCannot)
TestOverridesAFinalMethod = case(OverridesAFinalMethod)
TestTouchesOnEveryEmit = case(TouchesOnEveryEmit)
TestIgnoresWhatWasSeen = case(IgnoresWhatWasSeen)
TestForgetsThatNothingWasThere = case(ForgetsThatNothingWasThere)
TestTakesOtherArguments = case(TakesOtherArguments)
TestAppendsEdges = case(AppendsEdges)
TestReplacesOwners = case(ReplacesOwners)
TestListsNoGlossary = case(ListsNoGlossary)
TestPassesQueriesThrough = case(PassesQueriesThrough)
TestDeletesInSilence = case(DeletesInSilence)
TestLimitedButSound = case(LimitedButSound)
"""

CAUGHT_BY = {
    "ReturnsNothingForMissing": "test_what_is_missing_is_said_to_be_missing",
    "DropsAField": "test_what_went_in_comes_back_equal",
    "DropsNestedDescriptions": "test_what_went_in_comes_back_equal",
    "RepeatsAtThePageEdge": "test_a_listing_is_complete_and_in_order",
    "ForgetsTheLastPage": "test_a_listing_is_complete_and_in_order",
    "ListsInOrderOfArrival": "test_a_listing_is_complete_and_in_order",
    "LeaksTheDriversError": "test_no_foreign_exception_escapes_from_a_broken_connection",
    "AcceptsWhatItDoesNotDeclare": "test_undeclared_capabilities_are_refused",
    "DeclaresWhatItCannot": "test_declared_capabilities_are_there",
    "OverridesAFinalMethod": "test_final_methods_are_those_of_the_interface",
    "IgnoresWhatWasSeen": "test_what_changed_since_it_was_looked_up_is_not_overwritten",
    "ForgetsThatNothingWasThere": "test_what_changed_since_it_was_looked_up_is_not_overwritten",
    "TouchesOnEveryEmit": "test_emitting_returns_nothing_and_twice_changes_nothing",
    "TakesOtherArguments": "test_methods_can_be_called_as_the_interface_says",
    "AppendsEdges": "test_an_edge_keeps_its_parts_and_is_kept_once",
    "ReplacesOwners": "test_owners_are_added_once_and_others_stay",
    "ListsNoGlossary": "test_an_export_holds_all_that_was_emitted",
    "PassesQueriesThrough": "test_no_query_is_an_error_or_harms",
    "DeletesInSilence": "test_what_is_missing_cannot_be_deleted",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, set[str]]]:
    """Names of tests by adapter and outcome."""
    folder = tmp_path_factory.mktemp("teeth")
    (folder / "test_adapters.py").write_text(ADAPTERS)
    tests = [f"test_adapters.py::Test{adapter}::{test}" for adapter, test in CAUGHT_BY.items()]
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    options = [f"--junitxml={report}", f"--rootdir={folder}"]
    subprocess.run(
        [*command, *options, *tests, "test_adapters.py::TestLimitedButSound"],
        check=False,
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    found: dict[str, dict[str, set[str]]] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - written just now
        adapter = case.attrib["classname"].rpartition(".")[2].removeprefix("Test")
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        for kind in kinds or {"passed"}:
            name = case.attrib["name"].partition("[")[0]
            found.setdefault(adapter, {}).setdefault(kind, set()).add(name)
    return found


@pytest.mark.parametrize(("adapter", "test"), CAUGHT_BY.items())
def test_a_broken_adapter_fails(
    outcomes: dict[str, dict[str, set[str]]], adapter: str, test: str
) -> None:
    assert test in outcomes[adapter]["failure"]
    assert "error" not in outcomes[adapter]


def test_an_adapter_that_declares_little_and_refuses_the_rest_passes(
    outcomes: dict[str, dict[str, set[str]]],
) -> None:
    assert {*outcomes["LimitedButSound"]} == {"passed", "skipped"}
    assert "test_what_went_in_comes_back_equal" in outcomes["LimitedButSound"]["passed"]
    assert "test_an_edge_shows_at_both_ends" in outcomes["LimitedButSound"]["skipped"]
