"""Paths that people describe, for the rare layout that the rules do not recognize.

A spec is a path below the source's root with slots: `crm/{table}/dt={yyyy-mm-dd}/*`.

- `{table}` is a part of the dataset's name. Plain folders before the last one are parts of it too.
- `{yyyy}`, `{mm}`, `{dd}`, `{hh}`, `{mi}`, `{ss}` and forms of them such as `{yyyy-mm-dd}` are a
  date; `{partition_key[0]}={partition[0]}` is any `key=value`; any other slot is a partition key of
  its name.
- `*` is any text without a slash, `**` any number of folders.

Without `{table}` every file that fits is a separate dataset. The first spec that fits decides; a
file that fits none is placed by the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from lumos.core.errors import ConfigurationError
from lumos.feature.discovery.assembling import FilePlace, path_place
from lumos.feature.discovery.dates import KEYS_OF_FORMS
from lumos.feature.discovery.file_names import read_file_name, without_extensions
from lumos.feature.discovery.folders import HIVE_NULLS, Folders, Segment
from lumos.feature.discovery.no_data import is_no_data
from lumos.feature.discovery.partitions import form_pattern

_TABLE: Final = "table"
_PIECE = re.compile(r"\{[^{}/]*\}|\*+|[^{}*]+|.")
_ANY_PAIR = re.compile(r"\{partition_key\[\d+\]\}=\{partition(?:_value)?\[\d+\]\}")
_INDEXED = re.compile(r"partition(?:_value)?\[(\d+)\]")
_NAME = re.compile(r"[^\W\d][\w-]*")
_KEY_BEFORE = re.compile(r"([^\s={}/*]+)=")


@dataclass(frozen=True)
class _Slot:
    group: str
    key: str | None
    """None for a part of the dataset's name; empty where the key is in the path."""
    in_date: bool = False


@dataclass(frozen=True)
class _SpecFolder:
    """One folder of a spec, or its file."""

    group: str
    template: str
    slots: tuple[_Slot, ...] = ()

    @property
    def is_table(self) -> bool:
        return any(slot.key is None for slot in self.slots)


@dataclass(frozen=True)
class _Spec:
    """One compiled spec."""

    pattern: re.Pattern[str]
    folders: tuple[_SpecFolder, ...]
    """The last one is the file."""
    hidden: int
    """So many folders are named although they are hidden."""

    def place(self, path: str) -> FilePlace | None:
        match = self.pattern.fullmatch(path)
        if match is None or (self.hidden and is_no_data("/".join(path.split("/")[self.hidden :]))):
            return None
        *folders, file = self.folders
        last_table = max((i for i, f in enumerate(self.folders) if f.is_table), default=None)
        dataset: list[str] = []
        above: list[str] = []
        shown: list[str] = []
        segments: list[Segment] = []
        for index, folder in enumerate(folders):
            parts = [part for part in match[folder.group].split("/") if part]
            found = _segments(folder, match)
            if segments or found:
                shown += [found[0].template] if found else parts
            elif last_table is None or index <= last_table:
                above += parts
            if last_table is None or index <= last_table:
                dataset += _names(folder, match, parts=[] if found else parts)
            if found and not segments:
                above = match.string[: match.start(folder.group)].split("/")[:-1]
            segments += found
        return self._placed(match, file, dataset=dataset, above=above, shown=shown, found=segments)

    def _placed(
        self,
        match: re.Match[str],
        file: _SpecFolder,
        *,
        dataset: list[str],
        above: list[str],
        shown: list[str],
        found: list[Segment],
    ) -> FilePlace:
        name = match[file.group].rpartition("/")[2]
        of_name = read_file_name(name)
        has_table = any(folder.is_table for folder in self.folders)
        if file.is_table:
            dataset = [*dataset, *(without_extensions(part)[0] for part in _tables(file, match))]
        elif not has_table:
            dataset = [*dataset, without_extensions(name)[0]]
        in_file = _segments(file, match)
        template = "/".join(shown) or None
        if in_file:
            shown_file = in_file[0].template
            template = f"{template}/{shown_file}" if template else shown_file
        segments = [*found, *in_file]
        folders = Folders.of(dataset, above, template=template, segments=segments)
        is_alone = not (has_table or segments)
        return FilePlace(
            dataset=folders.dataset,
            prefix=f"{folders.prefix}{name}" if is_alone else folders.prefix,
            partitioning=folders.template,
            partition_keys=folders.keys,
            partition_values=folders.values,
            partition_types=folders.types,
            format=of_name.format,
            compression=of_name.compression,
            shard=has_table,
        )


@dataclass(frozen=True)
class PathSpecs:
    """Specs that were found to be valid, in their order."""

    specs: tuple[_Spec, ...] = ()

    @classmethod
    def of(cls, specs: Iterable[str]) -> PathSpecs:
        """Compile specs.

        Raises:
            ConfigurationError: one of them is invalid; the message says which and where.
        """
        return cls(tuple(_Compiler(spec, index).compiled() for index, spec in enumerate(specs)))

    def place(self, path: str) -> FilePlace | None:
        """Place a file as `place_of` does, by the first spec that fits it, else by the rules."""
        if not self.specs:
            return path_place(path)
        no_data = is_no_data(path)
        for spec in self.specs:
            if (spec.hidden or not no_data) and (place := spec.place(path)):
                return place
        return None if no_data else path_place(path)


