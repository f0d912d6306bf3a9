"""The order of keys for people: what identifies a thing first, as the models list it."""

from __future__ import annotations

from functools import cache
from typing import get_args

from pydantic import JsonValue

from lumos.core.models.base import CanonicalModel


class KeyOrder:
    """The keys of one model in its own order, and the models that lie under them."""

    def __init__(self) -> None:
        self._inner: dict[str, KeyOrder | None] = {}

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
            return [self.ordered(item) for item in value]
        if not isinstance(value, dict):
            return value
        found: dict[str, JsonValue] = {}
        for name, inner in self._inner.items():
            if name in value:
                found[name] = inner.ordered(value[name]) if inner else value[name]
        return found | {name: rest for name, rest in value.items() if name not in found}


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
