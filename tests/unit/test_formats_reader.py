"""Any file in, its facts out: the bytes decide on the format, and only a part of them is read."""

from __future__ import annotations

import base64
import gzip
import io
import random
import re
import zlib

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc
from pyarrow import parquet as pq
from typing_extensions import override

from lumos.core.errors import NotTabularError, UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.file_names import SUFFIXES, promise_of
from lumos.core.formats.packed import PACKED_BYTES
from lumos.core.formats.reader import read_file
from lumos.core.formats.sample import LARGEST_SAMPLE_BYTES, SAMPLE_BYTES

VALUE = "data-value-4711"
TABLE = pa.table({"id": [1, 2], "name": [VALUE, None]})


def facts_of(content: bytes, name: str) -> FileFacts:
    return read_file(io.BytesIO(content), size=len(content), name=name)


def written_parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink)
    return sink.getvalue()


def written_orc() -> bytes:
    sink = io.BytesIO()
    orc.write_table(TABLE, sink)
    return sink.getvalue()


def written_avro() -> bytes:
    sink = io.BytesIO()
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]
    schema = {"type": "record", "name": "r", "fields": fields}
    fastavro.writer(sink, schema, [{"id": 1, "name": VALUE}])
    return sink.getvalue()


CONTENTS = {
    "parquet": written_parquet(),
    "orc": written_orc(),
    "avro": written_avro(),
    "csv": f"id,name\n1,{VALUE}\n2,\n".encode(),
    "json": f'{{"id": 1, "name": "{VALUE}"}}\n{{"id": 2, "name": null}}\n'.encode(),
}
SPELLED = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro", "csv": "CSV", "json": "JSON"}


@pytest.mark.parametrize("kind", CONTENTS)
def test_every_format_tells_its_columns_and_no_value(kind: str) -> None:
    facts = facts_of(CONTENTS[kind], f"folder.d/file.{kind}")
    assert facts.format == kind
    assert [(field.name, field.type.value) for field in facts.schema.fields] == [
        ("id", "INT64"),
        ("name", "STRING"),
    ]
    assert facts.warnings == ()
    assert VALUE not in repr(facts)


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("named", CONTENTS)
def test_the_bytes_win_over_the_name_and_the_disagreement_is_reported(
    kind: str, named: str
) -> None:
    facts = facts_of(CONTENTS[kind], f"file.{named}")
    assert facts.format == kind
    assert facts.warnings == (() if kind == named else (f"named .{named} but is {SPELLED[kind]}",))


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_name_that_promises_nothing_is_no_disagreement(kind: str) -> None:
    assert facts_of(CONTENTS[kind], "part-00000").warnings == ()
    assert facts_of(CONTENTS[kind], "part-00000").format == kind


@pytest.mark.parametrize("kind", ["csv", "json", "avro"])
def test_a_format_read_from_its_start_is_read_inside_gzip(kind: str) -> None:
    plain = facts_of(CONTENTS[kind], f"file.{kind}")
    packed = facts_of(gzip.compress(CONTENTS[kind]), f"file.{kind}.gz")
    assert (packed.schema, packed.format, packed.compression) == (plain.schema, kind, "gzip")
    assert packed.warnings == ()


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_format_read_from_its_end_is_refused_inside_gzip(kind: str) -> None:
    with pytest.raises(UnreadableItemError, match=f"it is {SPELLED[kind]} inside a gzip archive"):
        facts_of(gzip.compress(CONTENTS[kind]), f"file.{kind}.gz")


def test_a_name_that_is_wrong_about_gzip_is_reported() -> None:
    assert facts_of(CONTENTS["csv"], "file.csv.gz").warnings == (
        "named as a gzip archive but is not packed",
    )
    assert facts_of(gzip.compress(CONTENTS["json"]), "file.csv").warnings == (
        "named .csv but is JSON",
        "it is a gzip archive but its name does not say so",
    )
    assert facts_of(gzip.compress(CONTENTS["csv"]), "file.json.gz").warnings == (
        "named .json.gz but is CSV",
    )


