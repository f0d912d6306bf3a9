"""Pure kernels of the snapshot's parts: lines, buckets, compression, and the merge of two parts.

A dataset's line begins with its URN and its contract hash at fixed places, so that two parts are
compared without parsing what is equal. Nothing here touches a disk: a Spark stage calls the same
functions.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import orjson
from pydantic import JsonValue

from lumos.core.errors import InvalidModelError
from lumos.core.models import LumosDataset
from lumos.core.models.base import canonical_json
from lumos.core.store.snapshots.part_frames import (
    differing_frames,
    frames_of,
    packed_lines,
    unpacked_frames,
)
from lumos.core.strict_json import LARGEST_ITEM_BYTES, parsed_unique

PART_BYTES = 4 * 1024 * 1024
"""The plain size that a part aims at; larger parts made a diff slower than linear."""

LARGEST_PART_BYTES = 128 * 1024 * 1024
"""The largest plain size of a part; the largest line is `LARGEST_ITEM_BYTES`."""
MOST_LINES = 1_000_000
"""How many lines a part may have."""
LARGEST_RATIO = 1_000
"""How many times its packed size a part of more than `RATIO_FLOOR_BYTES` may unpack to."""
RATIO_FLOOR_BYTES = 16 * 1024 * 1024
MAX_BUCKETS = 65_536
_SHORTEST_STRIDE, _LONGEST_STRIDE = 1 << 12, 1 << 16  # longer ones cost fresh memory each time
_HASH_LENGTH = 64
_URN_START = len(b'{"urn":"')
_BEFORE_HASH = b'","contract_hash":"'
_BEFORE_DATASET = b'","dataset":'
_URN_TO_HASH = len(_BEFORE_HASH)
_HASH_END = _URN_TO_HASH + _HASH_LENGTH
_URN_TO_DATASET = _HASH_END + len(_BEFORE_DATASET)
_LONGEST_NAME = 120
_PART_NAME = re.compile(r"[a-z_]+-[0-9]{5}-[0-9a-f]{16}\.jsonl\.zst\Z")
_Item = Mapping[str, JsonValue]


def _key_of_edge(item: _Item) -> str:
    return "\n".join(
        str(item.get(name) or "") for name in ("upstream_urn", "downstream_urn", "job_urn")
    )


def _key_of(name: str) -> Callable[[_Item], str]:
    return lambda item: str(item.get(name) or "")


KEY_OF: dict[str, Callable[[_Item], str]] = {
    "datasets": _key_of("urn"),
    "jobs": _key_of("urn"),
    "lineage_edges": _key_of_edge,
    "glossary": _key_of("name"),
    "tags": _key_of("name"),
    "domains": _key_of("name"),
    "users": _key_of("username"),
    "groups": _key_of("name"),
    "identity_map": _key_of("urn"),
    "extensions": _key_of("name"),
}
"""The sections of a snapshot in the order of its document, and what identifies an item of each."""

SECTIONS = tuple(KEY_OF)


@dataclass(frozen=True, slots=True)
class EncodedPart:
    """A part as it is stored, and the facts that the manifest keeps of it."""

    content: bytes
    count: int
    plain_bytes: int
    sha256: str


def bucket_of(key: bytes, buckets: int) -> int:
    """Return the bucket of a key; `buckets` is a power of two."""
    return zlib.crc32(key) & (buckets - 1)


def bucket_count(plain_bytes: int, *, part_bytes: int = PART_BYTES) -> int:
    """Return the power of two that brings parts nearest to the size aimed at."""
    buckets = 1
    while buckets < MAX_BUCKETS and plain_bytes > buckets * part_bytes * 3 // 2:
        buckets *= 2
    return buckets


def part_name(section: str, bucket: int, *, sha256: str) -> str:
    return f"{section}-{bucket:05d}-{sha256[:16]}.jsonl.zst"


def is_part_name(name: str) -> bool:
    """Return whether a name can be a part's: plain characters only, never a path."""
    return _PART_NAME.match(name) is not None


def dataset_line(dataset: LumosDataset) -> bytes:
    """Return the dataset's line; equal datasets have equal lines."""
    return b'{"urn":"%b","contract_hash":"%b","dataset":%b}' % (
        dataset.urn.encode(),
        dataset.contract_hash.encode(),
        canonical_json(dataset.to_json()),
    )


def urn_of_line(line: bytes) -> bytes:
    return line[_URN_START : _urn_end(line)]


def hash_of(line: bytes) -> bytes:
    start = _urn_end(line) + _URN_TO_HASH
    return line[start : start + _HASH_LENGTH]


def dataset_json_of(line: bytes) -> bytes:
    """Slice the dataset's own JSON out of its line.

    Raises:
        InvalidModelError: the line is not laid out as a dataset's.
    """
    end = _urn_end(line)
    start = end + _URN_TO_DATASET
    before_hash, before_dataset = line[end : end + _URN_TO_HASH], line[end + _HASH_END : start]
    if before_hash != _BEFORE_HASH or before_dataset != _BEFORE_DATASET or line[-1:] != b"}":
        raise InvalidModelError("a line of the snapshot is not laid out as a dataset's")
    return line[start:-1]


def dataset_of_line(line: bytes) -> LumosDataset:
    """Parse the dataset of a line.

    Raises:
        InvalidModelError: the line holds no valid dataset.
    """
    return LumosDataset.from_json(dataset_item_of(line))


def dataset_item_of(line: bytes) -> dict[str, JsonValue]:
    """Parse the dataset's own JSON of a line.

    Raises:
        InvalidModelError: it is not a JSON object, or has a key twice; the URN is named.
    """
    try:
        return item_of(dataset_json_of(line))
    except InvalidModelError as error:
        urn = urn_of_line(line).decode("utf-8", "replace")
        raise InvalidModelError(f"{urn[:_LONGEST_NAME]}: {error.message}") from None


