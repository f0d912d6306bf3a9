"""Assertions and how they came out, as OpenMetadata's test cases and results, and back.

Tables have test cases, containers have none. What of an assertion its test case cannot hold, and
assertions that no test case can be made of, are the business of the stash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import orjson

from lumos.core.json_reading import object_at, required_integer_at
from lumos.core.models.base import canonical_json
from lumos.core.models.quality import AssertionResult, AssertionStatus, DQAssertion
from lumos.core.platform.impl.openmetadata.mapping.names import decoded, entity_name, fqn, path_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import LumosDataset

TESTS: Final = "testCases"
"""Where the test cases of a table are put beside what its own entity says."""
OWN_TESTS: Final = "tests"
"""Where the stash names the test cases that Lumos made; it removes no others."""
_TABLE_CHECK: Final = "lumosTableCheck"
_COLUMN_CHECK: Final = "lumosColumnCheck"
_KIND: Final = "kind"
_EXPRESSION: Final = "expression"
_PARAMETERS: Final = "parameters"
OWN_PARAMETERS: Final = (_KIND, _EXPRESSION, _PARAMETERS)
OWN_DEFINITIONS: Final = {_TABLE_CHECK: "TABLE", _COLUMN_CHECK: "COLUMN"}
_LINK = re.compile(r"<#E::table::(?P<table>.+?)(?:::columns::(?P<column>.+?))?>\Z", re.DOTALL)
_UNLINKABLE = re.compile(r"[<>|]|::|:\Z|\A:")
_STATUS: Final[Mapping[AssertionStatus, str]] = {
    AssertionStatus.PASSED: "Success",
    AssertionStatus.FAILED: "Failed",
    AssertionStatus.WARNING: "Failed",
    AssertionStatus.ERROR: "Aborted",
}
_STATUS_OF: Final[Mapping[str, AssertionStatus]] = {
    "Success": AssertionStatus.PASSED,
    "Failed": AssertionStatus.FAILED,
    "Aborted": AssertionStatus.ERROR,
    "Queued": AssertionStatus.SKIPPED,
}
_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)


class _Definition(NamedTuple):
    """A test that OpenMetadata knows by itself, and where the parts of an assertion go in it."""

    name: str
    expression: str | None = None
    parameters: Mapping[str, str] = {}


_DEFINITIONS: Final[Mapping[str, _Definition]] = {
    "not_null": _Definition("columnValuesToBeNotNull"),
    "unique": _Definition("columnValuesToBeUnique"),
    "regex": _Definition("columnValuesToMatchRegex", expression="regex"),
    "accepted_values": _Definition("columnValuesToBeInSet", parameters={"values": "allowedValues"}),
    "sql": _Definition("tableCustomSQLQuery", expression="sqlExpression"),
}
_KIND_OF: Final = {definition.name: kind for kind, definition in _DEFINITIONS.items()}


class PlannedTest(NamedTuple):
    """A test case to be, in the form in which the server gives test cases out."""

    fqn: str
    case: Json
    result: Json | None

    @property
    def told(self) -> Json:
        return {**self.case, "testCaseResult": self.result} if self.result else self.case


def planned_tests(dataset: LumosDataset, table: str) -> dict[str, PlannedTest]:
    """Return the test cases of a table of this name, by their fully qualified names."""
    columns = {field.name for field in dataset.schema.fields}
    checks = {check.name: check for check in (dataset.quality.checks if dataset.quality else ())}
    planned: dict[str, PlannedTest] = {}
    for assertion in dataset.assertions:
        if assertion.column not in {None, *columns}:
            continue
        column = None if assertion.column is None else entity_name(assertion.column)
        if _UNLINKABLE.search(table) or (column and ("." in column or _UNLINKABLE.search(column))):
            continue
        case = _case(assertion, table, column=column)
        place = (*path_of(table), *((column,) if column else ()), str(case["name"]))
        planned.setdefault(
            fqn(place), PlannedTest(fqn(place), case, _result(checks.get(assertion.name)))
        )
    return planned


def told_quality(cases: JsonValue | None) -> Json:
    """Return what test cases say, as parts of a dataset."""
    given = [each for each in cases if isinstance(each, dict)] if isinstance(cases, list) else []
    given.sort(key=lambda case: str(case["name"]))
    told: Json = {}
    if given:
        told["assertions"] = [_told_assertion(case) for case in given]
    checks = {str(case["name"]): _told_check(case) for case in given if case.get("testCaseResult")}
    if checks:
        told["quality"] = {"checks": [*checks.values()]}
    return told


def _case(assertion: DQAssertion, table: str, *, column: str | None) -> Json:
    definition, values = _test_of(assertion)
    link = f"<#E::table::{table}::columns::{column}>" if column else f"<#E::table::{table}>"
    case: Json = {
        "name": entity_name(assertion.name),
        "description": assertion.description or None,
        "entityLink": link,
        "testDefinition": {"name": definition, "fullyQualifiedName": definition},
        "parameterValues": [{"name": name, "value": value} for name, value in values.items()],
    }
    return {name: value for name, value in case.items() if value}


def _test_of(assertion: DQAssertion) -> tuple[str, dict[str, str]]:
    """Return the definition of a test, and its values; one of OpenMetadata's own where it fits."""
    known = _DEFINITIONS.get(assertion.kind or "")
    if known is not None and known.name.startswith("column") == (assertion.column is not None):
        values = {known.parameters.get(name): value for name, value in assertion.parameters.items()}
        fits = None not in values and values.keys() == set(known.parameters.values())
        if fits and (assertion.expression is None) == (known.expression is None):
            expression = {known.expression: assertion.expression} if known.expression else {}
            texts = {str(name): _text(value) for name, value in values.items()}
            return known.name, {**texts, **cast("dict[str, str]", expression)}
    parts = {
        _KIND: assertion.kind,
        _EXPRESSION: assertion.expression,
        _PARAMETERS: _text(dict(assertion.parameters)) if assertion.parameters else None,
    }
    given = {name: value for name, value in parts.items() if value}
    return _COLUMN_CHECK if assertion.column is not None else _TABLE_CHECK, given


