"""Settings kept as they were written until the part that owns them validates them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import override

from lumos.core.errors import LumosError
from lumos.core.redaction import MASK

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

    from lumos.core.settings.problems import KeyPath, SettingsProblem


class SettingOrigin(NamedTuple):
    """Where raw settings were written, so that a later problem can still name the line."""

    file: str
    path: KeyPath
    location: Path
    moved_keys: Mapping[str, KeyPath] = {}
    """Keys that were written elsewhere below `path`, such as below `config`."""

    def line_of(self, key: KeyPath) -> int | None:
        """Return the line of a key below this origin by reading the file once more."""
        # Late: settings without a problem never need the reader again.
        from lumos.core.settings.yaml_document import read_document

        written = key
        if key and key[0] in self.moved_keys:
            written = (*self.moved_keys[str(key[0])], *key[1:])
        try:
            return read_document(self.location).line_of((*self.path, *written))
        except LumosError:  # the file went away or changed since; the message is still right
            return None


class RawSettings(Mapping[str, JsonValue]):
    """An unvalidated mapping whose text forms and dumps never show a value."""

    __slots__ = ("_values", "origin", "unset")

    def __init__(
        self,
        values: Mapping[str, JsonValue],
        *,
        origin: SettingOrigin | None = None,
        unset: Sequence[SettingsProblem] = (),
    ) -> None:
        """Keep values as written.

        Args:
            values: what was written.
            origin: where.
            unset: the variables that values need and that are not set; reading any value is
                refused then, so that only what uses these settings needs the variables.
        """
        self._values = deepcopy(dict(values))
        self.origin = origin
        self.unset = tuple(unset)

    @override
    def __getitem__(self, key: str) -> JsonValue:
        if key in self._values:
            self._require_variables()
        return self._values[key]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    @override
    def __len__(self) -> int:
        return len(self._values)

    @override
    def __repr__(self) -> str:
        return f"RawSettings(keys={sorted(self._values)})"

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, RawSettings) and self._values == other._values

    @override
    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def as_dict(self) -> dict[str, JsonValue]:
        """Return a copy of the values as written, secrets included.

        Raises:
            InvalidSettingsError: a variable that they need is not set.
        """
        self._require_variables()
        return deepcopy(self._values)

    def _require_variables(self) -> None:
        if self.unset:
            # Late: only settings with a problem need it.
            from lumos.core.settings.problems import InvalidSettingsError

            raise InvalidSettingsError(self.unset, file=self.origin.file if self.origin else None)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[object], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda raw: dict.fromkeys(raw, MASK)
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "object", "additionalProperties": True}

    @classmethod
    def _validated(cls, value: object) -> RawSettings:
        if isinstance(value, RawSettings):
            return value
        if not isinstance(value, Mapping):
            raise ValueError("must be a mapping")  # noqa: TRY004 - pydantic catches ValueError
        return cls({str(key): item for key, item in value.items()})
