"""Reads one YAML or JSON document into plain values, within limits, knowing each key's line.

YAML 1.2 with the values that JSON has: times stay text, `yes` is text, no tag makes an object.
ruamel.yaml is imported with the first YAML text, not before.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from lumos.core.errors import ConfigurationError, InputUnreadableError, LumosError
from lumos.core.regular_files import NotRegularError, open_regular
from lumos.core.settings.problems import (
    InvalidSettingsError,
    SettingsProblem,
    key_name,
    key_text,
)

if TYPE_CHECKING:
    from pydantic import JsonValue
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.nodes import Node

MAX_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 50
MAX_NODES: Final = 100_000
MOST_ALIAS_GROWTH: Final = 10
"""So many times what a document holds its values and text may become when aliases are expanded."""
FREE_ALIAS_VALUES: Final = 20_000
FREE_ALIAS_CHARACTERS: Final = 1_000_000
"""What aliases may expand to in a document of any size."""
_MAX_YAML_NODES: Final = 2_000_000
"""Each takes half a kilobyte while YAML is read; JSON takes less."""


class DocumentKind(NamedTuple):
    """What a document is for, which decides the error for a missing or large one."""

    noun: str
    missing: type[LumosError]
    hint: str
    max_bytes: int
    max_nodes: int


SETTINGS: Final = DocumentKind(
    "settings file",
    ConfigurationError,
    hint="make one with: lumos init",
    max_bytes=MAX_BYTES,
    max_nodes=MAX_NODES,
)
ITEMS: Final = DocumentKind(
    "file",
    InputUnreadableError,
    hint="check the path",
    max_bytes=64_000_000,
    max_nodes=6_000_000,
)

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    _TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp", "value", "merge")
)
_DEEP_START = re.compile(rf"^[^#'\"\n]*(?:[\[{{]\s*){{{MAX_DEPTH + 1}}}", re.MULTILINE)
"""As many opening brackets in a row as no document needs, over which the parser takes a second."""
_QUOTED_TEXT = re.compile(r"'[^']{2,}'|\"[^\"]{2,}\"")
_INTEGER = re.compile(r"[-+]?(?:0o[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+|[0-9][0-9_]*)")
_BASES = {"0o": 8, "0x": 16, "0b": 2}


class SettingsDocument:
    """The plain value of a document and where its keys stand."""

    def __init__(
        self, text: str, *, file: str, is_json: bool = False, kind: DocumentKind = SETTINGS
    ) -> None:
        self.file = file
        self._text = text
        self._max_nodes = kind.max_nodes
        self._root: Node | None = None
        self.value: JsonValue = self._read_json() if is_json else self._read_yaml()

    def line_of(self, path: Sequence[str | int]) -> int | None:
        """Return the line of the key at this path, or of the nearest thing around it."""
        if self._root is None:
            # JSON has no tabs inside its texts, so this keeps lines while YAML would refuse tabs.
            text = self._text.replace("\t", " ")
            self._root = _compose(text, self.file, max_nodes=self._max_nodes)
        node = self._root
        if node is None:
            return None
        line = _line(node)
        for part in path:
            step = _child(node, part)
            if step is None:
                break
            line, node = step
        return line

    def _read_yaml(self) -> JsonValue:
        self._root = _compose(self._text, self.file, max_nodes=self._max_nodes)
        if self._root is None:
            return None
        _Expansion(self.file, self._max_nodes).require_small(self._root)
        return _Builder(self.file).build(self._root)

    def _read_json(self) -> JsonValue:
        def unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
            mapping = dict(pairs)
            if len(mapping) < len(pairs):
                raise _DuplicateKeyError
            return mapping

        if sum(map(self._text.count, ",[{")) > 2 * self._max_nodes:  # commas in texts count, too
            raise _invalid(self.file, None, f"more than {self._max_nodes:,} values")
        try:
            value: JsonValue = json.loads(self._text, object_pairs_hook=unique)
        except _DuplicateKeyError:
            return self._read_yaml()  # names the key and both lines
        except json.JSONDecodeError as error:
            raise _invalid(self.file, error.lineno, f"not valid JSON: {error.msg}") from None
        except RecursionError:
            raise _too_deep(self.file, None) from None
        _check_limits(value, self.file, max_nodes=self._max_nodes)
        return value


class _DuplicateKeyError(Exception):
    """A JSON object names one key twice."""


def read_document(
    path: Path, *, shown_as: str | None = None, kind: DocumentKind = SETTINGS
) -> SettingsDocument:
    """Read a file; one whose name ends in `.json` strictly as JSON, any other as YAML.

    Raises:
        ConfigurationError: the file is too large, not UTF-8 or not well-formed, or a settings
            file is missing.
        InputUnreadableError: the file exists but cannot be read, or one of items is missing.
    """
    file = shown_as or str(path)
    content = read_limited(path, file=file, kind=kind)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _invalid(file, line, "not UTF-8 text") from None
    return SettingsDocument(text, file=file, is_json=path.suffix.lower() == ".json", kind=kind)


def read_limited(path: Path, *, file: str, kind: DocumentKind = SETTINGS) -> bytes:
    """Return the bytes of a small regular file, refusing folders, devices and large files."""
    try:
        with open_regular(path) as stream:
            content = stream.read(kind.max_bytes + 1)
    except (IsADirectoryError, NotRegularError) as error:
        found = "a folder" if isinstance(error, IsADirectoryError) else "not a regular file"
        raise InputUnreadableError(
            f"{file} is {found}, not a {kind.noun}", hint="give the path of a file"
        ) from None
    except FileNotFoundError:
        raise kind.missing(f"there is no {kind.noun} {file}", hint=kind.hint) from None
    except OSError as error:
        raise InputUnreadableError(
            f"cannot read {file}: {error.strerror or type(error).__name__}",
            hint="check the path and the permissions of the file",
        ) from error
    if len(content) > kind.max_bytes:
        raise _invalid(file, None, f"larger than {kind.max_bytes:,} bytes")
    return content


def file_exists(path: Path, *, file: str) -> bool:
    """Return whether there is something at the path, refusing to guess where it cannot be seen."""
    try:
        return path.exists()
    except OSError as error:
        raise InputUnreadableError(
            f"cannot look for {file}: {error.strerror or type(error).__name__}",
            hint="check the permissions of its folder",
        ) from error


def _compose(text: str, file: str, *, max_nodes: int) -> Node | None:
    from ruamel.yaml import YAML
    from ruamel.yaml.composer import MaxDepthExceededError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if deep := _DEEP_START.search(text):
        raise _too_deep(file, text.count("\n", 0, deep.start()) + 1)
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = MAX_DEPTH
    yaml.composer.warn_double_anchors = False
    _limit_nodes(yaml.composer, min(max_nodes, _MAX_YAML_NODES), file=file)
    try:
        root: Node | None = yaml.compose(text)
    except MaxDepthExceededError as error:
        raise _too_deep(file, error.problem_mark.line + 1) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = _without_values(error.problem or error.context)
        reason = _plain_reason(text, mark.line if mark else None, problem)
        raise _invalid(file, mark.line + 1 if mark else None, f"not valid YAML: {reason}") from None
    except YAMLError:
        raise _invalid(file, None, "not valid YAML: unreadable characters") from None
    except (ValueError, AssertionError):
        raise _invalid(file, None, "not valid YAML: a malformed escape or directive") from None
    return root


def _limit_nodes(composer: Composer, most: int, *, file: str) -> None:
    """Let a composer refuse a document as soon as it has more values than that."""
    compose, count = composer.compose_node, itertools.count(1)

    def counted(parent: Node, index: object) -> Node:
        if next(count) > most:
            raise _invalid(file, None, f"more than {most:,} values")
        node: Node = compose(parent, index)
        return node

    composer.compose_node = counted  # type: ignore[method-assign]


_COLON = re.compile(r":(?=\s|\Z)")
_MISTAKES = {
    "mapping values are not allowed": "a line has two colons; quote the value if one belongs to it",
    "expected ','": "a bracket or brace is not closed, or a comma is missing",
    "end of stream": "a quote, bracket or brace is not closed",
}


def _plain_reason(text: str, line: int | None, problem: str) -> str:
    """Return what people most often get wrong, where that is it; else the parser's problem."""
    mistake = next((told for part, told in _MISTAKES.items() if part in problem), problem)
    if line is None:
        return mistake
    lines = text.splitlines()
    here = lines[line] if line < len(lines) else ""
    indent = here[: len(here) - len(here.lstrip())]
    if "\t" in indent:
        return "a tab indents this line; YAML takes spaces only"
    before = next((each for each in reversed(lines[:line]) if each.strip()), "")
    depth, depth_before = len(indent), len(before) - len(before.lstrip(" "))
    is_one_pair = here.strip() and len(_COLON.findall(here)) == 1
    if is_one_pair and depth and depth != depth_before and "closed" not in mistake:
        return (
            f"check the indentation: this line begins after {depth} spaces, the one before it"
            f" after {depth_before}"
        )
    return mistake


