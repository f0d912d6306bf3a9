"""The base types of Apache Atlas, which its war does not carry: only the distribution does.

They have the names, attributes and relations that Atlas's own model of them has.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

Json = dict[str, JsonValue]
_GLOSSARY, _TERM, _CATEGORY = "AtlasGlossary", "AtlasGlossaryTerm", "AtlasGlossaryCategory"
_RELATION_STATES = ("DRAFT", "ACTIVE", "DEPRECATED", "OBSOLETE", "OTHER")
_ASSIGNMENT_STATES = ("DISCOVERED", "PROPOSED", "IMPORTED", "VALIDATED", "DEPRECATED", "OBSOLETE")
_TERM_RELATIONS = (
    ("AtlasGlossaryRelatedTerm", "seeAlso", "seeAlso"),
    ("AtlasGlossarySynonym", "synonyms", "synonyms"),
    ("AtlasGlossaryAntonym", "antonyms", "antonyms"),
    ("AtlasGlossaryPreferredTerm", "preferredTerms", "preferredToTerms"),
    ("AtlasGlossaryReplacementTerm", "replacementTerms", "replacedBy"),
    ("AtlasGlossaryTranslation", "translationTerms", "translatedTerms"),
    ("AtlasGlossaryIsARelationship", "isA", "classifies"),
    ("AtlasGlossaryValidValue", "validValues", "validValuesFor"),
)


def base_types() -> Json:
    """Return the definitions that a server reads at its first start."""
    return {
        "enumDefs": [
            _enum("AtlasGlossaryTermRelationshipStatus", _RELATION_STATES),
            _enum("AtlasGlossaryTermAssignmentStatus", _ASSIGNMENT_STATES),
        ],
        "structDefs": [],
        "classificationDefs": [],
        "entityDefs": [*_assets(), *_glossary(), *_hive()],
        "relationshipDefs": [*_lineage(), *_glossary_relations(), _HIVE_COLUMNS],
    }


def _attribute(name: str, kind: str = "string", **more: JsonValue) -> Json:
    plain: Json = {
        "name": name,
        "typeName": kind,
        "cardinality": "SET" if kind.startswith("array<D") else "SINGLE",
        "isIndexable": False,
        "isOptional": True,
        "isUnique": False,
    }
    return {**plain, **more}


def _indexed(name: str, kind: str = "string") -> Json:
    return _attribute(name, kind, isIndexable=True)


_KEY = _attribute("qualifiedName", isIndexable=True, isOptional=False, isUnique=True)
_NAME = _attribute("name", isIndexable=True, isOptional=False)
_SAID = [_indexed(each) for each in ("description", "expression", "steward", "source")]


def _entity(name: str, attributes: Sequence[Json] = (), *, of: str | None = None) -> Json:
    return {
        "name": name,
        "superTypes": [of] if of else [],
        "typeVersion": "1.0",
        "attributeDefs": [*attributes],
    }


def _assets() -> list[Json]:
    asset = [
        _NAME,
        _attribute("description"),
        _indexed("owner"),
        _indexed("displayName"),
        _attribute("userDescription"),
    ]
    ends = [_attribute("inputs", "array<DataSet>"), _attribute("outputs", "array<DataSet>")]
    audit = [
        *(_indexed(name) for name in ("userName", "operation", "clientId")),
        *(_attribute(name) for name in ("params", "result")),
        *(_indexed(name, "date") for name in ("startTime", "endTime")),
        _attribute("resultCount", "long"),
    ]
    return [
        _entity("Referenceable", [_KEY]),
        _entity("__internal"),
        _entity("Asset", asset, of="Referenceable"),
        _entity("DataSet", of="Asset"),
        _entity("Infrastructure", of="Asset"),
        _entity("Process", ends, of="Asset"),
        _entity("__AtlasAuditEntry", audit, of="__internal"),
    ]


def _glossary() -> list[Json]:
    more = _attribute("additionalAttributes", "map<string,string>")
    shared = [_KEY, _NAME, _attribute("shortDescription"), _attribute("longDescription"), more]
    term = [_attribute("examples", "array<string>"), _attribute("abbreviation")]
    usage = _attribute("usage")
    return [
        _entity(_GLOSSARY, [*shared, _attribute("language"), usage], of="__internal"),
        _entity(_TERM, [*shared, *term, usage], of="__internal"),
        _entity(_CATEGORY, shared, of="__internal"),
    ]


def _hive() -> list[Json]:
    """Return the types of Hive's hook, as far as a test reads what a hook wrote."""
    table = [_attribute("comment"), _attribute("tableType"), _attribute("createTime", "date")]
    column = [_indexed("type"), _attribute("comment"), _attribute("position", "int")]
    return [
        _entity("hive_table", table, of="DataSet"),
        _entity("hive_column", column, of="DataSet"),
        _entity("hive_process", [_attribute("queryText")], of="Process"),
    ]


