"""Packs bytes in every way that files in a lake are packed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable

import pyarrow as pa
import zstandard

_HADOOP_BLOCK = 256 * 1024
_SNAPPY_FRAME = 64 * 1024


def lz4_frames(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as packer:
        packer.write(content)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def framed_snappy(content: bytes) -> bytes:
    """Write the framing format of Snappy; its checksums are nothing that a reader needs."""
    packed = b"\xff\x06\x00\x00sNaPpY"
    for start in range(0, len(content), _SNAPPY_FRAME):
        block = bytes(4) + _block(content[start : start + _SNAPPY_FRAME], "snappy")
        packed += b"\x00" + len(block).to_bytes(3, "little") + block
    return packed


def hadoop_blocks(content: bytes, codec: str) -> bytes:
    """Write blocks as the codecs of Hadoop do, which Spark uses for text."""
    packed = b""
    for start in range(0, len(content), _HADOOP_BLOCK):
        plain = content[start : start + _HADOOP_BLOCK]
        block = _block(plain, codec)
        packed += struct.pack(">II", len(plain), len(block)) + block
    return packed


def _block(content: bytes, codec: str) -> bytes:
    packed: bytes = pa.Codec(codec).compress(content, asbytes=True)
    return packed


PACKERS: dict[str, tuple[str, str, Callable[[bytes], bytes]]] = {
    "gzip": ("gz", "gzip", gzip.compress),
    "bzip2": ("bz2", "bzip2", lambda content: bz2.compress(content, 1)),
    "xz": ("xz", "xz", lzma.compress),
    "lzma": ("lzma", "xz", lambda content: lzma.compress(content, lzma.FORMAT_ALONE)),
    "zstd": ("zst", "zstd", zstandard.compress),
    "lz4": ("lz4", "lz4", lz4_frames),
    "lz4 of Hadoop": ("lz4", "lz4", lambda content: hadoop_blocks(content, "lz4_raw")),
    "snappy": ("sz", "snappy", framed_snappy),
    "snappy of Hadoop": ("snappy", "snappy", lambda content: hadoop_blocks(content, "snappy")),
    "deflate": ("deflate", "deflate", zlib.compress),
}
"""The suffix, the codec as facts name it, and what packs."""
