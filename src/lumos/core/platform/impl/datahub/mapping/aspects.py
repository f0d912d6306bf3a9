"""A dataset of Lumos as aspects of DataHub, and back, without loss in either direction.

Each way is a plain mapping of what both know. What DataHub has no place for is kept in a custom
property; what Lumos does not model is kept in `extensions["datahub"]`, as it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import as_object, as_objects, list_at, object_at, objects_at, texts_at
from lumos.core.models import LumosDataset
from lumos.core.models.base import canonical_json
from lumos.core.platform.fitting import fitting
from lumos.core.platform.impl.datahub.mapping.containers import innermost
from lumos.core.platform.impl.datahub.mapping.edits import follow, with_edits
from lumos.core.platform.impl.datahub.mapping.emptied import EMPTIED, emptied, is_empty
from lumos.core.platform.impl.datahub.mapping.fields import (
    column_fields,
    column_of,
    come_back,
    field_path,
    tag_names,
    wire_fields,
)
from lumos.core.platform.impl.datahub.mapping.governance import (
    STAMP,
    read_governance,
    read_owners,
    wire_governance,
    wire_owner,
)
from lumos.core.platform.impl.datahub.mapping.observations import (
    MEASURED,
    TIMESERIES,
    add_observations,
    observations,
    of_others,
    still_says,
)
from lumos.core.platform.impl.datahub.mapping.residue import residue, restored
from lumos.core.platform.impl.datahub.mapping.stash import KEY, packed, unpacked
from lumos.core.platform.impl.datahub.mapping.structured import PREFIX as STRUCTURED
from lumos.core.platform.impl.datahub.mapping.structured import read_structured, wire_structured
from lumos.core.platform.impl.datahub.mapping.urns import (
    dataset_urn,
    field_of,
    field_urn,
    is_shortened,
    lumos_dataset_urn,
    simple_urn,
)
from lumos.core.platform.unreadable import UNFIT

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models.urn import Urn

EXTENSION: Final = "datahub"
DERIVED: Final = frozenset({"datasetKey", "browsePaths", "browsePathsV2", "dataPlatformInstance"})
"""Aspects that the server makes by itself."""
_APART: Final = frozenset({"upstreamLineage", "datasetKey", *TIMESERIES})
_LEFT_ALONE: Final = frozenset({"browsePaths", "browsePathsV2", "dataPlatformInstance"})
_SUBTYPES: Final[Mapping[str, str]] = {
    "FILES": "File",
    "TABLE": "Table",
    "VIEW": "View",
    "STREAM": "Topic",
    "COLLECTION": "Collection",
}
_KINDS: Final[Mapping[str, str]] = {subtype: kind for kind, subtype in _SUBTYPES.items()}


class DatasetConversion:
    """Converts datasets for one environment of DataHub."""

    def __init__(self, environment: str) -> None:
        self._environment = environment

    def aspects(
        self,
        dataset: Mapping[str, JsonValue],
        *,
        knows: Callable[[str], bool] | None = None,
        there: Collection[str] = (),
        takes: Callable[[str, JsonValue], bool] | None = None,
    ) -> Json:
        """Return the aspects of a dataset given as `to_json` writes it, its lineage aside.

        Args:
            dataset: the dataset.
            knows: returns whether a server has an aspect; others are kept in the stash.
            there: the aspects that it has so far; what it no longer has is emptied.
            takes: returns whether a structured property can have a value; others are stashed too.
        """
        document = {name: value for name, value in dataset.items() if name != "lineage"}
        unfit = _unfit(document, takes)
        plain = self._plain_aspects(document, unfit=unfit)
        given = _stated(object_at(document, "extensions").get(EXTENSION))
        whole = as_object(restored(plain, given), "aspects") if isinstance(given, dict) else plain
        whole.setdefault("datasetProperties", plain["datasetProperties"])  # they hold the stash
        if given is not None:
            follow(whole, document, plain)
        columns = object_at(document, "schema").get("fields")
        certain = given is None and isinstance(columns, list) and come_back(columns)
        found = self._plain_document(
            str(document["urn"]), whole, columns=columns if certain else None
        )
        left = residue(found, _without_extension(document))
        kept: Json = {"urn": document["urn"]}
        if left is not None:
            kept["left"] = left
        if unfit:
            kept["unfit"] = [*unfit]
        if given is not None:
            kept["aspects"] = [*sorted(_LEFT_ALONE & whole.keys())]
            shown = residue(plain, whole)
            if shown != given:
                kept["extension"] = [shown, given]
        unknown = [name for name in whole if knows is not None and not knows(name)]
        if unknown:
            kept["waiting"] = {name: whole.pop(name) for name in unknown}
        if gone := sorted(name for name in there if name in EMPTIED and name not in whole):
            kept["emptied"] = [*gone]
            urn = self.datahub_urn(str(document["urn"]))
            whole = {**whole, **{name: emptied(name, urn) for name in gone}}
        properties = object_at(whole, "datasetProperties")
        custom = object_at(properties, "customProperties")
        stashed: Json = {**custom, KEY: packed(kept)}
        return {**whole, "datasetProperties": {**properties, "customProperties": stashed}}

    def document(self, urn: str, aspects: Mapping[str, JsonValue], *, fitted: bool = False) -> Json:
        """Return the JSON of the dataset that aspects make, its lineage aside.

        With `fitted`, a value that fits no dataset is left out of it, and is named in the extension
        as all is that Lumos does not model.
        """
        whole = {name: value for name, value in aspects.items() if name not in _APART}
        kept = self._take_stash(whole)
        known = kept if isinstance(kept, dict) else {}
        if known:
            expected = texts_at(known, "aspects")
            for name in _LEFT_ALONE.difference(expected):
                whole.pop(name, None)
            for name in texts_at(known, "emptied"):
                if is_empty(name, whole.get(name)):
                    del whole[name]
            whole = {**object_at(known, "waiting"), **whole}
        name = str(known.get("urn") or self.lumos_urn(urn))
        modelled = fitting(whole, partial(self._is_dataset, name)) if fitted else whole
        found = self._plain_document(name, modelled)
        document = as_object(restored(found, known.get("left")), "aspects")
        unfit = texts_at(known, "unfit")
        if unfit:
            assigned = read_structured(whole.get("structuredProperties"))
            unfit = [name for name in unfit if name not in assigned]
        shown = residue(self._plain_aspects(document, unfit=unfit), whole)
        match known.get("extension"):
            case [was, given] if was == shown:
                shown = given
        if measured := of_others(aspects):
            shown = {**as_object(shown, "shown"), **measured}
        if shown is not None:
            others = object_at(document, "extensions")
            document["extensions"] = {**others, EXTENSION: shown}
        if not known:
            add_observations(document, aspects)
        return document

    def dataset(self, urn: str, aspects: Mapping[str, JsonValue]) -> LumosDataset:
        """Return the dataset that aspects make, its lineage aside, with all of it that fits."""
        try:
            return LumosDataset.from_json(self.document(urn, aspects))
        except UNFIT:
            return LumosDataset.from_json(self.document(urn, aspects, fitted=True))

    @staticmethod
    def series(dataset: Mapping[str, JsonValue]) -> Json:
        """Return what was measured of a dataset; what others did, where it still says the same."""
        measured = observations(dataset)
        given = object_at(dataset, "extensions").get(EXTENSION)
        for name in MEASURED & given.keys() if isinstance(given, dict) else ():
            found = restored({}, {name: as_object(given, "given")[name]})
            theirs = found.get(name) if isinstance(found, dict) else None
            if isinstance(theirs, dict) and still_says(dataset, name, theirs):
                measured[name] = theirs
        return measured

    def name_in(self, urn: str, aspects: Mapping[str, JsonValue]) -> str:
        """Return the Lumos URN of a dataset of DataHub, as far as its aspects are needed for it."""
        if is_shortened(urn):
            kept = self._take_stash(dict(aspects))
            if isinstance(kept, dict) and "urn" in kept:
                return str(kept["urn"])
        return str(self.lumos_urn(urn))

    def lumos_urn(self, urn: str) -> Urn:
        """Return what Lumos calls a dataset of DataHub."""
        return lumos_dataset_urn(urn, environment=self._environment)

    def datahub_urn(self, urn: str) -> str:
        """Return what DataHub calls a dataset of Lumos."""
        return dataset_urn(urn, environment=self._environment)

    @staticmethod
    def _take_stash(aspects: Json) -> JsonValue:
        properties = aspects.get("datasetProperties")
        custom = properties.get("customProperties") if isinstance(properties, dict) else None
        if not isinstance(properties, dict) or not isinstance(custom, dict) or KEY not in custom:
            return None
        kept = unpacked(custom[KEY])
        if not isinstance(kept, dict) or "urn" not in kept:
            return None
        rest: Json = {name: value for name, value in custom.items() if name != KEY}
        aspects["datasetProperties"] = {**properties, "customProperties": rest}
        return kept

    def _plain_aspects(
        self, document: Mapping[str, JsonValue], *, unfit: Collection[str] = ()
    ) -> Json:
        urn = self.datahub_urn(str(document["urn"]))
        platform = urn[len("urn:li:dataset:(") : urn.index(",")]
        aspects: Json = {
            "datasetProperties": _properties(document),
            "status": {"removed": False},
        }
        if container := innermost(urn):
            aspects["container"] = {"container": container}
        schema = object_at(document, "schema")
        if schema:
            aspects["schemaMetadata"] = self._schema(document, schema, urn=urn, platform=platform)
        if document.get("kind"):
            aspects["subTypes"] = {"typeNames": [_SUBTYPES[str(document["kind"])]]}
        if tags := texts_at(document, "tags"):
            aspects["globalTags"] = {"tags": [{"tag": simple_urn("tag", tag)} for tag in tags]}
        if owners := object_at(document, "ownership").get("owners"):
            aspects["ownership"] = {
                "owners": [wire_owner(owner) for owner in as_objects(owners, "owners")],
                "lastModified": dict(STAMP),
            }
        aspects.update(wire_governance(object_at(document, "governance")))
        documentation = object_at(document, "documentation")
        if links := objects_at(documentation, "links"):
            aspects["institutionalMemory"] = {"elements": [_element(link) for link in links]}
        properties = object_at(document, "properties")
        if structured := wire_structured(properties, without=unfit):
            aspects["structuredProperties"] = {"properties": structured}
        return aspects

    def _schema(
        self, document: Mapping[str, JsonValue], schema: Json, *, urn: str, platform: str
    ) -> Json:
        fields = list_at(schema, "fields")
        keys = texts_at(schema, "primary_key")
        others = objects_at(schema, "foreign_keys")
        named = {*keys, *(name for key in others for name in texts_at(key, "columns"))}
        paths = {
            str(field["name"]): field_path(field)
            for field in as_objects(fields, "fields")
            if field["name"] in named
        }
        aspect: Json = {
            "schemaName": document["name"],
            "platform": platform,
            "version": 0,
            "created": dict(STAMP),
            "lastModified": dict(STAMP),
            "hash": "",
            "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
            "fields": wire_fields(fields, keys=keys),
        }
        if keys:
            aspect["primaryKeys"] = [paths.get(key, key) for key in keys]
        foreign = [
            self._foreign_key(key, urn, paths, number)
            for number, key in enumerate(others)
            if str(key["references"]).startswith("lumos://")
        ]
        if foreign:
            aspect["foreignKeys"] = [*foreign]
        return aspect

    def _foreign_key(self, key: Json, urn: str, paths: Mapping[str, str], number: int) -> Json:
        other = self.datahub_urn(str(key["references"]))
        columns = texts_at(key, "columns")
        referenced = texts_at(key, "referenced_columns")
        return {
            "name": f"foreign key {number + 1}",
            "sourceFields": [field_urn(urn, paths.get(name, name)) for name in columns],
            "foreignFields": [field_urn(other, name) for name in referenced],
            "foreignDataset": other,
        }

    def _plain_document(
        self, name: str, aspects: Mapping[str, JsonValue], *, columns: JsonValue = None
    ) -> Json:
        try:
            return self._converted(name, aspects, columns=columns)
        except UNFIT:
            convertible = fitting(dict(aspects), partial(self._converts, name))
            return self._converted(name, convertible, columns=columns)

    def _converts(self, name: str, aspects: Json) -> bool:
        try:
            self._converted(name, aspects)
        except UNFIT:
            return False
        return True

    def _is_dataset(self, name: str, aspects: Json) -> bool:
        try:
            LumosDataset.from_json(self._converted(name, aspects))
        except UNFIT:
            return False
        return True

    def _converted(
        self, name: str, aspects: Mapping[str, JsonValue], *, columns: JsonValue = None
    ) -> Json:
        properties = object_at(aspects, "datasetProperties")
        edited = object_at(aspects, "editableDatasetProperties")
        urn = lumos_name = name
        document: Json = {
            "urn": urn,
            "name": edited.get("name") or properties.get("name") or _last_part(lumos_name),
            "platform": urn.removeprefix("lumos://").split("/", 1)[0],
        }
        if urn.startswith("lumos://datahub/urn:li:dataset:"):
            document["platform"] = _platform_in(urn)
        subtypes = object_at(aspects, "subTypes").get("typeNames")
        if isinstance(subtypes, list) and subtypes and str(subtypes[0]) in _KINDS:
            document["kind"] = _KINDS[str(subtypes[0])]
        document.update(_read_properties(properties, aspects.get("structuredProperties")))
        documentation = _read_documentation(properties, edited, aspects)
        if documentation:
            document["documentation"] = documentation
        if tags := tag_names(aspects.get("globalTags")):
            document["tags"] = [*sorted(set(tags))]
        owners = object_at(aspects, "ownership").get("owners")
        if isinstance(owners, list) and owners:
            document["ownership"] = {"owners": read_owners(as_objects(owners, "owners"))}
        governance = read_governance(aspects)
        if governance:
            document["governance"] = governance
        schema = self._read_schema(aspects, columns)
        if schema:
            document["schema"] = schema
        return document

    def _read_schema(self, aspects: Mapping[str, JsonValue], columns: JsonValue) -> Json:
        metadata = aspects.get("schemaMetadata")
        if not isinstance(metadata, dict):
            return {}
        schema: Json = {}
        edited = aspects.get("editableSchemaMetadata")
        platform = str(metadata.get("platform") or "").rpartition(":")[2]
        if fields := columns or column_fields(with_edits(metadata, edited), platform=platform):
            schema["fields"] = fields
        keys = texts_at(metadata, "primaryKeys")
        if keys:
            schema["primary_key"] = [column_of(key) for key in keys]
        foreign = [
            read
            for key in objects_at(metadata, "foreignKeys")
            if (read := self._read_foreign_key(key)) is not None
        ]
        if foreign:
            schema["foreign_keys"] = [*foreign]
        return schema

    def _read_foreign_key(self, key: Json) -> Json | None:
        sources = [field_of(urn) for urn in texts_at(key, "sourceFields")]
        others = [field_of(urn) for urn in texts_at(key, "foreignFields")]
        if not sources or None in sources or None in others:
            return None
        read: Json = {
            "columns": [column_of(source[1]) for source in sources if source],
            "references": str(self.lumos_urn(str(key["foreignDataset"]))),
        }
        if others:
            read["referenced_columns"] = [other[1] for other in others if other]
        return read


def _unfit(
    document: Mapping[str, JsonValue], takes: Callable[[str, JsonValue], bool] | None
) -> list[str]:
    """Return the structured properties whose values the server does not take."""
    if takes is None:
        return []
    given = object_at(document, "properties")
    return [
        name
        for name, value in given.items()
        if name.startswith(STRUCTURED) and not takes(name, value)
    ]


def _stated(extension: JsonValue) -> JsonValue:
    """Return the part of an extension that is not about measured things."""
    if not isinstance(extension, dict) or MEASURED.isdisjoint(extension):
        return extension
    return {name: kept for name, kept in extension.items() if name not in MEASURED} or None


def _without_extension(document: Json) -> Json:
    others = object_at(document, "extensions")
    if EXTENSION not in others:
        return document
    rest: Json = {name: value for name, value in others.items() if name != EXTENSION}
    plain = {name: value for name, value in document.items() if name != "extensions"}
    return {**plain, "extensions": rest} if rest else plain


def _properties(document: Mapping[str, JsonValue]) -> Json:
    given = object_at(document, "properties")
    custom: Json = {
        key: value if isinstance(value, str) else canonical_json(value).decode()
        for key, value in given.items()
        if key != KEY and not key.startswith(STRUCTURED)
    }
    aspect: Json = {"customProperties": custom, "name": document["name"], "tags": []}
    description = object_at(document, "documentation").get("description")
    if description is not None:
        aspect["description"] = description
    return aspect


def _read_properties(properties: Mapping[str, JsonValue], structured: JsonValue) -> Json:
    custom = object_at(properties, "customProperties")
    read: Json = dict(custom)
    read.update(read_structured(structured))
    return {"properties": read} if read else {}


def _read_documentation(
    properties: Mapping[str, JsonValue],
    edited: Mapping[str, JsonValue],
    aspects: Mapping[str, JsonValue],
) -> Json:
    read: Json = {}
    written = object_at(aspects, "documentation").get("documentations")
    other = as_objects(written, "written")[0].get("documentation") if written else None
    description = edited.get("description") or properties.get("description")
    if description is None:
        description = other
    if description is not None:
        read["description"] = description
    elements = object_at(aspects, "institutionalMemory").get("elements")
    links = [_link(element) for element in as_objects(elements, "elements") if element.get("url")]
    if links:
        read["links"] = [*links]
    return read


def _element(link: Mapping[str, JsonValue]) -> Json:
    text = str(link.get("description") or "")
    return {"url": link["url"], "description": text, "createStamp": dict(STAMP)}


def _link(element: Mapping[str, JsonValue]) -> Json:
    link: Json = {"url": element["url"]}
    if element.get("description"):
        link["description"] = element["description"]
    return link


def _last_part(urn: str) -> str:
    from lumos.core.models.urn import Urn

    return Urn(urn).name


def _platform_in(urn: str) -> str:
    return urn.split("urn:li:dataPlatform:", 1)[-1].split(",", 1)[0]
