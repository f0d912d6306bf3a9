"""The JSON reader: lines, arrays, single and concatenated values, merged into one schema."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.errors import UnreadableItemError
from lumos.core.formats import json_schema_merge
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file
from lumos.core.models import Schema


def facts_of(content: str | bytes, name: str = "a.json") -> FileFacts:
    data = content.encode() if isinstance(content, str) else content
    return read_file(io.BytesIO(data), size=len(data), name=name)


def columns_of(content: str) -> list[tuple[str, str]]:
    fields = facts_of(content).schema.fields
    return [(field.name, field.signature()) for field in fields]


RECORDS = [{"id": 1, "name": "x"}, {"id": 2, "name": None}]
LAYOUTS = {
    "lines": "".join(json.dumps(record) + "\n" for record in RECORDS),
    "array": json.dumps(RECORDS),
    "values": "".join(json.dumps(record) for record in RECORDS),
}
PRETTY = {
    "array": json.dumps(RECORDS, indent=2),
    "lines": "\n".join(json.dumps(record, indent=2) for record in RECORDS),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_schema(layout: str) -> None:
    assert columns_of(LAYOUTS[layout]) == [("id", "INT64"), ("name", "STRING")]
    assert facts_of(LAYOUTS[layout]).properties["layout"] == layout
    assert facts_of(LAYOUTS[layout]).rows_estimate == 2


@pytest.mark.parametrize("layout", PRETTY)
def test_pretty_printed_records_are_read(layout: str) -> None:
    assert columns_of(PRETTY[layout]) == [("id", "INT64"), ("name", "STRING")]
    assert facts_of(PRETTY[layout]).warnings == ()


def test_a_single_object_is_one_record() -> None:
    assert columns_of('{"a": {"b": [1, 2.5]}}') == [("a", "STRUCT<b: ARRAY<DOUBLE>>")]


def test_marks_and_other_encodings_are_read() -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        assert [f.name for f in facts_of('{"größe": 1}'.encode(encoding)).schema.fields] == [
            "größe"
        ]


@pytest.mark.parametrize(
    ("values", "signature"),
    [
        (["true", "false"], "BOOLEAN"),
        (["1", "2"], "INT64"),
        (["1", "2.5"], "DOUBLE"),
        (["1e3"], "DOUBLE"),
        (["NaN"], "DOUBLE"),
        (["9223372036854775807"], "INT64"),
        (["-9223372036854775808"], "INT64"),
        (["1", "9223372036854775808"], "DECIMAL(38,0)"),
        (["9223372036854775808", "1.5"], "DOUBLE"),
        (["1" * 5000], "DOUBLE"),
        (['"a"', "null"], "STRING"),
        (["null"], "UNKNOWN"),
        (["[]"], "ARRAY<UNKNOWN>"),
        (["[1]", "[null]"], "ARRAY<INT64>"),
        (["{}"], "STRUCT<>"),
        (['{"x": 1}', '{"y": "b"}'], "STRUCT<x: INT64, y: STRING>"),
        (['[{"x": 1}, {"x": 2.5, "y": true}]'], "ARRAY<STRUCT<x: DOUBLE, y: BOOLEAN>>"),
    ],
)
def test_types_widen_until_they_fit_all_records(values: list[str], signature: str) -> None:
    content = "\n".join(f'{{"c": {value}}}' for value in values)
    assert columns_of(content) == [("c", signature)]


@pytest.mark.parametrize(
    ("values", "held"),
    [
        (["1", '"a"'], "integer and string"),
        (["{}", "[]", "true"], "array, boolean and object"),
    ],
)
def test_values_that_fit_no_type_are_json_with_a_warning(values: list[str], held: str) -> None:
    facts = facts_of("\n".join(f'{{"c": {{"d": {value}}}}}' for value in values))
    assert facts.schema.fields[0].signature() == "STRUCT<d: JSON>"
    assert facts.warnings == (f"c.d holds {held}; it is JSON here",)


def test_every_field_is_nullable_since_a_sample_proves_nothing() -> None:
    facts = facts_of('{"a": {"x": 1}, "b": 1}\n{"a": {"x": 1, "y": 1}}\n')
    a, b = facts.schema.fields
    assert (a.nullable, b.nullable) == (True, True)
    assert [inner.nullable for inner in a.fields] == [True, True]


def test_fields_stand_in_the_order_in_which_they_were_first_seen() -> None:
    assert [name for name, _ in columns_of('{"z": 1, "a": 1}\n{"m": 1, "a": 2, "z": 3}')] == [
        "z",
        "a",
        "m",
    ]


def test_records_that_are_no_objects_are_one_column() -> None:
    facts = facts_of("[1, 2.5, null]")
    assert [(f.name, f.signature()) for f in facts.schema.fields] == [("value", "DOUBLE")]
    assert facts.warnings == ("its records are no objects; they are column 'value'",)
    assert columns_of('"a"\n"b"\n') == [("value", "STRING")]


def test_an_empty_array_has_no_columns() -> None:
    assert facts_of("[]").schema == Schema()


def test_lines_that_are_no_json_are_counted_and_left_out() -> None:
    facts = facts_of('{"a": 1}\n{"a": oops}\n{"a": 2}\n{"b": \n')
    assert [field.name for field in facts.schema.fields] == ["a"]
    assert facts.warnings == ("2 of 4 sampled records are no JSON",)


def test_an_array_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    facts = facts_of('[{"a": 1}, {"a": 2}, {"a":')
    assert [field.name for field in facts.schema.fields] == ["a"]
    assert facts.warnings == ("it is cut off or damaged after 2 records",)


def test_the_cut_at_the_end_of_a_sample_is_no_damage() -> None:
    for content in ('{"a": "xyz"}\n' * 50_000, "[" + '{"a": "xyz"},' * 50_000 + "{}]"):
        assert facts_of(content).warnings == ()


def test_a_record_larger_than_a_sample_is_read_with_a_larger_one() -> None:
    content = '{"a": "' + "x" * 500_000 + '", "b": 1}'
    assert [name for name, _ in columns_of(content)] == ["a", "b"]


def test_a_record_larger_than_any_sample_says_so() -> None:
    with pytest.raises(UnreadableItemError, match="first record is longer than 4 MB"):
        facts_of('{"a": "' + "x" * 5_000_000 + '"}')


def test_an_object_with_names_without_end_is_a_map_because_its_names_are_data() -> None:
    users = {f"user-{i}": {"age": i} for i in range(json_schema_merge.MAX_MEMBERS + 1)}
    facts = facts_of(json.dumps({"users": users}))
    assert facts.schema.fields[0].signature() == "MAP<STRING, STRUCT<age: INT64>>"
    assert "user-7" not in repr(facts)


def test_names_that_are_numbers_dates_or_identifiers_are_data() -> None:
    days = {f"2024-01-{day:02}": {"high": day, "low": 1.5} for day in range(1, 31)}
    facts = facts_of(json.dumps({"city": "x", "days": days}))
    signature = "MAP<STRING, STRUCT<high: INT64, low: DOUBLE>>"
    assert [field.signature() for field in facts.schema.fields] == ["STRING", signature]
    assert "2024" not in repr(facts)
    assert columns_of(json.dumps(days)) == [("value", signature)]
    by_id = {str(number): number for number in range(1000, 1050)}
    assert columns_of(json.dumps({"a": by_id})) == [("a", "MAP<STRING, INT64>")]


def test_hundreds_of_names_that_differ_from_record_to_record_are_data() -> None:
    lines = [
        json.dumps({"id": i, "scores": {f"player {i * 7 + j}": j for j in range(5)}})
        for i in range(60)
    ]
    facts = facts_of("\n".join(lines))
    assert [f.signature() for f in facts.schema.fields] == ["INT64", "MAP<STRING, INT64>"]
    assert facts.warnings == ("the names in scores are data; it is a map from name to value here",)


def test_a_wide_table_is_no_map() -> None:
    lines = [json.dumps({f"feature_{n}": i * n for n in range(300)}) for i in range(20)]
    assert len(facts_of("\n".join(lines)).schema.fields) == 300
    nested = [json.dumps({"x": {f"feature_{n}": i for n in range(300)}}) for i in range(20)]
    assert len(facts_of("\n".join(nested)).schema.fields[0].fields) == 300
    config = {f"setting{'abcdefghij'[n % 10] * (n // 10 + 1)}": n for n in range(150)}
    assert len(facts_of(json.dumps({"config": config})).schema.fields[0].fields) == 150


def test_different_things_under_many_names_are_no_map() -> None:
    config = {str(n): (n if n % 2 else [n]) for n in range(40)}
    assert len(facts_of(json.dumps({"config": config})).schema.fields[0].fields) == 40


def test_records_with_names_without_end_are_one_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema_merge, "MAX_COLUMNS", 5)
    monkeypatch.setattr(json_schema_merge, "MAX_MEMBERS", 5)
    facts = facts_of(json.dumps({f"user-{i}": i for i in range(9)}))
    assert [(f.name, f.signature()) for f in facts.schema.fields] == [
        ("value", "MAP<STRING, INT64>")
    ]
    assert "user-7" not in repr(facts)


def test_names_that_utf8_cannot_hold_are_replaced() -> None:
    facts = facts_of('{"a\\ud800": 1, "": 2}')
    assert [field.name for field in facts.schema.fields] == ["a?", "column_2"]
    assert Schema.from_json(facts.schema.to_json()) == facts.schema


def test_deep_nesting_is_refused() -> None:
    assert facts_of('{"a":' + "[" * 60 + "]" * 60 + "}").schema.fields
    for depth in (120, 50_000):
        with pytest.raises(UnreadableItemError, match="nested"):
            facts_of('{"a":' + "[" * depth + "]" * depth + "}")


def test_text_that_only_begins_like_json_is_given_up() -> None:
    with pytest.raises(UnreadableItemError, match="it is not valid JSON"):
        facts_of("{\n" * 50_000)


def test_a_csv_that_begins_with_a_bracket_is_a_csv() -> None:
    assert facts_of("[id],[name]\n1,a\n2,b\n", "a.csv").format == "csv"


def test_what_the_first_records_lack_is_found_further_down() -> None:
    lines = [json.dumps({"id": i, "a": None}) for i in range(500)]
    lines[400] = json.dumps({"id": 400, "a": 1.5})
    assert columns_of("\n".join(lines)) == [("id", "INT64"), ("a", "DOUBLE")]


def test_all_records_of_a_small_file_are_counted() -> None:
    lines = '{"a": 1}\n{"a": 2}\n\n{"a": 3}\n'
    assert facts_of(lines).rows == 3
    assert facts_of("[1, 2, 3]").rows == 3
    assert facts_of('{"a": 1} {"a": 2}').rows == 2
    assert facts_of('{"a": 1}\n{"a": oops}\n').rows is None


def test_a_record_that_is_no_plain_json_is_read_like_the_others() -> None:
    assert columns_of('{"a": 1}\n{"a": NaN}\n{"a": 2}') == [("a", "DOUBLE")]
    assert columns_of('{"a": 1}\n{"a": 123456789012345678901}\n') == [("a", "DECIMAL(38,0)")]
    assert columns_of('\x1e{"a": 1}\n\x1e{"a": 2}\n') == [("a", "INT64")]
    assert columns_of('{"a": 1e300}\n{"a": 2.5}\n') == [("a", "DOUBLE")]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)
records = st.lists(st.dictionaries(st.text(max_size=4), values, max_size=4), min_size=1, max_size=6)


@given(records)
def test_every_layout_of_any_records_gives_one_schema(written: list[dict[str, object]]) -> None:
    lines = facts_of("".join(json.dumps(record) + "\n" for record in written))
    array = facts_of(json.dumps(written, indent=1))
    assert lines.schema == array.schema
    assert Schema.from_json(lines.schema.to_json()) == lines.schema
    assert lines.rows_estimate == array.rows_estimate == len(written)


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        ('[{"a": 1}, {"a": 2},]', "a comma stands before the end of its array"),
        ('{"a": NaN}\n{"a": 1}\n', "it holds NaN or Infinity"),
        ('[{"a": -Infinity}]', "it holds NaN or Infinity"),
        ('{"a": 1}{"a": 2}', "its values follow one another"),
        ('{\n"a": 1\n}\n{\n"a": 2\n}\n{\n"a": 3\n}\n', "its values follow one another"),
        ('{"a": 1}\n' * 300 + '{"a": ', "1 of 301 sampled records are no JSON"),
        ('{"a": 1}\n' * 90_000 + '{"a": ', "its end is cut off or damaged"),
        ("[" + '{"a": 1},' * 90_000 + "]", "a comma stands before the end of its array"),
    ],
)
def test_what_is_nearly_json_is_read_and_reported(content: str, warning: str) -> None:
    data = content.encode()
    facts = read_file(io.BytesIO(data), size=len(data), name="a.json")
    assert [field.name for field in facts.schema.fields] == ["a"]
    (said,) = facts.warnings
    assert said.startswith(warning)


def test_the_word_nan_in_text_is_no_damage() -> None:
    data = b'{"a": "x: NaN"}\n{"a": "}{"}\n'
    assert read_file(io.BytesIO(data), size=len(data), name="a.json").warnings == ()
