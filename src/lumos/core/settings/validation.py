"""Validates settings with a closed model and reports every problem without echoing a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast, get_args

from pydantic import BaseModel, JsonValue, SecretBytes, SecretStr, ValidationError

from lumos.core.redaction import MASK, PROCESS_SECRETS, SecretRegistry, find_secrets, looks_secret
from lumos.core.settings.problems import (
    InvalidSettingsError,
    KeyPath,
    SettingsProblem,
    did_you_mean,
    key_name,
    key_text,
    nearest,
)
from lumos.core.settings.raw import RawSettings

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_ModelT = TypeVar("_ModelT", bound=BaseModel)
LineOf = Callable[[KeyPath], int | None]

_SHORTEST_ECHO = 3
_NOT_VALID = "is not valid"
_SAID_BY_TYPE = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "date_from_datetime_parsing": "must be a date such as 2024-01-31",
    "date_parsing": "must be a date such as 2024-01-31",
    "datetime_parsing": "must be a time such as 2024-01-31T08:00:00Z",
    "decimal_parsing": "must be a number",
    "decimal_type": "must be a number",
    "dict_type": "must be a mapping",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "mapping_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "model_type": "must be a mapping",
    "none_required": "must be empty",
    "path_type": "must be a path",
    "string_pattern_mismatch": "does not have the form that is asked for",
    "string_type": "must be text",
    "string_unicode": "must be text",
    "tuple_type": "must be a list",
    "union_tag_not_found": "needs a key 'type'",
    "url_parsing": "must be a URL",
    "url_scheme": "must be a URL with another scheme",
    "url_type": "must be a URL",
}
_SAID_WITH_LIMIT = {
    "greater_than": ("must be greater than {}", "gt"),
    "greater_than_equal": ("must be at least {}", "ge"),
    "less_than": ("must be less than {}", "lt"),
    "less_than_equal": ("must be at most {}", "le"),
    "literal_error": ("must be one of {}", "expected"),
    "enum": ("must be one of {}", "expected"),
    "union_tag_invalid": ("needs a 'type' that is one of {}", "expected_tags"),
    "string_too_short": ("must have at least {} characters", "min_length"),
    "string_too_long": ("must have at most {} characters", "max_length"),
    "too_short": ("must have at least {} items", "min_length"),
    "too_long": ("must have at most {} items", "max_length"),
}


def validate_against(
    model: type[_ModelT],
    raw: RawSettings | Mapping[str, JsonValue],
    *,
    where: str,
    secrets: SecretRegistry = PROCESS_SECRETS,
) -> _ModelT:
    """Return the raw mapping as the model and register the secrets it holds.

    Args:
        model: a closed pydantic model.
        raw: what was written; its origin, if it has one, gives file and line to problems.
        where: whose settings these are, such as `source 'aws-data-lake'`.
        secrets: takes the value of every secret field and secret-looking key.

    Raises:
        InvalidSettingsError: with all problems, none of which shows a value.
    """
    values = raw.as_dict() if isinstance(raw, RawSettings) else dict(raw)
    origin = raw.origin if isinstance(raw, RawSettings) else None
    register_secrets(values, secrets)
    try:
        validated = model.model_validate(values)
    except ValidationError as error:
        line_of = origin.line_of if origin else _no_line
        problems = problems_of(error, model, values=values, line_of=line_of, where=where)
        raise InvalidSettingsError(
            problems, file=origin.file if origin else None, secrets=secrets
        ) from None
    register_fields(validated, secrets)
    return validated


def register_secrets(value: JsonValue, secrets: SecretRegistry) -> None:
    """Register every value under a secret-looking key and every secret inside a text."""
    secrets.add(*_secrets_below(value, inherited=False))


def _secrets_below(value: object, *, inherited: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets_below(item, inherited=inherited or looks_secret(str(key)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_below(item, inherited=inherited)
    elif isinstance(value, str):
        if inherited:
            yield value
        yield from find_secrets(value)
    elif inherited and isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def register_fields(model: BaseModel, secrets: SecretRegistry) -> None:
    """Register the value of every secret field of a validated model."""
    secrets.add(*_secret_fields(model))


def holds_secrets(model: BaseModel) -> bool:
    """Return whether a field of a model, or a text in one such as an address, is a secret."""
    found = (_secret_fields(model), _secrets_below(model.model_dump(), inherited=False))
    return any(value for values in found for value in values)


def _secret_fields(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
        yield from find_secrets(value.get_secret_value())
    elif isinstance(value, SecretBytes):
        yield value.get_secret_value().decode("utf-8", "replace")
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secret_fields(getattr(value, name))
    elif isinstance(value, Mapping) and not isinstance(value, RawSettings):
        for item in value.values():
            yield from _secret_fields(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _secret_fields(item)


def _no_line(path: KeyPath) -> int | None:
    return None


def problems_of(
    error: ValidationError,
    model: type[BaseModel],
    *,
    values: JsonValue,
    line_of: LineOf,
    where: str = "",
) -> list[SettingsProblem]:
    """Turn a pydantic error into problems, using its types, places and limits but no input."""
    problems: dict[tuple[str, str], SettingsProblem] = {}
    details = error.errors(include_url=False, include_input=False)
    unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    for detail in details:
        path, rest = _written_path(values, detail["loc"])
        if detail["type"] in {"missing", "extra_forbidden"} and rest:
            path = (*path, rest[-1])
        if detail["type"] == "missing" and _is_misspelt(detail["loc"], unknown, model=model):
            continue  # the message has what is written in its place, and what it was meant to be
        message = _message(detail, path, model=model, values=values)
        if where:
            message += f" ({where})"
        key = key_text(path)
        problems.setdefault((key, message), SettingsProblem(key, line_of(path), message))
    return list(problems.values())


def _is_misspelt(
    missing: Sequence[str | int], unknown: Iterable[Sequence[str | int]], *, model: type[BaseModel]
) -> bool:
    """Return whether an unknown key beside a missing one was meant to be that one."""
    return any(
        nearest(str(other[-1]), known_keys(model, tuple(other[:-1]))) == missing[-1]
        for other in unknown
        if other[:-1] == missing[:-1]
    )


def _written_path(values: object, loc: Sequence[str | int]) -> tuple[KeyPath, KeyPath]:
    """Split a pydantic location into the keys that were written and the parts that were not.

    Pydantic adds names of union branches and of validators, which no one wrote.
    """
    path: list[str | int] = []
    rest: list[str | int] = []
    for part in loc:
        in_mapping = isinstance(values, Mapping) and part in values
        in_list = isinstance(values, list) and isinstance(part, int) and part < len(values)
        if in_mapping or in_list:
            values = cast("Mapping[str | int, object]", values)[part]
            path.append(part)
            rest.clear()
        else:
            rest.append(part)
    return tuple(path), tuple(rest)


def _message(
    detail: ErrorDetails, path: KeyPath, *, model: type[BaseModel], values: JsonValue
) -> str:
    kind = detail["type"]
    inside = f" in {key_text(path[:-1])}" if len(path) > 1 else ""
    if kind == "extra_forbidden":
        near = did_you_mean(str(path[-1]), known_keys(model, path[:-1]))
        return f"unknown key '{key_name(path)}'{inside}{near}"
    if kind == "missing":
        return f"key '{key_name(path)}' is missing{inside}"
    subject = key_text(path) or "the document"
    if kind in _SAID_BY_TYPE:
        return f"{subject} {_SAID_BY_TYPE[kind]}"
    context = detail.get("ctx", {})
    if kind in _SAID_WITH_LIMIT:
        said, name = _SAID_WITH_LIMIT[kind]
        return f"{subject} {said.format(context.get(name))}"
    if kind in {"value_error", "assertion_error"}:
        said = _masked(str(context.get("error", "")), values, path)
        return f"{subject} {said}" if path or said == _NOT_VALID else said
    return f"{subject} is not valid ({kind})"


def _masked(message: str, values: object, path: KeyPath) -> str:
    """Blank whatever of the refused input the author of a validator put into the message."""
    for part in path:
        values = cast("Mapping[str | int, object]", values)[part]
    for leaf in sorted(_leaves(values), key=len, reverse=True):
        message = message.replace(leaf, MASK)
    return message or _NOT_VALID


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif value is not None and len(str(value)) >= _SHORTEST_ECHO:
        yield str(value)


def known_keys(model: type[BaseModel], path: KeyPath) -> frozenset[str]:
    """Return the keys that the model allows at a path, for suggestions."""
    models: set[type[BaseModel]] = {model}
    annotations: list[object] = []
    for part in path:
        if models and isinstance(part, str):
            annotations = [
                field.annotation
                for each in models
                for name, field in each.model_fields.items()
                if part in {name, field.alias}
            ] or annotations
        models = {found for annotation in annotations for found in _models_in(annotation)}
    return frozenset(
        field.alias or name for each in models for name, field in each.model_fields.items()
    )


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
