"""DataHub's own code, asked by the service tests: its schema classes and its lite store.

It runs with an interpreter that has `acryl-datahub`, which Lumos itself never needs, and speaks
lines of JSON on standard input and output. The first argument says what is wanted:

    judge    each line `{"aspect", "value"}` is answered with null, or with what is wrong
    build    COUNT entities of every kind that the adapter reads, made with the schema classes
    keys     the containers that DataHub's own connectors would name, for lines `[class, parts]`
    kinds    the aspects that DataHub has, by kind of entity
    lite     FILE of change proposals goes through DataHub's file source into a lite store, and
             comes back as that store tells it
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SEED = 20_240_115
KINDS = (
    "dataset", "tag", "glossaryTerm", "glossaryNode", "domain", "corpuser", "corpGroup", "dataFlow",
    "dataJob", "container", "assertion", "ownershipType", "structuredProperty",
)  # fmt: skip
PLATFORMS = ("postgres", "s3", "kafka", "snowflake")
OPTIONAL = 0.5
DEEP = 6


def main() -> None:
    """Do what the first argument asks for."""
    wanted, *rest = sys.argv[1:]
    answers: dict[str, Callable[..., Iterator[object]]] = {
        "judge": _judged, "build": _built, "keys": _keys, "kinds": _kinds, "lite": _lite,
    }  # fmt: skip
    for answer in answers[wanted](*rest):
        sys.stdout.write(json.dumps(answer) + "\n")


def _classes() -> dict[str, Any]:
    known: dict[str, Any] = import_module("datahub.metadata.schema_classes").ASPECT_NAME_MAP
    return known


def _judged() -> Iterator[str | None]:
    post_json_transform = import_module("datahub.emitter.serialization_helper").post_json_transform
    known = _classes()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            read = known[asked["aspect"]].from_obj(post_json_transform(asked["value"]))
            if not read.validate():
                yield "not valid"
            elif _unknown(asked["value"], read.to_obj()):
                yield "has keys that the SDK does not know"
            else:
                yield None
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises is its verdict
            yield f"{type(error).__name__}: {error}"


def _unknown(given: object, kept: object) -> bool:
    """Tell whether the SDK dropped something that was given."""
    if isinstance(given, dict) and isinstance(kept, dict):
        names = {name.rsplit(".", 1)[-1] for name in kept}
        return any(
            name.rsplit(".", 1)[-1] not in names
            or _unknown(value, kept.get(name, kept.get(name.rsplit(".", 1)[-1])))
            for name, value in given.items()
        )
    if isinstance(given, list) and isinstance(kept, list):
        return len(given) != len(kept) or any(map(_unknown, given, kept))
    return False


def _kinds() -> Iterator[Json]:
    yield {kind: [key, *aspects] for kind, (key, aspects) in _registry().items() if kind in KINDS}


def _registry() -> dict[str, tuple[str, list[str]]]:
    found: dict[str, tuple[str, list[str]]] = {}
    for name, each in _classes().items():
        about = each.RECORD_SCHEMA.props.get("Aspect") or {}
        if "keyForEntity" in about:
            found[about["keyForEntity"]] = name, list(about.get("entityAspects") or ())
    return found


def _keys() -> Iterator[str]:
    builder = import_module("datahub.emitter.mcp_builder")
    for line in sys.stdin:
        name, parts = json.loads(line)
        yield getattr(builder, name)(**parts).as_urn()


def _built(count: str) -> Iterator[Json]:
    """Make entities of every kind with every aspect, each optional part there or not."""
    maker = _Maker(int(count))
    for kind in KINDS:
        for number in range(maker.count):
            yield maker.entity(kind, number)
    yield from _by_the_client()


class _Maker:
    """Draws what the schemas of DataHub allow; the same each time."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.random = random.Random(SEED)
        self.registry = _registry()
        self.classes = _classes()
        helper = import_module("datahub.emitter.serialization_helper")
        self.written = helper.pre_json_transform

    def urn(self, kind: str, number: int) -> str:
        if kind == "dataset":
            platform = PLATFORMS[number % len(PLATFORMS)]
            environment = "DEV" if number % 7 == 1 else "PROD"
            name = f"shop.public.table_{number}"
            return f"urn:li:dataset:(urn:li:dataPlatform:{platform},{name},{environment})"
        if kind == "dataJob":
            return f"urn:li:dataJob:({self.urn('dataFlow', number)},task_{number})"
        if kind == "dataFlow":
            return f"urn:li:dataFlow:(airflow,flow_{number},PROD)"
        if kind == "schemaField":
            return f"urn:li:schemaField:({self.urn('dataset', number)},column_{number % 3})"
        return f"urn:li:{kind}:{kind}_{number}"

    def entity(self, kind: str, number: int) -> Json:
        aspects: Json = {}
        for name in self.registry[kind][1]:
            chance = 0.7 if number and name != "propertyDefinition" else 1  # they are used
            if name in self.classes and self.random.random() < chance:
                aspects[name] = self.aspect(kind, name, number)
        return {"urn": self.urn(kind, number), "aspects": aspects}

    def aspect(self, kind: str, name: str, number: int) -> Json:
        drawn = self.record(self.classes[name].RECORD_SCHEMA, 0)
        self._settle(drawn, kind, name, number)
        made = self.classes[name].from_obj(drawn)
        if not made.validate():
            raise ValueError(f"{name} was made wrongly")
        written: Json = self.written(made.to_obj())
        return written

    def _settle(self, drawn: Json, kind: str, name: str, number: int) -> None:
        """Draw again what no schema says of an aspect and every server holds it to."""
        if name == "status":
            drawn["removed"] = False
        if name == "schemaMetadata":
            drawn["fields"] = [self._field(row) for row in range(4)]
            drawn["primaryKeys"] = self.random.choice([None, ["column_0"]])
        if name == "editableSchemaMetadata":
            for row, info in enumerate(drawn["editableSchemaFieldInfo"]):
                info["fieldPath"] = f"column_{row}"
        if name == "upstreamLineage":
            for row, upstream in enumerate(drawn["upstreams"]):
                upstream["dataset"] = self.urn("dataset", (number + row + 1) % self.count)
        if kind == "assertion" and name == "assertionInfo":
            self._settle_assertion(drawn, number)
        if name == "structuredProperties":
            for row, each in enumerate(drawn["properties"]):
                each["propertyUrn"] = self.urn("structuredProperty", row)
                each["values"] = [float(n) if row % 2 else f"v{n}" for n in range(row, number % 4)]
        if name == "propertyDefinition":
            kind_of_value = "number" if number % 2 else "string"
            drawn["valueType"] = f"urn:li:dataType:datahub.{kind_of_value}"
            drawn |= {"cardinality": "MULTIPLE", "allowedValues": None}
        if name == "dataJobInfo" and drawn.get("flowUrn"):
            drawn["flowUrn"] = self.urn("dataFlow", number)

    def _field(self, row: int) -> Json:
        schema = import_module("datahub.metadata.schema_classes").SchemaFieldClass.RECORD_SCHEMA
        field = self.record(schema, 1)
        field["fieldPath"] = f"column_{row}"
        if row == 3:
            field["fieldPath"] = "[version=2.0].[type=struct].[type=array].[type=string].column_3"
        return field

    def _settle_assertion(self, drawn: Json, number: int) -> None:
        for part in drawn.values():
            if isinstance(part, dict) and {"entity", "dataset"} & part.keys():
                part["entity" if "entity" in part else "dataset"] = self.urn("dataset", number)

    def record(self, schema: Any, depth: int) -> Json:
        return {each.name: self.value(each.type, each.props, depth + 1) for each in schema.fields}

    def value(self, schema: Any, props: Json, depth: int) -> Any:
        match schema.type:
            case "union":
                return self._branch(schema, props, depth)
            case "record":
                return self.record(schema, depth)
            case "array":
                many = 0 if depth > DEEP else self.random.randrange(3)
                return [self.value(schema.items, props, depth + 1) for _ in range(many)]
            case "map":
                many = self.random.randrange(3)
                return {f"key {n}": self.value(schema.values, {}, depth + 1) for n in range(many)}
            case "enum":
                return self.random.choice(schema.symbols)
            case kind:
                return self._primitive(kind, props)

    def _branch(self, schema: Any, props: Json, depth: int) -> Any:
        branches = [each for each in schema.schemas if each.type != "null"]
        optional = len(branches) < len(schema.schemas)
        if optional and (depth > DEEP or self.random.random() < OPTIONAL):
            return None
        chosen = self.random.choice(branches)
        value = self.value(chosen, props, depth)
        if len(branches) == 1:
            return value
        return {getattr(chosen, "fullname", chosen.type): value}

    def _primitive(self, kind: str, props: Json) -> Any:
        match kind:
            case "string":
                return self._urn_for(props) if _is_urn(props) else self._text()
            case "bytes":
                return "bytes"
            case "boolean":
                return self.random.random() < OPTIONAL
            case "int":
                return self.random.randrange(1000)
            case "long":
                return 1_700_000_000_000 + self.random.randrange(1_000_000_000)
            case _:
                return self.random.randrange(1000) / 8

    def _text(self) -> str:
        return self.random.choice(["orders", "what it's for", "ünïcödé 🔥", "a/b.c", "x"])

    def _urn_for(self, props: Json) -> str:
        relations = props.get("Relationship") or {}
        types = props.get("entityTypes") or relations.get("entityTypes") or ()
        if not types:
            nested = [each for each in relations.values() if isinstance(each, dict)]
            types = next((each["entityTypes"] for each in nested if each.get("entityTypes")), ())
        said = str(props.get("Urn") or "Urn").removesuffix("Urn")
        plain = [said[0].lower() + said[1:]] if said else ["corpuser"]
        kind = self.random.choice(list(types) or plain)
        return self.urn(kind, self.random.randrange(self.count))


