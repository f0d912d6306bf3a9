"""Names what a file without a readable table is, by its first bytes and its name."""

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
    (b"FEA1", "a Feather file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x04\x22\x4d\x18", "an LZ4 archive"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"CDF\x01", "a NetCDF file"),
    (b"CDF\x02", "a NetCDF file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"%PDF-", "a PDF document"),
    (b"{\\rtf", "an RTF document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted Office document"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
    (b"ID3", "a sound file"),
    (b"OggS", "a sound file"),
    (b"fLaC", "a sound file"),
    (b"\x7fELF", "a program"),
    (b"\xca\xfe\xba\xbe", "a Java class"),
    (b"\x00asm", "a program"),
    (b"SEQ\x06", "a Hadoop sequence file"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
)
_AT_A_PLACE: Final = (
    (0, b"RIFF", 8, b"WEBP", "a WebP picture"),
    (0, b"RIFF", 8, b"WAVE", "a sound file"),
    (4, b"ftyp", 0, b"", "a film"),
    (257, b"ustar", 0, b"", "a tar archive"),
)
_BYTES_FOR_PLACES: Final = 512
_PLAIN_TEXT, _JSON = "text, such as CSV", "JSON"
_TEXTS: Final = {b"{": _JSON, b"[": _JSON, b"<": "XML or HTML"}
READABLE_TEXTS: Final = (_PLAIN_TEXT, _JSON)
"""Names of what can be read, as long as all of it is text."""

_TEXTS_BY_NAME: Final = {
    "md": "a Markdown document",
    "markdown": "a Markdown document",
    "log": "a log",
    "proto": "a Protocol Buffers schema",
    "thrift": "a Thrift schema",
    "avsc": "an Avro schema",
    "xsd": "an XML schema",
}
_BYTES_BY_NAME: Final = {
    "pb": "a Protocol Buffers message",
    "protobuf": "a Protocol Buffers message",
    "thrift": "a Thrift message",
    "pkl": "a Python pickle",
    "pickle": "a Python pickle",
    "joblib": "a Python pickle",
}
_HTML_STARTS: Final = ("<!doctype html", "<html")


def looks_like(head: bytes) -> str | None:
    """Name what the first bytes of a file look like; None when they are unknown."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if not head.strip(b"\x00"):
        return "zero bytes" if head else None
    if _is_text(head):
        return _TEXTS.get(head.lstrip()[:1], _PLAIN_TEXT)
    return None


def kind_of_bytes(content: bytes, suffix: str) -> str | None:
    """Name what bytes are that no reader reads; None where they and the name are unknown.

    Args:
        content: the first bytes of a file.
        suffix: the end of its name, with its point.
    """
    for magic, name in _MAGIC:
        if content.startswith(magic):
            return name
    for at, mark, also_at, also, name in _AT_A_PLACE:
        if content.startswith(mark, at) and content.startswith(also, also_at):
            return name
    return _BYTES_BY_NAME.get(suffix.rpartition(".")[2])


def kind_of_text(text: str, suffix: str) -> str:
    """Name what a text is that holds no table, such as `a Markdown document`."""
    by_name = _TEXTS_BY_NAME.get(suffix.rpartition(".")[2])
    if by_name is not None:
        return by_name
    begin = text[:_BYTES_FOR_PLACES].lstrip().lower()
    if begin.startswith("%pdf-"):
        return "a PDF document"
    if begin.startswith("<?xml"):
        return "an HTML page" if "<html" in begin else "an XML document"
    if begin.startswith(_HTML_STARTS):
        return "an HTML page"
    if begin.startswith("<") and text.rstrip().endswith(">"):
        return "an XML document"
    return "a text document"


def _is_text(head: bytes) -> bool:
    if any(byte < _FIRST_PRINTABLE and byte not in b"\t\r\n" for byte in head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"  # the cut fell inside a character
    return True
