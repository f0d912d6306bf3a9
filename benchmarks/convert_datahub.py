"""Canonical datasets as DataHub's wire format, against building the same aspects with its SDK.

Run: python benchmarks/convert_datahub.py

The SDK stands in the environment that tests ask it in, which is made when it is first needed. Both
sides make the aspects of datasets with 30 columns and serialise them to JSON, in turns, and CPU
time is compared.
The SDK is given plain values and has nothing to look up; Lumos also finds out, by reading its own
aspects back, what DataHub has no place for.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

DATASETS = 200
ROUNDS = 5
COLUMNS = 30
AIM = 5.0
PEER = "--peer"
TYPES = ("INT64", "STRING", "DECIMAL", "TIMESTAMP")
CLASSES = ("NumberTypeClass", "StringTypeClass", "NumberTypeClass", "TimeTypeClass")


def main() -> int:
    """Print the ratio of both, or what the SDK's side needs."""
    if PEER in sys.argv:
        sys.stdout.write(f"{_seconds_of_the_sdk()}\n")
        return 0
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from oracle_environments import oracle_python

    interpreter = oracle_python("datahub")
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        ours.append(_seconds_of_lumos())
        peer = [interpreter, str(Path(__file__).resolve()), PEER]
        answer = subprocess.run(peer, check=True, capture_output=True, text=True).stdout
        theirs.append(float(answer.splitlines()[-1]))
    ratio = statistics.median(theirs) / statistics.median(ours)
    each = statistics.median(ours) / DATASETS * 1e6
    print(f"canonical to wire: {each:,.0f} us of CPU per dataset of {COLUMNS} columns")
    print(f"SDK / Lumos: {ratio:.1f} (aim {AIM:.0f})")
    return 0


def _seconds_of_lumos() -> float:
    import orjson

    from lumos.core.models import LumosDataset
    from lumos.core.platform.impl.datahub.mapping.aspects import DatasetConversion

    conversion = DatasetConversion("PROD")
    datasets = [LumosDataset.from_json(_document(number)) for number in range(DATASETS)]
    began = time.process_time()
    for dataset in datasets:
        aspects = conversion.aspects(dataset.to_json())
        orjson.dumps([{"urn": dataset.urn, **aspects}])
    return time.process_time() - began


def _document(number: int) -> dict[str, object]:
    columns = [
        {
            "name": f"column_{place}",
            "type": TYPES[place % 4],
            "description": f"what column {place} holds",
            "nullable": bool(place % 2),
            "tags": ["pii"] if place % 7 == 0 else [],
        }
        for place in range(COLUMNS)
    ]
    return {
        "urn": f"lumos://postgres/shop/public/table_{number}",
        "name": f"table_{number}",
        "platform": "postgres",
        "kind": "TABLE",
        "schema": {"fields": columns, "primary_key": ["column_0"]},
        "ownership": [{"user": "ada"}, {"group": "shop"}],
        "tags": ["gold", "daily"],
        "governance": {"domains": ["sales"], "glossary_terms": ["Order"]},
        "documentation": {"description": "what people say of it " * 5},
        "properties": {"team": "shop"},
    }


def _seconds_of_the_sdk() -> float:
    import json
    from importlib import import_module

    known = import_module("datahub.metadata.schema_classes")
    transform = import_module("datahub.emitter.serialization_helper").pre_json_transform
    began = time.process_time()
    for number in range(DATASETS):
        aspects = _sdk_aspects(known, number)
        json.dumps({name: transform(_plain(aspect)) for name, aspect in aspects.items()})
    return time.process_time() - began


def _plain(aspect: object) -> object:
    plain: object = getattr(aspect, "to_obj")()  # noqa: B009 - a class that is not known here
    return plain


def _sdk_aspects(known: object, number: int) -> dict[str, object]:
    def make(kind: str, /, **parts: object) -> object:
        made: object = getattr(known, kind)(**parts)
        return made

    stamp = make("AuditStampClass", time=0, actor="urn:li:corpuser:lumos")

    def tags(*names: str) -> object:
        each = [make("TagAssociationClass", tag=f"urn:li:tag:{name}") for name in names]
        return make("GlobalTagsClass", tags=each)

    fields = [
        make(
            "SchemaFieldClass",
            fieldPath=f"column_{place}",
            type=make("SchemaFieldDataTypeClass", type=make(CLASSES[place % 4])),
            nativeDataType=TYPES[place % 4],
            description=f"what column {place} holds",
            nullable=bool(place % 2),
            isPartOfKey=place == 0,
            globalTags=tags("pii") if place % 7 == 0 else None,
        )
        for place in range(COLUMNS)
    ]
    owners = [
        make("OwnerClass", owner=owner, type="TECHNICAL_OWNER")
        for owner in ("urn:li:corpuser:ada", "urn:li:corpGroup:shop")
    ]
    term = make("GlossaryTermAssociationClass", urn="urn:li:glossaryTerm:Order")
    return {
        "datasetProperties": make(
            "DatasetPropertiesClass",
            name=f"table_{number}",
            description="what people say of it " * 5,
            customProperties={"team": "shop"},
        ),
        "schemaMetadata": make(
            "SchemaMetadataClass",
            schemaName=f"table_{number}",
            platform="urn:li:dataPlatform:postgres",
            version=0,
            hash="",
            platformSchema=make("OtherSchemaClass", rawSchema=""),
            fields=fields,
            primaryKeys=["column_0"],
        ),
        "status": make("StatusClass", removed=False),
        "subTypes": make("SubTypesClass", typeNames=["Table"]),
        "ownership": make("OwnershipClass", owners=owners, lastModified=stamp),
        "globalTags": tags("gold", "daily"),
        "glossaryTerms": make("GlossaryTermsClass", terms=[term], auditStamp=stamp),
        "domains": make("DomainsClass", domains=["urn:li:domain:sales"]),
    }


if __name__ == "__main__":
    sys.exit(main())