def _without_values(reason: object) -> str:
    # Parser messages quote names of anchors and tags, which may be a mistyped password.
    first_line = str(reason or "malformed").splitlines()[0]
    return _QUOTED_TEXT.sub("'...'", first_line)


class _Size(NamedTuple):
    """How much a node holds, aliases expanded."""

    values: int
    characters: int


class _Expansion:
    """Counts what aliases would expand to, before anything is expanded.

    Every node is looked at once, however often it is referred to: a document of a few hundred
    bytes may stand for more values than any memory holds.
    """

    def __init__(self, file: str, max_nodes: int) -> None:
        self._file = file
        self._max_nodes = max_nodes
        self._sizes: dict[int, _Size | None] = {}
        self._written = _Size(0, 0)

    def require_small(self, root: Node) -> None:
        """Check the size of the whole document.

        Raises:
            InvalidSettingsError: it is too large, or contains itself.
        """
        values, characters = self._size(root)
        if values > self._max_nodes:
            reason = f"more than {self._max_nodes:,} values, aliases expanded"
            raise _invalid(self._file, None, reason)
        if (
            values > FREE_ALIAS_VALUES + MOST_ALIAS_GROWTH * self._written.values
            or characters > FREE_ALIAS_CHARACTERS + MOST_ALIAS_GROWTH * self._written.characters
        ):
            raise _invalid(self._file, None, "its aliases expand to far more than it holds")

    def _size(self, node: Node) -> _Size:
        known = self._sizes.get(id(node), _UNSEEN)
        if known is None:  # it is being counted: it contains itself
            raise _too_deep(self._file, _line(node))
        if known is not _UNSEEN:
            return known
        self._sizes[id(node)] = None
        size = self._sizes[id(node)] = self._counted(node)
        return size

    def _counted(self, node: Node) -> _Size:
        kind = _kind(node)
        own = len(node.value) if kind == "scalar" else 0
        self._written = _Size(self._written.values + 1, self._written.characters + own)
        if kind == "scalar":
            return _Size(1, own)
        values, characters = 1, 0
        for child in node.value:
            for part in (child,) if kind == "seq" else child:
                size = self._size(part)
                values += size.values
                characters += size.characters
        keys = len(node.value) if kind == "map" else 0
        return _Size(values - keys, characters)


