"""Fills `${VAR}` and `${VAR:-default}` from the environment, and reads `.env` files.

Only values that are text are filled, after parsing: what a variable holds can never become a key
or YAML. `$${` stands for a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.redaction import SecretRegistry, looks_secret
from lumos.core.settings.problems import KeyPath, SettingsProblem, key_text
from lumos.core.settings.yaml_document import file_exists, read_limited

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.settings.validation import LineOf

_MARKER = re.compile(r"\$\$\{|\$\{(?P<inner>[^{}]*)\}|\$\{")
_REFERENCE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_DOTENV_NAME = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


class Expansion:
    """Fills one document, gathering problems and registering secrets on the way."""

    def __init__(
        self, environment: Mapping[str, str], *, line_of: LineOf, secrets: SecretRegistry
    ) -> None:
        self._environment = environment
        self._line_of = line_of
        self._secrets = secrets
        self.problems: list[SettingsProblem] = []
        self.unset: list[tuple[KeyPath, SettingsProblem]] = []
        """Which keys need a variable that is not set."""

    def fill(self, value: JsonValue, path: KeyPath = ()) -> JsonValue:
        """Return the value with every reference in its texts replaced."""
        if isinstance(value, dict):
            return {key: self.fill(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item, (*path, i)) for i, item in enumerate(value)]
        if isinstance(value, str) and "${" in value:
            return _MARKER.sub(lambda match: self._replacement(match, path), value)
        return value

    def _replacement(self, match: re.Match[str], path: KeyPath) -> str:
        if match.group() == "$${":
            return "${"
        reference = _REFERENCE.fullmatch(match.group("inner") or "")
        if reference is None:
            self._problem(path, "has a malformed reference; write ${NAME} or ${NAME:-default}")
            return ""
        name, default = reference.group("name", "default")
        value = self._environment.get(name)
        if default is not None and not value:
            return str(default)
        if value is None:
            said = f"needs the environment variable {name}, which is not set and has no default"
            self.unset.append((path, self._problem_at(path, said)))
            return ""
        if looks_secret(name) or any(isinstance(key, str) and looks_secret(key) for key in path):
            self._secrets.add(value)
        return value

    def _problem(self, path: KeyPath, message: str) -> None:
        self.problems.append(self._problem_at(path, message))

    def _problem_at(self, path: KeyPath, message: str) -> SettingsProblem:
        key = key_text(path)
        return SettingsProblem(key, self._line_of(path), f"{key} {message}")


def read_dotenv(path: Path, *, shown_as: str) -> tuple[dict[str, str], list[SettingsProblem]]:
    """Return the variables of a `.env` file and what is wrong with it; none if it is absent.

    Each line is `NAME=value`, optionally after `export`; `#` begins a comment at the start of a
    line or after a space. Values may be in single quotes (taken as they are) or double quotes
    (with backslash escapes), and quoted values may span lines. Nothing is substituted inside.
    """
    if not file_exists(path, file=shown_as) or path.is_dir():
        return {}, []
    text = read_limited(path, file=shown_as).decode("utf-8-sig", "replace")
    variables: dict[str, str] = {}
    problems: list[SettingsProblem] = []
    text = text.replace("\r\n", "\n")
    position = 0
    while position < len(text):
        end = _line_end(text, position)
        line = text[position:end].strip()
        if not line or line.startswith("#"):
            position = end + 1
            continue
        start = position + len(text[position:end]) - len(text[position:end].lstrip())
        match = _DOTENV_NAME.match(text, start)
        value, after = _dotenv_value(text, match.end()) if match else (None, end)
        if match is None or value is None:
            number = text.count("\n", 0, position) + 1
            problems.append(SettingsProblem("", number, "not a line of the form NAME=value"))
            position = end + 1
            continue
        variables[match.group(1)] = value
        position = _line_end(text, after) + 1
    return variables, problems


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _dotenv_value(text: str, position: int) -> tuple[str | None, int]:
    quote = text[position : position + 1]
    if quote not in {"'", '"'} or not quote:
        end = _line_end(text, position)
        return re.split(r"(?:^|[ \t])#", text[position:end], maxsplit=1)[0].strip(), end
    value = ""
    index = position + 1
    while index < len(text) and text[index] != quote:
        if quote == '"' and text[index] == "\\" and text[index + 1 : index + 2] in _ESCAPES:
            value += _ESCAPES[text[index + 1]]
            index += 2
        else:
            value += text[index]
            index += 1
    if index >= len(text):
        return None, len(text)
    rest = text[index + 1 : _line_end(text, index)].strip()
    if rest and not rest.startswith("#"):
        return None, index
    return value, index
