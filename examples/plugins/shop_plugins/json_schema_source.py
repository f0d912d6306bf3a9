"""A source: a folder of JSON Schema files, each of which describes a dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field
from typing_extensions import override

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.models import LumosDataset, TypeName, Urn
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    BaseIngestionHandler,
    Claim,
    RecordSourceSettings,
)
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScannedScope,
    ScanRecord,
    ScanUnit,
    UnreadableItem,
)

SUFFIX = ".schema.json"

TYPES = {
    "boolean": TypeName.BOOLEAN,
    "integer": TypeName.INT64,
    "number": TypeName.DOUBLE,
    "string": TypeName.STRING,
}


class JsonSchemaSettings(RecordSourceSettings):
    """Where the schemas lie."""

    path: Path = Field(description="A folder of *.schema.json files.")


class JsonSchemaHandler(BaseIngestionHandler[JsonSchemaSettings]):
    """Reads each JSON Schema of a folder as one dataset."""

    source_type = "json-schema"
    settings_model = JsonSchemaSettings

    @override
    def claims(self) -> Iterator[Claim]:
        yield Claim(str(self._urn()), str(self.settings.path.absolute()))

    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        if not self.settings.path.is_dir():
            raise SourceError(
                f"source '{self.name}': there is no folder {self.settings.path}",
                hint="set path to a folder of *.schema.json files",
            )
        yield ScanUnit(str(self.settings.path))

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        for path in sorted(Path(unit.target).glob(f"*{SUFFIX}")):
            urn = self._urn(path.name.removesuffix(SUFFIX))
            try:
                yield _dataset(urn, json.loads(path.read_text("utf-8")))
            except (OSError, ValueError, KeyError, AttributeError) as error:
                reason = f"{path.name} is not a JSON Schema of an object: {type(error).__name__}"
                yield UnreadableItem(path.name, UnreadableItemError(reason), urn)
        yield ScannedScope(str(self._urn()))

    def _urn(self, *name: str) -> Urn:
        folder = self.settings.instance or self.settings.path.absolute().name
        return Urn.of("json-schema", folder, *name)


def _dataset(urn: Urn, document: dict[str, dict[str, dict[str, str]]]) -> LumosDataset:
    required = document.get("required", ())
    fields = [
        {
            "name": column,
            "type": TYPES.get(about.get("type", ""), TypeName.JSON),
            "native_type": about.get("type"),
            "nullable": column not in required,
            "description": about.get("description"),
        }
        for column, about in document["properties"].items()
    ]
    return LumosDataset.from_json(
        {
            "urn": urn,
            "name": urn.name,
            "platform": "json-schema",
            "schema": {"fields": fields},
        }
    )
