"""What the stand-in for an OpenMetadata server holds, and what it refuses to hold."""

from __future__ import annotations

import copy
import re
import threading
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

from doubles.openmetadata_index import refreshed
from doubles.openmetadata_profiles import check_profile
from doubles.openmetadata_rules import (
    ADMIN,
    BOT,
    check_labels,
    check_owners,
    check_rights,
    check_rules,
    check_term_name,
)
from doubles.openmetadata_tests import (
    BUILT_IN_TESTS,
    RefusedError,
    check_test_case,
    linked,
    placed_test_case,
    quoted,
)

Json = dict[str, Any]
_NAME = re.compile(r'(?!.*::)[^">\x00-\x1f\x7f]{1,256}\Z', re.DOTALL)
_USER = re.compile(r"[\w.-]{1,64}\Z")
_TAG = re.compile(r"<[^>]*>")
ON_REQUEST = {"owners", "tags", "domains", "extension", "columns", "tableConstraints",
              "schemaDefinition", "dataModel", "parent", "tasks", "customProperties", "testSuite",
              "tablePartition", "lifeCycle", "scheduleInterval", "certification", "dataProducts",
              "tableProfilerConfig",
              "testDefinition", "testCaseResult", "teams", "users"}  # fmt: skip
_COMMON = {"name", "displayName", "description", "owners", "tags", "domains", "extension"}
KNOWN: dict[str, set[str]] = {
    "tables": _COMMON | {"databaseSchema", "columns", "tableType", "tableConstraints", "sourceUrl",
                         "schemaDefinition", "retentionPeriod", "locationPath", "fileFormat",
                         "tablePartition", "dataModel", "lifeCycle"},
    "containers": _COMMON | {"service", "parent", "dataModel", "prefix", "fileFormats",
                             "sourceUrl", "fullPath", "numberOfObjects", "size", "lifeCycle"},
    "pipelines": _COMMON | {"service", "tasks", "sourceUrl", "scheduleInterval", "concurrency",
                            "pipelineLocation", "startDate"},
    "users": {"name", "displayName", "description", "email", "teams"},
    "teams": {"name", "displayName", "description", "email", "teamType", "users"},
    "classifications": {"name", "displayName", "description", "mutuallyExclusive"},
    "tags": {"name", "displayName", "description", "classification", "parent"},
    "glossaries": {"name", "displayName", "description", "mutuallyExclusive"},
    "glossaryTerms": {"name", "displayName", "description", "glossary", "parent", "synonyms",
                      "tags"},
    "domains": {"name", "displayName", "description", "domainType", "parent"},
    "databases": {"name", "service", "owners", "domains"},
    "databaseSchemas": {"name", "database", "owners", "domains"},
    "services/databaseServices": {"name", "serviceType", "owners", "domains"},
    "services/storageServices": {"name", "serviceType", "owners", "domains"},
    "services/pipelineServices": {"name", "serviceType", "owners", "domains"},
    "dataQuality/testDefinitions": {"name", "displayName", "description", "entityType",
                                    "testPlatforms", "parameterDefinition"},
    "dataQuality/testCases": {"name", "displayName", "description", "testDefinition",
                              "entityLink", "parameterValues"},
}  # fmt: skip
_PARENTS = {
    "tables": ("databaseSchema", "databaseSchemas"),
    "databaseSchemas": ("database", "databases"),
    "databases": ("service", "services/databaseServices"),
    "containers": ("service", "services/storageServices"),
    "pipelines": ("service", "services/pipelineServices"),
    "tags": ("classification", "classifications"),
    "glossaryTerms": ("glossary", "glossaries"),
}
_OF_SCHEMAS = ("tables", "dataQuality/testCases")
_WITHIN: dict[str, tuple[str, ...]] = {
    "services/databaseServices": ("databases", "databaseSchemas", *_OF_SCHEMAS),
    "services/storageServices": ("containers",),
    "services/pipelineServices": ("pipelines",),
    "databases": ("databaseSchemas", *_OF_SCHEMAS),
    "databaseSchemas": _OF_SCHEMAS,
    "tables": ("dataQuality/testCases",),
    "classifications": ("tags",),
    "glossaries": ("glossaryTerms",),
}
"""What goes with an entity that is deleted."""
TYPE_OF = {
    **{name: name.rpartition("/")[2].removesuffix("s") for name in KNOWN},
    "glossaries": "glossary",
}
_NEVER_DELETED_SOFTLY = {"domains"}
_NEED_DESCRIPTION = {"tags", "classifications", "glossaries", "glossaryTerms", "domains"}


