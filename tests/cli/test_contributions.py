"""`lumos show --who`: who says what of a dataset."""

from __future__ import annotations

from pathlib import Path

from command_line import JANUARY, Lumos, checked

ORDERS = "lumos://postgres/shop/public/orders"
ENRICHMENT = f"""
datasets:
  - dataset: {ORDERS}
    tags: [checked]
    description: Orders, one row each.
"""
OWNERS = f"""
assignments:
  - dataset: {ORDERS}
    user: ada
    type: DATA_STEWARD
"""


def test_show_tells_who_says_what(lumos: Lumos) -> None:
    lumos("import", JANUARY)
    Path("more.yaml").write_text(ENRICHMENT, "utf-8")
    Path("owners.yaml").write_text(OWNERS, "utf-8")
    assert lumos("enrich", "more.yaml").exit_code == 0
    assert lumos("ownership", "assign", "owners.yaml").exit_code == 0

    shown = checked(lumos("show", ORDERS, "--json"), "show")
    said = {(each["facet"], each["contributor"]) for each in shown["contributions"]}
    assert ("tags", "declared:enrichment") in said
    assert ("documentation.description", "declared:enrichment") in said
    assert ("ownership.owners", "declared:ownership") in said
    assert ("schema.fields", "declared:import") in said
    assert all(each["confidence"] == 1 for each in shown["contributions"])

    told = lumos("show", ORDERS, "--who").stdout
    assert told.startswith(f"{ORDERS}\n")
    assert "declared:enrichment" in told
    assert "declared:ownership" in told


def test_a_dataset_of_one_contributor_shows_it(lumos: Lumos) -> None:
    lumos("import", JANUARY)
    shown = checked(lumos("show", ORDERS, "--json"), "show")
    assert {each["contributor"] for each in shown["contributions"]} == {"declared:import"}


def test_an_enrichment_survives_the_next_import_of_the_same_snapshot(lumos: Lumos) -> None:
    lumos("import", JANUARY)
    Path("more.yaml").write_text(ENRICHMENT, "utf-8")
    lumos("enrich", "more.yaml")
    lumos("import", JANUARY)
    shown = checked(lumos("show", ORDERS, "--json"), "show")
    assert "checked" in shown["tags"]
