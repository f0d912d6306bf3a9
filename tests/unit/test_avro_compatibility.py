"""The `avro` profile against Avro itself: its own checker, and a reader that really reads."""

from __future__ import annotations

import io
import json
from functools import cache
from itertools import product
from typing import Any

import avro.schema
import fastavro
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

from avro_pairs import LOGICAL, PAIRS, TYPES, AvroType, records
from lumos.core.changes import diff_datasets
from lumos.core.formats.avro_types import canonical_avro_schema
from lumos.core.models import LumosDataset, Urn

RECORDS = records()
WITH_LOGICAL_TYPES = frozenset(kind.name for kind in LOGICAL)


@cache
def _dataset(record: str, kind: str | None = "avro") -> LumosDataset:
    schema, _, _ = canonical_avro_schema(json.loads(record))
    urn = Urn("lumos://kafka/orders")
    return LumosDataset(urn=urn, name="orders", platform="kafka", format=kind, schema=schema)


@cache
def _parsed(record: str) -> avro.schema.Schema:
    return avro.schema.parse(record)


def _passes(written: Any, wanted: Any, profile: str = "avro", kind: str | None = "avro") -> bool:
    """What Lumos says: BACKWARD from one to the other, FORWARD the other way round."""
    old, new = _dataset(json.dumps(written), kind), _dataset(json.dumps(wanted), kind)
    return all(change.level != "BREAKING" for change in diff_datasets(old, new, profile=profile))


def _resolves(written: Any, wanted: Any) -> bool:
    """What the checker of the Avro project says."""
    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    answer = checker.get_compatibility(_parsed(json.dumps(wanted)), _parsed(json.dumps(written)))
    return answer.compatibility is SchemaCompatibilityType.compatible


def _reads(written: AvroType, wanted: AvroType) -> bool:
    """Whether another implementation reads every value with the other schema."""
    writer, reader = fastavro.parse_schema(written.record), fastavro.parse_schema(wanted.record)
    for value in written.values:
        content = io.BytesIO()
        fastavro.schemaless_writer(content, writer, {"f": value})
        content.seek(0)
        try:
            fastavro.schemaless_reader(content, writer, reader)
        except fastavro.read.SchemaResolutionError:
            return False
    return True


def _names(pairs: list[tuple[AvroType, AvroType]]) -> list[str]:
    return [f"{old.name} -> {new.name}" for old, new in pairs]


def test_every_pair_of_types_without_logical_types_gets_the_answer_of_avro() -> None:
    plain = [pair for pair in PAIRS if WITH_LOGICAL_TYPES.isdisjoint(kind.name for kind in pair)]
    wrong = [
        (old, new)
        for old, new in plain
        if _passes(old.record, new.record) != _resolves(old.record, new.record)
    ]
    assert len(plain) == (len(TYPES) - len(LOGICAL)) ** 2
    assert _names(wrong) == []


@pytest.mark.filterwarnings("ignore::avro.errors.IgnoredLogicalType")
def test_logical_types_are_judged_by_what_they_mean_and_not_by_their_bytes() -> None:
    """Avro's checker looks at bytes: a date is an int to it, and decimals of any scale are alike.

    Its specification says that decimals match if precision and scale do; of dates and times a
    reader gets a number that means something else. So Lumos refuses whatever changes the meaning,
    and agrees with Avro on all else. A union of nothing has no values that could change theirs.
    """
    pairs = [pair for pair in PAIRS if {kind.name for kind in pair} & WITH_LOGICAL_TYPES]
    passing = [(old, new) for old, new in pairs if _passes(old.record, new.record)]
    unchanged = [(old, new) for old, new in pairs if old is new or not old.values]
    assert _names(passing) == _names(unchanged)
    assert all(_resolves(old.record, new.record) for old, new in passing)


def test_what_passes_is_really_read() -> None:
    wrong = [
        (old, new) for old, new in PAIRS if _passes(old.record, new.record) and not _reads(old, new)
    ]
    assert _names(wrong) == []