def test_an_empty_file_says_so() -> None:
    for suffix in SUFFIXES:
        with pytest.raises(UnreadableItemError, match=r"^the file is empty$"):
            facts_of(b"", f"file.{suffix}")


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (b"PK\x03\x04" + bytes(30), "a.csv", "it looks like a zip archive"),
        (b"\x28\xb5\x2f\xfd" + bytes(30), "a.csv.zst", "its Zstandard data is cut off"),
        (bytes(600), "a.csv", "it looks like zero bytes"),
        (b"<html><body>a,b</body></html>", "a.csv", "it looks like an HTML page"),
        (b"\x80\x81\x00\x01\x02", "a.json", "its bytes are neither text nor known"),
        (b"Just some prose.\nAnd more of it.\n", "README", "it is a text document"),
        (b"one\ntwo\n", "a.parquet", "it looks like text without columns"),
        (b" \n\n", "a.csv", "nothing but space"),
        (b"a,b\n" * 99 + bytes(99), "a.csv", "it begins like text, such as CSV but holds bytes"),
        (b'{"a": 1}\n' * 99 + bytes(99), "a.json", "it begins like JSON but holds bytes"),
        (b"{broken", "a.json", "it is not valid JSON"),
        (b"ORC" + bytes(40), "a.orc", "cut off: it has no ORC footer"),
        (b"PAR1" + bytes(40), "a.parquet", "cut off: it has no Parquet footer"),
        (b"Obj\x01\x02", "a.avro", "cut off inside its header"),
        (gzip.compress(b"", mtime=0), "a.csv.gz", "nothing inside its gzip archive"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:10], "a.csv.gz", "its gzip data is cut off"),
        (
            gzip.compress(b"a,b\n1,2\n", mtime=0)[:12],
            "a.csv.gz",
            "it is cut off inside its first line",
        ),
        (b"\x1f\x8b" + b"\xff" * 30, "a.csv.gz", "its gzip data is damaged"),
        (
            gzip.compress(b"x" * 257 + b"ustar\x00" + bytes(200), mtime=0),
            "a.tar.gz",
            "it is a tar archive",
        ),
    ],
)
def test_a_file_of_no_known_format_says_what_it_looks_like(
    content: bytes, name: str, reason: str
) -> None:
    with pytest.raises(UnreadableItemError, match=re.escape(reason)):
        facts_of(content, name)


@pytest.mark.parametrize("magic", ["ORC", "PAR1", "PARE"])
def test_a_csv_whose_first_column_is_named_like_a_magic_number_is_a_csv(magic: str) -> None:
    facts = facts_of(f"{magic}_id,b\n1,2\n".encode(), "a.csv")
    assert (facts.format, facts.schema.fields[0].name) == ("csv", f"{magic}_id")


class Counting(io.BytesIO):
    """A file that knows how much of it was read."""

    taken = 0

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        part = super().read(size)
        self.taken += len(part)
        return part


@pytest.mark.parametrize(
    ("content", "name", "most"),
    [
        (b"a,b\n" + b"1,2\n" * 2_000_000, "a.csv", SAMPLE_BYTES + 64),
        (b'{"a": 1}\n' * 1_000_000, "a.json", SAMPLE_BYTES + 64),
        (b"[" + b"1," * 4_000_000 + b"1]", "a.json", SAMPLE_BYTES + 64),
        (b"x" * 8_000_000, "a.csv", SAMPLE_BYTES + 64),
        (b'{"a": "' + b"x" * 8_000_000, "a.json", SAMPLE_BYTES + LARGEST_SAMPLE_BYTES + 64),
    ],
    ids=["csv", "json lines", "json array", "one line", "one record"],
)
def test_a_large_file_is_never_read_whole(content: bytes, name: str, most: int) -> None:
    stream = Counting(content)
    try:
        read_file(stream, size=len(content), name=name)
    except UnreadableItemError as error:
        assert "is longer than" in error.message  # noqa: PT017 - only two of the files
    assert 0 < stream.taken <= most < len(content)


