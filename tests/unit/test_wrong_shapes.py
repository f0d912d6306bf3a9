"""JSON of another shape in the state, in changes and in catalogs: one clear error each time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.changes.applying import APPLIERS, apply_changes
from lumos.core.errors import InvalidModelError, PlatformAnswerError, StateError
from lumos.core.models import Bump, Change, ChangeLevel, ChangeScope
from lumos.core.models.contribution import Contribution, fold, statements_of
from lumos.core.models.contributor import Contributor, ContributorKind
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.core.platform.impl.amundsen.writer.entities import _identity, _named_value
from lumos.core.platform.impl.snowflake.mapping.records import TableKey, TableRecord
from lumos.core.platform.impl.snowflake.mapping.replaced import with_lost
from lumos.core.platform.impl.snowflake.side_store import parts_of
from lumos.core.platform.stash import residue, restored
from lumos.core.store.documents import stored_object
from lumos.testing.platform_samples import rich_dataset
from scripted_server import Reply, scripted_server

AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
DATASET: Final = rich_dataset("orders")
FACETS: Final = statements_of(DATASET.to_json())
WRONG: Final[tuple[Any, ...]] = (5, "x", True, [5], {"x": 5}, [{"x": 5}], [[]])
ODD: Final = st.sampled_from((None, *WRONG, {"add": 5}, {"remove": [5]}, {"name": 5}))
RULES: Final = (
    *APPLIERS,
    *("field.added.tail", "field.reordered", "schema.positional.gained", "null.loosened"),
    *("field.sunset.set", "field.deprecated", "type.widened"),
)


def refusal(act: Callable[[], object]) -> str:
    """Return why something is refused; where it is not, words that every test accepts."""
    try:
        act()
    except InvalidModelError as error:
        return str(error)
    return "the stash is not refused"


@pytest.mark.parametrize("text", ["5", "[]", '"x"', "null", "{", ""])
def test_a_stored_document_that_is_no_object_is_damaged(text: str) -> None:
    with pytest.raises(StateError, match="a stored document is damaged"):
        stored_object(text)


@given(rule=st.sampled_from(RULES), path=st.sampled_from(("", "email")), old=ODD, new=ODD, more=ODD)
def test_a_change_of_another_shape_is_refused_or_applied(
    rule: str, path: str, *, old: Any, new: Any, more: Any
) -> None:
    change = Change(
        dataset=DATASET.urn, path=path, rule=rule, level=ChangeLevel.BREAKING,
        scope=ChangeScope.DATASET, bump=Bump.PATCH, old=old, new=new, payload=more, message="x",
    )  # fmt: skip
    assert "\n" not in refusal(lambda: apply_changes(DATASET, [change]))


@given(path=st.sampled_from(sorted(FACETS)), said=ODD)
def test_a_statement_of_another_shape_is_refused_or_folded(path: str, said: Any) -> None:
    source = Contributor(ContributorKind.SOURCE, "lake")
    people = Contributor(ContributorKind.PEOPLE, "catalog")
    stated = [
        Contribution(source, FACETS, AT),
        Contribution(people, {path: said}, AT),
    ]
    assert "is not " in refusal(lambda: fold(str(DATASET.urn), stated))


@given(patch=st.recursive(ODD, lambda inner: st.dictionaries(
    st.sampled_from(("=", "-", "#", "~", "was", "order", "tags", "schema", "fields")),
    inner, max_size=3), max_leaves=6))  # fmt: skip
def test_a_stash_of_another_shape_is_refused_or_applied(patch: Any) -> None:
    native = DATASET.to_json()
    assert residue(native, native) is None
    assert "stash" in refusal(lambda: restored(native, {"v": 1, "patch": patch}))


@pytest.mark.parametrize("wrong", WRONG)
def test_what_amundsen_keeps_in_another_shape_is_named(wrong: Any) -> None:
    for read in (_identity, _named_value):
        with pytest.raises(InvalidModelError, match=" is not "):
            read(wrong)
        with pytest.raises(InvalidModelError, match=" is not "):
            read({"urn": wrong, "name": [wrong]})


@pytest.mark.parametrize("wrong", [5, "x", True, [5]])
def test_what_snowflake_keeps_in_another_shape_is_named(wrong: Any) -> None:
    with pytest.raises(InvalidModelError, match='"document" is not an object'):
        parts_of(wrong)
    record = TableRecord(
        TableKey("D", "S", "T"), "TABLE", None, "", None, None, None, {"created": 2}
    )
    assert with_lost(record, {"created": 1}, place=("D", "S")) == record
    with pytest.raises(InvalidModelError, match='"columns" is not an object'):
        with_lost(record, {"created": 1, "columns": wrong}, place=("D", "S"))


@pytest.mark.parametrize(
    "answer",
    [
        {"results": 5, "errors": []},
        {"results": [], "errors": []},
        {"results": [5], "errors": []},
        {"results": [{"data": 5}], "errors": []},
        {"results": [{"data": [5]}], "errors": []},
        {"results": [{"data": [{"row": 5}]}], "errors": []},
        {"results": [{"data": [{"row": []}]}], "errors": []},
        {"results": [{"data": [{"row": [1, 2, 3]}]}], "errors": []},
        [],
        5,
    ],
)
def test_an_answer_of_neo4j_of_another_shape_names_the_server(answer: Any) -> None:
    with scripted_server() as server:
        server.answer(Reply(body=orjson.dumps(answer)))
        with (
            AmundsenHandler.from_config({"neo4j_url": server.url}) as platform,
            pytest.raises(PlatformAnswerError) as raised,
        ):
            list(platform.list())

    assert server.url.removeprefix("http://") in raised.value.message
    assert "Error" not in raised.value.message
