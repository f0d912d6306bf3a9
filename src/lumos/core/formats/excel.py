"""Reads the sheets of an Excel workbook: their columns and likely types, from the first rows.

A workbook is a zip archive of XML. Only the beginning of each sheet is unpacked, so that neither
a sheet of a million rows nor an archive that claims to be endless costs more than a small one.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from typing import BinaryIO, Final
from xml.parsers.expat import ExpatError

from lumos.core.errors import NotTabularError, UnreadableItemError
from lumos.core.formats.csv_dialect import usual_width
from lumos.core.formats.csv_header import first_row_is_header
from lumos.core.formats.csv_values import widened
from lumos.core.formats.excel_xml import (
    Cell,
    Sheet,
    SheetRows,
    Workbook,
    read_rows,
    read_shared_strings,
    read_styles,
    read_workbook,
)
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.file_names import EXCEL
from lumos.core.formats.known_schemas import KnownSchema, KnownSchemas
from lumos.core.formats.names import unique_names
from lumos.core.models import Field, Schema, TypeName

FORMAT: Final = EXCEL
_MAGIC: Final = b"PK\x03\x04"

MAX_SHEETS: Final = 64
_MOST_MEMBERS = 10_000
_LINES_BEFORE_HEADER = 20
_OFFICE: Final = "[Content_Types].xml"
_FIRST_MEMBERS: Final = (_OFFICE.encode(), b"_rels/", b"docProps/", b"xl/")
_NAME_AT = 30
_SCHEMAS: Final = KnownSchemas()
_NATIVE: Final = {
    TypeName.BOOLEAN: "boolean",
    TypeName.DATE: "date",
    TypeName.DOUBLE: "number",
    TypeName.INT64: "number",
    TypeName.STRING: "text",
    TypeName.TIME: "time",
    TypeName.TIMESTAMP_NTZ: "date and time",
    TypeName.UNKNOWN: "empty",
}


def is_workbook(head: bytes) -> bool:
    """Return whether a file begins as an archive of an Office document does."""
    return head.startswith(_MAGIC) and head.startswith(_FIRST_MEMBERS, _NAME_AT)


def read_excel(stream: BinaryIO, *, size: int) -> FileFacts:
    """Return the facts of an open workbook.

    One sheet with rows makes the facts of the file; of several, each is a separate member and
    the file has the facts of the first.

    Raises:
        NotTabularError: it is an archive of another kind.
        UnreadableItemError: it is damaged, or has no rows.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            return _facts(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, ExpatError) as error:
        raise UnreadableItemError("its archive is damaged or cut off") from error
    except (NotImplementedError, RuntimeError) as error:
        raise UnreadableItemError("its archive is encrypted or packed in an unknown way") from error
    except (KeyError, ValueError, IndexError, TypeError, OverflowError) as error:
        raise UnreadableItemError("its workbook is damaged") from error


def _facts(archive: zipfile.ZipFile) -> FileFacts:
    names = archive.NameToInfo
    if len(names) > _MOST_MEMBERS:
        raise UnreadableItemError(f"its archive has more than {_MOST_MEMBERS:,} members")
    workbook = read_workbook(archive)
    if workbook is None:
        kind = "an Office document" if _OFFICE in names else "a zip archive"
        raise NotTabularError(kind)
    styles = read_styles(archive)
    warnings = []
    sheets = []
    for sheet in workbook.sheets[:MAX_SHEETS]:
        if sheet.path not in names:
            continue
        rows = read_rows(archive, sheet, styles)
        if rows.cells:
            sheets.append((sheet, rows))
    if len(workbook.sheets) > MAX_SHEETS:
        warnings.append(
            f"only the first {MAX_SHEETS} of its {len(workbook.sheets)} sheets are read"
        )
    if not sheets:
        raise UnreadableItemError("it has no rows")
    strings = _strings(archive, workbook, [rows for _, rows in sheets])
    members = tuple(_sheet_facts(sheet, rows, strings) for sheet, rows in sheets)
    return _of_file(members, tuple(warnings))


def _of_file(members: tuple[FileFacts, ...], warnings: tuple[str, ...]) -> FileFacts:
    first = members[0]
    return FileFacts(
        format=FORMAT,
        schema=first.schema,
        rows=first.rows,
        rows_estimate=first.rows_estimate,
        warnings=(*warnings, *first.warnings),
        properties=first.properties,
        known=first.known,
        members=members if len(members) > 1 else (),
    )


def _strings(
    archive: zipfile.ZipFile, workbook: Workbook, sheets: Sequence[SheetRows]
) -> Sequence[str]:
    wanted = max((rows.largest_string for rows in sheets), default=-1)
    return read_shared_strings(archive, workbook, wanted + 1)


def _sheet_facts(sheet: Sheet, read: SheetRows, strings: Sequence[str]) -> FileFacts:
    texts = [[_text(cell, strings) for cell in row] for row in read.cells]
    kinds = [[cell.kind if cell else None for cell in row] for row in read.cells]
    width, _ = usual_width(texts)
    titles = 0
    while width > 1 and titles < min(len(texts) - 1, _LINES_BEFORE_HEADER):
        if sum(map(bool, texts[titles])) > 1:
            break
        titles += 1
    texts, kinds = texts[titles:], kinds[titles:]
    warnings = [f"{titles} line{'s'[: titles != 1]} before its columns left out"] if titles else []
    width = max(map(len, texts))
    below = _types(kinds[1:], width)
    has_header = first_row_is_header(texts, below)
    names = None
    if has_header:
        names = tuple(" ".join(cell.split()) for cell in texts[0])
        names += ("",) * (width - len(names))
    types = tuple(below if has_header else _types(kinds, width))
    known = _SCHEMAS.get((names, types), lambda: _schema(names, types))
    seen = len(texts) - has_header
    total = seen if read.whole else max(seen, read.last_row - titles - has_header)
    return FileFacts(
        format=FORMAT,
        schema=known.schema,
        rows=seen if read.whole else None,
        rows_estimate=total,
        warnings=(*warnings, *known.warnings),
        properties={"sheet": sheet.name, "header": "true" if has_header else "false"},
        known=known,
        name=sheet.name,
    )


def _text(cell: Cell | None, strings: Sequence[str]) -> str:
    if cell is None:
        return ""
    if cell.string is None:
        return cell.text
    return strings[cell.string] if cell.string < len(strings) else ""


def _types(kinds: Sequence[Sequence[TypeName | None]], width: int) -> list[TypeName]:
    types = [TypeName.UNKNOWN] * width
    for row in kinds:
        for position, kind in enumerate(row):
            if kind is not None:
                types[position] = widened(types[position], kind)
    return types


def _schema(names: tuple[str, ...] | None, types: tuple[TypeName, ...]) -> KnownSchema:
    warnings: list[str] = []
    if names is None:
        sources = unique = [f"column_{i}" for i in range(1, len(types) + 1)]
    else:
        sources = list(names)
        unique, warnings = unique_names(sources)
    fields = tuple(
        Field(
            name=name,
            type=kind,
            native_type=_NATIVE[kind],
            properties={} if name == source else {"source_name": source},
        )
        for name, source, kind in zip(unique, sources, types, strict=True)
    )
    return KnownSchema.of(Schema(fields=fields, positional=names is None), tuple(warnings))
