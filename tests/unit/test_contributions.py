"""The fold of contributions: one dataset from many speakers, by precedence and never by order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.models import Contributor, LumosDataset, Urn
from lumos.core.models.contribution import Contribution, fold, statements_of
from lumos.core.models.dataset import contract_of
from lumos.core.models.restating import restated
from strategies import datasets, moments

Json = dict[str, JsonValue]
AT = datetime(2024, 5, 1, tzinfo=UTC)
ORDERS = Urn("lumos://postgres/shop/public/orders")
SPEAKERS = (
    "source:db", "source:other", "declared:dbt", "people:datahub", "inferred:sql", "assistant:",
)  # fmt: skip

pytestmark = pytest.mark.hypothesis


def says(speaker: str, *, rank: int = 0, **parts: object) -> Contribution:
    """Return what a speaker says, given as parts of a dataset."""
    document = LumosDataset.from_json(
        {"urn": ORDERS, "name": "orders", "platform": "postgres", **parts}
    ).to_json()
    return Contribution(Contributor.of(speaker), statements_of(document), AT, rank=rank)


def folded(*contributions: Contribution) -> LumosDataset:
    return LumosDataset.from_json(fold(ORDERS, contributions))


def columns(*names: str, **words: object) -> dict[str, object]:
    return {"fields": [{"name": name, "type": "STRING", **words} for name in names]}


@given(datasets())
def test_one_speaker_alone_makes_the_dataset_it_speaks_of(dataset: LumosDataset) -> None:
    document = dataset.to_json()
    alone = Contribution(Contributor.of("source:db"), statements_of(document), AT)
    document.pop("lineage", None)
    assert LumosDataset.from_json(fold(dataset.urn, [alone])).to_json() == document


@given(st.lists(datasets(urn=st.just(ORDERS)), min_size=2, max_size=5), st.randoms())
def test_the_order_in_which_speakers_came_does_not_matter(
    said: list[LumosDataset], random: Random
) -> None:
    contributions = [
        Contribution(Contributor.of(speaker), statements_of(each.to_json()), AT)
        for speaker, each in zip(SPEAKERS, said, strict=False)
    ]
    shuffled = [*contributions]
    random.shuffle(shuffled)
    assert fold(ORDERS, shuffled) == fold(ORDERS, contributions)


@given(
    st.lists(datasets(urn=st.just(ORDERS)), min_size=1, max_size=4),
    datasets(urn=st.just(ORDERS)),
    st.sampled_from(SPEAKERS),
)
def test_a_wanted_state_follows_from_what_is_restated(
    said: list[LumosDataset], wanted: LumosDataset, speaker: str
) -> None:
    before = [
        Contribution(Contributor.of(each), statements_of(dataset.to_json()), AT)
        for each, dataset in zip(SPEAKERS, said, strict=False)
    ]
    own = next(
        (each for each in before if str(each.contributor) == speaker),
        Contribution(Contributor.of(speaker), {}, AT),
    )
    after = restated(before, by=own._replace(at=AT + timedelta(1)), wanted=wanted.to_json())
    made = LumosDataset.from_json(fold(ORDERS, after))
    assert contract_of(_without_lineage(made)) == contract_of(_without_lineage(wanted))


def _without_lineage(dataset: LumosDataset) -> Json:
    return {name: value for name, value in dataset.to_json().items() if name != "lineage"}


steps = st.lists(
    st.tuples(
        st.sampled_from(SPEAKERS),
        st.sampled_from(["say", "withdraw", "remove a tag"]),
        st.sets(st.sampled_from("abc")),
        st.sampled_from(["one", "two"]),
    ),
    max_size=12,
)


@given(steps)
def test_a_sequence_comes_to_what_its_last_words_come_to(
    steps: list[tuple[str, str, set[str], str]],
) -> None:
    """Whatever came before: the fold is a function of what each speaker says last."""
    base = says("source:db", schema=columns("id", "note"))
    now = {str(base.contributor): base}
    for speaker, action, tags, text in steps:
        if action == "withdraw":
            now.pop(speaker, None)
        elif action == "say":
            now[speaker] = says(speaker, tags=sorted(tags), documentation={"description": text})
        else:
            held = now.get(speaker, Contribution(Contributor.of(speaker), {}, AT))
            without = sorted(set(folded(*now.values()).tags) - tags) if now else []
            if not now:
                continue
            wanted: Json = {**fold(ORDERS, now.values()), "tags": cast("JsonValue", without)}
            now = {
                str(each.contributor): each
                for each in restated([*now.values()], by=held, wanted=wanted)
            }
            assert set(folded(*now.values()).tags) == set(without)
    if not now:
        return
    last = folded(*now.values())
    assert folded(*reversed([*now.values()])) == last
    texts = {speaker: each.facets.get("documentation.description") for speaker, each in now.items()}
    order = ("people", "declared", "source:db", "source:other", "inferred", "assistant")
    spoken = [
        text
        for kind in order
        for speaker, text in texts.items()
        if speaker.startswith(kind) and text
    ]
    assert last.documentation.description == (spoken[0] if spoken else None)


def test_what_a_table_is_the_source_says_and_what_it_means_people_do() -> None:
    source = says(
        "source:db", schema=columns("id", "note"), documentation={"description": "a table"}
    )
    dbt = says(
        "declared:dbt",
        schema=columns("id", "note", "gone", description="from dbt"),
        documentation={"description": "orders of customers"},
    )
    person = Contribution(
        Contributor.of("people:datahub"), {"documentation.description": "Every order."}, AT
    )
    dataset = folded(dbt, person, source)
    assert [field.name for field in dataset.schema.fields] == ["id", "note"]
    assert [field.description for field in dataset.schema.fields] == ["from dbt", "from dbt"]
    assert dataset.documentation.description == "Every order."
    assert folded(dbt, source).documentation.description == "orders of customers"
    assert folded(source).documentation.description == "a table"


def test_sets_unite_and_a_removal_by_a_higher_speaker_stays() -> None:
    source, dbt = says("source:db", tags=["raw", "pii"]), says("declared:dbt", tags=["gold", "pii"])
    assert folded(source, dbt).tags == ("gold", "pii", "raw")
    wanted: Json = {**fold(ORDERS, [source, dbt]), "tags": ["gold", "raw"]}
    person = Contribution(Contributor.of("people:datahub"), {}, AT)
    after = restated([source, dbt], by=person, wanted=wanted)
    assert folded(*after).tags == ("gold", "raw")
    # The others go on saying it.
    again = [each for each in after if each.contributor != source.contributor]
    assert folded(*again, says("source:db", tags=["raw", "pii", "new"])).tags == (
        "gold", "new", "raw",
    )  # fmt: skip
    # Without the person, it is back.
    assert folded(source, dbt).tags == ("gold", "pii", "raw")


def test_a_guess_at_an_owner_counts_only_where_nobody_names_one() -> None:
    source = says("source:db", schema=columns("id"))
    guess = Contribution(
        Contributor.of("inferred:git"), {"ownership.owners": {"add": [{"user": "ann"}]}}, AT
    )
    assert [owner.name for owner in folded(source, guess).ownership.owners] == ["ann"]
    dbt = says("declared:dbt", ownership={"owners": [{"group": "sales"}]})
    assert [owner.name for owner in folded(source, guess, dbt).ownership.owners] == ["sales"]


def test_one_person_in_two_roles_stays_in_both() -> None:
    source = says("source:db", ownership={"owners": [{"user": "ann", "type": "TECHNICAL_OWNER"}]})
    dbt = says("declared:dbt", ownership={"owners": [{"user": "ann", "type": "DATA_STEWARD"}]})
    assert len(folded(source, dbt).ownership.owners) == 2


def test_the_order_of_sources_decides_between_two_of_one_kind() -> None:
    first = says("source:b", rank=0, schema=columns("id"), format="delta")
    second = says("source:a", rank=1, schema=columns("id", "note"), format="parquet")
    assert folded(second, first).format == "delta"
    assert len(folded(second, first).schema.fields) == 1


def test_a_word_on_a_column_that_is_gone_waits_for_it() -> None:
    person = Contribution(
        Contributor.of("people:datahub"), {"schema.fields.description": {"note": "free text"}}, AT
    )
    gone = folded(says("source:db", schema=columns("id")), person)
    assert [field.description for field in gone.schema.fields] == [None]
    back = folded(says("source:db", schema=columns("id", "note")), person)
    assert [field.description for field in back.schema.fields] == [None, "free text"]


def test_an_overruled_source_is_dropped_from_the_facet_alone() -> None:
    source = says("source:db", schema=columns("id"), format="parquet", tags=["raw"])
    wanted: Json = {**fold(ORDERS, [source]), "format": "delta"}
    editor = Contribution(Contributor.of("declared:import"), {}, AT)
    after = restated([source], by=editor, wanted=wanted)
    assert folded(*after).format == "delta"
    assert folded(*after).tags == ("raw",)
    kept = next(each for each in after if each.contributor == source.contributor)
    assert "format" not in kept.facets
    assert "schema.fields" in kept.facets


@given(moments)
def test_what_is_said_as_before_keeps_its_time(later: datetime) -> None:
    first = says("declared:dbt", tags=["a"], documentation={"description": "one"})
    facets = {**first.facets, "documentation.description": "two"}
    second = first.saying(facets, at=later)
    assert second.at_of("tags") == AT
    assert second.at_of("documentation.description") == later
    assert first.saying(dict(first.facets), at=later) is first
