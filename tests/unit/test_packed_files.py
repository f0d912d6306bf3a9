"""Files inside compressions: read as far as a sample needs, whatever they claim to hold."""

from __future__ import annotations

import io
import lzma
import random
import re

import fastavro
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.packed import CODECS, PACKED_BYTES, SUFFIXES, codec_of, packed_sample
from lumos.core.formats.reader import read_file
from packers import PACKERS

CSV = b"id,name\n" + b"".join(b"%d,n%d\n" % (i, i * i % 97) for i in range(20))
JSON = b"".join(b'{"id": %d, "name": "n%d"}\n' % (i, i) for i in range(20))
MANY = 40_000
NUMBERS = b"a,b\n" + b"".join(
    b"%d,%d\n" % (i, random.Random(i).randrange(10**6)) for i in range(MANY)
)
MULTI_MEMBER = [way for way in PACKERS if way != "deflate"]


def facts_of(content: bytes, name: str) -> FileFacts:
    return read_file(io.BytesIO(content), size=len(content), name=name)


def written_avro() -> bytes:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
    fastavro.writer(sink, schema, [{"id": 1}])
    return sink.getvalue()


def written_arrow_stream() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"id": [1, 2]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("way", PACKERS)
@pytest.mark.parametrize(
    ("kind", "content"),
    [("csv", CSV), ("json", JSON), ("avro", written_avro()), ("arrow", written_arrow_stream())],
)
def test_a_format_read_from_its_start_is_read_inside_every_compression(
    way: str, kind: str, content: bytes
) -> None:
    suffix, codec, pack = PACKERS[way]
    facts = facts_of(pack(content), f"a.{kind}.{suffix}")
    assert (facts.format, facts.compression, facts.warnings) == (kind, codec, ())
    assert facts.schema == facts_of(content, f"a.{kind}").schema
    if kind in ("csv", "json"):
        assert facts.rows == 20


@pytest.mark.parametrize("way", PACKERS)
def test_the_rows_of_a_large_packed_file_are_estimated(way: str) -> None:
    suffix, _, pack = PACKERS[way]
    facts = facts_of(pack(NUMBERS), f"a.csv.{suffix}")
    assert facts.rows is None
    assert facts.rows_estimate is not None
    assert abs(facts.rows_estimate - MANY) < MANY * 0.3


@pytest.mark.parametrize("way", MULTI_MEMBER)
def test_members_one_after_the_other_are_one_file(way: str) -> None:
    suffix, _, pack = PACKERS[way]
    facts = facts_of(pack(b"a,b\n1,2\n") + pack(b"x,3\n"), f"a.csv.{suffix}")
    assert [field.type.value for field in facts.schema.fields] == ["STRING", "INT64"]
    assert (facts.rows, facts.warnings) == (2, ())


@pytest.mark.parametrize("way", PACKERS)
def test_a_packed_file_that_is_cut_off_is_read_as_far_as_it_goes(way: str) -> None:
    suffix, codec, pack = PACKERS[way]
    rows = b"a,b\n" + NUMBERS[: 300 * 1024]
    content = pack(rows)[:-20]
    sample = packed_sample(io.BytesIO(content), codec, size=len(content), limit=10**7)
    assert rows.startswith(sample.content)
    assert not sample.whole
    assert sample.warnings == (
        f"its {CODECS[codec]} data is cut off; only what comes before was read",
    )
    with pytest.raises(UnreadableItemError, match=r"is (cut off|damaged)"):
        facts_of(content[:20], f"a.csv.{suffix}")


@pytest.mark.parametrize("way", PACKERS)
def test_a_name_that_is_wrong_about_the_compression_is_reported(way: str) -> None:
    suffix, codec, pack = PACKERS[way]
    spelled = CODECS[codec]
    article = "an" if spelled in ("xz", "LZ4") else "a"
    assert facts_of(CSV, f"a.csv.{suffix}").warnings == (
        f"named as {article} {spelled} archive but is not packed",
    )
    if "Hadoop" not in way and way != "deflate":  # which nothing but a name tells
        assert facts_of(pack(CSV), "a.csv").warnings == (
            f"it is {article} {spelled} archive but its name does not say so",
        )
    assert facts_of(PACKERS["gzip"][2](CSV), f"a.csv.{suffix}").warnings == (
        () if codec == "gzip" else (f"named .csv.{suffix} but is a gzip archive",)
    )


@pytest.mark.parametrize("way", PACKERS)
def test_nothing_inside_says_so(way: str) -> None:
    suffix, _, pack = PACKERS[way]
    if not pack(b""):
        with pytest.raises(UnreadableItemError, match="the file is empty"):
            facts_of(b"", f"a.csv.{suffix}")
        return
    with pytest.raises(UnreadableItemError, match="there is nothing inside its"):
        facts_of(pack(b""), f"a.csv.{suffix}")


