"""Arrow files, Arrow streams and Feather files: schema and rows without the data."""

from __future__ import annotations

import io
import warnings

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather
from typing_extensions import override

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.arrow_types import canonical_schema
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file

VALUE = "data-value-4711"
TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "name": pa.array([VALUE, None, "b"]).dictionary_encode(),
        "tags": pa.array([["a"], [], None], pa.list_(pa.string())),
        "at": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        "price": pa.array([None, None, None], pa.decimal128(12, 2)),
    }
)
SIMPLE = pa.table({"id": [1, 2], "name": ["a", None]})


def written(table: pa.Table, layout: str, *, chunk: int | None = None) -> bytes:
    sink = io.BytesIO()
    make = pa.ipc.new_file if layout == "file" else pa.ipc.new_stream
    with make(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=chunk)
    return sink.getvalue()


def written_feather(table: pa.Table, version: int) -> bytes:
    sink = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packing = None if version == 1 else "uncompressed"
        feather.write_feather(table, sink, version=version, compression=packing)
    return sink.getvalue()


def facts_of(content: bytes, name: str) -> FileFacts:
    return read_file(io.BytesIO(content), size=len(content), name=name)


@pytest.mark.parametrize("name", ["a.arrow", "a.arrows", "a.ipc", "a.feather", "a.ftr", "part-0"])
@pytest.mark.parametrize("layout", ["file", "stream"])
def test_the_schema_is_that_of_arrow_and_no_value_is_told(layout: str, name: str) -> None:
    facts = facts_of(written(TABLE, layout), name)
    schema, _ = canonical_schema(TABLE.schema)
    assert (facts.format, facts.schema, facts.warnings) == ("arrow", schema, ())
    assert facts.properties == {"layout": layout}
    assert VALUE not in repr(facts)


def test_the_rows_of_a_file_are_those_of_its_batches() -> None:
    facts = facts_of(written(TABLE, "file", chunk=1), "a.arrow")
    assert (facts.rows, facts.row_groups) == (3, 3)
    assert facts_of(written(TABLE, "stream"), "a.arrow").rows == 3


def test_the_rows_of_very_many_batches_are_estimated() -> None:
    many = pa.table({"a": list(range(1_500))})
    facts = facts_of(written(many, "stream", chunk=1), "a.arrow")
    assert facts.rows is None
    assert facts.rows_estimate is not None
    assert abs(facts.rows_estimate - 1_500) < 20


def test_where_each_read_is_a_request_the_rows_come_from_the_beginning_alone() -> None:
    class Remote(io.RawIOBase):
        """Bytes of which each read is counted."""

        def __init__(self, content: bytes) -> None:
            self._inner = io.BytesIO(content)
            self.places: list[int] = []

        @override
        def seek(self, offset: int, whence: int = 0, /) -> int:
            return self._inner.seek(offset, whence)

        @override
        def read(self, size: int | None = -1, /) -> bytes:
            self.places.append(self._inner.tell())
            return self._inner.read(size)

    content = written(pa.table({"a": list(range(100_000))}), "file", chunk=1_000)
    remote = Remote(content)
    facts = read_file(remote, size=len(content), name="a.arrow")  # type: ignore[arg-type]
    assert (facts.rows, set(remote.places)) == (None, {0})
    assert facts.rows_estimate is not None
    assert abs(facts.rows_estimate - 100_000) < 5_000


@pytest.mark.parametrize("version", [1, 2])
def test_both_versions_of_feather_are_read(version: int) -> None:
    facts = facts_of(written_feather(SIMPLE, version), "a.feather")
    assert [field.signature() for field in facts.schema.fields] == ["INT64", "STRING"]
    assert (facts.rows, facts.warnings) == (2, ())


def test_a_large_feather_file_of_version_1_says_what_to_do() -> None:
    content = written_feather(pa.table({"a": pa.array(range(2_200_000))}), 1)
    with pytest.raises(UnreadableItemError, match="version 1, which can only be read whole"):
        facts_of(content, "a.feather")


def test_a_misnamed_file_is_read_and_reported() -> None:
    assert facts_of(written(SIMPLE, "file"), "a.csv").warnings == ("named .csv but is Arrow",)


@pytest.mark.parametrize("layout", ["file", "stream"])
def test_a_large_file_is_never_read_whole(layout: str) -> None:
    class Counting(io.BytesIO):
        taken = 0

        @override
        def read(self, size: int | None = -1, /) -> bytes:
            part = super().read(size)
            self.taken += len(part)
            return part

    content = written(pa.table({"a": pa.array(range(500_000))}), layout)
    stream = Counting(content)
    assert read_file(stream, size=len(content), name="a.arrow").schema.fields[0].name == "a"
    assert stream.taken < 300_000 < len(content)


@pytest.mark.parametrize("layout", ["file", "stream"])
def test_a_file_that_is_cut_off_says_so(layout: str) -> None:
    content = written(TABLE, layout)
    for length in (9, 40, 200):
        with pytest.raises(UnreadableItemError, match="cut off"):
            facts_of(content[:length], "a.arrow")
    facts = facts_of(content[: len(content) * 2 // 3], "a.arrow")
    assert (facts.rows, len(facts.schema.fields)) == (None, 5)
    assert facts.warnings == (
        "it is damaged or cut off after its schema; its rows are not all counted",
    )


types = st.sampled_from(
    [
        pa.int8(), pa.uint64(), pa.float16(), pa.string(), pa.large_string(), pa.binary(16),
        pa.date32(), pa.time64("ns"), pa.timestamp("ms"), pa.timestamp("ns", "Europe/Berlin"),
        pa.duration("s"), pa.decimal256(60, 4), pa.list_(pa.int8()), pa.bool_(), pa.null(),
        pa.map_(pa.string(), pa.int64()), pa.struct([("x", pa.int8()), ("y", pa.string())]),
    ]
)  # fmt: skip


@given(st.lists(types, min_size=1, max_size=6), st.sampled_from(["file", "stream"]))
def test_every_type_that_arrow_writes_is_read_again(kinds: list[pa.DataType], layout: str) -> None:
    schema = pa.schema(
        [pa.field(f"c{i}", kind, i % 2 == 0 or kind == pa.null()) for i, kind in enumerate(kinds)]
    )
    facts = facts_of(written(schema.empty_table(), layout), "a.arrow")
    assert facts.schema == canonical_schema(schema)[0]


def test_a_file_that_is_cut_off_inside_its_footer_is_reported() -> None:
    table = pa.table({"a": [1, 2]})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content = sink.getvalue()
    whole = read_file(io.BytesIO(content), size=len(content), name="a.arrow")
    assert whole.warnings == ()
    cut = content[:-20]
    facts = read_file(io.BytesIO(cut), size=len(cut), name="a.arrow")
    assert facts.warnings == ("it is cut off: its footer has no end",)
