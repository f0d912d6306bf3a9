"""Planted secrets appear in no output, error, snapshot or database."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from command_line import JANUARY, Lumos
from lumos.core.redaction import PROCESS_SECRETS

SETTINGS = """\
platform: embedded
database_url: ${STATE_URL}
environment: production
sources:
  - type: s3
    name: lake
    bucket: raw
    endpoint: https://minio.example/bucket?token=S3cret-query-token-01
    secret_access_key: S3cret-access-key-02
    nested: {deep: {password: S3cret-nested-pass-03}}
  - type: postgres
    name: db
    url: postgresql://reader:S3cret-dsn-pass-04@db.example/shop
    ssl: {sslpassword: S3cret-ssl-pass-05}
  - type: snowflake
    name: warehouse
    account: acme
    password: ${SNOWFLAKE_PASSWORD}
    private_key: |
      -----BEGIN PRIVATE KEY-----
      S3cretPrivateKeyLine07AAAAAAAAAAAAAAAA
      -----END PRIVATE KEY-----
  - type: kafka
    name: stream
    config:
      sasl.password: S3cret-sasl-pass-08
      schema.registry.basic.auth.user.info: "u:S3cret-registry-09"
platform_config:
  datahub:
    gms_server: https://svc:S3cret-gms-pass-10@datahub.example
    auth_token: ${DATAHUB_TOKEN}
  openmetadata:
    server: https://om.example
    headers: {Authorization: "Bearer S3cret-bearer-12"}
spark:
  remote: sc://spark.example:443/;token=S3cret-connect-13
  conf: {"spark.hadoop.fs.s3a.secret.key": S3cret-spark-conf-14}
notifications:
  alerts:
    recipients: ["https://hooks.slack.com/services/T000/B000/S3cretSlackHook15"]
quality_integrations:
  - type: custom_api
    endpoint: https://dq.example/results?api_key=S3cret-api-key-16
    auth_token: S3cret-dq-token-17
"""
ENVIRONMENT = {
    "SNOWFLAKE_PASSWORD": "S3cret-env-pass-06",
    "DATAHUB_TOKEN": "S3cret-env-token-11",
}
DOTENV = "UNUSED_SECRET=S3cret-dotenv-18\nSTATE_URL=postgresql://lumos:S3cret-state-19@127.0.0.1:9/none?sslpassword=S3cret-state-20\n"
ADDRESS = "https://u:S3cret-dsn-pass-04@h/x?token=S3cret-query-token-01"
BROKEN = {
    "a misspelt key": "platform_confg: {x: {password: S3cret-query-token-01}}\n",
    "a value of the wrong type": "features: S3cret-access-key-02\n",
    "a list in place of a mapping": "platform_config: [S3cret-nested-pass-03]\n",
    "a choice that is none": "documentation: {enforcement: {mode: S3cret-dsn-pass-04}}\n",
    "a key given twice": "database_url: S3cret-ssl-pass-05\ndatabase_url: S3cret-env-pass-06\n",
    "text that is no YAML": "database_url: 'S3cret-sasl-pass-08\n",
    "a URL of no database": "database_url: mysql://u:S3cret-registry-09@h/d?token=S3cret-gms-pass-10\n",
    "a source without a type": "sources: [{password: S3cret-env-token-11}]\n",
    "a schedule that is none": "schedules: {x: {schedule: S3cret-bearer-12, run: [x]}}\n",
    "a variable that is not set": "database_url: ${NOT_SET}/S3cret-connect-13\n",
    "a number in place of a name": "spark: {master: {token: S3cret-spark-conf-14}}\n",
    "a document of another kind": "- S3cretSlackHook15\n- S3cret-api-key-16\n",
}
SECRETS = tuple(
    sorted(
        {
            word.strip("\"'};,]")
            for text in (SETTINGS, DOTENV, *ENVIRONMENT.values())
            for piece in text.replace("@", " ").replace("/", " ").replace("=", " ").split()
            for word in piece.split(":")
            if word.startswith("S3cret")
        }
    )
)


@pytest.fixture(autouse=True)
def no_secret_is_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin like a new process: what another one registered would be masked."""
    monkeypatch.setattr(PROCESS_SECRETS, "_forms", set())
    monkeypatch.setattr(PROCESS_SECRETS, "_pattern", None)


def leaks(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text or quote(secret, safe="") in text]


def test_twenty_secrets_are_planted() -> None:
    assert len(SECRETS) == 20


def test_no_secret_of_valid_settings_comes_out_anywhere(
    lumos: Lumos, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "lumos.yaml").write_text(SETTINGS)
    (project / ".env").write_text(DOTENV)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    printed = ""
    for code, *command in (
        (1, "doctor"),
        (3, "search", "x", "--json"),
        (3, "--debug", "snapshot", "create"),
        (3, "run", f"import:{JANUARY}", "snapshot", "--json"),
    ):
        result = lumos(*command)
        printed += result.stdout + result.stderr
        assert result.exit_code == code, result
    assert "127.0.0.1" in printed, "the server that does not answer is named"

    monkeypatch.setenv("LUMOS_DATABASE_URL", "other/lumos.db")
    for code, *command in (
        (0, "import", "--input", JANUARY),
        (1, "doctor", "--json"),  # the other catalogs of the settings do not answer
        (0, "search", "orders"),
        (0, "snapshot", "create"),
        (0, "export", "--output", str(tmp_path / "out.json")),
        (0, "run", f"import:{JANUARY}", "snapshot", "--json"),
        (3, "--debug", "show", "lumos://s3/none"),
        (0, "--debug", "snapshot", "list"),
        (3, "validate", ADDRESS),
    ):
        result = lumos(*command)
        printed += result.stdout + result.stderr
        assert result.exit_code == code, result
    assert "imported" in printed

    assert leaks(printed) == []
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name not in {"lumos.yaml", ".env"}:
            assert leaks(path.read_bytes().decode("latin-1")) == [], path


@pytest.mark.parametrize("problem", BROKEN, ids=str)
def test_no_secret_of_broken_settings_comes_out_in_the_error(
    lumos: Lumos, project: Path, problem: str
) -> None:
    (project / "lumos.yaml").write_text(BROKEN[problem])

    for arguments in (("search", "x"), ("--debug", "search", "x"), ("doctor", "--json")):
        result = lumos(*arguments)
        assert result.exit_code != 0
        assert leaks(result.stdout + result.stderr) == []
