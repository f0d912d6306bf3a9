"""The published JSON Schema agrees with the loader, and settings are cheap to import."""

from __future__ import annotations

import subprocess
import sys

import jsonschema

from lumos.core.runtime.settings import LumosSettings
from lumos.core.settings import settings_json_schema


def test_the_published_schema_accepts_what_loads_and_refuses_what_does_not() -> None:
    schema = settings_json_schema(LumosSettings)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    for accepted in (
        {},
        {"platform": "datahub", "features": {"auto_detection": "${AUTO:-true}"}},
        {"lumos_config": {"sources": [{"type": "s3", "bucket": "b"}]}},
        {"sources": [{"type": "s3", "config": {"a": 1}}]},
        [{"source_type": "csv", "source_path": "x"}],
        {"cost_model": {"storage": {"s3": {"cost_per_gb_month": 0.023}}}},
    ):
        assert validator.is_valid(accepted), accepted
    refusals: tuple[dict[str, object], ...] = (
        {"sorces": []},
        {"features": {"auto_detection": "maybe"}},
        {"lumos_config": {"platfrom": "x"}},
        {"sources": [{"bucket": "b"}]},
        {"documentation": {"enforcement": {"mode": "block"}}},
    )
    for refused in refusals:
        assert not validator.is_valid(refused), refused


def test_every_setting_is_described_in_the_schema() -> None:
    definitions = settings_json_schema(LumosSettings)["$defs"]
    assert isinstance(definitions, dict)
    top = definitions["LumosSettings"]
    assert isinstance(top, dict)
    properties = top["properties"]
    assert isinstance(properties, dict)
    bare = [name for name, about in properties.items() if "description" not in str(about)]
    assert bare == []


def test_importing_settings_does_not_import_the_yaml_reader() -> None:
    check = "import sys, lumos.core.settings; sys.exit('ruamel.yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
