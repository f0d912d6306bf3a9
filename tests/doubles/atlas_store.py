"""The state behind the Atlas double: types, entities, classifications, terms; in memory.

It is written from the behaviour of Atlas 2.x as its sources show it, with the parts that catch
clients out: see `docs/how-to/atlas.md`.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from doubles.text_index import QuerySyntaxError, holds, terms_of

Json = dict[str, JsonValue]
_TYPE_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_ ]*\Z")
_TRAIT_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_ .]*\Z")
_LABEL = re.compile(r"[a-zA-Z0-9_-]{1,50}\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LONGEST_INDEXED = 32_766
_VALUE_TYPES = frozenset({
    "boolean", "byte", "short", "int", "long", "float", "double",
    "biginteger", "bigdecimal", "string", "date",
})  # fmt: skip
NOT_ALLOWED = "ATLAS-403-00-001"
MOST_IN_A_PAGE = 10_000
_BUILT_IN = {
    "Referenceable": ((), ("qualifiedName",)),
    "Asset": (("Referenceable",), ("name", "description", "owner", "displayName")),
    "DataSet": (("Asset",), ()),
    "Process": (("Asset",), ("inputs", "outputs")),
    "hive_table": (
        ("DataSet",),
        ("comment", "tableType", "createTime", "retention", "parameters", "aliases"),
    ),
    "hive_process": (("Process",), ("query", "queryText", "userName")),
    "hive_column": (("DataSet",), ("type", "comment", "position")),
    "hive_column_lineage": (("Process",), ("depenendencyType", "expression")),
    "hive_storagedesc": (("Referenceable",), ("location", "inputFormat", "compressed")),
    "rdbms_table": (("DataSet",), ("comment", "type", "createTime", "name_path")),
    "rdbms_column": (
        ("DataSet",),
        ("data_type", "length", "default_value", "comment", "isNullable", "isPrimaryKey"),
    ),
    "rdbms_foreign_key": (("DataSet",), ()),
    "rdbms_index": (("DataSet",), ("index_type", "isUnique", "comment")),
    "spark_table": (("DataSet",), ("tableType", "provider", "partitionColumnNames", "comment")),
    "spark_column": (("DataSet",), ("type", "nullable", "metadata", "comment")),
    "kafka_topic": (("DataSet",), ("topic", "uri", "partitionCount", "replicationFactor")),
    "aws_s3_v2_object": (
        ("DataSet",),
        ("bucketName", "size", "lastModifiedTime", "storageClass", "awsTags"),
    ),
    "aws_s3_v2_directory": (("aws_s3_v2_object",), ("objectPrefix", "storageLocation")),
    "adls_gen2_blob": (("DataSet",), ("url", "contentLength", "lastModifiedTime", "accessTier")),
    "hdfs_path": (("DataSet",), ("path", "fileSize", "modifiedTime", "isFile", "nameServiceId")),
    "hbase_table": (("DataSet",), ("uri", "parameters", "maxfilesize")),
}
_OWNING = {
    "columns": ("table", "dataset"),
    "partitionKeys": ("table",),
    "sd": ("table",),
    "foreign_keys": ("table",),
    "indexes": ("table",),
    "columnEdges": ("edge",),
}
"""Relations by which what is owned goes with its owner, and their names at the other end."""
_ENDS = ("key_columns", "references_table", "references_columns", "query")
_CATEGORIES = {
    "entityDefs": "ENTITY",
    "classificationDefs": "CLASSIFICATION",
    "relationshipDefs": "RELATIONSHIP",
    "businessMetadataDefs": "BUSINESS_METADATA",
}


class AtlasRefusalError(Exception):
    """An answer with an error code, as Atlas gives it."""

    def __init__(self, status: int, code: str, message: str = "refused") -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.message = message


def obj(value: JsonValue | None) -> Json:
    return value if isinstance(value, dict) else {}


def objs(value: JsonValue | None) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def business_metadata(name: str, *, attribute: str, kind: str, applies_to: str) -> Json:
    """Return the definition of a kind of business metadata with one attribute."""
    options: Json = {"applicableEntityTypes": json.dumps([applies_to]), "maxStrLength": "50"}
    defined: Json = {
        "name": attribute,
        "typeName": kind,
        "isOptional": True,
        "cardinality": "SINGLE",
        "options": options,
    }
    return {"businessMetadataDefs": [{"name": name, "attributeDefs": [defined]}]}


class AtlasStore:
    """What one Atlas server holds."""

    def __init__(self) -> None:
        self.types: dict[str, Json] = {}
        self.entities: dict[str, Json] = {}
        self.glossaries: dict[str, Json] = {}
        self.terms: dict[str, Json] = {}
        self.owners: dict[str, tuple[str, str]] = {}
        self.writes = 0
        self.hidden: str | None = None
        """A word in the names of entities that the user who asks may not read or write."""
        self.lagging = False
        """Whether the index does not know what is created from now on."""
        self.not_indexed: set[str] = set()
        for name, (parents, attributes) in _BUILT_IN.items():
            self.types[name] = {
                "name": name, "category": "ENTITY", "superTypes": [*parents],
                "attributeDefs": [{"name": each, "isIndexable": True} for each in attributes],
            }  # fmt: skip

    # Types

    def define(self, bundle: Json, *, anew: bool) -> None:
        found = [
            (each, kind) for part, kind in _CATEGORIES.items() for each in objs(bundle.get(part))
        ]
        for each, kind in found:
            name = str(each["name"])
            pattern = _TRAIT_NAME if kind == "CLASSIFICATION" else _TYPE_NAME
            if not pattern.match(name):
                raise AtlasRefusalError(400, "ATLAS-400-00-001")
            if anew and (name in self.types or name in _VALUE_TYPES):
                raise AtlasRefusalError(409, "ATLAS-409-00-001")
            if not anew and self.types.get(name, {}).get("category") != kind:
                raise AtlasRefusalError(404, "ATLAS-404-00-001")
            known = {each["name"] for each in objs(self.types.get(name, {}).get("attributeDefs"))}
            if not known <= {attribute["name"] for attribute in objs(each.get("attributeDefs"))}:
                raise AtlasRefusalError(400, "ATLAS-400-00-01F")
        for each, kind in found:
            self.writes += 1
            described = each.get("description") or each["name"]
            self.types[str(each["name"])] = {**each, "category": kind, "description": described}

    def attributes(self, type_name: str) -> dict[str, Json]:
        definition = self.types.get(type_name)
        if definition is None or definition["category"] != "ENTITY":
            raise AtlasRefusalError(400, "ATLAS-400-00-014")
        own = {str(each["name"]): each for each in objs(definition.get("attributeDefs"))}
        supers = definition.get("superTypes")
        for parent in supers if isinstance(supers, list) else ():
            own = {**self.attributes(str(parent)), **own}
        return own

    # Entities

    def put(self, entities: Iterable[Json]) -> Json:
        given = [*entities]
        for entity in given:
            self._check(entity)
            if self._is_hidden(entity):
                raise AtlasRefusalError(403, NOT_ALLOWED, "not authorized to perform create entity")
        assigned: dict[str, str] = {}
        created: set[str] = set()
        for entity in given:
            held = self.find(str(entity["typeName"]), obj(entity["attributes"])["qualifiedName"])
            if held is None or held["status"] == "DELETED":
                guid = str(uuid.uuid4())
                created.add(guid)
                self.entities[guid] = {
                    "guid": guid, "typeName": entity["typeName"], "status": "ACTIVE",
                    "attributes": {}, "classifications": [], "labels": [], "meanings": [],
                    "customAttributes": {}, "businessAttributes": {}, "related": {},
                }  # fmt: skip
            else:
                guid = str(held["guid"])
            assigned[str(entity.get("guid"))] = guid
        for entity in given:
            guid = assigned[str(entity.get("guid"))]
            self._apply(self.entities[guid], entity, assigned, anew=guid in created)
        self.writes += 1
        self.not_indexed |= created if self.lagging else set()
        heads: list[JsonValue] = [
            {"guid": guid, "typeName": self.entities[guid]["typeName"]} for guid in sorted(created)
        ]
        return {"guidAssignments": {**assigned}, "mutatedEntities": {"CREATE": heads}}

    def require_readable(self, guids: Iterable[str]) -> None:
        """Refuse a request for entities, one of which may not be read."""
        for guid in guids:
            if self._is_hidden(self.get(guid)):
                raise AtlasRefusalError(
                    403, NOT_ALLOWED, f"not authorized to perform read entity: guid={guid}"
                )

    def _is_hidden(self, entity: Json) -> bool:
        name = str(obj(entity.get("attributes")).get("qualifiedName"))
        return self.hidden is not None and self.hidden in name

    def find(self, type_name: str, qualified_name: JsonValue) -> Json | None:
        """Return the active entity of a name, else a deleted one."""
        found = [
            each
            for each in self.entities.values()
            if each["typeName"] == type_name
            and obj(each["attributes"]).get("qualifiedName") == qualified_name
        ]
        return next(
            (each for each in found if each["status"] == "ACTIVE"), found[-1] if found else None
        )

    def get(self, guid: str) -> Json:
        if guid not in self.entities:
            raise AtlasRefusalError(404, "ATLAS-404-00-005")
        return self.entities[guid]

    def shown(self, guid: str) -> Json:
        """Return an entity as a reader sees it, with its relations."""
        entity = self.get(guid)
        processes = [each for each in self.entities.values() if "inputs" in obj(each["attributes"])]
        related: Json = {
            **self._shown_relations(entity),
            "meanings": [
                {"guid": each, "typeName": "AtlasGlossaryTerm", "entityStatus": "ACTIVE",
                 "relationshipStatus": "ACTIVE"}
                for each in _list(entity["meanings"])
            ],
            "inputToProcesses": [self._related(each["guid"]) for each in processes
                                 if guid in _ends(each, "inputs")],
            "outputFromProcesses": [self._related(each["guid"]) for each in processes
                                    if guid in _ends(each, "outputs")],
        }  # fmt: skip
        hidden = ("related", "meanings")
        shown: Json = {name: value for name, value in entity.items() if name not in hidden}
        shown["relationshipAttributes"] = related
        shown["classifications"] = [*objs(entity["classifications"]), *self._propagated(guid)]
        return shown

    def referred(self, guid: str) -> Json:
        found: Json = {}
        for name, ends in obj(self.get(guid)["related"]).items():
            if name in _OWNING:
                for each in _list(ends):
                    found[str(each)] = self.shown(str(each))
        return found

    def delete(self, guids: Iterable[str]) -> None:
        """Mark entities as deleted; what they own goes along."""
        self.writes += 1
        for guid in guids:
            entity = self.get(guid)
            entity["status"] = "DELETED"
            owned = obj(entity["related"])
            self.delete([str(each) for name in _OWNING for each in _list(owned.get(name))])

    def purge(self, guids: Iterable[str]) -> None:
        for guid in guids:
            if self.entities.get(guid, {}).get("status") == "DELETED":
                del self.entities[guid]

    def classify(self, guid: str, classifications: Iterable[Json]) -> None:
        entity = self.get(guid)
        held = objs(entity["classifications"])
        for each in classifications:
            name = each["typeName"]
            if self.types.get(str(name), {}).get("category") != "CLASSIFICATION":
                raise AtlasRefusalError(404, "ATLAS-404-00-001")
            if any(other["typeName"] == name for other in held):
                raise AtlasRefusalError(400, "ATLAS-400-00-01A")
            held.append({"propagate": True, **each, "entityGuid": guid})
        self.writes += 1
        entity["classifications"] = [*held]

    def declassify(self, guid: str, name: str) -> None:
        entity = self.get(guid)
        left = [each for each in objs(entity["classifications"]) if each["typeName"] != name]
        if len(left) == len(_list(entity["classifications"])):
            raise AtlasRefusalError(400, "ATLAS-400-00-06D")
        self.writes += 1
        entity["classifications"] = [*left]

    def set_labels(self, guid: str, labels: JsonValue) -> None:
        if not all(isinstance(each, str) and _LABEL.match(each) for each in _list(labels)):
            raise AtlasRefusalError(400, "ATLAS-400-00-099")
        self.get(guid)["labels"] = [*sorted({str(each) for each in _list(labels)})]

    def set_business(self, guid: str, values: Json, *, anew: bool = False) -> None:
        """Attach business metadata: of what does not apply, an update is refused.

        A request that creates an entity passes over it without a word.
        """
        entity = self.get(guid)
        kept: Json = {}
        for name, given in values.items():
            known = self._business_attributes(name, str(entity["typeName"]))
            if not known and not anew:
                raise AtlasRefusalError(404, "ATLAS-404-00-007")
            if attached := {key: each for key, each in obj(given).items() if key in known}:
                kept[name] = attached
        entity["businessAttributes"] = kept

    def _business_attributes(self, name: str, type_name: str) -> set[str]:
        """Return the attributes of a kind of business metadata that apply to a type."""
        definition = self.types.get(name, {})
        if definition.get("category") != "BUSINESS_METADATA":
            return set()
        return {
            str(each["name"])
            for each in objs(definition.get("attributeDefs"))
            if any(
                self._is_a(type_name, applicable, True)
                for applicable in json.loads(
                    str(obj(each.get("options")).get("applicableEntityTypes"))
                )
            )
        }

    def search(self, asked: Json, *, markers: bool) -> Json:
        limit, offset = asked.get("limit", 100), asked.get("offset", 0)
        if not isinstance(limit, int) or limit > MOST_IN_A_PAGE or not isinstance(offset, int):
            raise AtlasRefusalError(400, "ATLAS-400-00-0A1")
        if str(asked.get("typeName")) not in self.types:
            raise AtlasRefusalError(400, "ATLAS-400-00-014")
        try:
            terms = terms_of(str(asked.get("query") or "*"))
        except QuerySyntaxError as error:
            raise AtlasRefusalError(400, "ATLAS-400-00-059") from error
        marker = asked.get("marker") if markers else None
        start = int(str(marker)) if marker not in (None, "*") else offset
        indexed = [
            each
            for each in self.entities.values()
            if each["guid"] not in self.not_indexed
            and self._is_a(
                each["typeName"], asked["typeName"], bool(asked.get("includeSubTypes", True))
            )
            and (not terms or holds([each["attributes"], each["classifications"]], terms))
        ]
        without = bool(asked.get("excludeDeletedEntities"))
        found = [each for each in indexed if each["status"] == "ACTIVE" or not without]
        wanted = [str(each) for each in _list(asked.get("attributes"))]
        heads: list[JsonValue] = [
            {**_head(each, []), "guid": "-1", "attributes": {}}
            if self._is_hidden(each)
            else _head(each, wanted)
            for each in found[start : start + limit]
        ]
        answer: Json = {"queryType": "BASIC", "searchParameters": asked}
        answer["approximateCount"] = len(indexed)  # what is deleted is in the index
        if heads:  # an empty page has no list at all
            answer["entities"] = heads
        if marker is not None:
            answer["nextMarker"] = str(start + limit) if start + limit < len(found) else "-1"
        return answer

    def _is_a(self, name: JsonValue, wanted: JsonValue, subtypes: bool) -> bool:
        if name == wanted or not subtypes:
            return name == wanted
        parents = _list(self.types[str(name)].get("superTypes"))
        return any(self._is_a(parent, wanted, True) for parent in parents)

    # Glossary

    def create_glossary(self, glossary: Json) -> Json:
        if any(each["name"] == glossary["name"] for each in self.glossaries.values()):
            raise AtlasRefusalError(409, "ATLAS-409-00-00A")
        guid = str(uuid.uuid4())
        self.glossaries[guid] = {**glossary, "guid": guid}
        return self.glossaries[guid]

    def put_term(self, term: Json, guid: str | None) -> Json:
        name, anchor = str(term.get("name")), obj(term.get("anchor")).get("glossaryGuid")
        if not name or "." in name or "@" in name:
            raise AtlasRefusalError(400, "ATLAS-400-00-079")
        if str(anchor) not in self.glossaries:
            raise AtlasRefusalError(400, "ATLAS-400-00-07A")
        if guid is None and any(
            each["name"] == name and obj(each["anchor"]).get("glossaryGuid") == anchor
            for each in self.terms.values()
        ):
            raise AtlasRefusalError(409, "ATLAS-409-00-009")
        guid = guid or str(uuid.uuid4())
        self.writes += 1
        self.terms[guid] = {**term, "guid": guid}
        return self.terms[guid]

    def terms_of(self, glossary: str) -> list[Json]:
        return [each for each in self.terms.values()
                if obj(each["anchor"]).get("glossaryGuid") == glossary]  # fmt: skip

    def _check(self, entity: Json) -> None:
        """Refuse what the type or the index does not take, before anything is written."""
        known = self.attributes(str(entity.get("typeName")))
        attributes = obj(entity.get("attributes"))
        if not attributes.get("qualifiedName") or ("name" in known and not attributes.get("name")):
            raise AtlasRefusalError(400, "ATLAS-400-00-01A")
        related = obj(entity.get("relationshipAttributes"))
        if not self._owners(entity.get("typeName")) <= related.keys():
            raise AtlasRefusalError(404, "ATLAS-404-00-007")
        for name, value in attributes.items():
            for text in _texts(value) if known.get(name, {}).get("isIndexable") else ():
                if len(text.encode()) > _LONGEST_INDEXED or _CONTROL.search(text):
                    raise AtlasRefusalError(500, "ATLAS-500-00-001")

    def _owners(self, type_name: JsonValue) -> set[str]:
        """Return the relations by which an entity belongs to another; none of them may lack."""
        ends = [
            obj(each.get("endDef2"))
            for each in self.types.values()
            if each.get("relationshipCategory") == "COMPOSITION"
        ]
        return {str(end["name"]) for end in ends if end.get("type") == type_name}

    def _apply(self, held: Json, given: Json, assigned: dict[str, str], *, anew: bool) -> None:
        known = self.attributes(str(held["typeName"]))
        attributes = obj(held["attributes"])
        for name, value in obj(given.get("attributes")).items():
            if name in known:  # an attribute that the type does not have is dropped silently
                attributes[name] = self._resolved(value, assigned)
        related = obj(given.get("relationshipAttributes"))
        if "meanings" in related:
            terms = objs(self._resolved(related["meanings"], assigned))
            held["meanings"] = [each["guid"] for each in terms]
        self._relate(held, {name: self._resolved(each, assigned) for name, each in related.items()})
        if given.get("customAttributes") is not None:
            if not all(map(_LABEL.match, obj(given["customAttributes"]))):
                raise AtlasRefusalError(400, "ATLAS-400-00-08D")
            held["customAttributes"] = given["customAttributes"]
        if anew:  # of what is updated, these stay as they are
            self.classify(str(held["guid"]), objs(given.get("classifications")))
            self.set_labels(str(held["guid"]), given.get("labels") or [])
            self.set_business(str(held["guid"]), obj(given.get("businessAttributes")), anew=True)

    def _relate(self, held: Json, related: Json) -> None:
        """Keep relations, whichever of their ends was written."""
        mine = obj(held["related"])
        for name, value in related.items():
            ends = [each["guid"] for each in (objs(value) or objs([value]))]
            if name in _OWNING or name in _ENDS:
                mine[name] = [*ends]
            if name in _OWNING:
                self.owners |= {str(each): (str(held["guid"]), name) for each in ends}
            for owning, reverse in _OWNING.items():
                if name in reverse and ends and held["typeName"] != "rdbms_foreign_key":
                    self._join(str(ends[0]), owning, held)

    def _join(self, owner: str, name: str, owned: Json) -> None:
        """Let an owner have something, if it is of the kind that goes by that name."""
        kinds = {"columns": "column", "sd": "storagedesc", "columnEdges": "edge"}
        if name in kinds and str(owned["typeName"]).endswith(kinds[name]):
            theirs = obj(self.get(owner)["related"])
            known = _list(theirs.get(name))
            if owned["guid"] not in known:
                theirs[name] = [*known, owned["guid"]]
                self.owners[str(owned["guid"])] = (owner, name)

    def _shown_relations(self, entity: Json) -> Json:
        found: Json = {"columns": []}
        for name, ends in obj(entity["related"]).items():
            shown: list[JsonValue] = [self._related(each) for each in _list(ends)]
            single = name in ("sd", "references_table", "query")
            found[name] = (shown[0] if shown else None) if single else shown
        owner, name = self.owners.get(str(entity["guid"]), ("", ""))
        if owner in self.entities:
            found |= {each: self._related(owner) for each in _OWNING[name]}
        return found

    def _resolved(self, value: JsonValue, assigned: dict[str, str]) -> JsonValue:
        if isinstance(value, list):
            return [self._resolved(each, assigned) for each in value]
        if not isinstance(value, dict) or "guid" not in value:
            return value
        guid = assigned.get(str(value["guid"]), str(value["guid"]))
        if guid not in self.entities and guid not in self.terms:
            raise AtlasRefusalError(404, "ATLAS-404-00-005")
        return {**value, "guid": guid}

    def _related(self, guid: JsonValue) -> Json:
        entity = self.get(str(guid))
        return {
            "guid": guid, "typeName": entity["typeName"], "entityStatus": entity["status"],
            "relationshipStatus": entity["status"],
            "displayText": obj(entity["attributes"]).get("name"),
        }  # fmt: skip

    def _propagated(self, guid: str, seen: tuple[str, ...] = ()) -> Iterator[Json]:
        """Yield the classifications that come down the lineage to an entity."""
        for process in self.entities.values():
            if process["status"] != "ACTIVE" or guid not in _ends(process, "outputs"):
                continue
            for source in _ends(process, "inputs"):
                if source in seen:
                    continue
                held = objs(self.entities[source]["classifications"])
                yield from (each for each in held if each.get("propagate"))
                yield from self._propagated(source, (*seen, guid))


def _list(value: JsonValue | None) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _ends(process: Json, name: str) -> list[str]:
    return [str(each["guid"]) for each in objs(obj(process["attributes"]).get(name))]


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (each for each in value if isinstance(each, str))


def _head(entity: Json, wanted: list[str]) -> Json:
    attributes = obj(entity["attributes"])
    return {
        "guid": entity["guid"],
        "typeName": entity["typeName"],
        "status": entity["status"],
        "attributes": {name: attributes.get(name) for name in ("name", *wanted)},
    }