def _result(check: AssertionResult | None) -> Json | None:
    if check is None or check.timestamp is None or check.timestamp < _EARLIEST:
        return None
    status = _STATUS.get(check.status)
    if status is None:
        return None
    result: Json = {
        "timestamp": round(check.timestamp.timestamp() * 1_000),
        "testCaseStatus": status,
    }
    return {**result, "result": check.details} if check.details else result


def newer(result: Json, held: JsonValue | None) -> bool:
    """Return whether a result came after the one that a test case has."""
    known = held.get("timestamp") if isinstance(held, dict) else None
    return not isinstance(known, int) or required_integer_at(result, "timestamp") > known


def definition_of(case: Json) -> str:
    """Return the name of the definition of a test case."""
    definition = case.get("testDefinition")
    given = definition if isinstance(definition, dict) else {}
    return str(given.get("fullyQualifiedName") or given.get("name"))


def _told_assertion(case: Json) -> Json:
    definition = definition_of(case)
    link = _LINK.match(str(case.get("entityLink")))
    column = link["column"] if link else None
    told: Json = {"name": decoded(str(case["name"])), "column": column and decoded(column)}
    if case.get("description"):
        told["description"] = case["description"]
    values = case.get("parameterValues")
    given = {
        str(each["name"]): each.get("value")
        for each in (values if isinstance(values, list) else [])
        if isinstance(each, dict) and each.get("name")
    }
    return told | _told_parts(definition, given)


def _told_parts(definition: str, given: dict[str, JsonValue]) -> Json:
    if definition in OWN_DEFINITIONS:
        text = given.get(_PARAMETERS)
        parameters = _value(text)
        told = {_KIND: given.get(_KIND), _EXPRESSION: given.get(_EXPRESSION)}
        return {**told, _PARAMETERS: parameters if isinstance(parameters, dict) else {}}
    kind = _KIND_OF.get(definition)
    known = _DEFINITIONS[kind] if kind else _Definition(definition)
    back = {theirs: ours for ours, theirs in known.parameters.items()}
    parameters = {
        back.get(name, name): _value(value) if name in back else value
        for name, value in given.items()
        if name != known.expression
    }
    expression = given.get(known.expression) if known.expression else None
    return {_KIND: kind or definition, _EXPRESSION: expression, _PARAMETERS: parameters}


def _told_check(case: Json) -> Json:
    result = object_at(case, "testCaseResult")
    status = _STATUS_OF.get(str(result.get("testCaseStatus")), AssertionStatus.ERROR)
    at = datetime.fromtimestamp(required_integer_at(result, "timestamp") / 1_000, UTC)
    name = decoded(str(case["name"]))
    told: Json = {"name": name, "status": status, "timestamp": at.isoformat()}
    return {**told, "details": result["result"]} if result.get("result") else told


def _text(value: object) -> str:
    return canonical_json(value).decode()


def _value(text: JsonValue | None) -> JsonValue:
    if not isinstance(text, str):
        return text
    try:
        found: JsonValue = orjson.loads(text)
    except ValueError:
        return text
    return found
