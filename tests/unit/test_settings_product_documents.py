"""Every YAML block of the product documents is accepted as it is written there."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lumos.core.redaction import SecretRegistry
from lumos.core.runtime.planned_settings import (
    CustomApiIntegration,
    DbtTestsIntegration,
    GreatExpectationsIntegration,
)
from lumos.core.runtime.settings import LumosSettings, load_settings, settings_from_mapping
from lumos.core.settings import read_document

DOCUMENTS = Path(__file__).parents[1] / "golden" / "product_documents"
ENVIRONMENT = {
    "SNOWFLAKE_ACCOUNT": "xy12345.eu-west-1",
    "DATABRICKS_WORKSPACE": "adb-1234",
    "KAFKA_SERVERS": "broker-1:9092,broker-2:9092",
    "OM_TOKEN": "om-token-value",
}


def _load(name: str) -> LumosSettings:
    return load_settings(
        DOCUMENTS / "config" / f"{name}.yaml", ENVIRONMENT, secrets=SecretRegistry()
    )


@pytest.mark.parametrize("path", sorted((DOCUMENTS / "config").iterdir()), ids=lambda p: p.stem)
def test_a_configuration_block_loads(path: Path) -> None:
    settings = load_settings(path, ENVIRONMENT, secrets=SecretRegistry())
    assert settings.file == path
    assert settings.model_dump() != LumosSettings().model_dump()


def test_the_configuration_driven_block_sets_platform_sources_and_features() -> None:
    settings = _load("configuration_driven")
    assert (settings.platform, settings.environment) == ("datahub", "production")
    assert [(source.type, source.name) for source in settings.sources] == [
        ("s3", "s3"),
        ("snowflake", "snowflake"),
    ]
    assert all(len(source.settings) == 0 for source in settings.sources)
    features = settings.features
    assert features.auto_detection
    assert features.schema_tracking
    assert features.cost_attribution


def test_the_bare_sources_file_keeps_every_key_for_its_handler() -> None:
    (source,) = _load("s3_sources").sources
    assert source.name == "s3-data-lake-prod-raw-events"
    assert source.settings.as_dict() == {
        "bucket": "data-lake-prod",
        "prefixes": ["/raw/events/", "/processed/features/"],
        "file_patterns": ["*.avro", "*.parquet", "*.csv"],
    }


# The block in the document ends with the command `lumos sync --all --output datahub`, which is a
# shell line and not YAML; the fixture leaves it out.
def test_the_block_with_all_sources_takes_names_and_variables() -> None:
    sources = {source.name: source for source in _load("all_sources").sources}
    assert list(sources) == [
        "aws-data-lake",
        "gcp-analytics",
        "snowflake-prod",
        "bigquery-analytics",
        "databricks-ml",
        "kafka-prod",
    ]
    assert sources["snowflake-prod"].settings["account"] == "xy12345.eu-west-1"
    assert sources["databricks-ml"].settings["workspace"] == "adb-1234"
    assert sources["kafka-prod"].settings["bootstrap_servers"] == "broker-1:9092,broker-2:9092"
    assert sources["kafka-prod"].settings["topic_patterns"] == ["events.*", "metrics.*"]


def test_the_platform_switch_gives_the_adapter_its_own_settings() -> None:
    settings = _load("openmetadata_platform")
    assert settings.platform == "openmetadata"
    assert settings.platform_settings().as_dict() == {
        "server": "https://openmetadata.company.com",
        "auth_token": "om-token-value",
    }


def test_custom_sources_and_platforms_need_no_declaration() -> None:
    assert _load("custom_platform").platform == "myplatform"
    (source,) = _load("custom_source_handler").sources
    assert source.type == "mysource"
    assert source.settings.as_dict() == {"connection": {}}


def test_the_glossary_block_gives_terms_and_path_descriptions() -> None:
    settings = _load("glossary_and_path_patterns")
    assert settings.glossary_mappings["flg"] == "Flag (Boolean)"
    assert len(settings.glossary_mappings) == 5
    assert settings.path_patterns["/reporting/*"] == "Business reporting tables"


def test_the_documentation_block_is_typed() -> None:
    documentation = _load("documentation_requirements").documentation
    assert documentation.required_fields == ("description", "owner", "business_domain")
    assert documentation.enforcement.mode == "block_on_missing"
    assert [exception.pattern for exception in documentation.exceptions] == ["/tmp/*"]  # noqa: S108


def test_the_notification_block_is_typed() -> None:
    reminder = _load("missing_docs_notification").notifications["missing_docs_reminder"]
    assert reminder.schedule == "0 9 * * 1"
    assert reminder.recipients == ("dataset_owner",)
    assert reminder.template is not None
    assert "{dataset_name}" in reminder.template


def test_prices_of_the_cost_model_are_exact() -> None:
    model = _load("cost_model").cost_model
    assert model.storage["s3"].cost_per_gb_month == Decimal("0.023")
    assert model.storage["snowflake"].cost_per_tb_month == 40
    assert model.compute["spark"].cost_per_dbu == Decimal("0.15")
    assert model.compute["snowflake"].cost_per_credit == 2
    assert model.attribution.method == "lineage_weighted"


def test_quality_integrations_are_told_apart_by_type() -> None:
    gx, dbt, api = _load("quality_integrations").quality_integrations
    assert isinstance(gx, GreatExpectationsIntegration)
    assert gx.checkpoint_store == "s3://dq-results/checkpoints/"
    assert isinstance(dbt, DbtTestsIntegration)
    assert dbt.run_results_path == "target/run_results.json"
    assert isinstance(api, CustomApiIntegration)
    assert api.endpoint.get_secret_value().startswith("https://dq.internal.company.com/")


@pytest.mark.parametrize("path", sorted((DOCUMENTS / "outputs").iterdir()), ids=lambda p: p.stem)
def test_an_output_block_is_read_by_the_same_yaml_reader(path: Path) -> None:
    value = read_document(path).value
    assert isinstance(value, dict)
    assert value


def _deployment(name: str) -> Any:
    return read_document(DOCUMENTS / "deploy" / f"{name}.yaml").value


def test_the_compose_file_sets_the_variables_that_lumos_reads(tmp_path: Path) -> None:
    compose = _deployment("docker_compose")
    variables = dict(line.split("=", 1) for line in compose["services"]["lumos"]["environment"])
    settings = load_settings(None, variables, working_directory=tmp_path, secrets=SecretRegistry())
    assert settings.platform == "datahub"
    assert settings.platform_settings()["gms_server"] == "http://datahub-gms:8080"


def test_the_config_of_the_helm_values_is_a_settings_document() -> None:
    config = _deployment("helm_values")["config"]
    settings = settings_from_mapping(config, {}, secrets=SecretRegistry())
    assert settings.platform == "datahub"
    assert settings.platform_settings()["gms_server"] == "http://datahub-gms.datahub:8080"


def test_the_workflow_calls_the_documented_schema_commands() -> None:
    workflow = _deployment("github_schema_check_workflow")
    assert "on" in workflow  # YAML 1.2: `on` is a word, not a boolean
    steps = workflow["jobs"]["schema-check"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert [" ".join(str(command).split()[:3]) for command in commands] == [
        "lumos schema diff",
        "lumos schema impact",
        "lumos schema comment",
    ]
