"""What an OpenMetadata server with its default settings refuses, with the server's own messages.

Read in the server's sources: `entityRulesSettings.json`, `RuleEngine`, `LogicOps`, `TagLabelUtil`,
`EntityRepository`, `GlossaryTermRepository`, `IngestionBotPolicy.json`, `JsonPatchUtils`,
`CatalogExceptionMessage`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from doubles.openmetadata_tests import RefusedError

if TYPE_CHECKING:
    from doubles.openmetadata_store import OpenMetadataStore

Json = dict[str, Any]
BOT = "ingestion-bot"
ADMIN = "admin"
_OWNERS = (
    "Multiple Users or Single Team Ownership",
    "Validates that an entity has either multiple owners or a single team as the owner.",
)
_DOMAINS = (
    "Multiple Domains are not allowed",
    "By default, we only allow entities to be assigned to a single domain, except for Users and "
    "Teams.",
)
_MANY_DOMAINS = {"users", "teams"}


def check_rights(caller: str, operations: list[Json]) -> None:
    """Refuse what the policy of ingestion bots denies: a patch of a display name."""
    if caller == BOT and any("displayName" in each["path"].split("/") for each in operations):
        raise RefusedError(
            403,
            f"Principal: CatalogPrincipal{{name='{BOT}'}} operation EditDisplayName denied by role "
            "IngestionBotRole, policy IngestionBotPolicy, rule DisplayName-Deny",
        )


def check_rules(collection: str, entity: Json, before: Json | None = None) -> None:
    """Refuse an entity that breaks a default rule, unless an update breaks fewer than before."""
    broken = [*_broken(collection, entity)]
    if broken and (before is None or len(broken) >= len([*_broken(collection, before)])):
        name, description = broken[0]
        raise RefusedError(
            400,
            f"Rule [{name}] validation failed: Entity does not satisfy the rule. "
            f"Rule context: {description}",
        )


def _broken(collection: str, entity: Json) -> Iterator[tuple[str, str]]:
    types = [each["type"] for each in _own(entity.get("owners"))]
    teams = types.count("team")
    if teams > 1 or (teams and len(types) > teams):
        yield _OWNERS
    if collection not in _MANY_DOMAINS and len(_own(entity.get("domains"))) > 1:
        yield _DOMAINS


def check_owners(store: OpenMetadataStore, owners: list[Json]) -> None:
    """Refuse owners that are no user and no team of type Group."""
    for owner in owners:
        collection, entity = store.by_id(owner["id"])
        type_ = entity.get("teamType", "Group")
        if collection == "teams" and type_ != "Group":
            raise RefusedError(
                400,
                f"Team of type {type_} can't own entities. "
                "Only Team of type Group can own entities.",
            )


def check_labels(store: OpenMetadataStore, value: Any) -> None:
    """Refuse labels that are disabled, or that exclude each other on the same thing."""
    if isinstance(value, dict):
        _check_exclusive(store, value.get("tags") or [])
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        if isinstance(each, dict | list):
            check_labels(store, each)


def _check_exclusive(store: OpenMetadataStore, labels: list[Json]) -> None:
    seen: dict[str, str] = {}
    for label in labels:
        if not isinstance(label, dict) or label.get("labelType") == "Derived":
            continue
        name = label["tagFQN"]
        words = "tags" if label["source"] == "Classification" else "glossaryTerms"
        if store.by_name(words, name).get("disabled"):
            raise RefusedError(
                400, f"Tag label {name} is disabled and can't be assigned to a data asset."
            )
        above = name.rpartition(".")[0]
        if above in seen and store.excludes(words, above):
            raise RefusedError(
                400,
                f"Tag labels {name} and {seen[above]} are mutually exclusive and can't be "
                "assigned together",
            )
        seen[above] = name


def check_term_name(store: OpenMetadataStore, body: Json) -> None:
    """Refuse a new term whose name its glossary has already, in any case and at any level."""
    glossary = body["glossary"]
    for full, term in store.entities["glossaryTerms"].items():
        if full.startswith(f"{glossary}.") and term["name"].lower() == body["name"].lower():
            name = body["name"]
            raise RefusedError(
                400, f"A term with the name '{name}' already exists in '{glossary}' glossary."
            )
    parent = body.get("parent")
    if parent and not parent.startswith(f"{glossary}."):
        raise RefusedError(
            400,
            f"Invalid queryParameters - glossary term `parent` {parent} is not in the "
            f"`glossary` {glossary}",
        )


def with_inherited(store: OpenMetadataStore, collection: str, entity: Json) -> Json:
    """Return an entity as it is shown: with what it inherits, and labels that follow from terms."""
    shown = dict(entity)
    for field in ("owners", "domains"):
        if not shown.get(field) and (found := _inherited(store, collection, entity, field)):
            shown[field] = [{**each, "inherited": True} for each in found]
    for field in ("tags", "columns", "dataModel"):
        if shown.get(field):
            shown[field] = _with_derived(store, field, shown[field])
    return shown


def _inherited(store: OpenMetadataStore, collection: str, entity: Json, field: str) -> list[Json]:
    above = {"tables": "databaseSchema", "databaseSchemas": "database", "databases": "service",
             "containers": "service", "pipelines": "service"}  # fmt: skip
    reference = entity.get(above.get(collection, ""))
    if not isinstance(reference, dict):
        return []
    parent_collection, parent = store.by_id(reference["id"])
    held: list[Json] = parent.get(field) or []
    return held or _inherited(store, parent_collection, parent, field)


def _with_derived(store: OpenMetadataStore, field: str, value: Any) -> Any:
    if field == "tags":
        held = {label["tagFQN"] for label in value}
        derived = [
            {**each, "labelType": "Derived"}
            for label in value
            if label["source"] == "Glossary"
            for each in store.by_name("glossaryTerms", label["tagFQN"]).get("tags") or []
            if each["tagFQN"] not in held
        ]
        return [*value, *derived]
    if isinstance(value, dict):
        return {key: _with_derived(store, key, each) for key, each in value.items()}
    if field in {"columns", "children"} and isinstance(value, list):
        return [_with_derived(store, "", column) for column in value]
    return value


def _own(references: list[Json] | None) -> list[Json]:
    return [each for each in references or [] if not each.get("inherited")]
