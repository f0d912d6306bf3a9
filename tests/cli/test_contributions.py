"""`lumos show --who`: who says what of a dataset."""

from __future__ import annotations

from pathlib import Path

from command_line import JANUARY, Lumos, checked
from doubles.datahub_server import datahub_double

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


def test_owners_and_docs_reach_the_catalog_of_the_settings_by_a_sync(lumos: Lumos) -> None:
    Path("more.yaml").write_text(ENRICHMENT, "utf-8")
    Path("owners.yaml").write_text(OWNERS, "utf-8")
    with datahub_double() as (url, _):
        Path("lumos.yaml").write_text(
            f"platform: datahub\nplatform_config:\n  datahub: {{gms_server: '{url}'}}\n", "utf-8"
        )
        lumos("import", JANUARY, "--platform", "embedded")
        for command in (("enrich", "more.yaml"), ("ownership", "assign", "owners.yaml")):
            assert lumos(*command).exit_code == 0
        there = checked(lumos("show", ORDERS, "--json"), "show")
        assert "checked" in there["tags"]
        assert {"user": "ada", "type": "DATA_STEWARD"} in there["ownership"]["owners"]
        said = {each["contributor"] for each in there["contributions"]}
        assert said == {"declared:import", "declared:enrichment", "declared:ownership"}


def test_what_was_enriched_is_kept_where_the_catalog_is_out_of_reach(lumos: Lumos) -> None:
    Path("more.yaml").write_text(ENRICHMENT, "utf-8")
    Path("lumos.yaml").write_text(
        "platform: datahub\nplatform_config:\n  datahub: {gms_server: 'http://127.0.0.1:9'}\n",
        "utf-8",
    )
    lumos("import", JANUARY, "--platform", "embedded")
    failed = lumos("enrich", "more.yaml")
    assert failed.exit_code == 3
    assert "the catalog is not up to date" in failed.stdout
    Path("lumos.yaml").unlink()
    assert "checked" in checked(lumos("show", ORDERS, "--json"), "show")["tags"]
