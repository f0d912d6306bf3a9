"""`lumos search` over several catalogs at once, each a server of its own on the loopback."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from command_line import Lumos, Result, check_schema
from doubles.atlas_server import AtlasServer, atlas_at
from doubles.datahub_server import datahub_double
from doubles.openmetadata_server import TOKEN, openmetadata_at, openmetadata_server
from lumos import Lumos as Sdk
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_samples import dataset, rich_dataset

Config = dict[str, dict[str, object]]


@pytest.fixture
def servers() -> Iterator[Config]:
    """Three catalogs: customers is in each, and something else in every one."""
    with (
        datahub_double(token="a token") as (datahub_url, double),
        openmetadata_server() as (openmetadata_url, _),
        AtlasServer() as atlas_server,
    ):
        config: Config = {
            "datahub": {"gms_server": datahub_url, "token": "a token"},
            "openmetadata": {"server": openmetadata_url, "auth_token": TOKEN},
            "atlas": {"url": atlas_server.url, "username": "admin", "password": "admin"},
        }
        with (
            DataHubHandler.from_config(config["datahub"]) as datahub,  # type: ignore[arg-type]
            openmetadata_at(openmetadata_url) as openmetadata,
            atlas_at(atlas_server) as atlas,
        ):
            for number, catalog in enumerate((datahub, openmetadata, atlas)):
                catalog.emit_dataset(rich_dataset())
                catalog.emit_dataset(dataset(f"customers_{number}", platform="kafka"))
        double.settle()
        yield config


def project_with(project: Path, platforms: list[str], config: Mapping[str, object]) -> None:
    document = {
        "platforms": platforms,
        "platform_config": config,
        "search": {"timeout_seconds": 300},
    }
    (project / "lumos.yaml").write_text(json.dumps(document))
    with EmbeddedHandler(StateDatabase.open(project / ".lumos" / "lumos.db")) as embedded:
        embedded.emit_dataset(rich_dataset())
        embedded.emit_dataset(dataset("customers_here"))


def page_of(result: Result) -> Any:
    page = result.json()
    check_schema(page, "search")
    return page


def nobody_listens() -> Iterator[str]:
    """An address at which nobody answers, and that nobody else is given meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


closed_door = pytest.fixture(nobody_listens)


def test_all_catalogs_are_one_list(lumos: Lumos, project: Path, servers: Config) -> None:
    project_with(project, ["embedded", *servers], servers)

    result = lumos("search", "customers")
    page = page_of(lumos("search", "customers", "--json"))

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Results (5 datasets):\n\n1. s3/lake/customers\n")
    assert "Quality: 99.2%" in result.stdout
    assert "Owner: finance-team, ada" in result.stdout
    assert "Last updated: 2024-01-15" in result.stdout
    assert "In: embedded, datahub, openmetadata, atlas" in result.stdout
    first, *others = page["hits"]
    assert [held["catalog"] for held in first["catalogs"]] == ["embedded", *servers]
    assert first["catalogs"][1]["external_id"].startswith("urn:li:dataset:(")
    assert {hit["name"]: hit["catalogs"][0]["catalog"] for hit in others} == {
        "customers_here": "embedded",
        "customers_0": "datahub",
        "customers_1": "openmetadata",
        "customers_2": "atlas",
    }
    assert [(each["catalog"], each["total"]) for each in page["catalogs"]] == [
        (name, 2) for name in ("embedded", *servers)
    ]
    assert page["exact"] is True


def test_filters_and_pages_hold_for_all(lumos: Lumos, project: Path, servers: Config) -> None:
    project_with(project, ["embedded", *servers], servers)

    kafka = page_of(lumos("search", "customers", "--platform", "kafka", "--json"))
    owned = page_of(lumos("search", "--owner", "ADA", "--json"))
    good = lumos("search", "customers", "--min-quality", "95")
    pages = [
        page_of(lumos("search", "customers", "--limit", "2", "--offset", offset, "--json"))
        for offset in ("0", "2", "4")
    ]

    assert sorted(hit["name"] for hit in kafka["hits"]) == [
        "customers_0", "customers_1", "customers_2"
    ]  # fmt: skip
    assert [hit["name"] for hit in owned["hits"]] == ["customers"]
    assert good.stdout.startswith("Results (1 of 5 datasets meet quality threshold):")
    assert good.stdout.count("(Quality: unknown)") == 4
    names = [hit["name"] for page in pages for hit in page["hits"]]
    assert len(names) == len({*names}) == 5
    assert names[0] == "customers"


