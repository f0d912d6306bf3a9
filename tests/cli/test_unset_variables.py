"""Only what a command uses of the settings needs its environment variables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command_line import Lumos

SETTINGS = """\
sources:
  - type: local
    name: lake
    path: lake
  - type: s3
    name: bucket
    bucket: data
    access_key_id: ${UNSET_KEY}
    secret_access_key: ${UNSET_SECRET}
platform_config:
  datahub:
    gms_server: http://127.0.0.1:9
    token: ${UNSET_TOKEN}
"""
URN = "lumos://s3/data/orders"
SNAPSHOT = {
    "lumos_version": "1.0.0",
    "export_timestamp": "2026-01-01T00:00:00Z",
    "source_platform": "test",
    "datasets": [{"urn": URN, "name": "orders", "platform": "s3", "schema": {"fields": []}}],
}


@pytest.fixture
def filled(project: Path, lumos: Lumos) -> Path:
    (project / "lumos.yaml").write_text(SETTINGS)
    (project / "a.json").write_text(json.dumps(SNAPSHOT))
    assert lumos("import", "--input", "a.json").exit_code == 0
    return project


@pytest.mark.parametrize(
    "command",
    [
        ("search", "orders"),
        ("show", URN),
        ("history", URN),
        ("validate", "a.json"),
        ("diff", "--source", "a.json", "--target", "a.json"),
        ("snapshot", "list"),
    ],
)
def test_a_command_that_asks_no_source_and_no_catalog_needs_no_secret_of_them(
    filled: Path, lumos: Lumos, command: tuple[str, ...]
) -> None:
    result = lumos(*command)
    assert result.exit_code == 0, result.stderr


def test_a_command_that_asks_a_catalog_names_the_variable_of_that_catalog(
    filled: Path, lumos: Lumos
) -> None:
    result = lumos("sync", "--all", "--output", "datahub")
    assert result.exit_code != 0
    assert "lumos.yaml:13: platform_config.datahub.token needs the environment variable" in (
        result.stderr
    )
    assert "UNSET_TOKEN" in result.stderr
    assert "UNSET_KEY" not in result.stderr


def test_alerts_that_cannot_be_sent_are_refused_before_anything_is_written(
    filled: Path, lumos: Lumos
) -> None:
    hook = "alerts: {channels: {ops: {type: webhook, url: '${UNSET_HOOK}'}}}\n"
    (filled / "lumos.yaml").write_text(SETTINGS + hook)
    other = json.dumps(SNAPSHOT).replace("orders", "invoices")
    (filled / "b.json").write_text(other)
    refused = lumos("import", "--input", "b.json")
    assert refused.exit_code != 0
    assert "UNSET_HOOK" in refused.stderr
    assert lumos("show", "lumos://s3/data/invoices").exit_code != 0
    assert lumos("search", "orders").exit_code == 0


def test_doctor_names_every_variable_that_is_not_set(filled: Path, lumos: Lumos) -> None:
    report = lumos("doctor", "--json").json()
    check = next(each for each in report["checks"] if each["name"] == "environment variables")
    assert check["status"] == "warn"
    for name in ("UNSET_KEY", "UNSET_SECRET", "UNSET_TOKEN"):
        assert name in check["detail"]


def test_what_a_source_is_called_is_needed_by_every_command(project: Path, lumos: Lumos) -> None:
    (project / "lumos.yaml").write_text("sources:\n  - {type: s3, bucket: '${UNSET_BUCKET}'}\n")
    result = lumos("search", "x")
    assert result.exit_code != 0
    assert "lumos.yaml:2: sources[0].bucket needs the environment variable UNSET_BUCKET" in (
        result.stderr
    )


def test_sections_that_nothing_reads_yet_are_named(filled: Path, lumos: Lumos) -> None:
    more = (
        "cost_model: {currency: EUR}\nschedules: {nightly: {schedule: '@daily', run: [ingest]}}\n"
    )
    (filled / "lumos.yaml").write_text(SETTINGS + more)
    result = lumos("search", "orders", "--json")
    assert result.exit_code == 0
    assert "without effect in this version: cost_model, schedules" in result.stderr
    result.json()
    assert "without effect" not in lumos("--help").stderr
