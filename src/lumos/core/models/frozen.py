"""Mappings and lists that nobody changes: what a frozen model holds stays as it was validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

from pydantic_core import PydanticCustomError
from typing_extensions import override

if TYPE_CHECKING:
    from pydantic import JsonValue

K = TypeVar("K")
V = TypeVar("V")

DEEPEST_JSON = 64
"""How deep free JSON may be nested; with the deepest type around it, it can still be written."""


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("part of a frozen model cannot be changed; make a copy with other parts")


class FrozenDict(dict[K, V]):
    """A dict that cannot be changed; it equals, prints and serialises as any dict."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    @override
    def __reduce__(self) -> tuple[type[Self], tuple[dict[K, V]]]:
        return type(self), (dict(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self  # all within is frozen too


class FrozenList(list[V]):
    """A list that cannot be changed; it equals, prints and serialises as any list."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    @override
    def __reduce__(self) -> tuple[type[Self], tuple[list[V]]]:
        return type(self), (list(self),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self


def frozen_mapping(mapping: Mapping[K, V]) -> Mapping[K, V]:
    """Return a mapping of values that are immutable themselves."""
    return FrozenDict(mapping)


def frozen_json(value: JsonValue, *, depth: int = 0) -> JsonValue:
    """Return parsed JSON that cannot be changed at any depth."""
    if depth > DEEPEST_JSON:
        raise PydanticCustomError(
            "too_deep", "nested more than {levels} levels deep", {"levels": DEEPEST_JSON}
        )
    if isinstance(value, dict):
        return FrozenDict(
            {name: frozen_json(inner, depth=depth + 1) for name, inner in value.items()}
        )
    if isinstance(value, list):
        return FrozenList(frozen_json(inner, depth=depth + 1) for inner in value)
    return value
