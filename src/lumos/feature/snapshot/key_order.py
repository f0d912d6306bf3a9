"""The order of keys for people: what identifies a thing first, as the models list it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, get_args

from pydantic import JsonValue

from lumos.core.models.base import CanonicalModel

_SHAPES_KEPT = 1_000


class _Shape(NamedTuple):
    """How objects of the same keys are ordered, and what of them is ordered in turn."""

    keys: tuple[str, ...]
    nested: tuple[tuple[str, KeyOrder], ...]


class KeyOrder:
    """The keys of one model in its own order, and the models that lie under them."""

    def __init__(self) -> None:
        self._inner: dict[str, KeyOrder | None] = {}
        self._shapes: dict[tuple[str, ...], _Shape] = {}

    @classmethod
    @cache
    def of(cls, model: type[CanonicalModel]) -> KeyOrder:
        """Return the order of a model, nested to any depth."""
        return _order_of(model, {})

    def under(self, name: str) -> KeyOrder | None:
        """Return the order of what lies under a key, or None where it is free JSON."""
        return self._inner.get(name)

    def add(self, name: str, inner: KeyOrder | None) -> None:
        self._inner[name] = inner

    def ordered(self, value: JsonValue) -> JsonValue:
        """Return the value with its keys in order; free JSON within it is left as it is."""
        if isinstance(value, list):
            return self._ordered_items(value)
        return self._ordered_items([value])[0]

    def _ordered_items(self, items: list[JsonValue]) -> list[JsonValue]:
        ordered: list[JsonValue] = []
        for item in items:
            if not isinstance(item, dict):
                ordered.append(self.ordered(item) if isinstance(item, list) else item)
                continue
            keys = tuple(item)
            shape = self._shapes.get(keys) or self._shape_of(keys)
            found: dict[str, JsonValue] = {name: item[name] for name in shape.keys}
            for name, inner in shape.nested:
                found[name] = inner.ordered(found[name])
            ordered.append(found)
        return ordered

    def _shape_of(self, keys: tuple[str, ...]) -> _Shape:
        """Say once how objects with these keys are ordered: most objects of a model have few."""
        known = [name for name in self._inner if name in keys]
        ordered = (*known, *(name for name in keys if name not in self._inner))
        nested = tuple((name, inner) for name in known if (inner := self._inner[name]))
        shape = _Shape(ordered, nested)
        if len(self._shapes) < _SHAPES_KEPT:
            self._shapes[keys] = shape
        return shape


def _order_of(model: type[CanonicalModel], known: dict[type, KeyOrder]) -> KeyOrder:
    if model not in known:
        model.model_rebuild()
        known[model] = order = KeyOrder()
        for name, field in model.model_fields.items():
            inner = _model_in(field.annotation)
            order.add(name, _order_of(inner, known) if inner else None)
    return known[model]


def _model_in(annotation: object) -> type[CanonicalModel] | None:
    """Find the model that an annotation such as `tuple[Field, ...] | None` speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, CanonicalModel):
        return annotation
    found = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in found if model), None)
