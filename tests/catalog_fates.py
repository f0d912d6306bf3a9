"""What a catalog shows of each concept by itself, without what Lumos keeps in its stash.

A concept is shown where the server holds something more with it than without it, the stash left
out, or where it is read back after the stash is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine, RowMapping, Table, delete, select

from doubles.amundsen_database import amundsen_over, sqlite_engine
from doubles.atlas_server import AtlasServer, atlas_at
from doubles.atlas_store import obj
from doubles.datahub_server import DataHubDouble, datahub_double
from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from doubles.openmetadata_store import OpenMetadataStore
from doubles.snowflake_account import DATABASE, SnowflakeAccount, snowflake_over
from lumos.core.models import ColumnMapping, LumosDataset, Urn, with_parts
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.fidelity import Fidelity
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.mapping.stash import without_stash
from lumos.core.platform.interface import EntityKind, MetadataPlatformInterface
from lumos.testing.platform_concepts import concept_dataset
from lumos.testing.platform_samples import AT, ENTITY_MAKERS, dataset, edge

SHOWN = frozenset({Fidelity.NATIVE, Fidelity.TRANSFORMED})
Leaves = frozenset[tuple[tuple[str, ...], str]]
_VOLATILE = frozenset(
    {"id", "guid", "version", "updatedAt", "created", "lastModified", "time", "timestampMillis",
     "publisher_last_updated_epoch_ms", "href", "runId", "lastObserved", "createTime", "updateTime",
     "relationshipGuid", "entityGuid", "termGuid", "timestamp"}
)  # fmt: skip
_IDENTITY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}")
_KINDS: Mapping[str, EntityKind] = {
    "job": "job",
    "user": "user",
    "group": "group",
    "tag_definition": "tag",
    "glossary_term": "glossary_term",
    "domain_definition": "domain",
}
_COLUMN = {"fields": [{"name": "id", "type": "INT64"}]}


class Server(NamedTuple):
    """A catalog whose server can be looked into."""

    connect: Callable[[], MetadataPlatformInterface]
    homes: tuple[tuple[str, ...], ...]
    """Where its own things may lie: platform and path."""
    held: Callable[[], object]
    """Returns all that it holds, without the stash."""
    forget: Callable[[], None]
    """Takes the stash away."""
    prepare: Callable[[LumosDataset], None] = lambda _: None
    """Makes what Lumos never makes there."""


Opened = Callable[[Path], AbstractContextManager[Server]]


def shown_concepts(server: Server, concepts: Iterable[str]) -> set[str]:
    """Return the concepts that a catalog shows in one of the homes of its things."""
    found: set[str] = set()
    unseen: list[tuple[LumosDataset, str]] = []
    with server.connect() as platform:
        for home in server.homes:
            for concept in concepts:
                one = _emit(server, platform, concept, home=home, with_it=False)
                before = leaves(server.held())
                one = _emit(server, platform, concept, home=home, with_it=True) or one
                if leaves(server.held()) - before:
                    found.add(concept)
                elif one is not None:
                    unseen.append((one, concept))
    server.forget()
    with server.connect() as platform:
        return found | {each for one, each in unseen if _is_told(platform, one, each)}


def _is_told(platform: MetadataPlatformInterface, one: LumosDataset, concept: str) -> bool:
    plain = {} if concept == "dataset" else _plain(one, concept).to_json()
    added = leaves(one.to_json()) - leaves(plain)
    told = dataset_or_none(platform, one.urn)
    return told is not None and bool(added & leaves(told.to_json()))


def _emit(
    server: Server,
    platform: MetadataPlatformInterface,
    concept: str,
    *,
    home: tuple[str, ...],
    with_it: bool,
) -> LumosDataset | None:
    """Bring a concept to a server, or all that is needed for it and not itself."""
    sample = _sample(concept, home)
    if sample is not None:
        if not with_it:
            server.prepare(sample)
            if concept == "foreign_key":
                _emit_new(server, platform, [_moved(dataset("other", schema=_COLUMN), home)])
        if with_it or concept != "dataset":
            platform.emit_dataset(sample if with_it else _plain(sample, concept))
        return sample
    if concept in {"lineage_edge", "column_lineage"}:
        _emit_edge(server, platform, concept, home=home, with_it=with_it)
    elif concept == "identity":
        one = _moved(dataset("named"), home)
        if with_it:
            platform.apply(Batch(identities=[Identity(one.urn, "other", "urn:x:1")]))
        else:
            _emit_new(server, platform, [one])
    elif with_it and concept in _KINDS:
        platform.apply(Batch(entities=[ENTITY_MAKERS[_KINDS[concept]](f"one_{concept}")]))
    elif with_it:
        platform.apply(Batch(extensions={"other": {"nested": ["x", None]}}))
    return None


def _emit_edge(
    server: Server,
    platform: MetadataPlatformInterface,
    concept: str,
    *,
    home: tuple[str, ...],
    with_it: bool,
) -> None:
    names = (f"{concept}_from", f"{concept}_to")
    ends = [_moved(dataset(name, schema=_COLUMN), home) for name in names]
    mapping = ColumnMapping(upstream_column="id", downstream_column="id")
    if not with_it:
        _emit_new(server, platform, ends)
    if concept == "column_lineage":
        platform.apply(Batch(edges=[edge(*ends, column_mappings=(mapping,) if with_it else ())]))
    elif with_it:
        platform.apply(Batch(edges=[edge(*ends)]))


def _emit_new(
    server: Server, platform: MetadataPlatformInterface, datasets: Iterable[LumosDataset]
) -> None:
    for each in datasets:
        server.prepare(each)
        platform.emit_dataset(each)


def _sample(concept: str, home: tuple[str, ...]) -> LumosDataset | None:
    one = concept_dataset(concept)
    if one is None:
        return None
    assertion = {"name": "id is set", "kind": "not_null", "column": "id"}
    check = {"name": "id is set", "status": "PASSED", "timestamp": AT}
    profile = {"path": "id", "type": "INT64", "value_count": 3, "null_count": 0}
    other = {"columns": ["id"], "references": Urn.of(*home, "other"), "referenced_columns": ["id"]}
    parts: Mapping[str, Mapping[str, object]] = {
        "kind": {"kind": "TABLE" if DATABASE in home else "VIEW"},
        "assertion": {"schema": _COLUMN, "assertions": [assertion]},
        "quality": {"schema": _COLUMN, "assertions": [assertion], "quality": {"checks": [check]}},
        "foreign_key": {"schema": {**_COLUMN, "foreign_keys": [other]}},
        "profile": {
            "schema": _COLUMN,
            "profile": {"profiled_at": AT, "row_count": 3, "file_count": 1, "columns": [profile]},
        },
    }
    return _moved(with_parts(one, **parts.get(concept, {})), home)


def _plain(sample: LumosDataset, concept: str) -> LumosDataset:
    """Return a sample without the concept that it is a sample of."""
    bare: dict[str, Any] = {"urn": sample.urn, "name": sample.name, "platform": sample.platform}
    if concept in {"assertion", "quality", "profile", "foreign_key"}:
        bare["schema"] = _COLUMN
        if concept == "quality":
            bare["assertions"] = sample.assertions
    elif concept.startswith(("field_", "nested_")):
        bare["schema"] = {"fields": [{"name": "amount", "type": "STRING"}]}
    elif sample.schema.fields and concept != "field":
        bare["schema"] = {"fields": [{"name": "id", "type": "INT64", "nullable": False}]}
    return LumosDataset.from_json(bare)


def _moved(one: LumosDataset, home: tuple[str, ...]) -> LumosDataset:
    return with_parts(one, urn=Urn.of(*home, one.urn.parts[-1]), platform=home[0])


def leaves(value: object) -> Leaves:
    """Return the values of a document by their paths, without times and identities."""
    return frozenset(_leaves(value, ()))


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in _VOLATILE:
                yield from _leaves(inner, (*path, str(name)))
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _leaves(inner, (*path, "[]"))
    elif value is not None:
        yield path, _IDENTITY.sub("", str(value))


@contextmanager
def _openmetadata(_: Path) -> Iterator[Server]:
    with openmetadata_server() as (url, store):
        text = {"id": store.types["string"]["id"], "type": "type"}
        for type_ in ("table", "container"):
            body = {"name": "retention", "description": "x", "propertyType": text}
            store.declare(store.types[type_]["id"], body)

        def held() -> object:
            whole = {
                kind: {name: _shown(one) for name, one in some.items() if not _is_own(kind, name)}
                for kind, some in store.entities.items()
            }
            return [whole, {str(ends): edge for ends, edge in store.edges.items()}, store.profiles]

        homes = (("snowflake", "shop", "public"), ("s3", "lake"))
        yield Server(lambda: openmetadata_at(url), homes, held, lambda: _forget(store))


def _is_own(kind: str, name: str) -> bool:
    """Tell whether something stands for nothing but the stash."""
    return kind in {"containers", "services/storageServices"} and f"{name}.".startswith("lumos.")


def _shown(entity: dict[str, Any]) -> dict[str, Any]:
    extension = entity.get("extension") or {}
    rest = {name: value for name, value in extension.items() if name != "lumos"}
    return {**entity, "extension": rest}


def _forget(store: OpenMetadataStore) -> None:
    for kind in ("tables", "containers", "pipelines"):
        for name in [*store.entities[kind]]:
            if _is_own(kind, name):
                del store.entities[kind][name]
            else:
                store.entities[kind][name] = _shown(store.entities[kind][name])


@contextmanager
def _datahub(_: Path) -> Iterator[Server]:
    with datahub_double() as (url, double):

        def held() -> object:
            own = {
                urn: {name: without_stash(value) for name, (value, _) in aspects.items()}
                for urn, aspects in double.stored.items()
                if not urn.startswith("urn:li:container:lumos")
            }
            return [own, double.series]

        yield Server(
            lambda: DataHubHandler.from_config({"gms_server": url}),
            (("snowflake", "shop", "public"),),
            held,
            lambda: _forget_aspects(double),
        )


def _forget_aspects(double: DataHubDouble) -> None:
    for aspects in double.stored.values():
        for name, (value, version) in [*aspects.items()]:
            aspects[name] = without_stash(value), version


@contextmanager
def _atlas(_: Path) -> Iterator[Server]:
    with AtlasServer() as server:
        store = server.store

        def held() -> object:
            entities = {
                guid: {**each, "attributes": {**obj(each["attributes"]), "lumosStash": None}}
                for guid, each in store.entities.items()
                if each["typeName"] != "lumos_extension"
            }
            types = [name for name in store.types if not name.startswith("lumos_")]
            return [entities, store.terms, types]

        def forget() -> None:
            for each in store.entities.values():
                obj(each["attributes"]).pop("lumosStash", None)

        home = (("snowflake", "shop", "public"),)
        yield Server(lambda: atlas_at(server), home, held, forget)


@contextmanager
def _amundsen(folder: Path) -> Iterator[Server]:
    engine = sqlite_engine(folder / "amundsen.db")
    try:
        yield amundsen_held_by(engine, lambda: amundsen_over(engine))
    finally:
        engine.dispose()


def _key(table: Table, row: RowMapping) -> str:
    return str([row[column.name] for column in table.primary_key.columns])


def amundsen_held_by(engine: Engine, connect: Callable[[], MetadataPlatformInterface]) -> Server:
    """Return what the tables of Amundsen in a database hold."""
    own = tables.NOTE.c.description_source.like("lumos-%")

    def held() -> object:
        with engine.connect() as connection:
            return {
                table.name: [
                    {_key(table, row): dict(row)}
                    for row in connection.execute(select(table)).mappings()
                    if "://lumos" not in str(row)
                    and not str(row.get("description_source")).startswith("lumos-")
                ]
                for table in tables.METADATA.sorted_tables
            }

    def forget() -> None:
        with engine.begin() as connection:
            connection.execute(delete(tables.NOTE).where(own))

    return Server(connect, (("hive", "gold", "sales"),), held, forget)


@contextmanager
def _snowflake(_: Path) -> Iterator[Server]:
    account = SnowflakeAccount()

    def held() -> object:
        shows = ("COMMENT ON", "ALTER TABLE", "ALTER VIEW", "CREATE TAG", "ALTER TAG", "GRANT")
        return [each for each in account.statements if each.startswith(shows)]

    def prepare(one: LumosDataset) -> None:
        types = {"INT64": "NUMBER(38,0)", "STRING": "VARCHAR", "STRUCT": "OBJECT"}
        columns = ", ".join(
            f'"{each.name}" {types[each.type]}{"" if each.nullable else " NOT NULL"}'
            for each in one.schema.fields
        )
        place = '"."'.join(one.urn.parts)
        account.run(f'CREATE TABLE "{place}" ({columns or "X NUMBER"})')

    def forget() -> None:
        account.run('DELETE FROM "SHOP"."LUMOS"."STASH"')

    home = (("snowflake", DATABASE, "PUBLIC"),)
    yield Server(lambda: snowflake_over(account), home, held, forget, prepare)


SERVERS: Mapping[str, Opened] = {
    "amundsen": _amundsen,
    "atlas": _atlas,
    "datahub": _datahub,
    "openmetadata": _openmetadata,
    "snowflake": _snowflake,
}
"""Every catalog that has a stash."""
