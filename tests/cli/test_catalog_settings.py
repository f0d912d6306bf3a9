"""What is wrong in the settings of a catalog is told where it stands, and found by doctor."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from command_line import Lumos

WRONG_KEY = """\
platform_config:
  datahub:
    gms_sever: http://localhost:8080
"""
WRONG_VALUE = """\
platform_config:
  datahub:
    gms_server: http://localhost:8080
    workers: many
"""


NO_LOGIN = """\
platform_config:
  snowflake:
    account: A-B
    user: me
    databases: [SHOP]
"""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (WRONG_KEY, "lumos.yaml:3: unknown key 'gms_sever'; did you mean 'gms_server'?"),
        (WRONG_VALUE, "lumos.yaml:4: workers must be a whole number (platform_config.datahub)"),
        (NO_LOGIN, "lumos.yaml:2: a login is missing: password, token, private_key_file or"),
    ],
)
def test_a_wrong_setting_of_a_catalog_is_told_with_its_line(
    lumos: Lumos, settings: str, said: str
) -> None:
    Path("lumos.yaml").write_text(settings, "utf-8")

    name = settings.split()[1].strip(":")
    refused = lumos("export", "--platform", name, "--output", "out.json")
    found = lumos("doctor")

    assert refused.exit_code == 2
    assert said in refused.error_line
    assert "Settings" not in refused.stderr + found.stdout
    assert found.exit_code == 1
    assert f"[fail] catalog {name}: {said}" in found.stdout


def test_a_misspelt_section_is_named(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text("platform_config: {datahb: {gms_server: 'http://x'}}\n", "utf-8")

    refused = lumos("export", "--platform", "datahub", "--output", "out.json")

    assert refused.exit_code == 2
    assert "platform_config has no 'datahub', but 'datahb'" in refused.error_line


def test_doctor_looks_at_the_catalogs_that_a_search_asks(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text(
        "platforms: [embedded, datahb, 'postgresql://me:hidden@localhost:1/x']\n", "utf-8"
    )

    found = lumos("doctor")

    assert found.exit_code == 1
    assert "[fail] catalog datahb: unknown platform 'datahb'; did you mean" in found.stdout
    assert "[fail] catalog postgresql://" in found.stdout
    assert "hidden" not in found.stdout


def test_doctor_tells_wrong_settings_once(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text("sync: {truth: {ownrs: lumos}}\n", "utf-8")

    found = lumos("doctor")

    assert found.stdout.count("ownrs") == 1
    assert "[warn] catalog: not checked: see settings" in found.stdout


def test_doctor_does_not_wait_for_a_catalog_as_long_as_a_sync_does(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.core.controllers.system_controller.DOCTOR_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes calls and says nothing
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        Path("lumos.yaml").write_text(
            f"platform_config: {{datahub: {{gms_server: '{address}'}}}}\n", "utf-8"
        )

        found = lumos("doctor")

    assert found.exit_code == 1
    assert f"at {address}: the catalog did not answer in time" in found.stdout
