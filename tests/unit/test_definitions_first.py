"""What defines a thing reaches a catalog before what uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from doubles.datahub_server import DataHubDouble, datahub_double
from given_work import open_work
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.sync_controller import SyncController
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.mapping.structured import MADE_BY_LUMOS
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.testing.platform_samples import AT, dataset

NUMBER = "urn:li:dataType:datahub.number"
URN = "urn:li:structuredProperty:days"
DEFINITION = {
    "qualifiedName": "days",
    "description": "How long it is kept.",
    "valueType": "urn:li:dataType:datahub.rich_text",
    "cardinality": "SINGLE",
    "entityTypes": ["urn:li:entityType:datahub.dataset"],
}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """What was exported from a server where somebody defined a property and used it."""
    with (
        datahub_double() as (url, first),
        DataHubHandler.from_config({"gms_server": url}) as platform,
    ):
        first.put(URN, propertyDefinition=DEFINITION)
        platform.emit_dataset(dataset(properties={URN: "**7** days"}))
        exported = platform.export_all(at=AT)
    path = tmp_path / "all.json"
    path.write_bytes(orjson.dumps(exported.to_json()))
    return path


@pytest.fixture
def other(tmp_path: Path) -> Iterator[tuple[UnitOfWork, DataHubDouble]]:
    settings = tmp_path / "lumos.yaml"
    with datahub_double() as (url, double):
        settings.write_text(f"platform_config: {{datahub: {{gms_server: '{url}'}}}}")
        with open_work(
            config=settings, state_dir=tmp_path / "state", environment={}, clock=lambda: AT
        ) as work:
            yield work, double


@pytest.mark.parametrize("way", ["import", "sync"])
def test_a_property_is_defined_as_it_was_before_a_dataset_has_a_value_of_it(
    document: Path, other: tuple[UnitOfWork, DataHubDouble], way: str
) -> None:
    work, double = other
    if way == "import":
        report = ImportController(work, "datahub").run(str(document)).report
    else:
        ImportController(work).run(str(document))
        report = SyncController(work).sync("datahub").report

    assert not report.failed
    assert double.stored[URN]["propertyDefinition"] == (DEFINITION, 1)
    bodies: list[Any] = [body for method, _, body in double.requests if method == "POST"]
    written = [
        str(entity["urn"])
        for body in bodies
        if isinstance(body, list)
        for entity in body
        if len(entity) > 1
    ]
    used = next(place for place, urn in enumerate(written) if urn.startswith("urn:li:dataset:"))
    assert written.index(URN) < used


@pytest.mark.parametrize("way", ["import", "sync"])
def test_a_definition_that_an_earlier_run_guessed_wrongly_is_told_in_the_report(
    document: Path, other: tuple[UnitOfWork, DataHubDouble], way: str
) -> None:
    work, double = other
    guessed = {**DEFINITION, "description": MADE_BY_LUMOS, "valueType": NUMBER}
    double.put(URN, propertyDefinition=guessed)
    if way == "import":
        report = ImportController(work, "datahub").run(str(document)).report
    else:
        ImportController(work).run(str(document))
        report = SyncController(work).sync("datahub").report

    assert not report.failed
    assert len([line for line in report.warnings if URN in line]) == 2
    assert "**7** days" not in str(report.warnings)
    assert double.stored[URN]["propertyDefinition"] == (guessed, 1)
    found = (
        SyncController(work)._target("datahub", writing=False).platform.get_dataset(dataset().urn)
    )
    assert found.properties[URN] == "**7** days"