def test_platform_chooses_catalogs(lumos: Lumos, project: Path, servers: Config) -> None:
    project_with(project, [], servers)

    def asked(*names: str) -> list[str]:
        options = [part for name in names for part in ("--platform", name)]
        return sorted(
            hit["name"] for hit in page_of(lumos("search", "customers", *options, "--json"))["hits"]
        )

    assert asked() == ["customers", "customers_here"]
    assert asked("datahub") == ["customers", "customers_0"]
    assert asked("atlas", "embedded") == ["customers", "customers_2", "customers_here"]
    assert asked("atlas", "embedded", "kafka") == ["customers_2"]


def test_a_single_other_catalog_is_searched_without_a_catalog_here(
    lumos: Lumos, project: Path, servers: Config
) -> None:
    document = {"platform": "datahub", "platform_config": servers}
    (project / "lumos.yaml").write_text(json.dumps(document))

    result = lumos("search", "customers")

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Results (2 datasets):")
    assert not (project / ".lumos").exists()


def test_a_catalog_that_is_down_is_one_line_and_the_others_answer(
    lumos: Lumos, project: Path, servers: Config, closed_door: str
) -> None:
    config = {**servers, "atlas": {**servers["atlas"], "url": closed_door}}
    project_with(project, ["embedded", "datahub", "atlas"], config)

    result = lumos("search", "customers")
    asked = lumos("search", "customers", "--json")

    assert result.exit_code == asked.exit_code == 3
    assert result.stdout.startswith("Results (3 datasets):")
    assert result.error_line.startswith("lumos: atlas is missing from the results: atlas: ")
    assert "the catalog cannot be reached" in result.error_line
    assert [each["code"] for each in page_of(asked)["catalogs"]] == [None, None, "LUM-401"]


def test_a_wrong_token_is_one_line_without_the_token(
    lumos: Lumos, project: Path, servers: Config
) -> None:
    config = {**servers, "datahub": {**servers["datahub"], "token": "wrong-and-secret"}}
    project_with(project, ["embedded", "datahub"], config)

    result = lumos("search", "customers")

    assert result.exit_code == 3
    assert "the token is not accepted (401)" in result.error_line
    assert "wrong-and-secret" not in result.stdout + result.stderr
    assert "customers_here" in result.stdout


def test_where_nobody_answers_it_is_an_error(
    lumos: Lumos, project: Path, servers: Config, closed_door: str
) -> None:
    config = {**servers, "atlas": {**servers["atlas"], "url": closed_door}}
    (project / "lumos.yaml").write_text(
        json.dumps(
            {
                "platforms": ["embedded", "atlas"],
                "platform_config": config,
                "search": {"timeout_seconds": 300},
            }
        )
    )

    result = lumos("search", "customers", "--json")

    assert result.exit_code == 3
    assert result.json()["error"]["code"] == "LUM-401"
    assert "no catalog answered: atlas: " in result.stderr
    assert "embedded: " in result.stderr


def test_what_a_catalog_says_cannot_steer_the_terminal(
    lumos: Lumos, project: Path, servers: Config
) -> None:
    hostile = dataset("customers\x1b[31m", ownership=[{"user": "\x1b]0;owned\x07"}])
    with DataHubHandler.from_config(servers["datahub"]) as datahub:  # type: ignore[arg-type]
        datahub.emit_dataset(hostile)
    project_with(project, ["embedded", "datahub"], servers)

    result = lumos("search", "customers")

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout


def test_the_sdk_asks_the_same_catalogs(project: Path, servers: Config, closed_door: str) -> None:
    config = {**servers, "atlas": {**servers["atlas"], "url": closed_door}}
    project_with(project, ["embedded", "atlas"], config)

    with Sdk(environment={}) as sdk:
        found = sdk.search("customers")
        chosen = sdk.search("customers", platforms=["datahub", "openmetadata"])

    assert found.total == 2
    assert [each.catalog for each in found.problems] == ["atlas"]
    assert repr(found) == "<SearchResults 2 of 2 datasets, without atlas>"
    assert chosen.total == 3
    assert [held.catalog for held in chosen.hits[0].catalogs] == ["datahub", "openmetadata"]
