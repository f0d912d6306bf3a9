"""The migration of the product documents, through the adapters of DataHub and OpenMetadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import Lumos
from doubles.datahub_server import DataHubDouble, datahub_double
from doubles.openmetadata_server import TOKEN, openmetadata_server
from lumos.core.models import LineageEdge, LumosDataset
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from product_migration import COMPARED, DIFF, EXPORT, IMPORT, VALIDATE, VALIDATED, given

DATASETS, EDGES = 12, 30
SETTINGS = """\
platform_config:
  datahub:
    gms_server: {}
  openmetadata:
    server: {}
    auth_token: {}
"""


@pytest.fixture
def datahub(project: Path) -> Iterator[DataHubDouble]:
    with datahub_double() as (url, double), openmetadata_server() as (other, _):
        (project / "lumos.yaml").write_text(SETTINGS.format(url, other, TOKEN), "utf-8")
        with DataHubHandler.from_config({"gms_server": url}) as catalog:
            fill(catalog)
        yield double


def urn(number: int) -> str:
    return f"lumos://snowflake/FINANCE/table_{number:05d}"


def fill(catalog: DataHubHandler) -> None:
    for number in range(DATASETS):
        catalog.emit_dataset(
            LumosDataset.from_json(
                {
                    "urn": urn(number),
                    "name": f"table_{number:05d}",
                    "platform": "snowflake",
                    "schema": {"fields": [{"name": "id", "type": "INT64", "nullable": False}]},
                    "documentation": {"description": f"Table {number}."},
                    "ownership": {"owners": [{"user": "jane.smith", "type": "TECHNICAL_OWNER"}]},
                    "tags": ["tier-1"],
                }
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
    return lines.replace("5,247", f"{DATASETS:,}").replace("12,834", f"{EDGES:,}")


def test_the_commands_of_the_documents_move_a_datahub_to_an_openmetadata(
    lumos: Lumos, datahub: DataHubDouble
) -> None:
    assert lumos(*given(EXPORT)).exit_code == 0
    validated = lumos(*given(VALIDATE))
    assert validated.exit_code == 0
    for line in sized(VALIDATED).splitlines():
        assert line in validated.stdout
    imported = lumos(*given(IMPORT))
    assert imported.exit_code == 0, imported.stderr
    moved = lumos(*given(DIFF))
    assert moved.stdout == sized("".join(COMPARED.splitlines(keepends=True)[:2])) + (
        "0 changes: 0 breaking, 0 non-breaking, 0 informational\n"
    )

    for number in range(3):  # since the migration
        name = f"late-{number}"
        datahub.put(f"urn:li:tag:{name}", tagProperties={"name": name})
    compared = lumos(*given(DIFF))

    assert compared.exit_code == 0
    assert compared.stdout.startswith(sized(COMPARED))