class Counting(io.BytesIO):
    """A file that knows how much of it was read."""

    taken = 0

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        part = super().read(size)
        self.taken += len(part)
        return part


@pytest.mark.parametrize("way", PACKERS)
def test_a_bomb_gives_a_sample_and_no_more(way: str) -> None:
    suffix, codec, pack = PACKERS[way]
    bomb = pack(b"a,b\n" * 1_000_000)
    stream = Counting(bomb)
    facts = read_file(stream, size=len(bomb), name=f"a.csv.{suffix}")
    assert [field.name for field in facts.schema.fields] == ["column_1", "column_2"]
    assert stream.taken <= 512 * 1024
    assert len(packed_sample(io.BytesIO(bomb), codec, size=len(bomb), limit=999).content) == 999


@pytest.mark.parametrize("way", ["bzip2", "xz", "zstd", "lz4"])
def test_a_file_of_empty_members_ends(way: str) -> None:
    suffix, _, pack = PACKERS[way]
    empty = pack(b"")
    content = empty * ((PACKED_BYTES + 100_000) // len(empty))
    stream = Counting(content)
    with pytest.raises(UnreadableItemError, match="nothing inside"):
        read_file(stream, size=len(content), name=f"a.csv.{suffix}")
    assert stream.taken < len(content)


def test_the_rest_of_a_packed_stream_is_no_damage() -> None:
    sink = io.BytesIO()
    table = pa.table({"id": [random.Random(i).random() for i in range(60_000)]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    facts = facts_of(zstandard.compress(sink.getvalue()), "a.arrow.zst")
    assert (facts.rows, facts.warnings) == (None, ())


def test_padding_between_and_after_streams_of_xz_is_no_damage() -> None:
    content = lzma.compress(b"a,b\n1,2\n") + bytes(8) + lzma.compress(b"3,4\n") + bytes(4)
    facts = facts_of(content, "a.csv.xz")
    assert (facts.rows, facts.warnings) == (2, ())


def test_a_frame_to_be_skipped_comes_before_the_data() -> None:
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
    facts = facts_of(skipped + zstandard.compress(CSV), "a.csv.zst")
    assert (facts.compression, facts.rows) == ("zstd", 20)


def test_what_begins_like_bzip2_and_is_text_is_text() -> None:
    facts = facts_of(b"BZh_name,b\n1,2\n", "a.csv")
    assert (facts.compression, facts.schema.fields[0].name) == (None, "BZh_name")


@pytest.mark.parametrize("way", PACKERS)
def test_a_disk_error_inside_an_archive_is_worth_another_try(way: str) -> None:
    suffix, _, pack = PACKERS[way]
    content = pack(random.Random(1).randbytes(300_000))

    class Failing(io.BytesIO):
        @override
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 0:
                raise OSError(5, "Input/output error")
            return super().read(1024)

    with pytest.raises(UnreadableItemError, match="Input/output error") as raised:
        read_file(Failing(content), size=len(content), name=f"a.csv.{suffix}")
    assert raised.value.retryable


@given(st.sampled_from(sorted(PACKERS)), st.binary(max_size=2_000), st.integers(1, 3_000))
def test_what_was_packed_comes_out_again(way: str, content: bytes, limit: int) -> None:
    _, codec, pack = PACKERS[way]
    packed = pack(content)
    if content:
        sample = packed_sample(io.BytesIO(packed), codec, size=len(packed), limit=limit)
        assert sample.content == content[:limit]
        assert sample.whole or limit <= len(content)


@given(st.sampled_from(sorted(PACKERS)), st.integers(0, 2**32))
def test_a_damaged_archive_gives_a_sample_or_a_reason(way: str, seed: int) -> None:
    suffix, codec, pack = PACKERS[way]
    chance = random.Random(seed)
    content = bytearray(pack(CSV))
    for _ in range(chance.randint(1, 4)):
        content[chance.randrange(len(content))] = chance.randrange(256)
    try:
        packed_sample(io.BytesIO(bytes(content)), codec, size=len(content))
        facts_of(bytes(content), f"a.csv.{suffix}")
    except UnreadableItemError as error:
        assert not re.search(r"n[0-9]", error.message)  # noqa: PT017 - both are fine


def test_every_suffix_names_a_codec_that_is_spelled() -> None:
    assert set(SUFFIXES.values()) == set(CODECS)
    assert codec_of(b"a,b\n", "snappy") is None
