"""People, groups, vocabulary and jobs as entities of DataHub, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.json_reading import as_texts, object_at, objects_at, texts_at
from lumos.core.models import Domain, GlossaryTerm, Group, Job, Tag, User
from lumos.core.platform.impl.datahub.mapping.residue import residue, restored
from lumos.core.platform.impl.datahub.mapping.stash import KEY, packed, unpacked
from lumos.core.platform.impl.datahub.mapping.urns import (
    dataset_urn,
    flow_urn,
    job_urn,
    lumos_dataset_urn,
    lumos_job_urn,
    simple_name,
    simple_urn,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.interface import Entity, EntityKind

WITHOUT_PROPERTIES: Final = ("tag", "corpGroup")
"""Entities that have no custom properties; what they cannot hold is kept beside them."""
USER_FIELDS: Final[Mapping[str, str]] = {
    "display_name": "displayName", "email": "email", "title": "title",
    "manager_urn": "managerUrn", "department_name": "departmentName", "first_name": "firstName",
    "last_name": "lastName", "full_name": "fullName", "country_code": "countryCode",
}  # fmt: skip
_GROUP_FIELDS: Final[Mapping[str, str]] = {
    "display_name": "displayName",
    "description": "description",
    "email": "email",
    "slack": "slack",
}


class Converted(NamedTuple):
    """An entity of DataHub, and what has to be there besides it."""

    kind: str
    urn: str
    aspects: Json
    before: tuple[tuple[str, str, Json], ...] = ()
    beside: JsonValue = None
    """What it has no place for, to be kept elsewhere."""


class _Form(NamedTuple):
    """How a kind of entity looks in DataHub."""

    kind: str
    identity: str
    model: type[Entity]
    info: str
    write: Callable[[Json, str], Json]
    read: Callable[[str, Mapping[str, JsonValue], str], Json]
    urn: Callable[[str, str], str]


def wire_entity(kind: EntityKind, document: Json, *, environment: str) -> Converted:
    """Return the aspects of an entity given as `to_json` writes it."""
    form = FORMS[kind]
    identity = str(document[form.identity])
    urn = form.urn(identity, environment)
    aspects = form.write(document, environment)
    found = form.read(urn, aspects, environment)
    kept: Json = {form.identity: identity}
    left = residue(found, document)
    if left is not None:
        kept["left"] = left
    if form.kind in WITHOUT_PROPERTIES:
        return Converted(form.kind, urn, aspects, _before(kind, document, urn), left)
    info = object_at(aspects, form.info)
    custom = object_at(info, "customProperties")
    aspects[form.info] = {**info, "customProperties": {**custom, KEY: packed(kept)}}
    return Converted(form.kind, urn, aspects, _before(kind, document, urn))


def read_entity(
    kind: EntityKind, urn: str, aspects: Mapping[str, JsonValue], *, environment: str,
    beside: Mapping[str, JsonValue] | None = None,
) -> Entity | None:  # fmt: skip
    """Return the entity that aspects and what is kept beside make, or None if there is none."""
    form = FORMS[kind]
    if not aspects:  # one that has its name alone has the aspect of that
        return None
    whole = dict(aspects)
    kept = {} if form.kind in WITHOUT_PROPERTIES else _taken(form, whole)
    found = form.read(urn, whole, environment)
    left = (beside or {}).get(urn) or kept.get("left")
    document = restored(found, left)
    return form.model.from_json(document)


def _taken(form: _Form, aspects: Json) -> Json:
    """Take what was kept for Lumos out of the aspects."""
    info = object_at(aspects, form.info)
    custom = dict(object_at(info, "customProperties"))
    kept = unpacked(custom.pop(KEY, None))
    aspects[form.info] = {**info, "customProperties": custom}
    return kept if isinstance(kept, dict) else {}


def _before(kind: EntityKind, document: Json, urn: str) -> tuple[tuple[str, str, Json], ...]:
    if kind == "glossary_term" and document.get("parent"):
        name = str(document["parent"])
        info: Json = {"definition": "", "name": name, "customProperties": {}}
        return (("glossaryNode", simple_urn("glossaryNode", name), {"glossaryNodeInfo": info}),)
    if kind == "job":
        flow = flow_urn(urn)
        name = str(document.get("flow_id") or flow.split(",")[1])
        return (("dataFlow", flow, {"dataFlowInfo": {"name": name, "customProperties": {}}}),)
    return ()


def _texts(given: Mapping[str, JsonValue]) -> Json:
    return {key: value for key, value in given.items() if isinstance(value, str) and key != KEY}


def _user(document: Json, _: str) -> Json:
    info: Json = {
        "active": True,
        "system": bool(document.get("system", False)),
        "customProperties": _texts(object_at(document, "custom_properties")),
    }
    info.update(
        {theirs: document[ours] for ours, theirs in USER_FIELDS.items() if ours in document}
    )
    if isinstance(document.get("department_id"), int):
        info["departmentId"] = document["department_id"]
    aspects: Json = {"corpUserInfo": info}
    if document.keys() & {"about_me", "teams", "skills", "picture_link"}:
        edited: Json = {
            "teams": document.get("teams") or [],
            "skills": document.get("skills") or [],
        }
        for ours, theirs in (("about_me", "aboutMe"), ("picture_link", "pictureLink")):
            if ours in document:
                edited[theirs] = document[ours]
        aspects["corpUserEditableInfo"] = edited
    return aspects


def _read_user(urn: str, aspects: Mapping[str, JsonValue], _: str) -> Json:
    info = object_at(aspects, "corpUserInfo")
    edited = object_at(aspects, "corpUserEditableInfo")
    document: Json = {"username": simple_name(urn)}
    for ours, theirs in (*USER_FIELDS.items(), ("department_id", "departmentId")):
        value = edited.get(theirs) or info.get(theirs)
        if value is not None:
            document[ours] = value
    if info.get("system"):
        document["system"] = True
    for ours, theirs in (("about_me", "aboutMe"), ("picture_link", "pictureLink")):
        if edited.get(theirs):
            document[ours] = edited[theirs]
    for name in ("teams", "skills"):
        if edited.get(name):
            document[name] = sorted(set(texts_at(edited, name)))  # type: ignore[assignment]
    if info.get("customProperties"):
        document["custom_properties"] = info["customProperties"]
    return document


def _group(document: Json, _: str) -> Json:
    info: Json = {
        name: [simple_urn("corpuser", user) for user in texts_at(document, name)]
        for name in ("admins", "members")
    }
    info["groups"] = []
    info.update(
        {theirs: document[ours] for ours, theirs in _GROUP_FIELDS.items() if ours in document}
    )
    return {"corpGroupInfo": info}


def _read_group(urn: str, aspects: Mapping[str, JsonValue], _: str) -> Json:
    info = object_at(aspects, "corpGroupInfo")
    edited = object_at(aspects, "corpGroupEditableInfo")
    document: Json = {"name": simple_name(urn)}
    for ours, theirs in _GROUP_FIELDS.items():
        value = edited.get(theirs) or info.get(theirs)
        if value is not None:
            document[ours] = value
    for name in ("admins", "members"):
        users = texts_at(info, name)
        if users:
            document[name] = [*sorted({simple_name(user) for user in users})]
    return document


def _tag(document: Json, _: str) -> Json:
    info: Json = {"name": document["name"]}
    if "description" in document:
        info["description"] = document["description"]
    return {"tagProperties": info}


def _read_tag(urn: str, aspects: Mapping[str, JsonValue], _: str) -> Json:
    info = object_at(aspects, "tagProperties")
    document: Json = {"name": simple_name(urn)}
    if info.get("description") is not None:
        document["description"] = info["description"]
    return document


def _term(document: Json, _: str) -> Json:
    info: Json = {
        "name": document["name"],
        "definition": str(document.get("definition") or ""),
        "termSource": "INTERNAL",
        "customProperties": {},
    }
    if document.get("parent"):
        info["parentNode"] = simple_urn("glossaryNode", str(document["parent"]))
    return {"glossaryTermInfo": info}


def _read_term(urn: str, aspects: Mapping[str, JsonValue], _: str) -> Json:
    info = object_at(aspects, "glossaryTermInfo")
    document: Json = {"name": simple_name(urn)}
    if info.get("definition"):
        document["definition"] = info["definition"]
    if info.get("parentNode"):
        document["parent"] = simple_name(str(info["parentNode"]))
    return document


def _domain(document: Json, _: str) -> Json:
    info: Json = {"name": document["name"], "customProperties": {}}
    if "description" in document:
        info["description"] = document["description"]
    if document.get("parent"):
        info["parentDomain"] = simple_urn("domain", str(document["parent"]))
    return {"domainProperties": info}


def _read_domain(urn: str, aspects: Mapping[str, JsonValue], _: str) -> Json:
    info = object_at(aspects, "domainProperties")
    document: Json = {"name": simple_name(urn)}
    if info.get("description") is not None:
        document["description"] = info["description"]
    if info.get("parentDomain"):
        document["parent"] = simple_name(str(info["parentDomain"]))
    return document


def _job(document: Json, environment: str) -> Json:
    urn = job_urn(str(document["urn"]), environment=environment)
    info: Json = {
        "name": document["name"],
        "type": {"string": str(document.get("type") or "COMMAND")},
        "flowUrn": flow_urn(urn),
        "customProperties": _texts(object_at(document, "properties")),
    }
    if "description" in document:
        info["description"] = document["description"]

    def named(urns: JsonValue) -> JsonValue:
        known = as_texts(urns, "urns")
        return [dataset_urn(each, environment=environment) for each in known]

    ends: Json = {
        "inputDatasets": named(document.get("inputs")),
        "outputDatasets": named(document.get("outputs")),
    }
    return {"dataJobInfo": info, "dataJobInputOutput": ends}


def _read_job(urn: str, aspects: Mapping[str, JsonValue], environment: str) -> Json:
    info = object_at(aspects, "dataJobInfo")
    flow = flow_urn(urn)
    orchestrator, flow_id = flow[len("urn:li:dataFlow:(") : -1].rsplit(",", 1)[0].split(",", 1)
    job_id = urn[len("urn:li:dataJob:(") + len(flow) + 1 : -1]
    document: Json = {
        "urn": str(lumos_job_urn(urn, environment=environment)),
        "name": str(info.get("name") or job_id),
        "orchestrator": orchestrator,
        "flow_id": flow_id,
        "job_id": job_id,
    }
    kind = info.get("type")
    if kind is not None:
        document["type"] = str(next(iter(kind.values())) if isinstance(kind, dict) else kind)
    if info.get("description") is not None:
        document["description"] = info["description"]
    if info.get("customProperties"):
        document["properties"] = info["customProperties"]
    ends = object_at(aspects, "dataJobInputOutput")
    for ours, theirs in (("inputs", "inputDatasets"), ("outputs", "outputDatasets")):
        urns = set(texts_at(ends, theirs))
        edges = objects_at(ends, theirs.removesuffix("s") + "Edges")
        urns |= {str(edge["destinationUrn"]) for edge in edges}
        datasets = [each for each in urns if each.startswith("urn:li:dataset:")]
        if datasets:
            named = sorted(
                str(lumos_dataset_urn(each, environment=environment)) for each in datasets
            )
            document[ours] = [*named]
    return document


def _named(kind: str) -> Callable[[str, str], str]:
    return lambda name, _: simple_urn(kind, name)


FORMS: Final[Mapping[EntityKind, _Form]] = {
    "user": _Form(
        "corpuser", "username", User, "corpUserInfo",
        _user, _read_user, _named("corpuser"),
    ),
    "group": _Form(
        "corpGroup", "name", Group, "corpGroupInfo",
        _group, _read_group,
        _named("corpGroup"),
    ),
    "tag": _Form(
        "tag", "name", Tag, "tagProperties",
        _tag, _read_tag, _named("tag"),
    ),
    "glossary_term": _Form(
        "glossaryTerm", "name", GlossaryTerm, "glossaryTermInfo",
        _term, _read_term, _named("glossaryTerm"),
    ),
    "domain": _Form(
        "domain", "name", Domain, "domainProperties",
        _domain, _read_domain, _named("domain"),
    ),
    "job": _Form(
        "dataJob", "urn", Job, "dataJobInfo",
        _job, _read_job,
        lambda urn, environment: job_urn(urn, environment=environment),
    ),
}  # fmt: skip
"""Every kind of entity that Lumos and DataHub share."""