def test_records_whose_fields_come_and_go_get_the_answer_of_avro() -> None:
    wrong = [
        f"{old} -> {new}"
        for old, new in product(RECORDS, RECORDS)
        if _passes(RECORDS[old], RECORDS[new]) != _resolves(RECORDS[old], RECORDS[new])
    ]
    assert wrong == []


def test_backward_forward_and_full_on_fields_of_avro_are_those_of_avro() -> None:
    """A new reader of old data, an old reader of new data, and both."""
    wrong = []
    for old, new in product(RECORDS, RECORDS):
        backward = _resolves(RECORDS[old], RECORDS[new])
        forward = _resolves(RECORDS[new], RECORDS[old])
        expected = {"BACKWARD": backward, "FORWARD": forward, "FULL": backward and forward}
        answers = {name: _passes(RECORDS[old], RECORDS[new], name) for name in expected}
        if answers != expected:
            wrong.append(f"{old} -> {new}: {answers}")
    assert wrong == []


GAINS = [
    ("null", ["null", "int"]),
    ("int", ["int", "string"]),
    ("int", ["string", "long"]),
    ("string", ["int", "string", "boolean"]),
    (["int", "string"], ["int", "string", "boolean"]),
    (["null", "int"], ["null", "int", "string"]),
    ({"type": "array", "items": "int"}, [{"type": "array", "items": "long"}, "string"]),
    ({"type": "map", "values": "int"}, {"type": "map", "values": ["int", "string"]}),
]


@pytest.mark.parametrize(("kind", "gained"), GAINS, ids=str)
def test_a_type_that_gains_a_branch_takes_what_was_written_before(kind: Any, gained: Any) -> None:
    old, new = _record(_field(kind)), _record(_field(gained))
    assert (_resolves(old, new), _resolves(new, old)) == (True, False)
    for profile in ("avro", "BACKWARD"):
        assert _passes(old, new, profile)
    for profile in ("FORWARD", "FULL", "iceberg", "delta"):
        assert not _passes(old, new, profile)


@pytest.mark.parametrize(("kind", "gained"), GAINS[1:], ids=str)
def test_a_type_that_loses_a_branch_spares_only_readers(kind: Any, gained: Any) -> None:
    old, new = _record(_field(gained)), _record(_field(kind))
    for profile in ("avro", "BACKWARD", "FULL"):
        assert not _passes(old, new, profile)
    narrowed = "long" in str(gained)  # Lumos calls a narrowed type breaking for everyone
    assert _passes(old, new, "FORWARD") != narrowed


@pytest.mark.parametrize(
    ("kind", "other"),
    [("boolean", ["int", "string"]), ("long", ["int", "string"]), ("int", ["null", "string"])],
    ids=str,
)
def test_a_union_without_a_branch_for_the_old_type_breaks_everyone(kind: Any, other: Any) -> None:
    old, new = _record(_field(kind)), _record(_field(other))
    assert not _resolves(old, new)
    for profile in ("avro", "BACKWARD", "FORWARD", "FULL", "lumos"):
        assert not _passes(old, new, profile)


def test_a_default_spares_readers_only_where_they_read_avro() -> None:
    """A query that names a column fails without it, whatever the default of the column was."""
    with_default, without = RECORDS["a int, b int = 0"], RECORDS["a int, b none"]
    assert _passes(with_default, without, "readers")
    assert not _passes(with_default, without, "lumos")
    for kind in ("parquet", None):
        assert not _passes(with_default, without, "readers", kind)
        assert not _passes(with_default, without, "full", kind)
        assert _passes(without, RECORDS["a int, b int?"], "writers", kind)


def _record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _enum(*symbols: str, name: str = "E", **rest: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **rest}


def _field(kind: Any, name: str = "f", **rest: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **rest}


def _inner(*fields: Any) -> Any:
    return _record(*fields, name="Inner")


