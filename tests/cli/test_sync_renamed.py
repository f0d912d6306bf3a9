"""A dataset that was renamed here stays the same one in every catalog that has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, Lumos, checked
from doubles.datahub_server import datahub_double
from lumos.core.models import load_snapshot
from lumos.core.store.database import StateDatabase
from lumos.core.store.integrity import check_documents
from lumos.core.store.renaming import Renaming, rename_datasets

OLD, NEW = "lumos://postgres/shop/", "lumos://postgres/renamed/"
CUSTOMERS = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.customers,PROD)"


def rename() -> None:
    """Rename the datasets of the shop in the state."""
    urns = [each.urn for each in load_snapshot(json.loads(Path(JANUARY).read_text())).datasets]
    names = {str(urn): urn.replace(OLD, NEW) for urn in urns if urn.startswith(OLD)}
    assert names
    with StateDatabase.open(".lumos/lumos.db") as database:
        with database.transaction():
            rename_datasets(database, Renaming(names))
        assert check_documents(database).damaged == 0


@pytest.fixture(params=["embedded", "datahub"])
def catalog(request: pytest.FixtureRequest, project: Path) -> Iterator[str]:
    if request.param == "embedded":
        yield "sqlite:///team.db"
        return
    with datahub_double() as (url, _):
        settings = f"platform_config:\n  datahub:\n    gms_server: {url}\n"
        (project / "lumos.yaml").write_text(settings)
        yield "datahub"


def names_in(lumos: Lumos, catalog: str) -> list[str]:
    assert lumos("export", "--platform", catalog, "--output", "held.json").exit_code == 0
    return [each["urn"] for each in json.loads(Path("held.json").read_text())["datasets"]]


def test_a_sync_after_a_renaming_neither_creates_nor_removes(lumos: Lumos, catalog: str) -> None:
    lumos("import", JANUARY)
    assert lumos("sync", "--all", "--output", catalog).exit_code == 0
    before = names_in(lumos, catalog)
    rename()

    result = checked(lumos("sync", "--all", "--output", catalog, "--json"), "sync")

    for kind in ("dataset", "lineage_edge"):
        counts = result["kinds"][kind]
        assert (counts["new"], counts["removed"], counts["failed"]) == (0, 0, 0), kind
    assert names_in(lumos, catalog) == before
    again = checked(lumos("sync", "--all", "--output", catalog, "--json"), "sync")
    assert again["writes"] == 0
    full = checked(lumos("sync", "--all", "--full", "--output", catalog, "--json"), "sync")
    assert full["writes"] == 0


def test_a_change_and_a_removal_reach_the_dataset_under_its_former_name(
    lumos: Lumos, catalog: str
) -> None:
    lumos("import", JANUARY)
    lumos("sync", "--all", "--output", catalog)
    rename()
    newer = Path(FEBRUARY).read_text("utf-8").replace(OLD, NEW)
    Path("newer.json").write_text(newer, "utf-8")
    assert lumos("import", "--overwrite", "newer.json").exit_code == 0

    assert lumos("sync", "--all", "--output", catalog).exit_code == 0

    held = names_in(lumos, catalog)
    assert f"{OLD}public/orders" in held
    assert f"{NEW}public/orders" not in held


def test_edits_of_people_in_the_catalog_are_still_known(lumos: Lumos, project: Path) -> None:
    with datahub_double() as (url, double):
        settings = f"platform_config:\n  datahub:\n    gms_server: {url}\n"
        (project / "lumos.yaml").write_text(settings)
        lumos("import", JANUARY)
        lumos("sync", "--all", "--output", "datahub")
        double.put(CUSTOMERS, editableDatasetProperties={"description": "By hand."})
        rename()

        assert lumos("sync", "--all", "--output", "datahub").exit_code == 0

        shown = lumos("show", f"{NEW}public/customers", "--json").json()
        assert shown["documentation"]["description"] == "By hand."
        held = double.stored[CUSTOMERS]["editableDatasetProperties"][0]
        assert held == {"description": "By hand."}
