"""Reads documents that list things, such as users, so that one wrong item spares the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from lumos.core.settings.problems import (
    InvalidSettingsError,
    KeyPath,
    SettingsProblem,
    did_you_mean,
    key_text,
)
from lumos.core.settings.validation import problems_of
from lumos.core.settings.yaml_document import SettingsDocument

_ModelT = TypeVar("_ModelT", bound=BaseModel)


def with_names(value: object, other_names: Mapping[str, str]) -> object:
    """Return a mapping with other spellings of its keys brought to the known ones.

    A key that is given in both spellings stays, so that a closed model refuses the other one.
    """
    if not isinstance(value, Mapping):
        return value
    return {
        key if other_names.get(key, key) in value else other_names.get(key, key): item
        for key, item in value.items()
    }


class ItemDocument:
    """A mapping of sections, each a list of items."""

    def __init__(
        self, content: SettingsDocument | Mapping[str, JsonValue], *, known: Collection[str]
    ) -> None:
        """Take a document that was read from a file, or the same as plain values.

        Raises:
            InvalidSettingsError: it is no mapping, or has a section that is not known.
        """
        self._document = content if isinstance(content, SettingsDocument) else None
        value: object = content.value if isinstance(content, SettingsDocument) else content
        if not isinstance(value, dict):
            raise self.invalid(((), f"the document must be a mapping with {', '.join(known)}"))
        self._values: dict[str, JsonValue] = value
        unknown = [key for key in value if key not in known]
        if unknown:
            raise self.invalid(
                *[((key,), f"unknown key '{key}'{did_you_mean(key, known)}") for key in unknown]
            )

    def text(self, key: str) -> str | None:
        """Return a section that is one text, or nothing."""
        value = self._values.get(key)
        return value if isinstance(value, str) else None

    def items(self, section: str, *, required: bool = False) -> tuple[DocumentItem, ...]:
        """Return the items of a section in order; a section that is not there has none.

        Raises:
            InvalidSettingsError: the section is no list, or is missing though it is required.
        """
        value = self._values.get(section)
        if value is None:
            if required:
                raise self.invalid(((), f"key '{section}' is missing"))
            return ()
        if not isinstance(value, list | tuple):
            raise self.invalid(((section,), f"{section} must be a list"))
        return tuple(DocumentItem(self, (section, i), item) for i, item in enumerate(value))

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key, where the document is a file."""
        return None if self._document is None else self._document.line_of(path)

    def invalid(self, *found: tuple[KeyPath, str]) -> InvalidSettingsError:
        """Return the error that names problems by their places."""
        return self.refused(
            [SettingsProblem(key_text(path), self.line_of(path), said) for path, said in found]
        )

    def refused(self, problems: list[SettingsProblem]) -> InvalidSettingsError:
        """Return the error that holds the problems and the name of the file."""
        file = None if self._document is None else self._document.file
        return InvalidSettingsError(problems, file=file)


class DocumentItem(NamedTuple):
    """One item of a section, not yet looked at."""

    document: ItemDocument
    path: KeyPath
    value: JsonValue

    @property
    def label(self) -> str:
        """Where the item stands, such as `users[2]`."""
        return key_text(self.path)

    def read(self, model: type[_ModelT]) -> _ModelT:
        """Return the item as a model.

        Raises:
            InvalidSettingsError: with all problems and their lines, none of which shows a value.
        """
        try:
            return model.model_validate(self.value)
        except ValidationError as error:
            problems = problems_of(error, model, values=self.value, line_of=self._line_of)
            raise self.document.refused(problems) from None

    def _line_of(self, path: KeyPath) -> int | None:
        return self.document.line_of((*self.path, *path))
