"""The golden cases of the change rules: read from plain text, laid over any dataset."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import cast

from pydantic import JsonValue
from ruamel.yaml import YAML

from lumos.core.changes import (
    PROFILES,
    declared_version_changes,
    diff_datasets,
    diff_edges,
    diff_observations,
)
from lumos.core.models import Change, LineageEdge, LumosDataset

FOLDER = Path(__file__).parent / "golden" / "rules"
PLAIN: dict[str, JsonValue] = {
    "urn": "lumos://postgres/shop/orders",
    "name": "orders",
    "platform": "postgres",
}
PLAIN_EDGE: dict[str, JsonValue] = {
    "upstream_urn": "lumos://postgres/shop/customers",
    "downstream_urn": PLAIN["urn"],
}

Json = dict[str, JsonValue]


@dataclass(frozen=True)
class Case:
    """A dataset before and after one change; only the parts that matter are given."""

    rule: str
    before: Json | None
    after: Json | None
    findings: tuple[Json, ...]
    compares: str
    at: date | None
    observed: bool

    @property
    def is_plain(self) -> bool:
        """Whether two contracts are all that the case is made of."""
        return self.compares == "datasets" and self.at is None and self.observed

    @property
    def touched(self) -> set[str]:
        return {*(self.before or {}), *(self.after or {})}

    def changes(self, *, profile: str = "lumos") -> tuple[Change, ...]:
        """Return what the change engine finds."""
        if self.compares == "edges":
            before, after = (
                None if part is None else LineageEdge.from_json({**PLAIN_EDGE, **part})
                for part in (self.before, self.after)
            )
            return diff_edges(before, after, profile=profile)
        old, new = self.datasets()
        if self.compares == "observations":
            assert old is not None
            assert new is not None
            return diff_observations(old, new, profile=profile)
        at = datetime.combine(self.at, time(), UTC) if self.at else None
        changes = diff_datasets(old, new, profile=profile, at=at, observed=self.observed)
        if self.compares == "versions":
            return (*changes, *declared_version_changes(old, new, changes=changes, profile=profile))
        return changes

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
    """Read every golden case, by the name of its rule."""
    yaml = YAML(typ="safe", pure=True)
    cases = []
    for path in sorted(FOLDER.glob("*.yaml")):
        case = yaml.load(path)
        cases.append(
            Case(
                path.stem,
                case["before"],
                case["after"],
                findings=tuple(case.get("findings", ())),
                compares=case.get("compares", "datasets"),
                at=case.get("at"),
                observed=case.get("observed", True),
            )
        )
    return tuple(cases)


def as_finding(change: Change) -> Json:
    """Return a change as the golden cases write it, without its levels."""
    flags: Json = {"widening": True} if change.widening else {}
    return {
        "rule": change.rule,
        "path": change.path,
        "direction": change.direction.value,
        **flags,
        "message": change.message,
    }


def found(case: Case) -> list[Json]:
    """Return what is found, with the level and the bump under every profile."""
    told: dict[str, Json] = {}
    levels: dict[str, Json] = {}
    for profile in PROFILES:
        for change in case.changes(profile=profile):
            key = f"{change.rule} {change.path} {change.fingerprint}"
            if profile == "lumos":
                told[key] = as_finding(change)
            levels.setdefault(key, {})[profile] = verdict_of(change)
    return [{**finding, "levels": levels[key]} for key, finding in told.items()]


def verdict_of(change: Change) -> str:
    """Write a level, its caution and its bump: `NON_BREAKING! MINOR`."""
    return f"{change.level}{'!' if change.caution else ''} {change.bump}"
