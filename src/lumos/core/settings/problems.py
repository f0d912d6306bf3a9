"""What is wrong with settings: every problem of a file at once, without its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from lumos.core.errors import ConfigurationError
from lumos.core.redaction import MASK, PROCESS_SECRETS, SecretRegistry, looks_secret

KeyPath = tuple[str | int, ...]


class SettingsProblem(NamedTuple):
    """One thing to correct; the message never holds the value itself."""

    path: str
    """The key, such as `sources[0].name`; empty where the file as a whole is meant."""
    line: int | None
    """The line in the file, counted from 1; None where there is no file."""
    message: str


class InvalidSettingsError(ConfigurationError):
    """Settings that cannot be used; `problems` holds all of them, the message the first."""

    code = "LUM-103"

    def __init__(
        self,
        problems: Sequence[SettingsProblem],
        *,
        file: str | None = None,
        secrets: SecretRegistry = PROCESS_SECRETS,
        hint: str | None = None,
    ) -> None:
        clean = [
            problem._replace(
                path=secrets.redact(problem.path), message=secrets.redact(problem.message)
            )
            for problem in problems
        ]
        ordered = tuple(sorted(clean, key=lambda problem: problem.line or 0))
        first = _located(ordered[0], file)
        more = len(ordered) - 1
        counted = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
        super().__init__(first + counted, hint=hint)
        self.problems = ordered
        self.file = file

    def lines(self) -> tuple[str, ...]:
        """Return every problem as `file:line: message`."""
        return tuple(_located(problem, self.file) for problem in self.problems)


def _located(problem: SettingsProblem, file: str | None) -> str:
    if file is None:
        return problem.message
    at = file if problem.line is None else f"{file}:{problem.line}"
    return f"{at}: {problem.message}"


def key_text(path: Iterable[str | int]) -> str:
    """Write a key path the way people do: `sources[0].name`; what is below a secret stays out."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        text += f".{part}" if text else part
        if looks_secret(part):
            break
    return text


def key_name(path: Sequence[str | int]) -> str:
    """Return the last key of a path for a message, masked where it stands below a secret."""
    if any(isinstance(part, str) and looks_secret(part) for part in path[:-1]):
        return MASK
    return str(path[-1])


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` was probably meant to be."""
    by_folded = {candidate.lower().replace("-", "_"): candidate for candidate in known}
    folded = name.lower().replace("-", "_")
    found = get_close_matches(folded, sorted(by_folded), n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or which names there are when none is near."""
    names = sorted(set(known))
    near = nearest(name, names)
    if near:
        return f"; did you mean '{near}'?"
    return f"; known keys: {', '.join(names)}" if names else ""