def item_line(item: _Item) -> bytes:
    """Return the line of an item of any other section."""
    return canonical_json(item)


def item_of(line: bytes) -> dict[str, JsonValue]:
    """Parse a line, or the dataset's part of one.

    Raises:
        InvalidModelError: it is not a JSON object, or has a key twice.
    """
    try:
        item = parsed_unique(line)
    except orjson.JSONDecodeError:
        item = None
    except ValueError as error:
        raise InvalidModelError(f"a line of the snapshot cannot be read: {error}") from None
    if not isinstance(item, dict):
        raise InvalidModelError("a line of the snapshot is not a JSON object")
    return item


def _urn_end(line: bytes) -> int:
    try:
        return line.index(b'"', _URN_START)
    except ValueError:
        raise InvalidModelError("a line of the snapshot does not begin with a URN") from None


def key_of_line(section: str, line: bytes) -> bytes:
    """Return what a line is bucketed and sorted by."""
    return urn_of_line(line) if section == "datasets" else KEY_OF[section](item_of(line)).encode()


def split_bucket(lines: Iterable[bytes], section: str, *, buckets: int) -> dict[int, list[bytes]]:
    """Spread the lines of one bucket over a larger number of buckets, keeping their order."""
    spread: dict[int, list[bytes]] = {}
    for line in lines:
        bucket = bucket_of(key_of_line(section, line), buckets)
        spread.setdefault(bucket, []).append(line)
    return spread


def encode_part(lines: Iterable[bytes]) -> EncodedPart:
    """Compress sorted lines into a part; the same lines always give the same bytes.

    Raises:
        InvalidModelError: they are larger than a part may be.
    """
    listed = list(lines)
    _refuse_excess(listed)
    content = packed_lines(listed)
    return EncodedPart(
        content=content,
        count=len(listed),
        plain_bytes=sum(map(len, listed)) + len(listed),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def _refuse_excess(lines: list[bytes]) -> None:
    """Write nothing that would be refused when it is read."""
    longest = max(lines, key=len, default=b"")
    if len(longest) > LARGEST_ITEM_BYTES:
        raise InvalidModelError(
            f"an item of {len(longest):,} bytes is larger than a snapshot takes, "
            f"{LARGEST_ITEM_BYTES:,}; it begins {longest[:_LONGEST_NAME]!r}"
        )
    if sum(map(len, lines)) + len(lines) > LARGEST_PART_BYTES or len(lines) > MOST_LINES:
        raise InvalidModelError(
            f"items of more than {LARGEST_PART_BYTES:,} bytes or {MOST_LINES:,} lines would lie "
            "in one part of the snapshot"
        )


def unpacked_part(content: bytes, plain_bytes: int) -> bytes:
    """Return the plain text of a part whose checksum was verified: lines, each with its end.

    Raises:
        ValueError: the content does not unpack to `plain_bytes` bytes of whole lines.
    """
    return _whole_lines(unpacked_frames(frames_of(content, plain_bytes)))


def _whole_lines(plain: bytes) -> bytes:
    if plain and not plain.endswith(b"\n"):
        raise ValueError("the last line of the part has no end")
    return plain


def differing_plain(old: tuple[bytes, int], new: tuple[bytes, int]) -> tuple[bytes, bytes]:
    """Return the plain text of two parts without frames that are the same on both sides.

    Each part is its packed content, whose checksum was verified, and the size of its plain text.

    Raises:
        ValueError: a content does not unpack to whole lines of that size.
    """
    left, right = differing_frames(frames_of(*old), frames_of(*new))
    return _whole_lines(unpacked_frames(left)), _whole_lines(unpacked_frames(right))


def lines_of(plain: bytes) -> list[bytes]:
    """Return the lines of plain text, without their ends."""
    lines = plain.split(b"\n")
    lines.pop()  # what follows the last line's end
    return lines


def plain_of(lines: Iterable[bytes]) -> bytes:
    """Return lines as plain text."""
    return b"".join(line + b"\n" for line in lines)


def differing_lines(
    old: bytes, new: bytes, *, observations: bool = False
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Yield the pairs of dataset lines that differ in URN or hash, in ascending order of URN.

    Both are the plain text of lines sorted by URN. What is equal is skipped in long strides,
    neither split into lines nor parsed; lines with equal hashes are skipped unparsed, unless
    `observations`, which the hash is not of, are looked for.
    """
    here = there = 0
    stride = _SHORTEST_STRIDE
    while here < len(old) and there < len(new):
        stretch = old[here : here + stride]
        if new.startswith(stretch, there):
            here, there = here + len(stretch), there + len(stretch)
            stride = min(stride * 4, _LONGEST_STRIDE)
            continue
        if stride > _SHORTEST_STRIDE:
            stride //= 4
            continue
        # The strides behind were equal, so both stand at the same place of equal lines.
        back = here - (old.rfind(b"\n", 0, here) + 1)
        here, there = here - back, there - back
        end, other_end = old.index(b"\n", here), new.index(b"\n", there)
        line, other = old[here:end], new[there:other_end]
        urn, other_urn = urn_of_line(line), urn_of_line(other)
        if urn == other_urn and line != other:
            if observations or hash_of(line) != hash_of(other):
                yield line, other
        elif urn < other_urn:
            yield line, None
        elif urn > other_urn:
            yield None, other
        if urn <= other_urn:
            here = end + 1
        if urn >= other_urn:
            there = other_end + 1
    for line in lines_of(old[here:]):
        yield line, None
    for other in lines_of(new[there:]):
        yield None, other