def _segments(folder: _SpecFolder, match: re.Match[str]) -> list[Segment]:
    found = []
    for slot in folder.slots:
        if slot.key is None:
            continue
        text = match[slot.group]
        key, template = slot.key, _with_tables(folder, match)
        if not key:
            key, _, text = text.partition("=")
            template = f"{key}={{{key}}}"
        value = unquote(text)
        known = None if value in HIVE_NULLS else value
        found.append(Segment(key, known, template, in_date=slot.in_date))
    return found


def _with_tables(folder: _SpecFolder, match: re.Match[str]) -> str:
    template = folder.template
    for name in _tables(folder, match):
        template = template.replace("{table}", name, 1)
    return template


def _names(folder: _SpecFolder, match: re.Match[str], *, parts: list[str]) -> list[str]:
    return _tables(folder, match) if folder.is_table else parts


def _tables(folder: _SpecFolder, match: re.Match[str]) -> list[str]:
    return [unquote(match[slot.group]) for slot in folder.slots if slot.key is None]


class _Compiler:
    """Compiles one spec."""

    def __init__(self, spec: str, index: int) -> None:
        self._spec = spec
        self._index = index
        self._groups = 0
        self._keys: set[str] = set()

    def compiled(self) -> _Spec:
        text = self._spec.strip("/")
        if not text:
            raise self._error(0, "is empty")
        if "://" in text:
            raise self._error(text.index("://"), "a path below the source's root has no scheme")
        folders: list[_SpecFolder] = []
        pattern = ""
        position = self._spec.index(text)
        parts = text.split("/")
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            folder, expression = self._folder(part, position, is_last=is_last)
            folders.append(folder)
            pattern += expression if is_last or part == "**" else f"{expression}/"
            position += len(part) + 1
        hidden = [
            i + 1 for i, part in enumerate(parts) if part[:1] in ("_", ".") and "=" not in part
        ]
        deep = parts.index("**") if "**" in parts else len(parts)
        return _Spec(
            re.compile(pattern),
            tuple(folders),
            hidden=max((i for i in hidden if i <= deep), default=0),
        )

    def _folder(self, part: str, position: int, *, is_last: bool) -> tuple[_SpecFolder, str]:
        if not part or part in (".", ".."):
            raise self._error(position, "a folder must have a name")
        group = self._group()
        if part == "**" and self._spec[:position].endswith("**/"):
            raise self._error(position, "one ** stands for any number of folders")
        if part == "**":
            return _SpecFolder(group, part), f"(?P<{group}>{'.+' if is_last else '(?:[^/]+/)*'})"
        if _ANY_PAIR.fullmatch(part):
            slot = _Slot(group=self._group(), key="")
            pair = f"(?P<{group}>(?P<{slot.group}>[^/=]+=[^/]*))"
            return _SpecFolder(group, part, (slot,)), pair
        slots: list[_Slot] = []
        expression = template = ""
        before = ""
        for match in _PIECE.finditer(part):
            piece, where = match[0], position + match.start()
            if piece[0] == "{" and piece[-1] == "}" and len(piece) > 1:
                if before[-1:] == "}":
                    raise self._error(where, "two slots need some text between them")
                slot, inner, shown = self._slot(piece[1:-1], where, before=before)
                slots.append(slot)
                expression += f"(?P<{slot.group}>{inner})"
                template += shown
            elif piece == "*":
                expression += "[^/]*"
                template += "*"
            elif piece[0] == "*":
                raise self._error(where, "** stands for folders and must stand alone")
            elif piece in "{}":
                raise self._error(where, "a slot is written {name}")
            else:
                expression += re.escape(piece)
                template += piece
            before = piece
        return _SpecFolder(group, template, tuple(slots)), f"(?P<{group}>{expression})"

    def _slot(self, name: str, position: int, *, before: str) -> tuple[_Slot, str, str]:
        group = self._group()
        if name == _TABLE:
            return _Slot(group, None), "[^/]+", "{table}"
        named = _KEY_BEFORE.fullmatch(before)
        form = name.replace("MM", "mm").replace("HH", "hh")
        if pattern := form_pattern(form):
            key = named[1] if named else KEYS_OF_FORMS.get(form) or _key_of(form)
            self._take(key, position)
            inner = pattern if not named else f"{pattern}|{'|'.join(sorted(HIVE_NULLS))}"
            return _Slot(group, key, in_date=True), inner, f"{{{form}}}"
        if indexed := _INDEXED.fullmatch(name):
            name = f"partition_{indexed[1]}"
        if not _NAME.fullmatch(name):
            raise self._error(position, "a slot is written {name}")
        key = named[1] if named else name
        self._take(key, position)
        return _Slot(group, key), "[^/]+", f"{{{key}}}"

    def _take(self, key: str, position: int) -> None:
        if key in self._keys:
            raise self._error(position, f"the partition key {key} is there twice")
        self._keys.add(key)

    def _group(self) -> str:
        self._groups += 1
        return f"g{self._groups}"

    def _error(self, position: int, problem: str) -> ConfigurationError:
        return ConfigurationError(
            f"path_specs[{self._index}] '{self._spec}', character {position + 1}: {problem}",
            hint="a spec looks like crm/{table}/dt={yyyy-mm-dd}/*",
        )


def _key_of(form: str) -> str:
    if "mi" in form or "ss" in form:
        return "time"
    return "hour" if "hh" in form else "date" if "dd" in form else "month"