RENAMED = [
    pytest.param([_field("int", "a")], [_field("int", "b", aliases=["a"])], id="plain"),
    pytest.param([_field("int", "a")], [_field("long", "b", aliases=["z", "a"])], id="promoted"),
    pytest.param([_field("int", "a")], [_field("string", "b", aliases=["a"])], id="other type"),
    pytest.param([_field("int", "a")], [_field("int", "b", aliases=["z"])], id="other alias"),
    pytest.param([_field(["null", "int"], "a")], [_field("int", "b", aliases=["a"])], id="null"),
    pytest.param(
        [_field(_inner(_field("int", "a")))],
        [_field(_inner(_field("int", "b", aliases=["a"])))],
        id="in a record",
    ),
    pytest.param(
        [_field({"type": "map", "values": _inner(_field("int", "a"))})],
        [_field({"type": "map", "values": _inner(_field("int", "b", aliases=["a"]))})],
        id="in a map",
    ),
    pytest.param(
        [_field([_inner(_field("int", "a")), "string"])],
        [_field([_inner(_field("int", "b", aliases=["a"])), "string"])],
        id="in a union",
    ),
    pytest.param(
        [_field("int", "a"), _field("int", "c")],
        [_field("int", "b", aliases=["a"]), _field("int", "c")],
        id="beside another",
    ),
]


@pytest.mark.parametrize(("written", "wanted"), RENAMED)
def test_a_field_that_is_found_by_its_alias_gets_the_answer_of_avro(
    written: Any, wanted: Any
) -> None:
    old, new = _record(*written), _record(*wanted)
    for profile in ("avro", "BACKWARD"):
        assert _passes(old, new, profile) == _resolves(old, new)
    assert not _passes(old, new, "FORWARD")
    assert not _passes(old, new, "lumos")


def test_an_alias_renames_nothing_for_writers_of_other_formats() -> None:
    old, new = _record(_field("int", "a")), _record(_field("int", "b", aliases=["a"]))
    assert not _passes(old, new, "writers", "parquet")


ENUMS = {
    "A": _enum("A"),
    "A, B": _enum("A", "B"),
    "A, B = A": _enum("A", "B", default="A"),
    "A = A": _enum("A", default="A"),
    "B, C = C": _enum("B", "C", default="C"),
    "A? = A": ["null", _enum("A", default="A")],
    "A, B?": ["null", _enum("A", "B")],
}


def test_the_default_of_an_enum_stands_for_symbols_that_a_reader_does_not_know() -> None:
    wrong = []
    for (old, written), (new, wanted) in product(ENUMS.items(), ENUMS.items()):
        one, other = _record(_field(written)), _record(_field(wanted))
        backward, forward = _resolves(one, other), _resolves(other, one)
        expected = {"avro": backward, "BACKWARD": backward, "FORWARD": forward}
        answers = {profile: _passes(one, other, profile) for profile in expected}
        if answers != expected:
            wrong.append(f"{old} -> {new}: {answers}, Avro {expected}")
    assert wrong == []


def test_the_default_of_an_enum_is_read_where_the_enum_is_named_again() -> None:
    def twice(kind: Any) -> Any:
        return _record(_field(kind), _field("E", "g"))

    old, new = twice(_enum("A", "B")), twice(_enum("A", default="A"))
    assert _resolves(old, new)
    assert _passes(old, new)
    assert not _passes(old, new, "writers", "parquet")


@pytest.mark.parametrize(
    ("written", "wanted", "resolves"),
    [
        pytest.param(
            _record(_field("int")),
            _record(_field("int"), name="S"),
            False,
            id="names of types are not compared: many writers make them up",
        ),
        pytest.param(
            _record(_field(_enum("A"))),
            _record(_field(_enum("A", name="G"))),
            False,
            id="nor are names of enums",
        ),
        pytest.param(
            _record(_field({"type": "array", "items": _enum("A", "B")})),
            _record(_field({"type": "array", "items": _enum("A", default="A")})),
            True,
            id="the default of an enum is kept of fields alone, not of items",
        ),
    ],
)
def test_where_lumos_and_avro_differ_on_purpose(written: Any, wanted: Any, resolves: bool) -> None:
    assert _resolves(written, wanted) == resolves
    assert _passes(written, wanted) != resolves