class Message(NamedTuple):
    """A request and its answer."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    answer: Any


class OpenMetadataStore:
    """What the double holds; `requests` tells what was asked of it.

    It has the default rules of a server, and whoever asks is a bot unless it has the token of an
    administrator.
    """

    def __init__(self) -> None:
        self.entities: dict[str, dict[str, Json]] = {name: {} for name in KNOWN}
        self.edges: dict[tuple[str, str], Json] = {}
        self.profiles: dict[str, list[Json]] = {}
        self.types: dict[str, Json] = {
            name: {
                "id": str(uuid.uuid4()),
                "name": name,
                "description": f"What a {name} is.",
                "customProperties": [],
            }
            for name in ("table", "container", "pipeline", "string", "integer", "enum")
        }
        self.requests: list[tuple[str, str]] = []
        self.recorded: list[Message] | None = None
        self.version = "1.11.0"
        self.unstorable: set[str] = set()
        self.caller = BOT
        """Who sent the request that is answered now."""
        self.incidents: dict[str, str] = {}
        """The id of the test case that an open incident belongs to, by its full name."""
        self.index: dict[str, dict[str, Json]] = {}
        self.lags = False
        """Whether the index waits for `refresh`; the index of a server follows within seconds."""
        self.url = ""
        self.lock = threading.RLock()
        for name, tags in (("PII", ("Sensitive", "NonSensitive")), ("Tier", ("Tier1", "Tier2"))):
            made: Json = {"description": "", "provider": "system"}
            self._add("classifications", {"name": name, "mutuallyExclusive": True, **made})
            for tag in tags:
                self._add("tags", {"name": tag, "classification": name, **made})
        self._add("users", {"name": BOT, "email": "bot@example.org", "isBot": True})
        self._add("users", {"name": ADMIN, "email": "admin@example.org", "isAdmin": True})
        self._add("teams", {"name": "Organization", "teamType": "Organization"})
        for definition in BUILT_IN_TESTS:
            self._add("dataQuality/testDefinitions", dict(definition))

    def refresh(self) -> None:
        """Let the index catch up with what was written."""
        self.index = refreshed(self)

    def searched(self) -> OpenMetadataStore:
        """Return the store with the index that a search sees."""
        if not self.lags:
            self.refresh()
        return self

    def writes(self) -> list[tuple[str, str]]:
        """Return the requests that were no reads."""
        return [each for each in self.requests if each[0] != "GET"]

    def by_name(self, collection: str, name: str) -> Json:
        found = self.entities[collection].get(name)
        if found is None or found.get("deleted"):
            raise RefusedError(404)
        return found

    def by_id(self, identity: str) -> tuple[str, Json]:
        for collection, entities in self.entities.items():
            for entity in entities.values():
                if entity["id"] == identity:
                    return collection, entity
        raise RefusedError(404)

    def put(self, collection: str, body: Json) -> tuple[Json, bool]:
        """Create an entity or fill one up; tell whether it is new."""
        if body.keys() - KNOWN[collection]:
            raise RefusedError(400, "unrecognized field")
        self._check(collection, body)
        name = self._full_name(collection, body)
        if collection == "dataQuality/testCases":
            check_test_case(self, body)
        held = self.entities[collection].get(name)
        if held is None:
            if collection == "users":
                self._refuse_known_address(body)
            if collection == "glossaryTerms":
                check_term_name(self, body)
            check_rules(collection, {**body, **self._stored(collection, body)})
            return self._add(collection, body), True
        filled = {**held, **self._filling(held, {**body, **self._stored(collection, body)})}
        filled["deleted"] = False
        check_rules(collection, filled, held)
        if filled != held:
            filled["version"] = round(held["version"] + 0.1, 1)
        held.update(filled)
        return held, False

    def post(self, collection: str, body: Json) -> Json:
        """Create an entity; one of its name, deleted or not, is in the way."""
        if self._full_name(collection, body) in self.entities[collection]:
            raise RefusedError(409, "Entity already exists")
        return self.put(collection, body)[0]

    def _filling(self, held: Json, given: Json) -> Json:
        """Return what a `PUT` changes of what is there; a bot overwrites nothing that was set."""
        kept = {"owners", "description", "email", "parent", "testDefinition"}
        kept |= {key for key, _ in _PARENTS.values()}
        kept |= {"displayName", "domains"} if self.caller == BOT else set()
        changed = {key: given[key] for key in given if key not in kept or not held.get(key)}
        if "tags" in given:
            changed["tags"] = _merged_labels(held.get("tags") or [], given["tags"])
        return changed

    def patch(self, collection: str, identity: str, *, operations: list[Json], match: str) -> Json:
        found, entity = self.by_id(identity)
        if found != collection:
            raise RefusedError(404)
        check_rights(self.caller, operations)
        if match and match != f'W/"{entity["version"]}"':
            raise RefusedError(412)
        changed = copy.deepcopy(entity)
        for operation in operations:
            _operate(changed, operation)
        body = {key: value for key, value in changed.items() if key in KNOWN[collection]}
        self._check(collection, {**body, "name": entity["name"]}, parents=False)
        if collection == "users":
            changed["email"] = entity["email"]  # a changed one is ignored, and the answer is 200
        changed |= self._stored(collection, changed)
        check_rules(collection, changed, entity)
        if changed != entity:
            changed["version"] = round(entity["version"] + 0.1, 1)
        entity.clear()
        entity.update(changed)
        return entity

    def delete(self, collection: str, identity: str, *, for_good: bool = True) -> None:
        found, entity = self.by_id(identity)
        if found != collection:
            raise RefusedError(404)
        if not for_good:
            entity["deleted"] = True
            return
        name = entity["fullyQualifiedName"]
        for within in {collection, *_WITHIN.get(collection, ())}:
            for other in [each for each in self.entities[within] if each.startswith(f"{name}.")]:
                if other in self.entities[within]:  # it may have gone with another
                    self.delete(within, self.entities[within][other]["id"])
        del self.entities[collection][name]
        self.edges = {ends: edge for ends, edge in self.edges.items() if identity not in ends}

    def reference(self, collection: str, entity: Json) -> Json:
        return {
            "id": entity["id"],
            "type": TYPE_OF[collection],
            "name": entity["name"],
            "fullyQualifiedName": entity["fullyQualifiedName"],
        }

    def lineage(self, collection: str, name: str) -> Json:
        entity = self.by_name(collection, name)
        own = entity["id"]
        up = [edge for (_, to), edge in self.edges.items() if to == own]
        down = [edge for (source, _), edge in self.edges.items() if source == own]
        others = {edge["fromEntity"] for edge in up} | {edge["toEntity"] for edge in down}
        return {
            "entity": self.reference(collection, entity),
            "nodes": [self.reference(*self.by_id(each)) for each in sorted(others)],
            "upstreamEdges": up,
            "downstreamEdges": down,
        }

    def put_edge(self, edge: Json) -> None:
        ends = [self.by_id(edge[end]["id"]) for end in ("fromEntity", "toEntity")]
        details = copy.deepcopy(edge.get("lineageDetails") or {})
        columns = [column_names(entity) for _, entity in ends]
        kept = []
        for mapping in details.get("columnsLineage", []):  # unknown columns are dropped in silence
            known = [each for each in mapping["fromColumns"] if each in columns[0]]
            if known and mapping["toColumn"] in columns[1]:
                kept.append({**mapping, "fromColumns": known})
        if "columnsLineage" in details:
            details["columnsLineage"] = kept
        if "pipeline" in details:
            details["pipeline"] = self.reference(*self.by_id(details["pipeline"]["id"]))
        source, target = (entity["id"] for _, entity in ends)
        self.edges[source, target] = {
            "fromEntity": source,
            "toEntity": target,
            "lineageDetails": details,
        }

    def declare(self, identity: str, body: Json) -> Json:
        """Add a custom property to a type of entity; its own type is known by its name, too."""
        kinds = {kind["id"]: kind for kind in self.types.values()}
        kind, value = kinds.get(identity), kinds.get(body["propertyType"]["id"])
        if kind is None or value is None:
            raise RefusedError(404)
        reference = {"id": value["id"], "type": "type", "name": value["name"]}
        kind["customProperties"].append({**body, "propertyType": reference})
        return kind

    def put_profile(self, identity: str, body: Json) -> Json:
        """Keep figures of one time; a second time at the same time they replace the first."""
        table = self.by_id(identity)[1]
        check_profile(table, body)
        at = body["tableProfile"]["timestamp"]
        kept = self.profiles.setdefault(identity, [])
        kept[:] = [each for each in kept if each["tableProfile"]["timestamp"] != at] + [body]
        return {**table, "profile": body["tableProfile"]}

    def add_result(self, name: str, body: Json) -> Json:
        """Keep how a test case came out; its latest result is what it shows."""
        case = self.by_name("dataQuality/testCases", name)
        if not {"timestamp", "testCaseStatus", "testResultValue"} <= body.keys():
            raise RefusedError(400, "result")
        opened = self.incidents.get(name)
        if opened is not None and opened != case["id"]:
            raise RefusedError(500, "the incident belongs to another test case")
        if body["testCaseStatus"] == "Failed":
            self.incidents[name] = case["id"]
        elif body["testCaseStatus"] == "Success":
            self.incidents.pop(name, None)
        held = case.get("testCaseResult")
        result = {**body, "testCaseFQN": name, "id": str(uuid.uuid4())}
        if held is None or held["timestamp"] <= body["timestamp"]:
            case["testCaseResult"] = result
        return result

    def _add(self, collection: str, body: Json) -> Json:
        name = self._full_name(collection, body)
        entity = {
            **body,
            **self._stored(collection, body),
            **self._above(collection, body),
            "id": str(uuid.uuid4()),
            "fullyQualifiedName": name,
            "version": 0.1,
            "deleted": False,
            "updatedAt": 1_700_000_000_000,
            "updatedBy": "ingestion-bot",
        }
        if collection in _NEVER_DELETED_SOFTLY:
            del entity["deleted"]
        self.entities[collection][name] = entity
        return entity

    def _above(self, collection: str, body: Json) -> Json:
        """Return references to what an entity lies in, however it was named."""
        found: Json = {}
        if collection == "dataQuality/testCases":
            found |= placed_test_case(self, body)
        if collection in _PARENTS:
            key, above = _PARENTS[collection]
            parent = self.by_name(above, body[key])
            found[key] = self.reference(above, parent)
            found |= {
                each: parent[each]
                for each in ("database", "service", "serviceType")
                if each in parent
            }
        if body.get("parent"):
            given = body["parent"]
            named = isinstance(given, str)
            parent = self.by_name(collection, given) if named else self.by_id(given["id"])[1]
            found["parent"] = self.reference(collection, parent)
        return found

    def _check(self, collection: str, body: Json, *, parents: bool = True) -> None:
        name = body.get("name", "")
        pattern = _USER if collection == "users" else _NAME
        if not pattern.match(name) or (collection == "users" and name != name.lower()):
            raise RefusedError(400, "name")
        if collection in _NEED_DESCRIPTION and not isinstance(body.get("description"), str):
            raise RefusedError(400, "description")
        if collection == "users" and not body.get("email"):
            raise RefusedError(400, "email")
        kind = self.types.get(TYPE_OF[collection], {"customProperties": []})
        declared = {each["name"] for each in kind["customProperties"]}
        if (body.get("extension") or {}).keys() - declared:
            raise RefusedError(400, "Unknown custom field")
        kinds = {each["name"]: each["propertyType"]["name"] for each in kind["customProperties"]}
        for name, value in (body.get("extension") or {}).items():
            if not isinstance(value, {"string": str, "integer": int}.get(kinds[name], list)):
                raise RefusedError(400, "Custom field has invalid JSON")
        if parents and collection in _PARENTS:
            key, above = _PARENTS[collection]
            if body[key] not in self.entities[above]:
                raise RefusedError(404, "parent")
        check_owners(self, body.get("owners") or [])
        for label in _labels(body):
            words = "tags" if label["source"] == "Classification" else "glossaryTerms"
            self.by_name(words, label["tagFQN"])
        check_labels(self, body)
        self._check_constraints(body)
        _check_columns((body.get("dataModel") or {}).get("columns") or body.get("columns") or [])

    def _check_constraints(self, body: Json) -> None:
        own = {each["name"] for each in body.get("columns") or []}
        for constraint in body.get("tableConstraints") or []:
            if not own.issuperset(constraint["columns"]):
                raise RefusedError(400, "Invalid column name found in table constraint")
            for referred in constraint.get("referredColumns") or []:
                if not any(referred in column_names(each) for each in self.live("tables")):
                    raise RefusedError(404, "referred column")

    def live(self, collection: str) -> list[Json]:
        """Return what is there and not deleted."""
        return [each for each in self.entities[collection].values() if not each.get("deleted")]

    def excludes(self, words: str, above: str) -> bool:
        """Tell whether of the labels below a name a thing may have one only."""
        roots = {"tags": "classifications", "glossaryTerms": "glossaries"}
        parent = self.entities[words].get(above) or self.entities[roots[words]].get(above) or {}
        return bool(parent.get("mutuallyExclusive"))

    def _refuse_known_address(self, body: Json) -> None:
        if any(each["email"] == body["email"] for each in self.entities["users"].values()):
            raise RefusedError(409)

    def _full_name(self, collection: str, body: Json) -> str:
        if collection == "dataQuality/testCases":
            return f"{linked(body['entityLink'])[0]}.{quoted(body['name'])}"
        name = quoted(body["name"])
        parent = body.get("parent")
        if isinstance(parent, dict):
            return f"{self.by_id(parent['id'])[1]['fullyQualifiedName']}.{name}"
        above = parent or body.get(_PARENTS.get(collection, ("",))[0])
        return f"{above}.{name}" if above else name

    def _stored(self, collection: str, body: Json) -> Json:
        """Return the parts that the server does not keep as they were sent."""
        stored: Json = {}
        if isinstance(body.get("description"), str):
            stored["description"] = _TAG.sub("", body["description"])
        if body.get("owners"):
            stored["owners"] = [self.reference(*self.by_id(each["id"])) for each in body["owners"]]
        if body.get("domains"):
            stored["domains"] = [
                self.reference("domains", self.by_name("domains", each))
                if isinstance(each, str)
                else self.reference(*self.by_id(each["id"]))
                for each in body["domains"]
            ]
        if collection in {"tables", "containers"}:
            for key in ("tags", "columns", "dataModel"):
                if body.get(key):
                    stored[key] = _cleaned(body[key])
        return stored


def _merged_labels(held: list[Json], given: list[Json]) -> list[Json]:
    known = {(each["tagFQN"], each["source"]) for each in held}
    return [*held, *(each for each in given if (each["tagFQN"], each["source"]) not in known)]


def _cleaned(value: Any) -> Any:
    """Return columns as they are stored: without HTML, and without labels that are derived."""
    if isinstance(value, list):
        return [_cleaned(each) for each in value if not _is_derived(each)]
    if isinstance(value, dict):
        return {
            key: _TAG.sub("", each) if key == "description" else _cleaned(each)
            for key, each in value.items()
        }
    return value


def _is_derived(label: Any) -> bool:
    return isinstance(label, dict) and label.get("labelType") == "Derived"


def _labels(value: Any) -> Iterator[Json]:
    if isinstance(value, list):
        for each in value:
            yield from _labels(each)
    elif isinstance(value, dict):
        if "tagFQN" in value:
            yield value
        else:
            yield from _labels([*value.values()])


def _check_columns(columns: list[Json]) -> None:
    for column in columns:
        if not _NAME.match(column["name"]):
            raise RefusedError(400, "column name")
        kind = column["dataType"]
        if kind in {"VARCHAR", "CHAR", "BINARY", "VARBINARY"} and not column.get("dataLength"):
            raise RefusedError(400, "dataLength")
        if kind == "ARRAY" and not column.get("arrayDataType"):
            raise RefusedError(400, "arrayDataType")
        if kind == "STRUCT" and not column.get("children"):
            raise RefusedError(400, "children")
        _check_columns(column.get("children") or [])


def column_names(entity: Json) -> set[str]:
    """Return the fully qualified names of the columns of a table or container."""
    columns = entity.get("columns") or (entity.get("dataModel") or {}).get("columns") or []
    names = (f'"{each["name"]}"' if "." in each["name"] else each["name"] for each in columns)
    return {f"{entity['fullyQualifiedName']}.{name}" for name in names}


def _operate(document: Json, operation: Json) -> None:
    *above, last = (
        part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
    )
    for part in above:
        if not isinstance(document.get(part), dict):
            raise RefusedError(400, "path")
        document = document[part]
    if operation["op"] != "add" and last not in document:
        raise RefusedError(400, "path")
    if operation["op"] == "remove":
        del document[last]
    else:
        document[last] = operation["value"]
