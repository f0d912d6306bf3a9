"""The golden cases of the change rules: read from plain text, laid over any dataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import JsonValue
from ruamel.yaml import YAML

from lumos.core.models import Change, LumosDataset

FOLDER = Path(__file__).parent / "golden" / "changes"
PLAIN: dict[str, JsonValue] = {
    "urn": "lumos://postgres/shop/orders",
    "name": "orders",
    "platform": "postgres",
}

Json = dict[str, JsonValue]


@dataclass(frozen=True)
class Case:
    """A dataset before and after one change; only the parts that matter are given."""

    rule: str
    before: Json | None
    after: Json | None
    findings: tuple[Json, ...]

    @property
    def touched(self) -> set[str]:
        return {*(self.before or {}), *(self.after or {})}

    def datasets(self, base: Json = PLAIN) -> tuple[LumosDataset | None, LumosDataset | None]:
        """Return both states as they look on top of a dataset that is otherwise the same."""
        rest = self._without_touched(
            {**base, **{name: PLAIN[name] for name in self.touched & PLAIN.keys()}}
        )
        return self._laid_over(rest, self.before), self._laid_over(rest, self.after)

    def _without_touched(self, base: Json) -> Json:
        rest = dict(base)
        for part in (self.before or {}, self.after or {}):
            for name, value in part.items():
                inner = rest.get(name)
                if isinstance(value, dict) and isinstance(inner, dict):
                    rest[name] = {
                        key: old
                        for key, old in inner.items()
                        if key not in value or key == "fields"
                    }
                elif name not in PLAIN:
                    rest.pop(name, None)
        return rest

    def _laid_over(self, rest: Json, part: Json | None) -> LumosDataset | None:
        if part is None:
            return None
        document = dict(rest)
        for name, value in part.items():
            inner = rest.get(name)
            document[name] = (
                {**inner, **value} if isinstance(value, dict) and isinstance(inner, dict) else value
            )
        if isinstance(document.get("schema"), dict):
            document["schema"] = self._with_fields(rest, document)
        return LumosDataset.from_json(document)

    def _with_fields(self, rest: Json, document: Json) -> JsonValue:
        mine = {
            field["name"] for part in (self.before, self.after) for field in _fields(part or {})
        }
        kept = [field for field in _fields(rest) if field["name"] not in mine]
        own = [field for field in _fields(document) if field["name"] in mine]
        schema = cast("Json", document["schema"])
        return {**schema, "fields": [*kept, *own]}


def _fields(document: Json) -> list[Json]:
    schema = document.get("schema")
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return cast("list[Json]", fields or [])


def load_cases() -> tuple[Case, ...]:
    """Read every golden case, in the order of the files and their text."""
    yaml = YAML(typ="safe", pure=True)
    return tuple(
        Case(rule, case["before"], case["after"], tuple(case["findings"]))
        for path in sorted(FOLDER.glob("*.yaml"))
        for rule, case in yaml.load(path).items()
    )


def as_finding(change: Change) -> Json:
    """Return a change as the golden cases write it."""
    finding: Json = {
        "rule": change.rule,
        "path": change.path,
        "level": change.level.value,
        "bump": change.bump.value,
    }
    flags: Json = {name: True for name in ("caution", "widening") if getattr(change, name)}
    return {**finding, **flags, "message": change.message}
