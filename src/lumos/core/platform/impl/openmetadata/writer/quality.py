"""The test cases of tables: read beside their tables, and brought up to date."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Final

from lumos.core.errors import PlatformConflictError, PlatformFailureError
from lumos.core.json_reading import object_at
from lumos.core.platform.impl.openmetadata.mapping.changes import changes
from lumos.core.platform.impl.openmetadata.mapping.quality import (
    OWN_DEFINITIONS,
    OWN_PARAMETERS,
    TESTS,
    definition_of,
    newer,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.impl.openmetadata.mapping.quality import PlannedTest
    from lumos.core.platform.impl.openmetadata.writer.fields import FieldWriter

_CHANGEABLE: Final = ("description", "parameterValues")
_ATTEMPTS: Final = 3


class QualityWires:
    """Reads and writes the test cases of one server."""

    def __init__(self, api: OpenMetadataApi, fields: FieldWriter) -> None:
        self._api = api
        self._fields = fields
        self._defined: set[str] = set()
        self._making = RLock()

    def with_tests(self, type_: str, entity: Json) -> Json:
        """Return an entity with its test cases beside it, if it has any."""
        if type_ != "table" or not entity.get("testSuite"):
            return entity
        name = str(entity["fullyQualifiedName"])
        cases = self._api.list("testCase", entityFQN=name, includeAllTests="true")
        return {**entity, TESTS: [*cases]}

    def write(self, entity: Json, planned: Mapping[str, PlannedTest], *, ours: set[str]) -> None:
        """Bring the test cases of a table up to date; those of others stay.

        Args:
            entity: the table, with its test cases.
            planned: what is to be there.
            ours: the fully qualified names of those that Lumos made before.
        """
        found = entity.get(TESTS)
        there = {
            str(case["fullyQualifiedName"]): case
            for case in (found if isinstance(found, list) else [])
            if isinstance(case, dict)
        }
        for name in sorted(ours & there.keys() - planned.keys()):
            self._api.delete("testCase", there[name])
        for name, test in planned.items():
            case = self._written(test, there.get(name))
            if test.result and newer(test.result, case.get("testCaseResult")):
                self._add_result(name, {**test.result, "testResultValue": []})

    def _add_result(self, name: str, result: Json) -> None:
        """Add a result, unless the server fails at it.

        It fails for good where the test case was made anew and an incident of the former one is
        open; the table is written all the same, and the result is in its stash.
        """
        failed: PlatformFailureError | None = None
        for _ in range(_ATTEMPTS):
            try:
                return self._api.add_result(name, result)
            except PlatformConflictError as error:
                if not isinstance(error.__cause__, PlatformFailureError):
                    raise
                failed = error.__cause__
            held = self._api.find("testCase", name) or {}
            if not newer(result, held.get("testCaseResult")):
                return None
        if failed is not None:
            self._fields.skip("testCaseResult", {"fullyQualifiedName": name}, error=failed)
        return None

    def _written(self, test: PlannedTest, held: Json | None) -> Json:
        definition = str(object_at(test.case, "testDefinition")["name"])
        if held is not None and definition_of(held) != definition:
            self._api.delete("testCase", held)
            held = None
        if held is None:
            with self._making:
                self._define(definition)
            body = {**test.case, "testDefinition": definition}
            return self._api.put("testCase", body)
        wanted: Json = {key: test.case[key] for key in _CHANGEABLE if key in test.case}
        if changed := changes(held, wanted, removable=_CHANGEABLE):
            self._api.patch("testCase", held, changes=changed)
        return held

    def _define(self, name: str) -> None:
        if name not in OWN_DEFINITIONS or name in self._defined:
            return
        if self._api.find("testDefinition", name) is None:
            parameters: list[JsonValue] = [
                {"name": each, "dataType": "STRING", "required": False} for each in OWN_PARAMETERS
            ]
            body: Json = {
                "name": name,
                "displayName": "Check of Lumos",
                "description": "A check that another tool runs, made known by Lumos.",
                "entityType": OWN_DEFINITIONS[name],
                "testPlatforms": ["Other"],
                "parameterDefinition": parameters,
            }
            self._api.put("testDefinition", body)
        self._defined.add(name)
