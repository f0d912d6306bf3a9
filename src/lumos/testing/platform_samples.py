"""Datasets, entities and names that the platform contract puts into a catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.models import (
    Domain,
    GlossaryTerm,
    Group,
    Job,
    LineageEdge,
    LumosDataset,
    Tag,
    Urn,
    User,
)
from lumos.core.platform.abilities import (
    NEEDS,
    Capability,
    DocumentAbility,
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
)
from lumos.core.platform.batch import Batch, Identity

if TYPE_CHECKING:
    from lumos.core.platform.interface import Entity, EntityKind, MetadataPlatformInterface

AT = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
MISSING = Urn.of("s3", "lake", "missing")

HOSTILE_NAMES: Mapping[str, str] = {
    "quotes": """it's "quoted" `here`""",
    "SQL": "x'); DROP TABLE datasets; --",
    "emoji": "orders 🔥👩🏽‍💻",
    "right to left": "\u202eطلبات\u202c",  # noqa: RUF001
    "newline": "line one\nline two\r\ttab",
    "percent": "100%s %(name)s %2F %",
    "dots": "..",
    "slashes": "a/../../b\\c",
    "NUL": "before\0after",
    "control": "\x1b[31mred\x07",
    "template": "${HOME} {{ x }} :name ?1 $1",
    "very long": "long" * 125,
    "spaces": "  ",
    "not normalised": "e\u0301 \u212b",
}

HOSTILE_QUERIES = (
    '"', "'", '"unclosed', "a AND", "AND", "OR NOT", "NEAR(a b)", "name:customers", "*", "cust*",
    "-customers", "^customers", "(", ")", "a & b | !c", "<->", "'cust':*", "\\", "%", "%s", ":x",
    "\0", "cust\0omers", "🔥", "\udcff", "{name} : x", "; DROP TABLE datasets; --", " ", "\n",
    "a" * 5_000, "word " * 2_000, "é", "::", "--", "/*", "+", "ﬁ", "İ",
)  # fmt: skip


def dataset(name: str = "customers", *, platform: str = "s3", **parts: object) -> LumosDataset:
    """Return a dataset of that name with other parts as given."""
    document = {"urn": Urn.of(platform, "lake", name), "name": name, "platform": platform}
    return LumosDataset.model_validate({**document, **parts})


def rich_dataset(name: str = "customers") -> LumosDataset:
    """Return a dataset that has something in every part, except for lineage."""
    return dataset(
        name,
        format="parquet",
        environment="production",
        database="lake",
        location={"bucket": "lake", "path": f"raw/{name}", "partition_keys": ["day"]},
        schema={
            "fields": [
                {"name": "customer_id", "type": "INT64", "nullable": False, "tags": ["key"]},
                {"name": "email", "type": "STRING", "pii": True, "description": "Where to write"},
                {
                    "name": "orders",
                    "type": "ARRAY",
                    "items": {
                        "type": "STRUCT",
                        "fields": [{"name": "total", "type": "DECIMAL", "precision": 10}],
                    },
                },
            ],
            "primary_key": ["customer_id"],
        },
        ownership=[{"group": "finance-team"}, {"user": "ada", "type": "DATA_STEWARD"}],
        tags=["gold", "pii"],
        governance={"domains": ["sales"], "glossary_terms": ["Customer"]},
        documentation={"description": "All who ever bought", "business_context": "Billing"},
        properties={"retention": "7y", "partitions": 12, "nested": {"a": [1, None, True]}},
        assertions=[{"name": "id is set", "kind": "not_null", "column": "customer_id"}],
        statistics={"row_count": 45_000_000, "last_modified": AT},
        quality={"overall_score": 99.2, "freshness": "30min"},
        extensions={"catalog": {"raw": "kept"}},
    )


def edge(upstream: LumosDataset, downstream: LumosDataset, **parts: object) -> LineageEdge:
    """Return an edge between two datasets with other parts as given."""
    ends = {"upstream_urn": upstream.urn, "downstream_urn": downstream.urn}
    return LineageEdge.model_validate({**ends, **parts})


ENTITY_MAKERS: Mapping[EntityKind, Callable[[str], Entity]] = {
    "user": lambda name: User(username=name, email="someone@example.org", teams=("x",)),
    "group": lambda name: Group(name=name, members=("ada", "grace")),
    "tag": lambda name: Tag(name=name, description="what it's for", sensitive=True),
    "glossary_term": lambda name: GlossaryTerm(name=name, definition="a meaning"),
    "domain": lambda name: Domain(name=name, parent="company"),
    "job": lambda name: Job(urn=Urn.of("airflow", name), name=name, inputs=(MISSING,)),
}


class OptionalCall(NamedTuple):
    """Something that a catalog can do only with a capability."""

    name: str
    capability: Capability
    call: Callable[[], object]


def optional_calls(platform: MetadataPlatformInterface) -> list[OptionalCall]:
    """Return a call of each optional method, and of `apply` with each optional part."""
    ends = edge(dataset("a"), dataset("b"))
    parts = {
        "entities": Batch(entities=[Tag(name="gold")]),
        "edges": Batch(edges=[ends]),
        "removed_edges": Batch(removed_edges=[ends]),
        "identities": Batch(identities=[Identity(dataset().urn, "other", "x")]),
        "definitions": Batch(definitions={"other": {"x": 1}}),
        "extensions": Batch(extensions={"other": {"x": 1}}),
    }
    methods: dict[str, Callable[[], object]] = {
        "emit_lineage": lambda: platform.emit_lineage(ends.upstream_urn, ends.downstream_urn),
        "list_edges": lambda: consumed(LineageAbility.of(platform).list_edges()),
        "emit_ownership": lambda: platform.emit_ownership(dataset().urn, "ada"),
        "list_entities": lambda: consumed(EntityAbility.of(platform).list_entities("tag")),
        "identity_map": lambda: IdentityAbility.of(platform).identity_map(),
        "find_identities": lambda: IdentityAbility.of(platform).find_identities([("a", "b")]),
        "extensions": lambda: ExtensionAbility.of(platform).extensions(),
        "search": lambda: platform.search("customers"),
        "documents": lambda: consumed(DocumentAbility.of(platform).documents()),
        "content_fingerprint": lambda: DocumentAbility.of(platform).content_fingerprint(),
        "export_all": lambda: platform.export_all(at=AT),
        "delete": lambda: platform.delete(dataset().urn),
    }
    return [
        *(
            OptionalCall(f"apply with {name}", next(batch.needs()), partial(platform.apply, batch))
            for name, batch in parts.items()
        ),
        *(OptionalCall(name, NEEDS[name], call) for name, call in methods.items()),
    ]


def all_calls(platform: MetadataPlatformInterface) -> dict[str, Callable[[], object]]:
    """Return a call of each method, by its name."""
    urn = dataset().urn
    return {
        "emit_dataset": lambda: platform.emit_dataset(rich_dataset()),
        "get_dataset": lambda: platform.get_dataset(urn),
        "find_datasets": lambda: platform.find_datasets([urn]),
        "list": lambda: consumed(platform.list()),
        **{each.name: each.call for each in optional_calls(platform)},
    }


def consumed(items: Iterable[object]) -> list[object]:
    """Read an iterator to its end, as its errors may come late."""
    return [*items]
