"""Which catalog a sync goes to, and that it is known again."""

from __future__ import annotations

from pathlib import Path

from command_line import JANUARY, Lumos, checked
from doubles.datahub_server import datahub_double

SETTINGS = "platform_config:\n  datahub:\n    gms_server: {}\n"


def test_a_catalog_is_known_again_however_it_is_asked(lumos: Lumos) -> None:
    with datahub_double() as (url, _):
        Path("lumos.yaml").write_text(SETTINGS.format(url), "utf-8")
        lumos("import", JANUARY)
        assert "sent 17 writes" in lumos("sync", "--all", "--output", "datahub").stdout

        patient = SETTINGS.format(f"{url}/") + "    workers: 2\n    timeout_seconds: 20\n"
        Path("lumos.yaml").write_text(patient, "utf-8")
        again = checked(lumos("sync", "--all", "--output", "datahub", "--json"), "sync")

    assert again["kinds"]["dataset"]["unchanged"] == 5
    assert again["writes"] == 0