def _enum(name: str, values: Sequence[str]) -> Json:
    elements: list[JsonValue] = [
        {"ordinal": ordinal, "value": value} for ordinal, value in enumerate(values)
    ]
    return {"name": name, "typeVersion": "1.0", "elementDefs": elements}


def _end(of: str, name: str, cardinality: str = "SET", *, owns: bool = False) -> Json:
    return {"type": of, "name": name, "cardinality": cardinality, "isContainer": owns}


def _relation(name: str, kind: str, ends: tuple[Json, Json], **more: JsonValue) -> Json:
    plain: Json = {
        "name": name,
        "typeVersion": "1.0",
        "relationshipCategory": kind,
        "propagateTags": "NONE",
        "attributeDefs": [],
        "endDef1": ends[0],
        "endDef2": ends[1],
    }
    return {**plain, **more}


_HIVE_COLUMNS = _relation(
    "hive_table_columns",
    "COMPOSITION",
    (
        _end("hive_table", "columns", owns=True),
        _end("hive_column", "table", "SINGLE"),
    ),
)


def _lineage() -> list[Json]:
    """Return what ties processes to datasets; tags go along, as in every Atlas."""
    inputs, outputs = (
        {**_end("Process", name, owns=True), "isLegacyAttribute": True}
        for name in ("inputs", "outputs")
    )
    read, written = _end("DataSet", "inputToProcesses"), _end("DataSet", "outputFromProcesses")
    return [
        _relation(
            "dataset_process_inputs", "AGGREGATION", (inputs, read), propagateTags="TWO_TO_ONE"
        ),
        _relation(
            "process_dataset_outputs",
            "AGGREGATION",
            (outputs, written),
            propagateTags="ONE_TO_TWO",
        ),
    ]


def _glossary_relations() -> list[Json]:
    state = _indexed("status", "AtlasGlossaryTermRelationshipStatus")
    assigned: list[JsonValue] = [
        *_SAID,
        _indexed("status", "AtlasGlossaryTermAssignmentStatus"),
        _indexed("confidence", "int"),
        _indexed("createdBy"),
    ]
    return [
        _relation(
            "AtlasGlossarySemanticAssignment",
            "ASSOCIATION",
            (_end(_TERM, "assignedEntities"), _end("Referenceable", "meanings")),
            propagateTags="ONE_TO_TWO",
            attributeDefs=assigned,
        ),
        _relation(
            "AtlasGlossaryTermAnchor",
            "COMPOSITION",
            (_end(_GLOSSARY, "terms", owns=True), _end(_TERM, "anchor", "SINGLE")),
        ),
        _relation(
            "AtlasGlossaryCategoryAnchor",
            "COMPOSITION",
            (_end(_GLOSSARY, "categories", owns=True), _end(_CATEGORY, "anchor", "SINGLE")),
        ),
        _relation(
            "AtlasGlossaryTermCategorization",
            "AGGREGATION",
            (_end(_CATEGORY, "terms", owns=True), _end(_TERM, "categories")),
            attributeDefs=[_indexed("description"), state],
        ),
        _relation(
            "AtlasGlossaryCategoryHierarchyLink",
            "AGGREGATION",
            (
                _end(_CATEGORY, "childrenCategories", owns=True),
                _end(_CATEGORY, "parentCategory", "SINGLE"),
            ),
        ),
        *(
            _relation(
                name,
                "ASSOCIATION",
                (_end(_TERM, one), _end(_TERM, other)),
                attributeDefs=[*_SAID, state],
            )
            for name, one, other in _TERM_RELATIONS
        ),
    ]
