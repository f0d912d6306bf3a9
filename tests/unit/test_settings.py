"""Settings load from files, variables and values, and every problem is named with its line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from textwrap import dedent

import pytest
from pydantic import Field, SecretStr, field_validator

from lumos.core.errors import ConfigurationError, InputUnreadableError
from lumos.core.platform.factory import _BUILTINS
from lumos.core.redaction import SecretRegistry
from lumos.core.runtime.settings import LumosSettings, load_settings, settings_from_mapping
from lumos.core.settings import InvalidSettingsError, RawSettings, SettingsModel, validate_against


@pytest.fixture
def secrets() -> SecretRegistry:
    return SecretRegistry()


class Project:
    """A folder with a settings file, loaded with given variables."""

    def __init__(self, folder: Path, secrets: SecretRegistry) -> None:
        self.folder = folder
        self.secrets = secrets

    def write(self, text: str, name: str = "lumos.yaml") -> Path:
        path = self.folder / name
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def load(self, text: str, name: str = "lumos.yaml", **variables: str) -> LumosSettings:
        return load_settings(self.write(text, name), variables, secrets=self.secrets)

    def problems(self, text: str, name: str = "lumos.yaml", **variables: str) -> list[str]:
        with pytest.raises(InvalidSettingsError) as caught:
            self.load(text, name, **variables)
        assert "\n" not in str(caught.value)
        return [line.removeprefix(f"{self.folder}/") for line in caught.value.lines()]


@pytest.fixture
def project(tmp_path: Path, secrets: SecretRegistry) -> Project:
    return Project(tmp_path, secrets)


def test_without_a_file_everything_has_its_default(tmp_path: Path, secrets: SecretRegistry) -> None:
    settings = load_settings(None, {}, working_directory=tmp_path, secrets=secrets)
    assert settings == LumosSettings()
    assert settings.platform == "embedded"
    assert settings.cloud_version_prefix == "S-"
    assert settings.state_dir == Path(".lumos")
    assert settings.database_url is None
    assert settings.file is None


def test_the_file_of_the_working_directory_is_found(project: Project, tmp_path: Path) -> None:
    project.write("platform: datahub\ncloud_version_prefix: V-\n")
    settings = load_settings(None, {}, working_directory=tmp_path, secrets=project.secrets)
    assert (settings.platform, settings.cloud_version_prefix) == ("datahub", "V-")
    assert settings.file == tmp_path / "lumos.yaml"


@pytest.mark.parametrize(
    "text",
    [
        "platform: datahub\nsources: [{type: s3, name: a, bucket: b}]",
        "lumos_config:\n  platform: datahub\n  sources: [{type: s3, name: a, bucket: b}]",
        '{"platform": "datahub", "sources": [{"type": "s3", "name": "a", "bucket": "b"}]}',
        "platform: datahub\nsources: [{type: s3, name: a, config: {bucket: b}}]",
        "platform: datahub\nsources: [{name: a, source: {type: s3, bucket: b}}]",
        "default_platform: datahub\nsources: [{source_type: s3, name: a, bucket: b}]",
    ],
)
def test_every_accepted_form_means_the_same(project: Project, text: str) -> None:
    settings = project.load(text)
    assert settings.platform == "datahub"
    (source,) = settings.sources
    assert (source.type, source.name) == ("s3", "a")
    assert source.settings.as_dict() == {"bucket": "b"}


def test_an_ingestion_list_of_the_earlier_framework_is_accepted(project: Project) -> None:
    entries = [
        {"source_type": "csv", "source_path": "/data/in", "infer_schema": True},
        {"source_type": "parquet", "source_path": "s3://b/x", "partitioning_format": "year=%Y"},
    ]
    settings = project.load(json.dumps(entries, indent="\t"), "ingest.json")
    assert [source.type for source in settings.sources] == ["csv", "parquet"]
    assert [source.name for source in settings.sources] == ["csv-data-in", "parquet-b-x"]
    assert settings.sources[0].settings.as_dict() == {"path": "/data/in", "infer_schema": True}


def test_global_settings_of_the_earlier_framework_are_accepted(project: Project) -> None:
    settings = project.load(
        """
        datahub: {gms_server: "http://gms:8080", test_mode: true}
        default_env: DEV
        default_platform: datahub
        """
    )
    assert (settings.platform, settings.environment) == ("datahub", "DEV")
    assert settings.platform_settings().as_dict() == {
        "gms_server": "http://gms:8080",
        "test_mode": True,
    }


@pytest.mark.parametrize("name", _BUILTINS)
def test_the_settings_of_any_platform_may_stand_at_the_top(project: Project, name: str) -> None:
    settings = project.load(f"platform: {name}\n{name}: {{some: thing}}\n")
    assert settings.platform_settings().as_dict() == {"some": "thing"}


def test_two_spellings_of_one_setting_are_refused(project: Project) -> None:
    assert project.problems("platform: datahub\ndefault_platform: atlas\n") == [
        "lumos.yaml:2: 'default_platform' is also given as platform; keep one"
    ]


@pytest.mark.parametrize(
    "text",
    ["", "# nothing yet\n", "features:\nsources:\nplatform_config:\n", "lumos_config:\n", "{}"],
)
def test_an_empty_file_and_empty_blocks_mean_the_defaults(
    project: Project, tmp_path: Path, text: str
) -> None:
    defaults = LumosSettings(state_dir=tmp_path / ".lumos")
    assert project.load(text).model_dump() == defaults.model_dump()


def test_relative_paths_of_the_state_begin_at_the_settings_file(
    project: Project, tmp_path: Path
) -> None:
    settings = project.load("state_dir: state\nsnapshots: {path: kept}\ndatabase_url: own.db\n")
    assert settings.state_dir == tmp_path / "state"
    assert settings.snapshots.path == tmp_path / "kept"
    assert settings.database_url == SecretStr(str(tmp_path / "own.db"))


@pytest.mark.parametrize(
    "url", ["sqlite:////data/own.db", "/data/own.db", "postgresql://db.example/lumos"]
)
def test_an_absolute_address_of_the_state_stays_as_it_is(project: Project, url: str) -> None:
    settings = project.load(f"state_dir: /data/state\ndatabase_url: {url}\n")
    assert settings.state_dir == Path("/data/state")
    assert settings.database_url == SecretStr(url)


def test_a_state_folder_of_the_environment_begins_at_the_current_folder(project: Project) -> None:
    settings = project.load("state_dir: state\n", LUMOS_STATE_DIR="elsewhere")
    assert settings.state_dir == Path("elsewhere")


# --- variables ---------------------------------------------------------------------------------


def test_documented_variables_override_the_file(project: Project) -> None:
    settings = project.load(
        "platform: atlas\nplatform_config: {datahub: {gms_server: 'http://old', timeout: 3}}",
        LUMOS_PLATFORM="datahub",
        DATAHUB_GMS_URL="http://gms:8080",
        LUMOS_DATABASE_URL="postgresql://u:pw-of-db@h/db",
        LUMOS_STATE_DIR="/srv/lumos",
    )
    assert settings.platform == "datahub"
    assert settings.platform_settings().as_dict() == {"gms_server": "http://gms:8080", "timeout": 3}
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql://u:pw-of-db@h/db"
    assert settings.state_dir == Path("/srv/lumos")


def test_an_empty_variable_overrides_nothing(project: Project) -> None:
    assert project.load("platform: atlas", LUMOS_PLATFORM="").platform == "atlas"


def test_references_are_filled_in_values_of_any_depth(project: Project) -> None:
    settings = project.load(
        """
        environment: ${STAGE:-test}
        features: {cost_attribution: "${COSTS}"}
        platform_config:
          datahub: {nested: [{a: "x-${A}-${B:-two}-$${literal} $5"}]}
        """,
        COSTS="false",
        A="one",
    )
    assert settings.environment == "test"
    assert settings.features.cost_attribution is False
    assert settings.platform_settings("datahub")["nested"] == [{"a": "x-one-two-${literal} $5"}]


@pytest.mark.parametrize(("value", "expected"), [(None, "fallback"), ("", "fallback"), ("v", "v")])
def test_a_default_stands_for_an_unset_or_empty_variable(
    project: Project, value: str | None, expected: str
) -> None:
    variables = {} if value is None else {"STAGE": value}
    assert project.load("environment: ${STAGE:-fallback}", **variables).environment == expected


def test_an_unset_variable_is_named_with_its_key_and_line(project: Project) -> None:
    assert project.problems("platform: x\nenvironment: a-${STAGE}\n") == [
        "lumos.yaml:2: environment needs the environment variable STAGE, "
        "which is not set and has no default"
    ]


@pytest.mark.parametrize("text", ["${", "${}", "${1A}", "${A-b}", "${A:-${B}}", "${ A }", "${A"])
def test_a_malformed_reference_is_refused(project: Project, text: str) -> None:
    (problem, *_) = project.problems(f"environment: '{text}'", A="x", B="y")
    assert problem.startswith("lumos.yaml:1: environment has a malformed reference")


def test_a_variable_can_neither_become_a_key_nor_yaml(project: Project) -> None:
    settings = project.load(
        "environment: ${EVIL}\nglossary_mappings: {'${EVIL}': x}", EVIL="a\nplatform: hacked"
    )
    assert settings.platform == "embedded"
    assert settings.environment == "a\nplatform: hacked"
    assert dict(settings.glossary_mappings) == {"${EVIL}": "x"}


def test_a_dotenv_file_beside_the_settings_is_read_and_the_environment_wins(
    project: Project,
) -> None:
    project.write(
        """\
        # comment
        export STAGE=from-file
        KEPT = plain value # comment
        QUOTED="a \\"b\\" # c\\n"
        SINGLE='as ${IS} \\n'
        LONG="first
        second"
        EMPTY=
        LUMOS_PLATFORM=atlas
        """,
        ".env",
    )
    settings = project.load(
        """
        environment: ${STAGE}
        glossary_mappings: {k: "${KEPT}", q: "${QUOTED}", s: "${SINGLE}", l: "${LONG}",
                            e: "[${EMPTY}]"}
        """,
        STAGE="from-environment",
    )
    assert settings.environment == "from-environment"
    assert settings.platform == "atlas"
    assert dict(settings.glossary_mappings) == {
        "k": "plain value",
        "q": 'a "b" # c\n',
        "s": "as ${IS} \\n",
        "l": "first\nsecond",
        "e": "[]",
    }


def test_a_bad_line_of_a_dotenv_file_is_named_without_its_content(project: Project) -> None:
    project.write("A=1\nhunter2-is-no-assignment\nB='open\n", ".env")
    with pytest.raises(InvalidSettingsError) as caught:
        project.load("platform: x")
    assert [problem.line for problem in caught.value.problems] == [2, 3]
    assert "hunter2" not in " ".join(caught.value.lines())


# --- sources -----------------------------------------------------------------------------------


def test_sources_without_a_name_get_stable_readable_ones(project: Project) -> None:
    settings = project.load(
        """
        sources:
          - {type: s3, bucket: lake, prefix: /raw/}
          - {type: s3, bucket: lake, prefix: /raw/}
          - {type: bigquery, project: analytics}
          - {type: mongodb, uri: "mongodb://u:hunter2-pw@mongo.example.com/db?authSource=x"}
          - {type: kafka}
          - {type: s3, name: s3-lake-raw-2}
        """
    )
    assert [source.name for source in settings.sources] == [
        "s3-lake-raw",
        "s3-lake-raw-3",
        "bigquery-analytics",
        "mongodb-mongo.example.com-db",
        "kafka",
        "s3-lake-raw-2",
    ]


def test_a_source_name_given_twice_is_an_error_with_both_lines(project: Project) -> None:
    assert project.problems("sources:\n- type: s3\n  name: lake\n- type: gcs\n  name: lake\n") == [
        "lumos.yaml:5: source name 'lake' is given twice, first on line 3"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sources: {type: s3}", "1: sources must be a list"),
        ("sources:\n- s3\n", "2: sources[0] must be a mapping with a key 'type'"),
        ("sources:\n- name: a\n", "2: key 'type' is missing in sources[0]"),
        ("sources:\n- type: [a]\n", "2: key 'type' must be text in sources[0]"),
        ("sources:\n- type: s3\n  name: {}\n", "3: sources[0].name must be text"),
        (
            "sources:\n- type: s3\n  bucket: a\n  config:\n    bucket: b\n",
            "5: key 'bucket' is given twice in sources[0]",
        ),
    ],
)
def test_a_malformed_source_is_named(project: Project, text: str, problem: str) -> None:
    assert project.problems(text) == [f"lumos.yaml:{problem}"]


# --- problems ----------------------------------------------------------------------------------


def test_an_unknown_key_is_named_with_the_nearest_known_one_and_its_line(project: Project) -> None:
    assert project.problems("platform: x\n\nsorces: []\n") == [
        "lumos.yaml:3: unknown key 'sorces'; did you mean 'sources'?"
    ]
    assert project.problems("lumos_config:\n  features:\n    auto-detection: true\n") == [
        "lumos.yaml:3: unknown key 'auto-detection' in features; did you mean 'auto_detection'?"
    ]
    assert project.problems("cost_model:\n  storage:\n    s3: {cost_per_gb: 1}\n") == [
        "lumos.yaml:3: unknown key 'cost_per_gb' in cost_model.storage.s3; "
        "did you mean 'cost_per_gb_month'?"
    ]


def test_an_unknown_key_far_from_all_lists_the_known_ones(project: Project) -> None:
    (problem,) = project.problems("features: {zzz: 1}")
    assert problem.endswith("; known keys: auto_detection, cost_attribution, schema_tracking")


def test_all_problems_of_a_file_are_told_at_once(project: Project, tmp_path: Path) -> None:
    text = dedent(
        """\
        sorces: []
        features:
          schema_tracking: maybe
        documentation:
          enforcement: {mode: block}
          exceptions: [{reason: none}]
        notifications:
          weekly: {schedule: every monday}
        quality_integrations:
          - type: unknown_tool
          - {type: dbt_tests, manifest_path: a}
        cost_model: {storage: {s3: {cost_per_gb_month: -1}}}
        snapshots: {url: "s3://a", path: b}
        """
    )
    with pytest.raises(InvalidSettingsError) as caught:
        project.load(text)
    error = caught.value
    assert [(problem.line, problem.message) for problem in error.problems] == [
        (1, "unknown key 'sorces'; did you mean 'sources'?"),
        (3, "features.schema_tracking must be true or false"),
        (5, "documentation.enforcement.mode must be one of 'block_on_missing' or 'warn_only'"),
        (6, "key 'pattern' is missing in documentation.exceptions[0]"),
        (
            8,
            "notifications.weekly.schedule must be a cron schedule of five fields, "
            "such as '0 9 * * 1'",
        ),
        (
            10,
            "quality_integrations[0] needs a 'type' that is one of "
            "'great_expectations', 'dbt_tests', 'custom_api'",
        ),
        (11, "key 'run_results_path' is missing in quality_integrations[1]"),
        (12, "cost_model.storage.s3.cost_per_gb_month must be at least 0"),
        (13, "snapshots takes either 'url' or 'path', not both"),
    ]
    assert error.problems[1].path == "features.schema_tracking"
    assert str(error) == (
        f"{tmp_path}/lumos.yaml:1: unknown key 'sorces'; did you mean 'sources'? "
        "(and 8 more problems)"
    )
    assert error.exit_code == 2
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.problems, copy.lines()) == (str(error), error.problems, error.lines())


def test_keys_beside_the_root_are_refused(project: Project) -> None:
    assert project.problems("lumos_config: {}\nplatform: x\n") == [
        "lumos.yaml:2: key 'platform' must stand below 'lumos_config', not beside it"
    ]


@pytest.mark.parametrize("text", ["just words", "42", "lumos_config: 3"])
def test_a_document_that_is_no_mapping_is_refused(project: Project, text: str) -> None:
    (problem,) = project.problems(text)
    assert problem.endswith("must be a mapping of keys")


def test_values_without_a_file_give_problems_without_a_line(secrets: SecretRegistry) -> None:
    with pytest.raises(InvalidSettingsError, match=r"^unknown key 'sorces'") as caught:
        settings_from_mapping({"sorces": []}, {}, secrets=secrets)
    assert caught.value.problems[0].line is None


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no settings file") as caught:
        load_settings(tmp_path / "absent.yaml", {})
    assert caught.value.hint == "make one with: lumos init"


def test_a_folder_in_place_of_a_file_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(InputUnreadableError, match="is a folder"):
        load_settings(tmp_path, {})


# --- settings that their owners validate later ----------------------------------------------------


class BucketSettings(SettingsModel):
    bucket: str = Field(description="The bucket.")
    prefixes: tuple[str, ...] = ()
    credential: SecretStr | None = None

    @field_validator("bucket")
    @classmethod
    def _lower(cls, value: str) -> str:
        if not value.islower():
            raise ValueError(f"must be lower case, not {value}")
        return value


def test_raw_settings_become_a_model_and_their_secrets_are_known(project: Project) -> None:
    settings = project.load(
        "sources: [{type: s3, bucket: lake, credential: hunter2-cred}]"
    ).sources[0]
    typed = validate_against(
        BucketSettings, settings.settings, where="source 's3'", secrets=project.secrets
    )
    assert typed.bucket == "lake"
    assert project.secrets.redact("got hunter2-cred") == "got ***"


def test_a_problem_in_raw_settings_still_names_file_and_line(project: Project) -> None:
    settings = project.load(
        """\
        lumos_config:
          sources:
            - type: s3
              name: lake
              config:
                bukcet: lake
                prefixes: 3
            - source_type: s3
              source_path: x
        """
    )
    with pytest.raises(InvalidSettingsError) as caught:
        validate_against(
            BucketSettings,
            settings.sources[0].settings,
            where="source 'lake'",
            secrets=project.secrets,
        )
    assert [line.split("/")[-1] for line in caught.value.lines()] == [
        "lumos.yaml:6: unknown key 'bukcet'; did you mean 'bucket'? (source 'lake')",
        "lumos.yaml:7: prefixes must be a list (source 'lake')",
    ]
    with pytest.raises(InvalidSettingsError) as caught:
        validate_against(
            BucketSettings, settings.sources[1].settings, where="x", secrets=project.secrets
        )
    assert {problem.line for problem in caught.value.problems} == {8, 9}


def test_raw_settings_survive_pickle_and_keep_their_origin(project: Project) -> None:
    raw = project.load("platform_config: {datahub: {gms_server: x}}").platform_settings("datahub")
    copy = pickle.loads(pickle.dumps(raw))
    assert copy == raw
    assert copy.origin == raw.origin


def test_a_changed_copy_of_raw_settings_changes_nothing(secrets: SecretRegistry) -> None:
    raw = RawSettings({"a": {"b": [1]}})
    inner = raw.as_dict()["a"]
    assert isinstance(inner, dict)
    inner["b"] = 2
    assert raw.as_dict() == {"a": {"b": [1]}}


def test_a_folder_that_cannot_be_looked_into_is_unreadable(tmp_path: Path) -> None:
    too_long = tmp_path / ("x" * 300)
    with pytest.raises(InputUnreadableError, match="cannot"):
        load_settings(None, {}, working_directory=too_long)


@pytest.mark.parametrize(
    ("schedule", "wrong"),
    [
        ("61 * * * *", "bad minute"),
        ("0 24 * * *", "bad hour"),
        ("0 0 31 2 *", "bad day-of-month"),
        ("*/0 * * * *", "bad minute"),
        ("0 0 * 13 *", "bad month"),
        ("0 0 * * 8", "bad day-of-week"),
    ],
)
def test_a_schedule_that_never_comes_is_refused(
    project: Project, schedule: str, wrong: str
) -> None:
    text = f"schedules: {{nightly: {{schedule: '{schedule}', run: [ingest]}}}}"
    assert project.problems(text) == [
        "lumos.yaml:1: schedules.nightly.schedule must be a cron schedule of five fields, "
        f"such as '0 9 * * 1': {wrong}"
    ]


@pytest.mark.parametrize(
    "schedule", ["@daily", "0 9 * * MON-FRI", "*/15 0-6 1,15 * *", "0 0 L * *"]
)
def test_a_schedule_that_comes_is_taken(project: Project, schedule: str) -> None:
    text = f"schedules: {{nightly: {{schedule: '{schedule}', run: [ingest]}}}}"
    assert project.load(text).schedules["nightly"].schedule == schedule
