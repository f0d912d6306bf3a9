"""The parts of an Excel workbook, each read from its XML only as far as it is needed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple
from xml.parsers import expat

from lumos.core.errors import UnreadableItemError
from lumos.core.models import TypeName

if TYPE_CHECKING:
    import zipfile

MAX_ROWS: Final = 200
"""How many rows of a sheet decide on its types."""
_MAX_COLUMNS: Final = 16_384
"""As many as Excel allows."""
PART_BYTES: Final = 4 * 1024 * 1024
"""How much of one part is unpacked at most."""

_CHUNK_BYTES = 64 * 1024
_LONGEST_TEXT = 1_000
_LAST_ROW: Final = re.compile(r"(?:[A-Z]+[0-9]+:)?[A-Z]+([0-9]+)")
_INTEGER: Final = re.compile(r"-?[0-9]{1,15}")
_QUOTED: Final = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')
_BUILT_IN: Final = {
    **dict.fromkeys((14, 15, 16, 17, *range(27, 37), *range(50, 59)), TypeName.DATE),
    **dict.fromkeys((18, 19, 20, 21, 45, 46, 47), TypeName.TIME),
    22: TypeName.TIMESTAMP_NTZ,
}
_LETTERS = 26


class Cell(NamedTuple):
    """A value of a sheet: its kind, and its text or the number of a shared string."""

    kind: TypeName
    text: str = ""
    string: int | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet, and which part of the archive holds it."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Workbook:
    """What a workbook says of itself."""

    sheets: tuple[Sheet, ...]
    strings_path: str


@dataclass(slots=True)
class SheetRows:
    """The first rows of a sheet that hold something."""

    cells: list[list[Cell | None]] = field(default_factory=list)
    whole: bool = False
    last_row: int = 0
    """The number of the last row, where the sheet states it."""
    largest_string: int = -1


class _EnoughError(Exception):
    """The rest of a part need not be read."""


def read_workbook(archive: zipfile.ZipFile) -> Workbook | None:
    """Return the sheets of a workbook in their order, or None where it is none.

    Raises:
        UnreadableItemError: its XML is not what a workbook may hold.
    """
    targets: dict[str, str] = {}
    strings_path = "xl/sharedStrings.xml"

    def relation(name: str, attributes: dict[str, str]) -> None:
        nonlocal strings_path
        if name != "Relationship":
            return
        target = _resolved(attributes["Target"])
        if attributes.get("Type", "").endswith("/worksheet"):
            targets[attributes["Id"]] = target
        elif attributes.get("Type", "").endswith("/sharedStrings"):
            strings_path = target

    sheets: list[Sheet] = []

    def sheet(name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            identifier = next((v for k, v in attributes.items() if _local(k) == "id"), "")
            if identifier in targets:
                sheets.append(Sheet(attributes["name"], targets[identifier]))

    if "xl/workbook.xml" not in archive.NameToInfo:
        return None
    _walk(archive, "xl/_rels/workbook.xml.rels", start=relation)
    _walk(archive, "xl/workbook.xml", start=sheet)
    return Workbook(tuple(sheets), strings_path)


def read_styles(archive: zipfile.ZipFile) -> Sequence[TypeName | None]:
    """Return for each style of cells the type that its number format makes of a number."""
    formats: dict[int, TypeName | None] = dict(_BUILT_IN)
    styles: list[TypeName | None] = []
    inside: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "numFmt":
            formats[int(attributes["numFmtId"])] = _type_of_format(attributes["formatCode"])
        elif name == "xf" and inside[-1:] == ["cellXfs"]:
            styles.append(formats.get(int(attributes.get("numFmtId", "0"))))
        inside.append(name)

    def end(name: str) -> None:
        inside.pop()

    if "xl/styles.xml" in archive.NameToInfo:
        _walk(archive, "xl/styles.xml", start=start, end=end)
    return styles


def read_rows(
    archive: zipfile.ZipFile, sheet: Sheet, styles: Sequence[TypeName | None]
) -> SheetRows:
    """Return the first rows of a sheet."""
    handler = _SheetHandler(styles)
    whole = _walk(
        archive, sheet.path, start=handler.start, end=handler.end, text=handler.characters
    )
    handler.rows.whole = whole
    return handler.rows


def read_shared_strings(archive: zipfile.ZipFile, workbook: Workbook, wanted: int) -> Sequence[str]:
    """Return the first shared strings, as many as are wanted and within reach."""
    strings: list[str] = []
    parts: list[str] = []
    is_text = is_reading_aid = False

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal is_text, is_reading_aid
        if name == "si":
            parts.clear()
        elif name == "rPh":
            is_reading_aid = True
        is_text = name == "t" and not is_reading_aid

    def text(content: str) -> None:
        if is_text:
            parts.append(content)

    def end(name: str) -> None:
        nonlocal is_text, is_reading_aid
        is_text = False
        if name == "rPh":
            is_reading_aid = False
        elif name == "si":
            strings.append("".join(parts)[:_LONGEST_TEXT])
            if len(strings) >= wanted:
                raise _EnoughError

    if wanted > 0 and workbook.strings_path in archive.NameToInfo:
        _walk(archive, workbook.strings_path, start=start, end=end, text=text)
    return strings


class _SheetHandler:
    """Collects the rows of a sheet while its XML goes by."""

    def __init__(self, styles: Sequence[TypeName | None]) -> None:
        self.rows = SheetRows()
        self._styles = styles
        self._row: list[Cell | None] = []
        self._number = 0
        self._column = -1
        self._kind = "n"
        self._style: TypeName | None = None
        self._parts: list[str] = []
        self._is_value = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c":
            self._start_cell(attributes)
        elif name in ("v", "t"):
            self._is_value = True
        elif name == "row":
            self._row = []
            self._column = -1
            self._number = int(attributes.get("r", self._number + 1))
        elif name == "dimension" and (match := _LAST_ROW.fullmatch(attributes.get("ref", ""))):
            self.rows.last_row = int(match[1])

    def characters(self, content: str) -> None:
        if self._is_value:
            self._parts.append(content)

    def end(self, name: str) -> None:
        if name in ("v", "t"):
            self._is_value = False
        elif name == "c":
            self._end_cell()
        elif name == "row":
            self.rows.last_row = max(self.rows.last_row, self._number)
            if any(self._row):
                if len(self.rows.cells) == MAX_ROWS:
                    raise _EnoughError
                self.rows.cells.append(self._row)

    def _start_cell(self, attributes: dict[str, str]) -> None:
        place = attributes.get("r")
        self._column = self._column + 1 if place is None else _column_number(place)
        self._kind = attributes.get("t", "n")
        style = int(attributes.get("s", "0"))
        self._style = self._styles[style] if style < len(self._styles) else None
        self._parts = []

    def _end_cell(self) -> None:
        cell = self._cell("".join(self._parts)[:_LONGEST_TEXT])
        if cell is None:
            return
        if not 0 <= self._column < _MAX_COLUMNS:
            raise UnreadableItemError("a cell of it stands where no column is")
        self._row += [None] * (self._column + 1 - len(self._row))
        self._row[self._column] = cell

    def _cell(self, text: str) -> Cell | None:
        if not text or self._kind == "e":
            return None
        match self._kind:
            case "s":
                number = int(text)
                self.rows.largest_string = max(self.rows.largest_string, number)
                return Cell(TypeName.STRING, string=number)
            case "b":
                return Cell(TypeName.BOOLEAN, "true" if text == "1" else "false")
            case "d":
                return Cell(TypeName.TIMESTAMP_NTZ if "T" in text else TypeName.DATE, text)
            case "n":
                return Cell(self._number_kind(text), text)
            case _:
                return Cell(TypeName.STRING, text)

    def _number_kind(self, text: str) -> TypeName:
        is_integer = _INTEGER.fullmatch(text) is not None
        if self._style is TypeName.DATE and not is_integer:
            return TypeName.TIMESTAMP_NTZ
        if self._style is not None:
            return self._style
        return TypeName.INT64 if is_integer else TypeName.DOUBLE


def _walk(
    archive: zipfile.ZipFile,
    path: str,
    *,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
) -> bool:
    """Go over the XML of a part, and return whether all of it was seen.

    Raises:
        UnreadableItemError: it declares what no workbook does.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: start(_local(name), attributes)
    parser.EntityDeclHandler = _refuse
    if end is not None:
        ending = end
        parser.EndElementHandler = lambda name: ending(_local(name))
    if text is not None:
        parser.CharacterDataHandler = text
    left = PART_BYTES
    with archive.open(path) as part:
        try:
            while content := part.read(min(left, _CHUNK_BYTES)):
                left -= len(content)
                parser.Parse(content, False)
                if left <= 0:
                    return False
            parser.Parse(b"", True)
        except _EnoughError:
            return False
    return True


def _refuse(*_: object) -> None:
    raise UnreadableItemError("its XML declares entities, which no workbook does")


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _resolved(target: str) -> str:
    if target.startswith("/"):
        return target[1:]
    return posixpath.normpath(posixpath.join("xl", target))


def _column_number(place: str) -> int:
    """Return the number of a column, from 0, by the place of a cell such as `AB12`."""
    number = 0
    for letter in place:
        if not "A" <= letter <= "Z":
            break
        number = number * _LETTERS + ord(letter) - ord("A") + 1
        if number > _MAX_COLUMNS:
            break
    return number - 1


def _type_of_format(code: str) -> TypeName | None:
    """Return the type of numbers that are shown by a format, or None for plain numbers."""
    letters = set(_QUOTED.sub("", code.split(";", 1)[0]).lower())
    has_day = bool(letters & {"d", "y"})
    has_time = bool(letters & {"h", "s"})
    if has_day:
        return TypeName.TIMESTAMP_NTZ if has_time else TypeName.DATE
    if has_time:
        return TypeName.TIME
    return (
        TypeName.DATE
        if letters and letters <= {"m", " ", "-", "/", "."} and "m" in letters
        else None
    )
