"""Tags as classifications and business terms as glossary terms, defined when they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import RLock
from typing import TYPE_CHECKING

import orjson

from lumos.core.errors import PlatformConflictError, PlatformForbiddenError
from lumos.core.events import emit
from lumos.core.json_reading import find_object, find_objects, find_text
from lumos.core.models import GlossaryTerm, Tag
from lumos.core.platform.impl.atlas.mapping.names import (
    BUILT_IN_TYPES,
    TAG_PREFIX,
    classification_name,
    shown_text,
    term_name,
)
from lumos.core.platform.impl.atlas.mapping.own_values import attachable
from lumos.core.platform.stash import packed, residue, restored

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.impl.atlas.mapping.own_values import BusinessAttributes
    from lumos.core.platform.unreadable import UnreadableItems

_KEY = "lumos"
_NAME = "lumosName"
_IMPLIED = "lumosImplied"
_OF_SERVERS = frozenset(
    {"guid", "category", "createdBy", "updatedBy", "createTime", "updateTime", "version"}
)
"""Attributes that a server sets itself, and another server sets differently."""
_OF_TERMS = frozenset({"assignedEntities"})
_MORE_OF_TERMS = (
    "examples", "abbreviation", "usage", "categories", "seeAlso", "synonyms", "antonyms",
    "preferredTerms", "preferredToTerms", "replacementTerms", "replacedBy", "translationTerms",
    "translatedTerms", "isA", "classifies", "validValues", "validValuesFor", "classifications",
)  # fmt: skip


class Vocabulary:
    """What the server has of tags and terms, and the way from their names to its own."""

    def __init__(self, client: AtlasClient, *, glossary: str) -> None:
        self._client = client
        self._glossary_name = glossary
        self._lock = RLock()
        self._types: dict[str, str] | None = None
        self._business: BusinessAttributes | None = None
        self._may_define = True
        self._classifications: dict[str, Json] | None = None
        self._glossary: str | None = None
        self._glossaries: list[str] = []
        self._terms: dict[str, Json] | None = None

    def type_names(self) -> dict[str, str]:
        """Return the category of every type on the server, by its name."""
        with self._lock:
            if self._types is None:
                self._types = self._client.type_names()
            return self._types

    def business_metadata(self) -> BusinessAttributes:
        """Return the business attributes that datasets of Lumos may have on this server."""
        with self._lock:
            if self._business is None:
                self._business = attachable(self._client.business_metadata())
            return self._business

    def forget(self) -> None:
        """Look at the server again when next asked."""
        with self._lock:
            self._types = self._classifications = self._terms = self._business = None

    def classification(self, tag: str) -> str:
        """Return the classification that a tag has, or would have."""
        others = {
            name for name, kind in self.type_names().items() if kind.upper() != "CLASSIFICATION"
        }
        return classification_name(tag, taken=BUILT_IN_TYPES.union(others))

    def tag_of(self, classification: str) -> str:
        """Return the tag that a classification stands for."""
        with self._lock:
            definition = self._definitions().get(classification)
            if definition is None and classification.startswith(TAG_PREFIX):
                self._classifications = None  # another process has defined it meanwhile
                definition = self._definitions().get(classification)
        return _tag_name(definition) if definition else classification

    def define_tags(self, tags: Iterable[str]) -> dict[str, str]:
        """See to it that there is a classification for each tag, and return them.

        A login that may not define types gets those that are there.
        """
        with self._lock:
            names = {tag: self.classification(tag) for tag in tags}
            missing = {tag: name for tag, name in names.items() if name not in self._definitions()}
            for tag, name in missing.items():
                self._define_implied(_definition(name, Tag(name=tag), implied=True))
            known = self._definitions()
            return {tag: name for tag, name in names.items() if name in known}

    def _define_implied(self, definition: Json) -> None:
        """Create a classification for a tag that occurs on a dataset, if the login may do so."""
        if not self._may_define:
            return
        try:
            self._create(definition)
        except PlatformForbiddenError:
            self._may_define = False
            emit(
                "notice",
                text=f"{self._client.place}: the login may not define classifications; tags "
                "without one are kept in the stash and are shown once they are defined",
            )

    def put_tag(self, tag: Tag) -> None:
        """Define a tag, or bring its definition up to date."""
        with self._lock:
            name = self.classification(tag.name)
            wanted = _definition(name, tag, implied=False)
            if name not in self._definitions() and self._create(wanted):
                return
            held = self._definitions()[name]
            if _redefined(held, wanted) != held:
                now = self._client.classification(name) or held  # people may have gone on with it
                changed = _redefined(now, wanted)
                self._client.define(_bundle(changed), anew=False)
                self._definitions()[name] = changed

    def tags(self, unread: UnreadableItems) -> Iterator[Tag]:
        """Yield every tag that somebody defined, not those that only occur on datasets."""
        with self._lock:
            self._classifications = None
            definitions = [*self._definitions().values()]
        tags = unread.each("tag", definitions, _read_tag, name=lambda each: str(each.get("name")))
        yield from (tag for tag in tags if tag is not None)

    def define_terms(self, terms: Iterable[str]) -> dict[str, str]:
        """See to it that each term is in a glossary, and return their GUIDs."""
        with self._lock:
            wanted = [*terms]
            if not wanted:
                return {}
            known = self._guids()
            for term in wanted:
                if term not in known:
                    known[term] = self._put_term(GlossaryTerm(name=term), None, implied=True)
            return {term: known[term] for term in wanted}

    def term_of(self, guid: str) -> str | None:
        """Return the name of a term."""
        with self._lock:
            known = self._known_terms()
            if guid not in known:
                found = self._client.term(guid)
                if found is None:
                    return None
                known[guid] = found
            return _term_name(known[guid])

    def put_term(self, term: GlossaryTerm) -> None:
        """Define a term, or bring it up to date."""
        with self._lock:
            self._put_term(term, self._guids().get(term.name), implied=False)

    def terms(self, unread: UnreadableItems) -> Iterator[GlossaryTerm]:
        """Yield every term that somebody defined, not those that only occur on datasets."""
        with self._lock:
            self._terms = None
            terms = [*self._known_terms().values()]
        read = unread.each(
            "glossary_term", terms, _read_term, name=lambda each: str(each.get("guid"))
        )
        yield from (term for term in read if term is not None)

    def others(self) -> Json:
        """Return what people defined beyond names and descriptions, as it is.

        That is classifications with attributes or parents, terms with relations, examples and the
        like, and the categories of glossaries.
        """
        with self._lock:
            definitions = [*self._definitions().values()]
            terms = [*self._known_terms().values()]
        found: Json = {}
        if kept := [_without(each, _OF_SERVERS) for each in definitions if _says_more(each)]:
            found["classificationDefs"] = [*kept]
        if told := [_without(each, _OF_TERMS) for each in terms if _is_elaborate(each)]:
            found["terms"] = [*told]
        if categories := [*self._client.categories(self._glossaries)]:
            found["categories"] = [*categories]
        return found

    def _definitions(self) -> dict[str, Json]:
        if self._classifications is None:
            found = self._client.classifications()
            self._classifications = {str(each.get("name")): each for each in found}
        return self._classifications

    def _create(self, definition: Json) -> bool:
        """Create a classification; return False if somebody else had done so meanwhile.

        Raises:
            PlatformConflictError: the server refuses it, although nobody had.
        """
        try:
            self._client.define(_bundle(definition), anew=True)
        except PlatformConflictError:
            self._classifications = None
            if str(definition["name"]) not in self._definitions():
                raise
            return False
        self._definitions()[str(definition["name"])] = definition
        return True

    def _known_terms(self) -> dict[str, Json]:
        if self._terms is None:
            self._terms = {}
            self._glossaries = []
            for glossary in self._client.glossaries():
                guid = str(glossary.get("guid"))
                if [*find_objects(glossary, "categories")]:
                    self._glossaries.append(guid)
                if glossary.get("name") == self._glossary_name:
                    self._glossary = guid
                for term in self._client.terms(guid):
                    self._terms[str(term.get("guid"))] = term
        return self._terms

    def _guids(self) -> dict[str, str]:
        return {_term_name(term): guid for guid, term in self._known_terms().items()}

    def _put_term(self, term: GlossaryTerm, guid: str | None, *, implied: bool) -> str:
        document = _term_document(term, implied=implied)
        if guid is None:
            document["anchor"] = {"glossaryGuid": self._own_glossary()}
            guid = self._created_term(term, document)
            if guid is None:  # somebody else was faster
                return self._put_term(term, self._guids().get(term.name), implied=implied)
        elif not implied:
            held = self._client.term(guid) or self._known_terms()[guid]
            document = _restated(held, document)
            self._client.update_term(guid, document)
        else:
            return guid
        self._known_terms()[guid] = {**document, "guid": guid}
        return guid

    def _created_term(self, term: GlossaryTerm, document: Json) -> str | None:
        """Create a term; return None where somebody else had done so meanwhile.

        Raises:
            PlatformConflictError: the server refuses it, although nobody had.
        """
        try:
            return self._client.create_term(document)
        except PlatformConflictError:
            self._terms = None
            if term.name not in self._guids():
                raise
            return None

    def _own_glossary(self) -> str:
        """Return the glossary of Lumos, which is created where it is not there."""
        self._known_terms()
        if self._glossary is None:
            try:
                self._glossary = self._client.create_glossary(self._glossary_name)
            except PlatformConflictError:
                self._terms = None
                self._known_terms()
                if self._glossary is None:
                    raise
        return self._glossary


def _read_tag(definition: Json) -> Tag | None:
    """Return the tag of a definition; None for one that only occurs on datasets."""
    shown = _shown_tag(definition)
    implied = find_object(definition, "options").get(_IMPLIED) == "true"
    if implied and "description" not in shown:
        return None
    kept = find_text(definition, "options", _KEY)
    return Tag.from_json(shown if kept is None else restored(shown, kept))


def _read_term(term: Json) -> GlossaryTerm | None:
    """Return the term of a glossary; None for one that only occurs on datasets."""
    shown = _shown_term(term)
    more = find_object(term, "additionalAttributes")
    if more.get(_IMPLIED) == "true" and "definition" not in shown:
        return None
    kept = find_text(more, _KEY)
    return GlossaryTerm.from_json(shown if kept is None else restored(shown, kept))


def _says_more(definition: Json) -> bool:
    """Return whether people gave a classification more than a name and a description."""
    return bool(definition.get("attributeDefs") or definition.get("superTypes"))


def _is_elaborate(term: Json) -> bool:
    """Return whether people gave a term more than a name and a description."""
    return any(term.get(name) for name in _MORE_OF_TERMS)


def _without(values: Json, names: frozenset[str]) -> Json:
    return {
        name: value
        for name, value in sorted(values.items())
        if name not in names and value not in (None, "", [], {})
    }


def _definition(name: str, tag: Tag, *, implied: bool) -> Json:
    shown = _shown_tag_of(tag.name, _clean(tag.description), of=name)
    options: Json = {_NAME: orjson.dumps(tag.name).decode()}
    if (kept := residue(shown, tag.to_json())) is not None:
        options[_KEY] = packed(kept)
    if implied:
        options[_IMPLIED] = "true"
    return {
        "name": name,
        "description": _clean(tag.description) or "",
        "superTypes": [],
        "attributeDefs": [],
        "typeVersion": "1.0",
        "options": options,
    }


def _redefined(held: Json, wanted: Json) -> Json:
    """Return a definition with another description; what else people gave it stays."""
    theirs = {
        name: value
        for name, value in find_object(held, "options").items()
        if name not in (_NAME, _KEY, _IMPLIED)
    }
    options: Json = {**theirs, **find_object(wanted, "options")}
    return {**held, "description": wanted["description"], "options": options}


def _restated(held: Json, wanted: Json) -> Json:
    """Return a term with what Lumos says of it; what else people gave it stays."""
    said = find_object(wanted, "additionalAttributes")
    theirs = {
        name: value
        for name, value in find_object(held, "additionalAttributes").items()
        if name not in (_NAME, _KEY, _IMPLIED)
    }
    return {**held, **wanted, "additionalAttributes": {**theirs, **said}}


def _bundle(definition: Json) -> Json:
    return {"classificationDefs": [definition], "entityDefs": [], "enumDefs": [],
            "structDefs": [], "relationshipDefs": []}  # fmt: skip


def _tag_name(definition: Json) -> str:
    given = find_text(definition, "options", _NAME)
    return str(orjson.loads(given)) if given else str(definition.get("name"))


def _shown_tag(definition: Json) -> Json:
    described = find_text(definition, "description")
    return _shown_tag_of(_tag_name(definition), described, of=str(definition.get("name")))


def _shown_tag_of(tag: str, description: str | None, *, of: str) -> Json:
    """Return what is shown of a tag; Atlas describes what is not described by its type's name."""
    return _without_empty({"name": tag, "description": None if description == of else description})


def _term_document(term: GlossaryTerm, *, implied: bool) -> Json:
    shown = _without_empty({"name": term.name, "definition": _clean(term.definition)})
    more: Json = {_NAME: orjson.dumps(term.name).decode()}
    if (kept := residue(shown, term.to_json())) is not None:
        more[_KEY] = packed(kept)
    if implied:
        more[_IMPLIED] = "true"
    return {
        "name": term_name(term.name),
        "longDescription": _clean(term.definition) or "",
        "additionalAttributes": more,
    }


def _term_name(term: Json) -> str:
    given = find_text(term, "additionalAttributes", _NAME)
    name = str(term.get("name"))
    if given is None:
        return name
    original = str(orjson.loads(given))
    return original if term_name(original) == name else name


def _shown_term(term: Json) -> Json:
    definition = find_text(term, "longDescription") or find_text(term, "shortDescription")
    return _without_empty({"name": _term_name(term), "definition": definition})


def _clean(value: str | None) -> str | None:
    return shown_text(value) if value is not None else None


def _without_empty(values: dict[str, str | None]) -> Json:
    found: dict[str, JsonValue] = {name: value for name, value in values.items() if value}
    return found
