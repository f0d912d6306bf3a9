"""The migration of the product documents: its commands as they stand there, and what they print."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pytest
from pydantic import JsonValue
from typing_extensions import override

from command_line import Lumos
from lumos.core.models import LineageEdge, LumosDataset, Tag
from lumos.core.platform.batch import Batch
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.registry import Registry
from lumos.core.store.database import StateDatabase
from product_migration import COMPARED, DIFF, EXPORT, IMPORT, VALIDATE, VALIDATED, given

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
DATASETS, EDGES, LOST_TAGS = (5_247, 12_834, 3) if FULL_SIZE else (47, 134, 3)


class Catalog(EmbeddedHandler):
    """A catalog of another name, with a database of its own."""

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls(StateDatabase.open(Path(f"{cls.name}.db")))


class DataHub(Catalog):
    name = "datahub"


class OpenMetadata(Catalog):
    name = "openmetadata"


@pytest.fixture(autouse=True)
def catalogs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builtins = {"embedded": f"{EmbeddedHandler.__module__}:EmbeddedHandler"}
    registry: Registry[MetadataPlatformInterface] = Registry(
        "lumos.platforms", builtins=builtins, noun="platform"
    )
    registry.register("datahub", DataHub)
    registry.register("openmetadata", OpenMetadata)
    monkeypatch.setattr(PlatformFactory, "_registry", registry)


def urn(number: int) -> str:
    return f"lumos://snowflake/FINANCE/table_{number:05d}"


def fill_datahub() -> None:
    with StateDatabase.open(Path("datahub.db")) as database, database.transaction():
        catalog = DataHub(database)
        for number in range(DATASETS):
            catalog.emit_dataset(
                LumosDataset.from_json(
                    {"urn": urn(number), "name": f"table_{number:05d}", "platform": "snowflake"}
                )
            )
        for number in range(EDGES):
            upstream, step = number % DATASETS, 1 + number // DATASETS
            catalog.apply(
                Batch(
                    edges=[
                        LineageEdge.from_json(
                            {
                                "upstream_urn": urn(upstream),
                                "downstream_urn": urn((upstream + step) % DATASETS),
                            }
                        )
                    ]
                )
            )


def sized(lines: str) -> str:
    """Return the lines of the documents with the numbers of this run."""
    return lines.replace("5,247", f"{DATASETS:,}").replace("12,834", f"{EDGES:,}")


def test_the_migration_of_the_product_documents_runs_as_it_is_written(lumos: Lumos) -> None:
    fill_datahub()

    assert lumos(*given(EXPORT)).exit_code == 0
    validated = lumos(*given(VALIDATE))
    assert (validated.exit_code, validated.stdout) == (0, sized(VALIDATED))
    imported = lumos(*given(IMPORT))
    assert imported.exit_code == 0, imported.stderr
    with StateDatabase.open(Path("datahub.db")) as database:
        for number in range(LOST_TAGS):  # since the migration
            DataHub(database).apply(Batch(entities=[Tag(name=f"tier-{number}")]))
    compared = lumos(*given(DIFF))

    assert compared.exit_code == 0
    assert compared.stdout.startswith(sized(COMPARED))


def test_what_is_missing_in_the_new_catalog_is_a_warning(lumos: Lumos) -> None:
    fill_datahub()
    for command in (EXPORT, IMPORT):
        lumos(*given(command))
    with StateDatabase.open(Path("openmetadata.db")) as database:
        OpenMetadata(database).delete(urn(0))

    compared = lumos(*given(DIFF))

    assert f"[warn] {DATASETS - 1:,}/{DATASETS:,} datasets migrated\n" in compared.stdout


def test_a_diff_of_files_says_nothing_of_a_migration(lumos: Lumos) -> None:
    fill_datahub()
    lumos(*given(EXPORT))

    assert "migrated" not in lumos("diff", "--source", "backup.json", "--target", "datahub").stdout
