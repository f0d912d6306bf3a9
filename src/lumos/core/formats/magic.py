"""Tells from its first bytes what a file really is, whatever its name says."""

from __future__ import annotations

from typing import Final

HEAD_BYTES: Final = 64
_FIRST_PRINTABLE = 0x20

_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"PAR1", "Parquet"),
    (b"PARE", "encrypted Parquet"),
    (b"Obj\x01", "Avro"),
    (b"ORC", "ORC"),
    (b"ARROW1", "an Arrow file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"BZh", "a bzip2 archive"),
    (b"PK\x03\x04", "a zip archive"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"%PDF-", "a PDF document"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"\x7fELF", "a program"),
)
_PLAIN_TEXT, _JSON = "text, such as CSV", "JSON"
_TEXTS: Final = {b"{": _JSON, b"[": _JSON, b"<": "XML or HTML"}
READABLE_TEXTS: Final = (_PLAIN_TEXT, _JSON)
"""Names of what can be read, as long as all of it is text."""


def looks_like(head: bytes) -> str | None:
    """Name what the first bytes of a file look like; None when they tell nothing."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if not head.strip(b"\x00"):
        return "zero bytes" if head else None
    if _is_text(head):
        return _TEXTS.get(head.lstrip()[:1], _PLAIN_TEXT)
    return None


def _is_text(head: bytes) -> bool:
    if any(byte < _FIRST_PRINTABLE and byte not in b"\t\r\n" for byte in head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"  # the cut fell inside a character
    return True
