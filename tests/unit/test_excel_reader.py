"""Excel workbooks: their sheets as members, from the first rows, whatever the archive claims."""

from __future__ import annotations

import io
import zipfile
from datetime import date, datetime, time
from typing import Any

import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.errors import NotTabularError, UnreadableItemError
from lumos.core.formats.excel_xml import PART_BYTES
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file

VALUE = "data-value-4711"
ORDERS: list[list[Any]] = [
    ["id", "name", "price", "day", "at", "from", "paid"],
    *[
        [i, VALUE, i + 0.5, date(2024, 1, 2), datetime(2024, 1, 2, 10, 5), time(9, 30), True]
        for i in range(30)
    ],
]


def workbook(sheets: dict[str, list[list[Any]]], **options: Any) -> bytes:
    sink = io.BytesIO()
    book = xlsxwriter.Workbook(sink, {"in_memory": True, **options})
    formats = {
        date: book.add_format({"num_format": "yyyy-mm-dd"}),
        datetime: book.add_format({"num_format": "dd/mm/yyyy hh:mm:ss"}),
        time: book.add_format({"num_format": "hh:mm"}),
    }
    for name, rows in sheets.items():
        sheet = book.add_worksheet(name)
        for number, row in enumerate(rows):
            for column, value in enumerate(row):
                if value is None:
                    continue
                if type(value) in formats:
                    sheet.write_datetime(number, column, value, formats[type(value)])
                else:
                    sheet.write(number, column, value)
    book.close()
    return sink.getvalue()


def facts_of(content: bytes, name: str = "a.xlsx") -> FileFacts:
    return read_file(io.BytesIO(content), size=len(content), name=name)


def columns_of(facts: FileFacts) -> list[tuple[str, str]]:
    return [(field.name, field.type.value) for field in facts.schema.fields]


def test_one_sheet_is_one_table_with_types_from_its_cells() -> None:
    facts = facts_of(workbook({"Orders": ORDERS}))
    assert facts.format == "excel"
    assert columns_of(facts) == [
        ("id", "INT64"),
        ("name", "STRING"),
        ("price", "DOUBLE"),
        ("day", "DATE"),
        ("at", "TIMESTAMP_NTZ"),
        ("from", "TIME"),
        ("paid", "BOOLEAN"),
    ]
    assert (facts.rows, facts.rows_estimate, facts.members) == (30, 30, ())
    assert facts.properties == {"sheet": "Orders", "header": "true"}
    assert VALUE not in repr(facts)


def test_every_sheet_with_rows_is_a_member() -> None:
    facts = facts_of(workbook({"A": ORDERS, "Empty": [], "B c": [["x", "y"], [1, "a"], [2, "b"]]}))
    assert [(member.name, member.rows) for member in facts.members] == [("A", 30), ("B c", 2)]
    assert columns_of(facts.members[1]) == [("x", "INT64"), ("y", "STRING")]
    assert facts.schema == facts.members[0].schema
    assert FileFacts.from_json(facts.to_json()) == facts


def test_titles_gaps_and_missing_cells_are_no_columns() -> None:
    rows: list[list[Any]] = [
        ["Report 2024"],
        [],
        ["id", None, "name"],
        [1, None, "a"],
        [None, None, "b"],
        [3],
    ]
    facts = facts_of(workbook({"S": rows}))
    assert columns_of(facts) == [("id", "INT64"), ("column_2", "UNKNOWN"), ("name", "STRING")]
    assert facts.warnings[0] == "1 line before its columns left out"


def test_a_sheet_without_a_header_has_positions_for_names() -> None:
    facts = facts_of(workbook({"S": [[1, "a"], [2, "b"], [3, "c"]]}))
    assert facts.schema.positional
    assert columns_of(facts) == [("column_1", "INT64"), ("column_2", "STRING")]


def test_a_long_sheet_is_read_in_part_and_its_rows_are_estimated() -> None:
    rows: list[list[Any]] = [["id", "text"], *[[i, f"t{i}"] for i in range(5_000)]]
    facts = facts_of(workbook({"S": rows}))
    assert (facts.rows, facts.rows_estimate) == (None, 5_000)
    constant = facts_of(workbook({"S": rows}, constant_memory=True))
    assert columns_of(constant) == columns_of(facts) == [("id", "INT64"), ("text", "STRING")]


def test_a_misnamed_workbook_is_read_and_reported() -> None:
    assert facts_of(workbook({"S": ORDERS}), "a.csv").warnings == ("named .csv but is Excel",)


def zipped(members: dict[str, bytes], **options: Any) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def parts_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"[Content_Types].xml": b"<Types/>", "word/document.xml": b"<w/>"}, "an Office document"),
        ({"a.csv": b"a,b\n1,2\n"}, "a zip archive"),
    ],
)
def test_other_archives_hold_no_table(members: dict[str, bytes], kind: str) -> None:
    with pytest.raises(NotTabularError) as raised:
        facts_of(zipped(members), "a.zip")
    assert raised.value.kind == kind
    with pytest.raises(UnreadableItemError, match=f"it looks like {kind}") as refused:
        facts_of(zipped(members), "a.csv")
    assert not isinstance(refused.value, NotTabularError)


def test_entities_in_its_xml_are_refused() -> None:
    laughs = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><sheet name="&b;"/>'
    parts = parts_of(workbook({"S": ORDERS})) | {"xl/workbook.xml": laughs}
    with pytest.raises(UnreadableItemError, match="declares entities"):
        facts_of(zipped(parts))


def test_a_bomb_costs_no_more_than_a_small_sheet() -> None:
    parts = parts_of(workbook({"S": [["a", "b"], [1, 2]]}))
    sheet = parts["xl/worksheets/sheet1.xml"]
    gap = b" " * (PART_BYTES * 4)
    bomb = zipped(parts | {"xl/worksheets/sheet1.xml": sheet.replace(b"</row>", b"</row>" + gap)})
    facts = facts_of(bomb)
    assert columns_of(facts) == [
        ("a", "UNKNOWN"),
        ("b", "UNKNOWN"),
    ]  # all but one row is out of reach
    assert facts.rows is None


def test_an_empty_workbook_says_so() -> None:
    with pytest.raises(UnreadableItemError, match="it has no rows"):
        facts_of(workbook({"S": []}))


def test_old_and_encrypted_workbooks_are_recognised() -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    with pytest.raises(NotTabularError, match="an old or encrypted Office document"):
        facts_of(ole, "a.xls")
    with pytest.raises(UnreadableItemError, match="an old or encrypted Office document"):
        facts_of(ole, "a.xlsx")


@given(st.integers(0, 2**32), st.data())
def test_a_damaged_workbook_is_read_or_refused(seed: int, data: st.DataObject) -> None:
    parts = parts_of(workbook({"S": ORDERS[:5], "T": ORDERS[:3]}))
    name = data.draw(st.sampled_from(sorted(parts)))
    content = bytearray(parts[name])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    try:
        facts_of(zipped(parts | {name: bytes(content)}))
    except UnreadableItemError as error:
        assert VALUE not in error.message  # noqa: PT017 - both are fine
