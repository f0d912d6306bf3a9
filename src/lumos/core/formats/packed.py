"""Unpacks the beginning of a compressed file, never more of it than a limit.

However much a few bytes claim to hold, no more than the sample comes out of them, and no more
than a few megabytes go in.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from typing_extensions import override

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.packed_blocks import (
    SNAPPY_MAGIC,
    BlocksError,
    framed_snappy,
    hadoop_blocks,
    is_in_hadoop_blocks,
)
from lumos.core.formats.sample import SAMPLE_BYTES, ByteSource, Sample

PACKED_BYTES: Final = 8 * 1024 * 1024
"""How much of a packed file is read at most, however little comes out of it."""

CODECS: Final = {
    "gzip": "gzip",
    "bzip2": "bzip2",
    "zstd": "Zstandard",
    "lz4": "LZ4",
    "xz": "xz",
    "snappy": "Snappy",
    "deflate": "deflate",
}
"""How a file may be packed, and how people spell it."""

SUFFIXES: Final = {
    "gz": "gzip",
    "gzip": "gzip",
    "bz2": "bzip2",
    "bzip2": "bzip2",
    "zst": "zstd",
    "zstd": "zstd",
    "lz4": "lz4",
    "xz": "xz",
    "lzma": "xz",
    "snappy": "snappy",
    "sz": "snappy",
    "deflate": "deflate",
}
"""What the end of a name says about how a file is packed."""

GZIP_MAGIC: Final = b"\x1f\x8b"
_MAGIC: Final = (
    (GZIP_MAGIC, "gzip"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x5d\x00\x00", "xz"),
    (SNAPPY_MAGIC, "snappy"),
)
_SKIPPABLE_LAST: Final = b"\x2a\x4d\x18"
_SKIPPABLE_FIRST: Final = range(0x50, 0x60)
_BZIP2_BLOCKS: Final = (b"1AY&SY", b"\x17rE8P\x90")
_CHUNK_BYTES = 64 * 1024
_PIECE_BYTES = 4 * 1024
_ANY_GZIP, _ANY_ZLIB = 31, 15
_LARGEST_DICTIONARY = 256 * 1024 * 1024
_MOST_DRAINED = 16
_LENGTH_OF_BZIP2_START = 10
_ZLIB_HEADERS: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


class _DamagedError(Exception):
    """The packed bytes are not what the format allows."""


class _CutOffError(Exception):
    """The packed bytes end too early."""


class _Unpacker(Protocol):
    """What the unpackers of the standard library share."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def codec_of(head: bytes, promised: str | None) -> str | None:
    """Return how a file is packed, by its first bytes, or by its name where they are unknown.

    Args:
        head: the first bytes of the file.
        promised: how it is packed by its name.
    """
    for magic, codec in _MAGIC:
        if head.startswith(magic) and (codec != "bzip2" or _is_bzip2(head)):
            return codec
    if head[1:4] == _SKIPPABLE_LAST and head[0] in _SKIPPABLE_FIRST:
        return "lz4" if promised == "lz4" else "zstd"
    if promised == "deflate" and head.startswith(_ZLIB_HEADERS):
        return promised
    if promised in ("snappy", "lz4") and is_in_hadoop_blocks(head, promised):
        return promised
    return None


def packed_sample(
    source: ByteSource, codec: str, *, size: int, limit: int = SAMPLE_BYTES
) -> Sample:
    """Return the first bytes inside a packed file, of one member or many.

    Raises:
        UnreadableItemError: it is damaged before anything came out of it.
    """
    counted = _Counted(source)
    unpacked = bytearray()
    problem = None
    whole = False
    parts = _PARTS[codec](counted, limit)
    try:
        for part in parts:
            unpacked += part
            if len(unpacked) >= limit:
                break
        else:
            whole = not counted.is_exhausted
    except _DamagedError:
        problem = "damaged"
    except _CutOffError:
        problem = None if counted.is_exhausted else "cut off"
    content = bytes(unpacked[:limit])
    share = counted.taken * len(content) / _all_that_came(parts, counted, unpacked, limit) / size
    if problem is None:
        return Sample(content, whole, min(1.0, share))
    spelled = f"its {CODECS[codec]} data is {problem}"
    if not content:
        raise UnreadableItemError(spelled)
    warning = f"{spelled}; only what comes before was read"
    return Sample(content, False, min(1.0, share), (warning,))


def _all_that_came(
    parts: Iterator[bytes], counted: _Counted, unpacked: bytearray, limit: int
) -> int:
    """Count what the bytes taken so far hold, which may be more than the sample; within limits."""
    came, taken = len(unpacked), counted.taken
    if came < limit:
        return max(1, came)
    try:
        for part in parts:
            if counted.taken != taken or came > _MOST_DRAINED * limit:
                break
            came += len(part)
    except (_DamagedError, _CutOffError):
        return came
    counted.taken = taken
    return came


