"""The CSV reader: dialects, headers, encodings and types, from a sample."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.csv_values import Commas, column_type, meaning_of_commas, value_type
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file
from lumos.core.models import TypeName


def facts_of(content: str | bytes, name: str = "a.csv") -> FileFacts:
    data = content.encode() if isinstance(content, str) else content
    return read_file(io.BytesIO(data), size=len(data), name=name)


def columns_of(content: str | bytes) -> list[tuple[str, str]]:
    return [(field.name, field.type.value) for field in facts_of(content).schema.fields]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    rows = ["id", "name", "price"], ["1", "a", "1.5"], ["2", "b", "2.5"]
    facts = facts_of("\n".join(delimiter.join(row) for row in rows))
    assert facts.properties["delimiter"] == delimiter
    assert [field.type.value for field in facts.schema.fields] == ["INT64", "STRING", "DOUBLE"]


def test_commas_inside_numbers_do_not_win_over_semicolons() -> None:
    facts = facts_of("id;price;weight\n1;1,50;2,5\n2;3,75;0,5\n")
    assert facts.properties["delimiter"] == ";"
    assert len(facts.schema.fields) == 3


def test_quoted_delimiters_and_lines_belong_to_the_value() -> None:
    assert columns_of('id,text\n1,"a, b\nc"\n2,"say ""hi"", ok"\n') == [
        ("id", "INT64"),
        ("text", "STRING"),
    ]


def test_single_quotes_are_recognised() -> None:
    facts = facts_of("'id','text'\n'1','a,b'\n'2','c,d'\n")
    assert facts.properties["quote"] == "'"
    assert [field.name for field in facts.schema.fields] == ["id", "text"]


def test_quotes_escaped_with_a_backslash_are_recognised() -> None:
    content = "id,text,n\n" + '1,"say \\"hi, you\\", ok",2\n' * 5
    assert [name for name, _ in columns_of(content)] == ["id", "text", "n"]
    assert facts_of(content).warnings == ()


def test_a_delimiter_named_in_the_first_line_is_used() -> None:
    assert columns_of("sep=;\na;b\n1;2\n") == [("a", "INT64"), ("b", "INT64")]


@pytest.mark.parametrize(
    ("data", "encoding", "warnings"),
    [
        ("größe,b\n1,2\n".encode(), "utf-8", 0),
        ("größe,b\n1,2\n".encode("utf-8-sig"), "utf-8", 0),
        ("größe,b\n1,2\n".encode("utf-16"), "utf-16-le", 0),
        (b"\xfe\xff" + "größe,b\n1,2\n".encode("utf-16-be"), "utf-16-be", 0),
        ("größe,b\n1,2\n".encode("utf-16-le"), "utf-16-le", 0),
        ("größe,b\n1,2\n".encode("latin-1"), "latin-1", 1),
    ],
)
def test_encodings_are_told_apart(data: bytes, encoding: str, warnings: int) -> None:
    facts = facts_of(data)
    assert [field.name for field in facts.schema.fields] == ["größe", "b"]
    assert facts.properties["encoding"] == encoding
    assert len(facts.warnings) == warnings


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_every_line_ending_is_read(ending: str) -> None:
    content = ending.join(["a,b", "1,x", "2,y", ""])
    assert columns_of(content) == [("a", "INT64"), ("b", "STRING")]


def test_characters_that_only_look_like_line_ends_stay_in_the_value() -> None:
    assert facts_of("a,b\n1,x\u2028y\n2,x\x0by\n").warnings == ()


@pytest.mark.parametrize(
    "content",
    [
        "1,2.5,x\n2,3.5,y\n",
        "2024-01-01,x\n2024-01-02,y\n",
        "x,true\ny,false\n",
        "DE,Berlin\nFR,Paris\nDE,Bonn\n",
        "anna@example.com;x!y\nbob@example.com;z!\n",
    ],
)
def test_rows_without_a_header_get_positions_for_names_and_tell_no_value(content: str) -> None:
    facts = facts_of(content)
    assert facts.schema.positional
    assert [field.name for field in facts.schema.fields] == [
        f"column_{i}" for i in range(1, len(facts.schema.fields) + 1)
    ]
    assert facts.properties["header"] == "false"


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("id,name\n1,a\n", ["id", "name"]),
        ("First Name,Last Name\nA,B\nC,D\n", ["First Name", "Last Name"]),
        ("id,2019,2020\n1,5,6\n", ["id", "2019", "2020"]),
        ("a,b,c\n", ["a", "b", "c"]),
        ("name\nanna\nbob\n", ["name"]),
        ('"multi\nline",b\n1,2\n', ["multi line", "b"]),
    ],
)
def test_a_header_is_recognised(content: str, names: list[str]) -> None:
    facts = facts_of(content)
    assert not facts.schema.positional
    assert [field.name for field in facts.schema.fields] == names


def test_repeated_and_empty_names_are_made_unique_and_reported() -> None:
    facts = facts_of(",a,a\n1,2,3\n")
    assert [field.name for field in facts.schema.fields] == ["column_1", "a", "a_2"]
    assert facts.schema.fields[2].properties == {"source_name": "a"}
    assert facts.warnings == (
        "a column has no name; it is called 'column_1' here",
        "column name 'a' occurs again; it is called 'a_2' here",
    )


def test_ragged_rows_are_tolerated_and_counted() -> None:
    facts = facts_of("a,b,c\n1,2,3\n4,5\n6,7,8,9\n1,2,3\n1,2,3\n")
    assert [field.type.value for field in facts.schema.fields] == ["INT64"] * 3
    assert facts.warnings == ("2 of 5 sampled rows do not have 3 columns",)


def test_comments_and_titles_above_the_table_are_left_out() -> None:
    facts = facts_of("# made by hand\n#\na,b\n1,2\n")
    assert [field.name for field in facts.schema.fields] == ["a", "b"]
    assert facts.warnings == ("2 comment lines before its rows left out",)
    facts = facts_of("Sales report\n\na,b\n1,2\n3,4\n5,6\n")
    assert [field.name for field in facts.schema.fields] == ["a", "b"]
    assert facts.warnings == ("1 line before its columns left out",)


def test_every_column_is_nullable_because_a_sample_proves_nothing() -> None:
    assert all(field.nullable for field in facts_of("a,b\n1,2\n").schema.fields)


def test_a_quote_without_end_is_reported_and_what_came_before_is_read() -> None:
    facts = facts_of("a,b\n1,2\n3,4\n5," + '"' + "x" * 200_000)
    assert [field.type.value for field in facts.schema.fields] == ["INT64", "INT64"]
    assert facts.warnings == ("a quoted value has no end; only the rows before were read",)


@pytest.mark.parametrize(
    "content", ['"' * 200_000, '",' * 100_000, "," * 90_000, "\n" * 1000 + "a", ";,|\t" * 20_000]
)
def test_hostile_text_is_read_or_refused(content: str) -> None:
    try:
        assert facts_of(content).format == "csv"
    except UnreadableItemError as error:
        assert error.message  # noqa: PT017 - both are fine


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(UnreadableItemError, match="more than 100,000 columns"):
        facts_of("," * 150_000 + "\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("NULL", None),
        ("\\N", None),
        ("n/a", None),
        ("true", TypeName.BOOLEAN),
        ("False", TypeName.BOOLEAN),
        ("yes", TypeName.STRING),
        ("0", TypeName.INT64),
        ("-12", TypeName.INT64),
        (" 7 ", TypeName.INT64),
        ("007", TypeName.STRING),
        ("01.5", TypeName.STRING),
        ("9223372036854775807", TypeName.INT64),
        ("9223372036854775808", TypeName.DECIMAL),
        ("-99999999999999999999", TypeName.DECIMAL),
        ("9" * 38, TypeName.DECIMAL),
        ("9" * 39, TypeName.STRING),
        ("+12", TypeName.INT64),
        ("+4930123456", TypeName.STRING),
        ("1.5", TypeName.DOUBLE),
        (".5", TypeName.DOUBLE),
        ("1e-9", TypeName.DOUBLE),
        ("NaN", TypeName.DOUBLE),
        ("1,5", TypeName.STRING),
        ("1_000", TypeName.STRING),
        ("٣", TypeName.STRING),
        ("2024-02-29", TypeName.DATE),
        ("2023-02-29", TypeName.STRING),
        ("29/02/2024", TypeName.DATE),
        ("12/31/2024", TypeName.DATE),
        ("32/12/2024", TypeName.STRING),
        ("31.12.2024", TypeName.DATE),
        ("1.12.2024", TypeName.DATE),
        ("1.12.24", TypeName.STRING),
        ("5-Jan-2024", TypeName.DATE),
        ("Jan 5, 2024", TypeName.DATE),
        ("January", TypeName.STRING),
        ("31.12.2024 23:59", TypeName.TIMESTAMP_NTZ),
        ("12/31/2024 11:59 PM", TypeName.TIMESTAMP_NTZ),
        ("23:59", TypeName.TIME),
        ("9:05:30 am", TypeName.TIME),
        ("24:00", TypeName.STRING),
        ("10.0.0.1", TypeName.STRING),
        ("2024-01-01T10:00:00Z", TypeName.TIMESTAMP),
        ("2024-01-01 10:00:00.123456+02:00", TypeName.TIMESTAMP),
        ("2024-01-01 10:00", TypeName.TIMESTAMP_NTZ),
        ("2024-01-01T25:00:00", TypeName.STRING),
        ("x" * 1000, TypeName.STRING),
        ("1" * 1000, TypeName.STRING),
    ],
)
def test_a_value_has_the_narrowest_type_that_loses_nothing(
    text: str, expected: TypeName | None
) -> None:
    assert value_type(text) is expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2.5", ""], TypeName.DOUBLE),
        (["2024-01-01", "2024-01-01 10:00"], TypeName.TIMESTAMP_NTZ),
        (["2024-01-01T10:00:00Z", "2024-01-01 10:00"], TypeName.STRING),
        (["1", "true"], TypeName.STRING),
        (["1", "01"], TypeName.STRING),
        (["", "NULL"], TypeName.UNKNOWN),
        ([], TypeName.UNKNOWN),
    ],
)
def test_a_column_has_the_type_that_fits_all_its_values(
    values: list[str], expected: TypeName
) -> None:
    assert column_type(values) is expected


def test_what_the_first_rows_lack_is_found_further_down() -> None:
    rows = ["id,a", *[f"{i}," for i in range(500)]]
    rows[90] = "90,1"
    rows[180] = "180,1.5"
    assert columns_of("\n".join(rows)) == [("id", "INT64"), ("a", "DOUBLE")]


def test_all_rows_of_a_small_file_are_counted() -> None:
    assert facts_of("a,b\n1,2\n\n3,4\n").rows == 2
    assert facts_of('a,b\n1,"x\ny"\n').rows == 1
    assert facts_of("a,b\n" + "1,2\n" * 100).rows == 100
    assert facts_of("a,b\n" + "1,2\n" * 50_000).rows == 50_000
    assert facts_of("a,b\n" + "1,2\n" * 100_000).rows is None


class CountedBytes(io.BytesIO):
    taken = 0

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        self.taken += len(content)
        return content


def test_every_row_of_a_file_up_to_256_kb_has_a_say() -> None:
    rows = [f"{i},{i}" for i in range(12_000)]
    rows[11_000] = "11000,n/k"
    assert columns_of("id,a\n" + "\n".join(rows)) == [("id", "INT64"), ("a", "STRING")]


@pytest.mark.parametrize("row", [1_000, 52_000, 99_000])
def test_head_middle_and_end_of_a_large_file_have_a_say_and_the_rest_is_not_read(row: int) -> None:
    rows = [f"{100_000 + i},{i}" for i in range(100_000)]
    rows[row] = f"{row},n/k"
    data = ("id,a\n" + "\n".join(rows)).encode()
    for _ in range(4):  # the last ones are recognised by their form, up to the row that differs
        stream = CountedBytes(data)
        facts = read_file(stream, size=len(data), name="a.csv")
        assert [field.type.value for field in facts.schema.fields] == ["INT64", "STRING"]
        assert stream.taken <= 256 * 1024
        facts_of("id,a\n" + "".join(f"{i},{i}\n" for i in range(60)))


def test_a_part_of_a_large_file_that_begins_inside_quotes_widens_nothing() -> None:
    row = '1,"a\nb,c,d\ne,f,g"\n'
    assert columns_of("id,a\n" + row * 30_000) == [("id", "INT64"), ("a", "STRING")]


typed = st.sampled_from(
    [
        "", "1", "-7", "007", "1.5", ".5", "1e9", "NaN", "NULL", "true", "False", "TrUe", " 3 ",
        "2024-01-31", "2024-02-30", "2024-01-31 10:00", "2024-01-31T10:00:00Z", "x", "1,5",
        "9223372036854775807", "9223372036854775808", "99999999999999999999", "+1", "1\x002", "٣",
    ]
)  # fmt: skip


@given(st.lists(typed | st.text(max_size=4), max_size=6))
def test_a_column_has_the_type_that_its_values_have_one_by_one(values: list[str]) -> None:
    kinds = {kind for value in values if (kind := value_type(value)) is not None}
    expected = TypeName.STRING
    if not kinds:
        expected = TypeName.UNKNOWN
    elif len(kinds) == 1:
        (expected,) = kinds
    elif kinds == {TypeName.INT64, TypeName.DOUBLE}:
        expected = TypeName.DOUBLE
    elif kinds == {TypeName.DATE, TypeName.TIMESTAMP_NTZ}:
        expected = TypeName.TIMESTAMP_NTZ
    assert column_type(values) is expected


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (["1,5", "2,25"], Commas.DECIMAL, "DOUBLE"),
        (["1.234,50", "7"], Commas.DECIMAL, "DOUBLE"),
        (["1,234", "12,500"], Commas.EITHER, "INT64"),
        (["1,234", "12,500,000"], Commas.THOUSANDS, "INT64"),
        (["1,234.50", "7.25", "12"], Commas.THOUSANDS, "DOUBLE"),
        (["1'234'567", "12"], Commas.THOUSANDS, "INT64"),
        (["1\u00a0234\u00a0567", "12"], Commas.THOUSANDS, "INT64"),
        (["1,5", "x"], Commas.NO_NUMBERS, "STRING"),
        (["1,5", "1,234.5"], Commas.NO_NUMBERS, "STRING"),
        (["12,3456,7"], Commas.NO_NUMBERS, "STRING"),
        (["1,5", "", "NULL"], Commas.DECIMAL, "DOUBLE"),
    ],
)
def test_decimal_commas_are_told_from_thousands(
    values: list[str], expected: Commas, kind: str
) -> None:
    assert meaning_of_commas(values) == (expected, TypeName(kind))


header_names = st.lists(
    st.from_regex(r"[a-z][a-z_]{2,10}", fullmatch=True), min_size=2, max_size=6, unique=True
)
cells = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="#'\\"),
    max_size=12,
)


@given(header_names, st.sampled_from([",", ";", "\t", "|"]), st.data())
def test_what_the_csv_module_writes_is_found_again(
    names: list[str], delimiter: str, data: st.DataObject
) -> None:
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(-999, 999), *[cells for _ in names[1:]]), min_size=1, max_size=8
        )
    )
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(names)
    writer.writerows(rows)
    facts = facts_of(sink.getvalue())
    assert [field.name for field in facts.schema.fields] == names
    assert facts.schema.fields[0].type is TypeName.INT64