def _is_urn(props: Json) -> bool:
    return "Urn" in props or "urn" in str((props.get("java") or {}).get("class", "")).lower()


def _by_the_client() -> Iterator[Json]:
    """Make a dataset as users of the SDK do, with everything that its client offers."""
    sdk = import_module("datahub.sdk")
    urns = import_module("datahub.metadata.urns")
    helper = import_module("datahub.emitter.serialization_helper")
    made = sdk.Dataset(
        platform="snowflake",
        name="shop.public.orders",
        env="PROD",
        display_name="orders",
        qualified_name="SHOP.PUBLIC.ORDERS",
        description="All orders",
        external_url="https://example.org/orders",
        custom_properties={"team": "shop"},
        subtype="Table",
        schema=[
            ("id", "bigint", "what it's for"),
            ("amount", "numeric(10,2)"),
            ("at", "timestamp"),
        ],
        tags=[urns.TagUrn("gold")],
        terms=[urns.GlossaryTermUrn("Order")],
        owners=[(urns.CorpUserUrn("ada"), "TECHNICAL_OWNER"), urns.CorpGroupUrn("shop")],
        domain=urns.DomainUrn("sales"),
        links=[("https://example.org/wiki", "wiki")],
        structured_properties={"urn:li:structuredProperty:io.acme.days": [7.0]},
        upstreams=["urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.table_0,PROD)"],
    )
    aspects = {
        each.aspectName: helper.pre_json_transform(each.aspect.to_obj())
        for each in made.as_mcps()
        if each.aspectName != "datasetKey"
    }
    yield {"urn": str(made.urn), "aspects": aspects}


def _lite(file: str) -> Iterator[Json]:
    pipeline = import_module("datahub.ingestion.run.pipeline").Pipeline
    store = str(Path(file).with_suffix(".db"))
    sink = {"type": "sqlite", "config": {"file": store}}
    run = pipeline.create(
        {
            "source": {"type": "file", "config": {"path": file}},
            "sink": {"type": "datahub-lite", "config": sink},
        },
        no_progress=True,
    )
    run.run()
    run.raise_from_status()
    lite = import_module("datahub.lite.lite_util").get_datahub_lite(sink)
    for urn in sorted(lite.list_ids()):
        told = lite.get(urn, None)
        yield {"urn": urn, "aspects": {n: v for n, v in (told or {}).items() if n != "urn"}}


if __name__ == "__main__":
    main()