class Recording(io.BytesIO):
    """A file that knows where it was read."""

    @override
    def read(self, size: int | None = -1, /) -> bytes:
        self.__dict__.setdefault("places", []).append(self.tell())
        return super().read(size)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"a,b\n" + b"1,2\n" * 500_000, "a.csv"),
        (b'{"a": 1}\n' * 200_000, "a.jsonl"),
        (b"[" + b'{"a": 1},' * 200_000 + b"{}]", "a.json"),
        (gzip.compress(random.Random(1).randbytes(200_000).hex("\n", 4).encode()), "a.txt.gz"),
    ],
    ids=["csv", "json lines", "json array", "gzip"],
)
def test_the_beginning_of_a_file_is_read_once_and_in_one_piece(content: bytes, name: str) -> None:
    stream = Recording(content)
    try:
        read_file(stream, size=len(content), name=name)
    except NotTabularError:
        assert name == "a.txt.gz"
    size, first = len(content), 64 * 1024
    of_csv = [0, first, size // 2, size - first]  # head, middle and end
    of_json = [0, size - 1024]  # and whether its end is one
    places = {"a.csv": of_csv, "a.jsonl": of_json, "a.json": of_json}
    assert stream.__dict__["places"] == places.get(name, [0])


@pytest.mark.parametrize(
    ("content", "name"), [("a,b\n" + "1,2\n" * 99, "a.csv"), ('{"a": 1}\n' * 99, "a.json")]
)
def test_a_few_nul_and_control_bytes_are_left_out_and_reported(content: str, name: str) -> None:
    facts = facts_of(content.encode() + b"\x00\x02", name)
    assert facts.warnings[0] == "2 NUL or control characters in it left out"
    assert facts.schema.fields[0].name == "a"


def test_a_gzip_bomb_gives_a_sample_and_no_more() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(b"a,b\n" * 1_000_000) for _ in range(50)) + packer.flush()
    stream = Counting(bomb)
    facts = read_file(stream, size=len(bomb), name="a.csv.gz")
    assert [field.name for field in facts.schema.fields] != []
    assert stream.taken <= 2 * 64 * 1024 + 64


def test_a_gzip_file_of_empty_members_ends() -> None:
    content = gzip.compress(b"", 9, mtime=0) * (PACKED_BYTES // 20 + 5_000)
    stream = Counting(content)
    with pytest.raises(UnreadableItemError, match="nothing inside"):
        read_file(stream, size=len(content), name="a.csv.gz")
    assert stream.taken < len(content)


def test_many_gzip_members_are_one_file() -> None:
    content = gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"x,3\n") + bytes(16)
    facts = facts_of(content, "a.csv.gz")
    assert [field.type.value for field in facts.schema.fields] == ["STRING", "INT64"]
    assert facts.warnings == ()


def test_a_gzip_file_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    chance = random.Random(1)
    rows = "".join(f"{chance.random()},{i}\n" for i in range(2_000))
    content = gzip.compress(b"a,b\n" + rows.encode())[:-2_000]
    facts = facts_of(content, "a.csv.gz")
    assert [field.type.value for field in facts.schema.fields] == ["DOUBLE", "INT64"]
    assert facts.warnings == ("its gzip data is cut off; only what comes before was read",)


def test_rows_are_estimated_from_the_sample() -> None:
    rows = 200_000
    plain = b"a,b\n" + b"12345,67890\n" * rows
    assert facts_of(b"a,b\n1,2\n3,4\n", "a.csv").rows_estimate == 2
    estimate = facts_of(plain, "a.csv").rows_estimate
    assert estimate is not None
    assert abs(estimate - rows) < rows * 0.05
    records = facts_of(b'{"a": 1}\n' * rows, "a.json").rows_estimate
    assert records is not None
    assert abs(records - rows) < rows * 0.05
    assert facts_of(plain, "a.csv").rows is None


