"""Test cases in the stand-in for an OpenMetadata server: what is known and what is refused."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doubles.openmetadata_store import OpenMetadataStore

Json = dict[str, Any]
_LINK = re.compile(r"<#E::table::((?:[^:<>|]|:[^:<>|])+)(?:::columns::((?:[^:<>|]|:[^:<>|])+))?>\Z")
_DEFINITIONS = "dataQuality/testDefinitions"


class RefusedError(Exception):
    """A request that the real server refuses too."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status


def _built_in(name: str, *, required: str = "", optional: tuple[str, ...] = ()) -> Json:
    parameters = [{"name": required, "dataType": "STRING", "required": True}] if required else []
    parameters += [{"name": each, "dataType": "STRING", "required": False} for each in optional]
    return {
        "name": name,
        "description": f"Checks that it is so: {name}.",
        "entityType": "COLUMN" if name.startswith("column") else "TABLE",
        "testPlatforms": ["OpenMetadata"],
        "parameterDefinition": parameters,
        "provider": "system",
    }


BUILT_IN_TESTS = (
    _built_in("columnValuesToBeNotNull"),
    _built_in("columnValuesToBeUnique"),
    _built_in("columnValuesToBeInSet", required="allowedValues"),
    _built_in("columnValuesToMatchRegex", required="regex"),
    _built_in("columnValuesToBeBetween", optional=("minValue", "maxValue")),
    _built_in("tableCustomSQLQuery", required="sqlExpression", optional=("strategy",)),
    _built_in("tableRowCountToBeBetween", optional=("minValue", "maxValue")),
)


def quoted(name: str) -> str:
    """Return a part of a fully qualified name; one with a dot is quoted."""
    return f'"{name}"' if "." in name else name


def linked(link: str) -> tuple[str, str, str | None]:
    """Return the fully qualified name that a link leads to, its table and its column."""
    found = _LINK.match(link)
    if found is None:
        raise RefusedError(400, "entityLink")
    table, column = found.groups()
    return (f"{table}.{quoted(column)}" if column else table), table, column


def check_test_case(store: OpenMetadataStore, body: Json) -> None:
    """Refuse a test case that does not fit its definition or its table."""
    _, table, column = linked(body["entityLink"])
    columns = {each["name"] for each in store.by_name("tables", table).get("columns") or []}
    definition = store.by_name(_DEFINITIONS, body["testDefinition"])
    if definition["entityType"] == "COLUMN" and column not in columns:
        raise RefusedError(400, "column")
    known = {each["name"]: each for each in definition["parameterDefinition"]}
    given = {each["name"]: each.get("value") for each in body.get("parameterValues") or []}
    if given.keys() - known.keys():
        raise RefusedError(400, "Parameter is not defined in the test definition")
    if any(each["required"] and not given.get(name) for name, each in known.items()):
        raise RefusedError(400, "Required parameter is not passed")


def placed_test_case(store: OpenMetadataStore, body: Json) -> Json:
    """Return the references of a test case; its table has a suite of tests from now on."""
    about, name, _ = linked(body["entityLink"])
    table = store.by_name("tables", name)
    suite = {"id": str(uuid.uuid4()), "type": "testSuite", "name": f"{name}.testSuite"}
    table.setdefault("testSuite", suite)
    definition = store.by_name(_DEFINITIONS, body["testDefinition"])
    return {
        "entityFQN": about,
        "testSuite": table["testSuite"],
        "testDefinition": store.reference(_DEFINITIONS, definition),
    }