class _Counted(ByteSource):
    """A file of which only so much is read, in small pieces that are counted."""

    closed = False

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._waiting = b""
        self._position = 0
        self.taken = 0
        self.failure: OSError | None = None

    @property
    def is_exhausted(self) -> bool:
        """Whether more may follow than may be read."""
        return self.taken >= PACKED_BYTES

    @override
    def read(self, size: int = -1, /) -> bytes:
        most = min(_PIECE_BYTES if size < 0 else size, PACKED_BYTES - self.taken)
        if self._position == len(self._waiting):
            try:
                self._waiting = self._source.read(_CHUNK_BYTES)
            except OSError as error:
                self.failure = error
                raise
            self._position = 0
        part = self._waiting[self._position : self._position + most]
        self._position += len(part)
        self.taken += len(part)
        return part

    def unread(self, length: int) -> None:
        """Take back the last bytes of what was read last."""
        self._position -= length
        self.taken -= length

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Do nothing: the file belongs to somebody else."""


class _Zlib:
    """An unpacker of zlib that keeps what it has not unpacked yet, as the others do."""

    def __init__(self, window: int) -> None:
        self._unpacker = zlib.decompressobj(window)

    @property
    def eof(self) -> bool:
        return self._unpacker.eof

    @property
    def unused_data(self) -> bytes:
        return self._unpacker.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._unpacker.decompress(self._unpacker.unconsumed_tail + data, max_length)


def _members(
    make: Callable[[], _Unpacker], starts: tuple[bytes, ...]
) -> Callable[[_Counted, int], Iterator[bytes]]:
    """Unpack one member after the other; what follows and begins like none is padding."""

    def parts(source: _Counted, limit: int) -> Iterator[bytes]:
        unpacker = make()
        while True:
            packed = source.read(_PIECE_BYTES)
            if not packed and not unpacker.eof:
                raise _CutOffError
            while True:
                try:
                    part = unpacker.decompress(packed, limit)
                except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error):
                    raise _DamagedError from None
                packed = b""
                if part:
                    yield part
                if unpacker.eof or not part:
                    break
            if unpacker.eof:
                source.unread(len(unpacker.unused_data))
                following = source.read(_PIECE_BYTES).lstrip(b"\x00")
                if not any(following.startswith(start[: len(following)]) for start in starts):
                    return
                if not following:
                    return
                source.unread(len(following))
                unpacker = make()

    return parts


def _arrow_stream(codec: str) -> Callable[[_Counted, int], Iterator[bytes]]:
    """Unpack with the codecs of Arrow, which go on from frame to frame."""

    def parts(source: _Counted, limit: int) -> Iterator[bytes]:
        import pyarrow as pa

        try:
            stream = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), codec)
            while part := stream.read(min(limit, _CHUNK_BYTES)):
                yield part
        except (OSError, pa.ArrowException) as error:
            if source.failure is not None:
                raise source.failure from None
            if "Truncated" in str(error):
                raise _CutOffError from None
            raise _DamagedError from None

    return parts


def _blocks(codec: str) -> Callable[[_Counted, int], Iterator[bytes]]:
    """Unpack blocks: framed, or else as Hadoop and Spark write them."""

    def parts(source: _Counted, limit: int) -> Iterator[bytes]:
        start = source.read(len(SNAPPY_MAGIC))
        source.unread(len(start))
        if codec == "lz4" and not is_in_hadoop_blocks(start, codec, partly=True):
            yield from _arrow_stream(codec)(source, limit)
            return
        unpack = framed_snappy if start == SNAPPY_MAGIC else hadoop_blocks
        try:
            yield from unpack(source, codec)
        except EOFError:
            raise _CutOffError from None
        except BlocksError:
            raise _DamagedError from None

    return parts


def _is_bzip2(head: bytes) -> bool:
    return len(head) < _LENGTH_OF_BZIP2_START or head[4:10] in _BZIP2_BLOCKS


_XZ_STARTS: Final = (b"\xfd7zXZ\x00", b"\x5d\x00\x00")
_PARTS: Final[dict[str, Callable[[_Counted, int], Iterator[bytes]]]] = {
    "gzip": _members(lambda: _Zlib(_ANY_GZIP), (GZIP_MAGIC,)),
    "deflate": _members(lambda: _Zlib(_ANY_ZLIB), ()),
    "bzip2": _members(bz2.BZ2Decompressor, (b"BZh",)),
    "xz": _members(lambda: lzma.LZMADecompressor(memlimit=_LARGEST_DICTIONARY), _XZ_STARTS),
    "zstd": _arrow_stream("zstd"),
    "lz4": _blocks("lz4"),
    "snappy": _blocks("snappy"),
}
