"""The file of containers, the page on it and the variables of the tests agree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from named_catalogs import VARIABLES, named

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "real-catalogs.md").read_text("utf-8")
SERVICES: dict[str, dict[str, Any]] = YAML(typ="safe").load(ROOT / "compose.yaml")["services"]


@pytest.mark.parametrize("catalog", VARIABLES)
def test_the_page_names_the_ports_and_variables_of_each_catalog(catalog: str) -> None:
    (row,) = re.findall(rf"^\| [^|]+ \| `docker compose --profile {catalog} up --wait` \|(.*)$",
                        PAGE, flags=re.MULTILINE)  # fmt: skip
    published = {
        port.split(":")[1]
        for service in SERVICES.values()
        if catalog in service["profiles"]
        for port in service.get("ports", ())
    }

    assert set(re.findall(r"localhost:(\d+)", row)) == published
    assert next(iter(VARIABLES[catalog].values())) in row
    assert all(variable in PAGE for variable in VARIABLES[catalog].values())


def test_every_image_has_a_version_and_nothing_listens_to_other_machines() -> None:
    for name, service in SERVICES.items():
        assert re.search(r":v?\d+(\.\d+)+[\w.-]*\Z", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_what_a_service_waits_for_is_there_and_can_be_waited_for() -> None:
    for name, service in SERVICES.items():
        for other, wanted in service.get("depends_on", {}).items():
            assert SERVICES[other]["profiles"] == service["profiles"], name
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], other


def test_a_catalog_is_named_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES["datahub"].values():
        monkeypatch.delenv(variable, raising=False)
    assert named("datahub") is None
    monkeypatch.setenv("LUMOS_DATAHUB_URL", "http://localhost:8080")
    assert named("datahub") == {"gms_server": "http://localhost:8080"}
