"""No value that could be a secret leaves the settings by an error, a text form or a dump."""

from __future__ import annotations

import json
import pickle
import traceback
from pathlib import Path

import pytest
from pydantic import (
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from lumos.core.redaction import SecretRegistry
from lumos.core.runtime.settings import LumosSettings, load_settings
from lumos.core.settings import InvalidSettingsError, RawSettings, validate_against

SECRET = "hunter2-Very/Secret"

# Each file is wrong in its own way, and the wrong value is the secret itself.
WRONG_FILES = {
    "unknown_key": "auth_token: {0}\n",
    "wrong_type": "features: {0}\n",
    "boolean": "features: {{auto_detection: {0}}}\n",
    "literal": "documentation: {{enforcement: {{mode: {0}}}}}\n",
    "number": "cost_model: {{storage: {{s3: {{cost_per_gb_month: {0}}}}}}}\n",
    "pattern": "spark: {{driver_memory: {0}}}\n",
    "schedule": "notifications: {{n: {{schedule: {0}}}}}\n",
    "union_tag": "quality_integrations: [{{type: {0}}}]\n",
    "list": "documentation: {{required_fields: {0}}}\n",
    "mapping": "platform_config: {{datahub: {0}}}\n",
    "whole_document": "{0}\n",
    "root": "lumos_config: {0}\n",
    "source_entry": "sources: [{0}]\n",
    "source_type": "sources: [{{type: [{0}]}}]\n",
    "source_name": "sources: [{{type: s3, name: [{0}]}}]\n",
    "unset_variable": "platform: ${{UNSET}}\nenvironment: {0}\n",
    "default_of_a_variable": "features: {{auto_detection: '${{UNSET:-{0}}}'}}\n",
    "malformed_reference": "environment: ${{{0}\n",
    "both": "snapshots: {{url: 's3://u:{0}@b', path: '{0}'}}\n",
    "anchor": "password: *{0}\n",
    "tag": "password: !{0} x\n",
    "unclosed": "password: '{0}\n",
    "colon": "password: {0}: x: y\n",
    "duplicate_below_secret": "password: {{{0}: 1, {0}: 2}}\n",
    "duplicate_value": "token: {0}\ntoken: {0}\n",
    "unknown_below_secret": "platform: x\ncredentials: {{{0}: 1}}\n",
    "block_scalar": "database_url: [{0}]\n",
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_an_error_never_shows_the_value_it_refuses(case: str, tmp_path: Path) -> None:
    path = tmp_path / "lumos.yaml"
    path.write_text(WRONG_FILES[case].format(SECRET), encoding="utf-8")
    with pytest.raises(InvalidSettingsError) as caught:
        load_settings(path, {}, secrets=SecretRegistry())
    _assert_silent(caught.value)


@pytest.mark.parametrize("case", WRONG_FILES)
def test_an_error_shows_no_value_that_came_from_a_variable(case: str, tmp_path: Path) -> None:
    path = tmp_path / "lumos.yaml"
    path.write_text(WRONG_FILES[case].format("${SOME_VALUE}"), encoding="utf-8")
    with pytest.raises(InvalidSettingsError) as caught:
        load_settings(path, {"SOME_VALUE": SECRET}, secrets=SecretRegistry())
    _assert_silent(caught.value)


def _assert_silent(error: InvalidSettingsError) -> None:
    shown = "".join(traceback.format_exception(error))
    # The trace quotes source lines of the test; the error itself must be silent in every form.
    texts = [str(error), repr(error), json.dumps(error.as_json()), *error.lines(), shown]
    texts += [repr(vars(error)), repr(pickle.loads(pickle.dumps(error)).__dict__)]
    for text in texts:
        assert "hunter2" not in text
        assert "Very/Secret" not in text


class _Careless(BaseModel):
    """Settings of somebody else, whose validators echo what they refuse."""

    model_config = ConfigDict(extra="forbid")

    account: str | None = None
    url: AnyUrl | None = None
    credential: SecretStr | None = Field(default=None, max_length=5)
    options: dict[str, int] = {}

    @field_validator("account")
    @classmethod
    def _echoing(cls, value: str) -> str:
        raise ValueError(f"bad account {value!r}")

    @model_validator(mode="after")
    def _echoing_all(self) -> _Careless:
        if self.options == {"x": 1}:
            raise ValueError(f"bad settings {self.url}")
        return self


@pytest.mark.parametrize(
    "values",
    [
        {"account": SECRET},
        {"url": SECRET},
        {"credential": SECRET},
        {"options": {"a": SECRET}},
        {"options": SECRET},
        {"options": {"x": 1}, "url": f"https://user:{SECRET}@host/"},
        {"api_key": SECRET},
    ],
    ids="-".join,
)
def test_models_of_other_people_cannot_echo_a_value_either(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        _Careless.model_validate(values)
    with pytest.raises(InvalidSettingsError) as caught:
        validate_against(
            _Careless,
            RawSettings(values),  # type: ignore[arg-type]
            where="platform x",
            secrets=SecretRegistry(),
        )
    _assert_silent(caught.value)


PLANTED = {
    "password": "planted-01-value",
    "url": "planted-02-value",
    "query": "planted-03-value",
    "nested": "planted-04-value",
    "list": "planted-05-value",
    "env_into_secret_key": "planted-06-value",
    "env_with_secret_name": "planted-07-value",
    "database_url": "planted-08-value",
    "spark": "planted-09-value",
    "dotenv": "planted-10-value",
    "endpoint": "planted-11-value",
    "unused_env": "planted-12-value",
    "dsn": "planted-13-value",
    "gms": "planted-14-value",
    "number": "98765432",
}


@pytest.fixture
def loaded(tmp_path: Path) -> tuple[LumosSettings, SecretRegistry]:
    (tmp_path / ".env").write_text(f"MY_API_TOKEN={PLANTED['dotenv']}\n", encoding="utf-8")
    path = tmp_path / "lumos.yaml"
    path.write_text(
        f"""
platform: datahub
platform_config:
  datahub:
    token: {PLANTED["password"]}
    headers: {{credentials: {{deep: [{{deeper: "{PLANTED["nested"]}"}}]}}}}
    passwords: ["{PLANTED["list"]}"]
    pin_secret: {PLANTED["number"]}
sources:
  - {{type: mongodb, uri: "mongodb://u:{PLANTED["url"]}@host/db"}}
  - {{type: http, endpoint: "https://host/x?token={PLANTED["query"]}"}}
  - {{type: postgres, connect: "host=h password={PLANTED["dsn"]}"}}
  - {{type: kafka, sasl_password: "${{KAFKA_PW}}", note: "${{MY_API_TOKEN}}"}}
  - {{type: snowflake, note: "${{SNOWFLAKE_PASSWORD}}"}}
spark:
  conf: {{"fs.s3a.secret.key": "{PLANTED["spark"]}"}}
quality_integrations:
  - {{type: custom_api, endpoint: "https://h/?api_key={PLANTED["endpoint"]}"}}
""",
        encoding="utf-8",
    )
    environment = {
        "KAFKA_PW": PLANTED["env_into_secret_key"],
        "SNOWFLAKE_PASSWORD": PLANTED["env_with_secret_name"],
        "LUMOS_DATABASE_URL": f"postgresql://u:{PLANTED['database_url']}@h/db",
        "DATAHUB_GMS_URL": f"http://u:{PLANTED['gms']}@gms:8080",
        "AWS_SECRET_ACCESS_KEY": PLANTED["unused_env"],
    }
    secrets = SecretRegistry()
    return load_settings(path, environment, secrets=secrets), secrets


@pytest.mark.parametrize("where", PLANTED)
def test_every_secret_of_the_settings_is_known_after_loading(
    loaded: tuple[LumosSettings, SecretRegistry], where: str
) -> None:
    _, secrets = loaded
    assert PLANTED[where] not in secrets.redact(f"the driver said: {PLANTED[where]} is wrong")


def test_settings_show_no_secret_in_any_text_form(
    loaded: tuple[LumosSettings, SecretRegistry],
) -> None:
    settings, _ = loaded
    texts = [
        repr(settings),
        str(settings),
        settings.model_dump_json(),
        str(settings.model_dump()),
        *(repr(source) for source in settings.sources),
        *(str(source.settings) for source in settings.sources),
        *(source.name for source in settings.sources),
    ]
    for secret in PLANTED.values():
        assert not [text for text in texts if secret in text]


def test_ordinary_values_of_the_settings_stay_readable(
    loaded: tuple[LumosSettings, SecretRegistry],
) -> None:
    _, secrets = loaded
    assert secrets.redact("source mongodb-host-db on host failed") == (
        "source mongodb-host-db on host failed"
    )


def test_the_current_folder_is_no_secret_though_shells_call_it_pwd(tmp_path: Path) -> None:
    secrets = SecretRegistry()
    environment = {"PWD": str(tmp_path), "OLDPWD": "/somewhere/else", "SECRETS_DIR": "/run/secrets"}

    load_settings(None, environment, working_directory=tmp_path, secrets=secrets)

    text = f"cannot read {tmp_path}/a.json, /somewhere/else or /run/secrets"
    assert secrets.redact(text) == text
