"""What all canonical models share: frozen, closed, and one canonical JSON form."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Self

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from lumos.core.errors import InvalidModelError

_DIGIT_GROUPS = re.compile(r"(?<=\d)[,_](?=\d)")


def canonical_json(value: object) -> bytes:
    """Return the one JSON spelling of a value: sorted keys, UTF-8, no insignificant space.

    Raises:
        InvalidModelError: the value holds what JSON cannot carry, such as text that is no Unicode.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise InvalidModelError(f"not expressible as JSON: {error}") from None


def sha256_of(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def describe_validation_error(error: ValidationError) -> str:
    """Say what is wrong and where, without echoing any input value."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    parts = []
    for problem in problems[:3]:
        where = ".".join(str(step) for step in problem["loc"]) or "document"
        parts.append(f"{where}: {problem['msg']}")
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""  # noqa: PLR2004
    return "; ".join(parts) + more


class CanonicalModel(BaseModel):
    """Base of the canonical models."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        ser_json_timedelta="iso8601",
        defer_build=True,  # commands that touch no dataset do not pay for its validators
    )

    def to_json(self) -> dict[str, JsonValue]:
        """Return the JSON object of this model; what is unset or empty is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    @classmethod
    def from_json(cls, document: object) -> Self:
        """Build the model from parsed JSON.

        Raises:
            InvalidModelError: the document does not have this model's shape; no value is echoed.
        """
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            detail = describe_validation_error(error)
            raise InvalidModelError(f"not a valid {cls.__name__}: {detail}") from None


def _as_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _without_digit_groups(value: object) -> object:
    """Accept numbers as people write them: `1,247` and `45_000_000`."""
    return _DIGIT_GROUPS.sub("", value) if isinstance(value, str) else value


def _without_percent_sign(value: object) -> object:
    return value.strip().removesuffix("%") if isinstance(value, str) else value


def _sorted_unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _expressible_as_json(properties: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Refuse early what could be neither stored nor hashed later."""
    try:
        canonical_json(properties)
    except InvalidModelError as error:
        raise PydanticCustomError("json", "{reason}", {"reason": error.message}) from None
    return properties


Name = Annotated[str, Field(min_length=1)]
UtcDatetime = Annotated[datetime, AfterValidator(_as_utc)]
Count = Annotated[int, BeforeValidator(_without_digit_groups), Field(ge=0)]
Percent = Annotated[float, BeforeValidator(_without_percent_sign)]
NameSet = Annotated[tuple[Name, ...], AfterValidator(_sorted_unique)]
Properties = Annotated[Mapping[str, JsonValue], AfterValidator(_expressible_as_json)]
