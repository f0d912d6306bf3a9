"""What all canonical models share: frozen, closed, and one canonical JSON form."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Self, get_args

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
from typing_extensions import override

from lumos.core.errors import InvalidModelError
from lumos.core.models.frozen import FrozenDict, frozen_json

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LARGEST_INTEGER = 2**63 - 1
"""What every store and every reader of JSON can hold."""

_LONGEST_PLACE = 8
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


def describe_validation_error(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """Say what is wrong and where, without echoing any input value.

    Args:
        error: what pydantic found.
        model: what was validated; with it, an unknown key comes with the nearest known one.
    """
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    parts = [f"{_place(problem['loc'])}: {_reason(problem, model)}" for problem in problems[:3]]
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""  # noqa: PLR2004
    return "; ".join(parts) + more


def _reason(problem: ErrorDetails, model: type[BaseModel] | None) -> str:
    if problem["type"] == "missing":
        return "this key is required"
    if problem["type"] != "extra_forbidden":
        return problem["msg"]
    from difflib import get_close_matches

    *path, last = problem["loc"]
    holder = _model_at(model, path) if model else None
    names = [field.alias or name for name, field in holder.model_fields.items()] if holder else []
    near = get_close_matches(str(last), names, n=1)
    return f"unknown key; did you mean '{near[0]}'?" if near else "unknown key"


def _model_at(model: type[BaseModel], path: Sequence[int | str]) -> type[BaseModel] | None:
    """Return the model of what is at a place in a document, or None where it is none or several."""
    current: object = model
    for step in path:
        if isinstance(step, int):
            continue  # the model of a list is that of its items
        if isinstance(current, type) and issubclass(current, BaseModel):
            fields = {field.alias or name: field for name, field in current.model_fields.items()}
            if (field := fields.get(str(step))) is None:
                return None
            current = field.annotation
        found = {*_models_in(current)}
        if len(found) != 1:
            return None
        current = found.pop()
    return current if isinstance(current, type) and issubclass(current, BaseModel) else None


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _place(steps: tuple[int | str, ...]) -> str:
    """Return the path of a problem, shortened where it is nested too deeply."""
    shown = [str(step) for step in steps]
    if len(shown) > _LONGEST_PLACE:
        shown = [*shown[: _LONGEST_PLACE - 1], "…", shown[-1]]
    return ".".join(shown) or "document"


class CanonicalModel(BaseModel):
    """Base of the canonical models."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        ser_json_timedelta="iso8601",
        str_min_length=0,  # no limit, but with one set all text is checked to be Unicode
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
            detail = describe_validation_error(error, cls)
            raise InvalidModelError(f"not a valid {cls.__name__}: {detail}") from None

    @override
    def model_copy(self, *, update: Mapping[str, object] | None = None, deep: bool = False) -> Self:
        """Return a copy; with updates it is validated, and what was derived is derived anew.

        Raises:
            InvalidModelError: an update does not fit the model.
        """
        if not update:
            return super().model_copy(deep=deep)
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        return self.from_json({**kept, **update})


def as_utc(moment: datetime) -> datetime:
    """Return the moment in UTC; one that names no zone is taken to be in it."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError(
            "datetime_range", "in UTC the moment is before the year 1 or after the year 9999"
        ) from None


def _without_digit_groups(value: object) -> object:
    """Accept numbers as people write them: `1,247` and `45_000_000`."""
    return _DIGIT_GROUPS.sub("", value) if isinstance(value, str) else value


def _without_percent_sign(value: object) -> object:
    return value.strip().removesuffix("%") if isinstance(value, str) else value


def _sorted_unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _frozen_properties(properties: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Refuse early what could be neither stored nor hashed later."""
    if not properties:
        return _NO_PROPERTIES
    frozen = {name: frozen_json(value) for name, value in properties.items()}
    try:
        canonical_json(properties)
    except InvalidModelError as error:
        raise PydanticCustomError("json", "{reason}", {"reason": error.message}) from None
    return FrozenDict(frozen)


_NO_PROPERTIES: FrozenDict[str, JsonValue] = FrozenDict()
Name = Annotated[str, Field(min_length=1)]
UtcDatetime = Annotated[datetime, AfterValidator(as_utc)]
Count = Annotated[int, Field(ge=0, le=LARGEST_INTEGER), BeforeValidator(_without_digit_groups)]
Percent = Annotated[float, BeforeValidator(_without_percent_sign)]
NameSet = Annotated[tuple[Name, ...], AfterValidator(_sorted_unique)]
Properties = Annotated[Mapping[str, JsonValue], AfterValidator(_frozen_properties)]
