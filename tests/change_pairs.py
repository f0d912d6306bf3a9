"""Pairs of states of a dataset: unrelated ones, and ones that differ in one small part."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import assume
from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.errors import InvalidModelError
from lumos.core.models import Field, LumosDataset, Schema, Urn, with_parts
from strategies import CONTRACT, datasets, fields, json_values, texts


@st.composite
def with_one_part_redrawn(draw: st.DrawFn) -> tuple[LumosDataset, LumosDataset]:
    old = draw(datasets())
    part = draw(st.sampled_from(sorted(CONTRACT)))
    return old, with_parts(old, **{part: draw(CONTRACT[part])})


@st.composite
def with_one_field_redrawn(draw: st.DrawFn) -> tuple[LumosDataset, LumosDataset]:
    columns = draw(fields(min_size=1))
    index = draw(st.integers(0, len(columns) - 1))
    (other,) = draw(fields(min_size=1, max_size=1))
    mixed = {**columns[index].to_json(), "description": draw(texts)}
    kept = draw(st.sampled_from([other.to_json(), mixed]))
    document = {**kept, "name": columns[index].name}
    changed = (*columns[:index], Field.from_json(document), *columns[index + 1 :])
    base = LumosDataset(urn=Urn("lumos://pg/shop/orders"), name="orders", platform="pg")
    return (
        with_parts(base, schema=Schema(fields=columns)),
        with_parts(base, schema=Schema(fields=changed)),
    )


@st.composite
def with_one_json_value_edited(draw: st.DrawFn) -> tuple[LumosDataset, LumosDataset]:
    """Change, drop or repeat any one value anywhere in the document."""
    old = draw(datasets())
    document = old.to_json()
    holder, key = draw(st.sampled_from(list(_places(document))))
    value = holder[key]  # type: ignore[index]
    if isinstance(value, list) and value and draw(st.booleans()):
        edited: JsonValue = [*value, value[0]]
    elif isinstance(value, bool):
        edited = not value
    else:
        edited = draw(json_values)
    holder[key] = edited  # type: ignore[index]
    try:
        return old, LumosDataset.from_json(document)
    except InvalidModelError:
        assume(False)
        raise


def _places(value: JsonValue) -> Iterator[tuple[JsonValue, str | int]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from _places(inner)
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield value, index
            yield from _places(inner)


pairs: st.SearchStrategy[tuple[LumosDataset, LumosDataset]] = st.one_of(
    st.tuples(datasets(), datasets()),
    with_one_part_redrawn(),
    with_one_field_redrawn(),
    with_one_json_value_edited(),
)
