"""Parts are packed in frames; two parts have the frames in common whose lines are equal."""

from __future__ import annotations

import random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.store.snapshots.part_format import (
    differing_lines,
    differing_plain,
    encode_part,
    plain_of,
)
from lumos.core.store.snapshots.part_frames import Frame, frames_of, packed_lines, unpacked_frames

LINES = st.lists(st.binary(max_size=40_000).filter(lambda line: b"\n" not in line), max_size=30)


def line(number: int, *, contract: str = "a") -> bytes:
    body = random.Random(number).randbytes(900).hex()
    head = f'{{"urn":"lumos://s3/lake/t{number:05}","contract_hash":"{contract * 64}"'
    return f'{head},"dataset":"{body}"}}'.encode()


@given(LINES)
def test_lines_come_back_as_they_were_packed(lines: list[bytes]) -> None:
    packed, plain = packed_lines(lines), plain_of(lines)

    assert unpacked_frames(frames_of(packed, len(plain))) == plain
    assert packed_lines(lines) == packed


def test_any_zstd_unpacks_a_part() -> None:
    lines = [line(number) for number in range(300)]
    part = encode_part(lines)

    stream = zstandard.ZstdDecompressor().stream_reader(part.content, read_across_frames=True)
    assert stream.read() == plain_of(lines)
    assert len(frames_of(part.content, part.plain_bytes)) > 5


def test_a_part_of_one_frame_is_read_as_before() -> None:
    plain = plain_of([line(1)])
    content = zstandard.ZstdCompressor(level=3).compress(plain)

    assert frames_of(content, len(plain)) == [Frame(content, len(plain))]
    assert unpacked_frames(frames_of(content, len(plain))) == plain


@given(
    st.sets(st.integers(0, 399), max_size=6),
    st.sets(st.integers(0, 399), max_size=3),
    st.sets(st.integers(0, 399), max_size=3),
)
def test_leaving_out_frames_leaves_no_difference_out(
    edited: set[int], added: set[int], removed: set[int]
) -> None:
    old = {number: line(number) for number in range(400) if number not in added}
    new = {
        number: line(number, contract="b" if number in edited else "a")
        for number in range(400)
        if number not in removed
    }
    sides = [encode_part(side.values()) for side in (old, new)]

    texts = differing_plain(*((part.content, part.plain_bytes) for part in sides))

    whole = [plain_of(side.values()) for side in (old, new)]
    assert list(differing_lines(*texts)) == list(differing_lines(*whole))
    changes = len(edited | added | removed)
    assert len(texts[0]) <= changes * 6 * 100_000
    assert changes or texts == (b"", b"")


def test_a_table_that_does_not_fit_is_refused() -> None:
    part = encode_part([line(number) for number in range(300)])

    with pytest.raises(ValueError, match="table"):
        frames_of(part.content[5:], part.plain_bytes)
    with pytest.raises(ValueError, match="another size"):
        frames_of(part.content, part.plain_bytes + 1)
    with pytest.raises(ValueError, match=r"."):
        unpacked_frames([Frame(b"no zstd", 7)])
    first, *_ = frames_of(part.content, part.plain_bytes)
    with pytest.raises(ValueError, match="another size"):
        unpacked_frames([Frame(first.packed, first.plain_bytes - 1)])
