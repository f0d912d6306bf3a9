"""Licences that are not allowed are refused, and an index that is silent is not taken for safe."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("supply_chain", ROOT / "tools" / "supply_chain.py")
assert SPEC is not None
assert SPEC.loader is not None
supply_chain = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(supply_chain)
POLICY = tomllib.loads((ROOT / "tools" / "licences.toml").read_text("utf-8"))


def component(*licences: Mapping[str, Any], name: str = "some-package") -> dict[str, Any]:
    return {"name": name, "licenses": [*licences]}


@pytest.mark.parametrize(
    "licences",
    [
        [{"license": {"id": "MIT"}}],
        [{"expression": "GPL-3.0-only OR MIT"}],
        [{"expression": "MPL-2.0 AND (GPL-2.0-only OR MIT)"}],
        [
            {"license": {"name": "License :: OSI Approved"}},
            {"license": {"name": "License :: OSI Approved :: BSD License"}},
        ],
    ],
)
def test_an_allowed_licence_is_accepted(licences: list[Mapping[str, Any]]) -> None:
    assert [*supply_chain.refused_licences([component(*licences)], POLICY)] == []


@pytest.mark.parametrize(
    ("licences", "named"),
    [
        ([{"license": {"id": "GPL-3.0-only"}}], "GPL-3.0-only"),
        ([{"expression": "MIT AND GPL-3.0-only"}], "MIT AND GPL-3.0-only"),
        ([{"license": {"id": "MIT"}}, {"license": {"id": "AGPL-3.0-only"}}], "AGPL-3.0-only"),
        ([{"license": {"name": "see (the file"}}], "see (the file"),
        ([], "names no licence"),
        ([{"license": {"name": "License :: OSI Approved"}}], "names no licence"),
    ],
)
def test_any_other_licence_is_named(licences: list[Mapping[str, Any]], named: str) -> None:
    (line,) = supply_chain.refused_licences([component(*licences)], POLICY)

    assert named in line
    assert "some-package" in line


def test_an_exception_has_a_reason() -> None:
    refused = [*supply_chain.refused_licences([component(name="psycopg_binary")], POLICY)]

    assert refused == []
    assert all(len(reason) > 20 for reason in POLICY["exceptions"].values())


def test_the_bill_of_materials_holds_what_is_shipped_and_no_tool_of_development() -> None:
    bill = supply_chain.shipped_only(
        supply_chain.bill_of_materials(), supply_chain.shipped_packages()
    )
    names = {each["name"].lower() for each in bill["components"]}

    assert {"pyspark", "pydantic", "psycopg", "boto3"} <= names
    assert not {"pytest", "mypy", "moto", "lumos"} & names
    refs = {each["bom-ref"] for each in bill["components"]}
    assert {ref for each in bill["dependencies"] for ref in each["dependsOn"]} <= refs


def test_an_advisory_is_named_with_the_version_that_fixes_it() -> None:
    vulnerable = {
        "name": "jinja2",
        "version": "2.0",
        "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}],
    }

    lines, code = supply_chain.audit_result([vulnerable])

    assert lines[0] == "jinja2 2.0: PYSEC-1, fixed in 2.1"
    assert code == 1


def test_a_package_without_an_answer_is_not_checked() -> None:
    clean = {"name": "jinja2", "version": "3.1", "vulns": []}
    skipped = {"name": "requests", "skip_reason": "Dependency not found"}

    assert supply_chain.audit_result([clean])[1] == 0
    lines, code = supply_chain.audit_result([clean, skipped])
    assert code == supply_chain.NOT_CHECKED
    assert "1 of 2 packages (requests)" in lines[0]
    assert supply_chain.audit_result([])[1] == supply_chain.NOT_CHECKED
