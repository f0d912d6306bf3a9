"""A dataset keeps what files may hold that tell nothing any more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lumos.core.changes.policy import ChangePolicy
from lumos.core.models import (
    DatasetKind,
    Field,
    Location,
    LumosDataset,
    OperationalMetadata,
    Schema,
    TypeName,
    Urn,
)
from lumos.feature.discovery.unseen import is_in_doubt, unseen_columns, with_unseen_parts

TYPES = (TypeName.INT32, TypeName.INT64, TypeName.STRING, TypeName.DATE)
FIELDS = st.builds(
    Field,
    name=st.sampled_from("abcde"),
    type=st.sampled_from(TYPES),
    nullable=st.booleans(),
)
SCHEMAS = st.lists(FIELDS, unique_by=lambda field: field.name, max_size=5).map(
    lambda fields: Schema(fields=tuple(fields))
)


def dataset(schema: Schema, *, files: int = 1, keys: tuple[str, ...] = ()) -> LumosDataset:
    return LumosDataset(
        urn=Urn.of("local", "lake", "orders"),
        name="orders",
        platform="local",
        kind=DatasetKind.FILES,
        location=Location(prefix="/orders/", partition_keys=keys),
        schema=schema,
        statistics=OperationalMetadata(file_count=files),
    )


def schema(**types: TypeName) -> Schema:
    return Schema(fields=tuple(Field(name=name, type=type_) for name, type_ in types.items()))


@given(SCHEMAS, SCHEMAS)
def test_no_column_goes_and_new_ones_come(known: Schema, seen: Schema) -> None:
    whole = with_unseen_parts(dataset(known), dataset(seen), unreadable=1)

    names = {field.name for field in whole.schema.fields}
    assert names == {field.name for field in (*known.fields, *seen.fields)}
    assert set(unseen_columns(whole)) == names - {field.name for field in seen.fields}
    assert is_in_doubt(whole)


@given(SCHEMAS, SCHEMAS)
def test_the_next_run_sees_the_same(known: Schema, seen: Schema) -> None:
    first = with_unseen_parts(dataset(known), dataset(seen), unreadable=1)
    second = with_unseen_parts(first, dataset(seen), unreadable=1)

    assert second.schema == first.schema
    assert second.extensions == first.extensions


@given(SCHEMAS)
def test_files_with_less_than_all_columns_change_nothing(known: Schema) -> None:
    optional = Schema(
        fields=tuple(field.model_copy(update={"nullable": True}) for field in known.fields)
    )
    before = dataset(optional, keys=("day",))
    seen = dataset(Schema(fields=optional.fields[1:]))

    whole = with_unseen_parts(before, seen, unreadable=1)

    assert ChangePolicy().judge(before, whole) == ()


def test_types_stay_as_wide_as_they_were() -> None:
    known, seen = schema(id=TypeName.INT64), schema(id=TypeName.INT32)

    assert with_unseen_parts(dataset(known), dataset(seen), unreadable=1).schema == known


def test_types_that_do_not_go_together_become_text() -> None:
    known, seen = schema(id=TypeName.DATE), schema(id=TypeName.BOOLEAN)

    few = with_unseen_parts(dataset(known), dataset(seen, files=5), unreadable=1)
    many = with_unseen_parts(dataset(known), dataset(seen, files=5), unreadable=9)

    assert few.schema == many.schema
    assert few.schema.fields[0].type is TypeName.STRING


def test_a_table_is_what_its_log_says() -> None:
    table = dataset(schema(id=TypeName.INT64)).model_copy(update={"kind": DatasetKind.TABLE})

    assert with_unseen_parts(dataset(schema(x=TypeName.DATE)), table, unreadable=1) == table