_UNSEEN: Final = _Size(0, 0)


class _Builder:
    """Builds plain values from nodes."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._problems: list[SettingsProblem] = []

    def build(self, root: Node) -> JsonValue:
        value = self._value(root, ())
        if self._problems:
            raise InvalidSettingsError(self._problems, file=self._file)
        return value

    def _value(self, node: Node, path: tuple[str | int, ...]) -> JsonValue:
        if len(path) > MAX_DEPTH:
            raise _too_deep(self._file, _line(node))
        kind = _kind(node)
        if kind == "scalar":
            return self._scalar(node, path)
        if str(node.tag) != _TAG + kind:
            self._problem(node, path, "a YAML tag is not allowed here")
            return None
        if kind == "seq":
            return [self._value(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._mapping(node, path)

    def _mapping(self, node: Node, path: tuple[str | int, ...]) -> dict[str, JsonValue]:
        own: dict[str, JsonValue] = {}
        merged: dict[str, JsonValue] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                for other in _merged_nodes(value_node):
                    value = self._value(other, (*path, "<<"))
                    if not isinstance(value, dict):
                        self._problem(value_node, path, "only mappings can be merged with '<<'")
                        continue
                    for name, item in value.items():
                        merged.setdefault(name, item)
                continue
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in lines:
                where = (*path, key)
                message = f"key '{key_name(where)}' is given twice, first on line {lines[key]}"
                self._problem(key_node, where, message)
                continue
            lines[key] = _line(key_node)
            own[key] = self._value(value_node, (*path, key))
        return merged | own

    def _key(self, node: Node, path: tuple[str | int, ...]) -> str | None:
        if _kind(node) != "scalar" or str(node.tag) not in _PLAIN_TAGS:
            self._problem(node, path, "a key must be plain text")
            return None
        return self._text(node, path)

    def _scalar(self, node: Node, path: tuple[str | int, ...]) -> JsonValue:
        tag = str(node.tag)
        if tag not in _PLAIN_TAGS:
            self._problem(node, path, "a YAML tag is not allowed here")
            return None
        text = str(node.value)
        if tag == _TAG + "null":
            return None
        if tag == _TAG + "bool" and text.lower() in {"true", "false"}:
            return text.lower() == "true"
        if tag == _TAG + "int":
            return _integer(text)
        if tag == _TAG + "float":
            return _real(text)
        return self._text(node, path)

    def _text(self, node: Node, path: tuple[str | int, ...]) -> str | None:
        text = str(node.value)
        try:
            # JSON writes characters beyond the basic plane as two escapes; YAML leaves them apart.
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._problem(node, path, "half of a surrogate pair is not text")
            return None

    def _problem(self, node: Node, path: tuple[str | int, ...], message: str) -> None:
        self._problems.append(SettingsProblem(key_text(path), _line(node), message))


def _integer(text: str) -> int | str:
    if not _INTEGER.fullmatch(text):
        return text
    digits = text.lstrip("+-").lower()
    base = _BASES.get(digits[:2], 10)
    try:
        size = int(digits.replace("_", ""), base)
    except ValueError:  # more digits than an int may have
        return text
    return -size if text.startswith("-") else size


def _real(text: str) -> float | str:
    lowered = text.lower().replace("_", "")
    try:
        return float(lowered.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text


def _kind(node: Node) -> Literal["scalar", "seq", "map"]:
    if isinstance(node.value, str):
        return "scalar"
    return "map" if type(node).__name__ == "MappingNode" else "seq"


def _is_merge(node: Node) -> bool:
    return _kind(node) == "scalar" and str(node.tag) == _TAG + "merge"


def _merged_nodes(node: Node) -> Iterator[Node]:
    if _kind(node) == "seq":
        yield from node.value
    else:
        yield node


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _child(node: Node, part: str | int) -> tuple[int, Node] | None:
    if isinstance(part, int):
        if _kind(node) == "seq" and part < len(node.value):
            item = node.value[part]
            return _line(item), item
        return None
    if _kind(node) != "map":
        return None
    for key, value in node.value:
        if not _is_merge(key) and _kind(key) == "scalar" and str(key.value) == part:
            return _line(key), value
    for key, value in node.value:
        if _is_merge(key):
            for other in _merged_nodes(value):
                if (step := _child(other, part)) is not None:
                    return step
    return None


def _check_limits(value: JsonValue, file: str, *, max_nodes: int) -> None:
    nodes = 0
    waiting: list[tuple[JsonValue, int]] = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        nodes += 1
        if depth > MAX_DEPTH:
            raise _too_deep(file, None)
        if isinstance(item, dict):
            waiting.extend((child, depth + 1) for child in item.values())
        elif isinstance(item, list):
            waiting.extend((child, depth + 1) for child in item)
    if nodes > max_nodes:
        raise _invalid(file, None, f"more than {max_nodes:,} values")


def _too_deep(file: str, line: int | None) -> InvalidSettingsError:
    return _invalid(file, line, f"nested deeper than {MAX_DEPTH} levels")


def _invalid(file: str, line: int | None, message: str) -> InvalidSettingsError:
    return InvalidSettingsError([SettingsProblem("", line, message)], file=file)