def test_a_disk_error_is_an_unreadable_item_worth_another_try() -> None:
    class Failing(io.BytesIO):
        @override
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(UnreadableItemError, match="Input/output error") as raised:
        read_file(Failing(b"abc"), size=3, name="a.csv")
    assert raised.value.retryable


def test_a_file_that_vanished_into_nothing_is_worth_another_try() -> None:
    with pytest.raises(UnreadableItemError, match="changed while it was read") as raised:
        read_file(io.BytesIO(b""), size=10, name="a.csv")
    assert raised.value.retryable


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b.csv", ("csv", None, ".csv")),
        ("a.CSV.GZ", ("csv", "gzip", ".csv.gz")),
        ("a.json.zst", ("json", "zstd", ".json.zst")),
        ("part-0.snappy.parquet", ("parquet", None, ".parquet")),
        ("a.gz", (None, "gzip", ".a.gz")),
        ("README", (None, None, ".readme")),
        ("folder.csv/README", (None, None, ".readme")),
        ("a.parquet.crc", (None, None, ".crc")),
    ],
)
def test_what_a_name_promises(name: str, expected: tuple[str | None, str | None, str]) -> None:
    assert promise_of(name) == expected


@pytest.mark.parametrize("kind", CONTENTS)
def test_facts_survive_json(kind: str) -> None:
    facts = facts_of(CONTENTS[kind], "file.txt")
    assert FileFacts.from_json(facts.to_json()) == facts


def outcome_of(content: bytes, name: str) -> str:
    try:
        return repr(facts_of(content, name))
    except UnreadableItemError as error:
        return error.message


@given(st.binary(max_size=300), st.sampled_from([*SUFFIXES, "csv.gz", "txt", ""]))
def test_arbitrary_bytes_are_read_or_refused_and_never_anything_else(
    content: bytes, suffix: str
) -> None:
    assert outcome_of(content, f"file.{suffix}") == outcome_of(content, f"file.{suffix}")


@given(st.sampled_from(["avro", "orc", "csv", "json"]), st.integers(0, 2**32))
def test_a_damaged_file_is_read_or_refused_and_never_tells_a_value(kind: str, seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(CONTENTS[kind])
    # Where a header of a CSV ends nothing but its line end tells: what comes after would be names.
    first = content.index(b"\n") + 1 if kind == "csv" else 4
    for _ in range(chance.randint(1, 6)):
        content[chance.randrange(first, len(content))] = chance.randrange(256)
    assert VALUE not in outcome_of(bytes(content), f"file.{kind}")


def encrypted_parquet(*, plain_footer: bool) -> bytes:
    from pyarrow.parquet import encryption

    class Keys(encryption.KmsClient):  # type: ignore[misc]
        def __init__(self, _: object) -> None:
            super().__init__()

        def wrap_key(self, key_bytes: bytes, _: str) -> bytes:
            return base64.b64encode(key_bytes)

    factory = encryption.CryptoFactory(Keys)
    wanted = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"columns": ["a"]}, plaintext_footer=plain_footer
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), wanted)
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("name", ["a.parquet", "a.parquet.encrypted"])
def test_encrypted_columns_below_a_readable_footer_have_names_and_types(name: str) -> None:
    facts = facts_of(encrypted_parquet(plain_footer=True), name)
    assert [(f.name, f.type.value) for f in facts.schema.fields] == [
        ("a", "INT64"),
        ("b", "STRING"),
    ]
    assert facts.rows == 2
    assert facts.columns == {}
    assert facts.warnings == (
        "columns of it are encrypted; their names and types are known, no statistics",
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (encrypted_parquet(plain_footer=False), "its footer is encrypted"),
        (random.Random(1).randbytes(500), "it is encrypted, as its name says"),
    ],
)
def test_a_file_that_is_encrypted_says_so(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableItemError, match=reason):
        facts_of(content, "a.parquet.encrypted")
