"""The order of keys for people: what identifies a thing first, as the models list it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, get_args

from pydantic import JsonValue

from lumos.core.models.base import CanonicalModel

_SHAPES_KEPT = 1_000


class _Shape(NamedTuple):
    """What brings objects of the same keys into order, and what of them is ordered in turn."""

    moved_to_end: tuple[str, ...]
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

    def arrange(self, value: JsonValue) -> None:
        """Put the keys within a value in order, in place; free JSON within it is left as it is."""
        for item in value if isinstance(value, list) else (value,):
            if not isinstance(item, dict):
                if isinstance(item, list):
                    self.arrange(item)
                continue
            keys = tuple(item)
            moved_to_end, nested = self._shapes.get(keys) or self._shape_of(keys)
            for name in moved_to_end:
                item[name] = item.pop(name)
            for name, inner in nested:
                inner.arrange(item[name])

    def _shape_of(self, keys: tuple[str, ...]) -> _Shape:
        """Say once how objects with these keys are ordered: most objects of a model have few."""
        known = [name for name in self._inner if name in keys]
        ordered = (*known, *(name for name in keys if name not in self._inner))
        nested = tuple((name, inner) for name in known if (inner := self._inner[name]))
        shape = _Shape(ordered[_in_order(keys, ordered) :], nested)
        if len(self._shapes) < _SHAPES_KEPT:
            self._shapes[keys] = shape
        return shape


def _in_order(keys: tuple[str, ...], wanted: tuple[str, ...]) -> int:
    """Count the first of the wanted keys that follow each other already."""
    places = [keys.index(name) for name in wanted]
    return next((n for n in range(1, len(places)) if places[n] < places[n - 1]), len(places))


def _order_of(model: type[CanonicalModel], known: dict[type, KeyOrder]) -> KeyOrder:
    if model not in known:
        model.model_rebuild()
        known[model] = order = KeyOrder()
        for name, field in model.model_fields.items():
            inner = _model_in(field.annotation)
            order.add(name, _order_of(inner, known) if inner else None)
    return known[model]


def _model_in(annotation: object) -> type[CanonicalModel] | None:
    """Find the model in an annotation such as `tuple[Field, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, CanonicalModel):
        return annotation
    found = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in found if model), None)
