"""No secret passes, and ordinary text stays readable."""

from __future__ import annotations

import base64
import io
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.redaction import (
    MASK,
    RedactingFilter,
    SecretRegistry,
    find_secrets,
    looks_secret,
    redact,
)

SECRET = "s3cr3t-Val/ue+9"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://lumos:{}@db:5432/state",
        "mongodb+srv://user:{}@cluster.example.com/?retryWrites=true",
        "GET https://example.com/data?token={}&page=2 failed",
        "https://bucket.s3.amazonaws.com/k?X-Amz-Credential=a&X-Amz-Signature={}",
        "https://account.blob.core.windows.net/c?sv=2022&sig={}",
        "https://maps.example.com/?key={}",
        "sc://spark:15002/;token={};user_id=me",
        "host=db user=lumos password={} dbname=state",
        "host=db password='{}' dbname=state",
        "Authorization: Bearer {}",
        "authorization: Basic {}",
        '{{"headers": {{"Authorization": "Bearer {}"}}}}',
        "sent Bearer {} to the server",
        "password: {}",
        '{{"password": "{}", "user": "lumos"}}',
        "{{'api_key': '{}'}}",
        'the body was "{{\\"client_secret\\": \\"{}\\"}}"',
        "AWS_SECRET_ACCESS_KEY={}",
        "PGPASSWORD={} psql",
        "spark.hadoop.fs.s3a.secret.key={}",
        "warning: error: db_pass={}",
        "accountKey={};EndpointSuffix=core.windows.net",
        "hooks.slack.com/services/{}",
    ],
)
def test_a_secret_is_masked_by_the_place_where_it_stands(text: str) -> None:
    masked = redact(text.format(SECRET))
    assert SECRET not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1B2" * 9,
        "AKIA" + "A1B2" * 4,
        "xoxb-123456789012-abcdefghij",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_well_known_token_is_masked_anywhere(secret: str) -> None:
    body = secret.split("\n")[1] if "\n" in secret else secret
    assert body not in redact(f"got {secret} back")


@pytest.mark.parametrize(
    "text",
    [
        "lumos.yaml:12: unknown key 'sorces'; did you mean 'sources'?",
        "key 'password' is missing in sources[0]",
        "tokens.yaml:3: not valid YAML",
        "https://host:8080/a@b",
        "s3://bucket/path/year=2024/month=01",
        "abfss://container@account.dfs.core.windows.net/raw",
        "lumos://snowflake/FINANCE/customers",
        "primary_key: customer_id, partition_key=day",
        "max_tokens: 400",
        "token_url: https://login.example.com/oauth",
        "12 passed, 3 failed: see report",
        "has_password: true",
        "Bearer authentication is not supported",
        "platform_config.datahub.token: Field required",
        "unknown key password: did you mean passwd?",
        "passwords: 12 rows, tokens: 1,200 rows",
        "secret: 3 columns",
        '{"tokens": 12}',
        '{"secrets": 0, "files": [1]}',
        "password: STRING",
        "api_key: INT64 -> STRING",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("text", ["pin_password: 1234", '{"password": 123456}', "token=98765"])
def test_a_number_under_the_name_of_a_secret_is_masked_and_json_stays_json(text: str) -> None:
    masked = redact(text)

    assert not any(character.isdigit() for character in masked)
    assert masked.endswith("}") == text.endswith("}")


def test_what_surrounds_a_secret_stays_readable() -> None:
    assert redact("postgresql://u:p@ss/word@db:5432/x?sslmode=require") == (
        "postgresql://u:***@db:5432/x?sslmode=require"
    )
    assert redact("cannot reach https://s3cr3t@git.example.com/repo") == (
        "cannot reach https://***@git.example.com/repo"
    )
    assert redact("get /?page=2&token=abc&sort=name failed") == (
        "get /?page=2&token=***&sort=name failed"
    )


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("dbPassword", True),
        ("SNOWFLAKE_PASSWORD", True),
        ("auth_token", True),
        ("accessToken", True),
        ("apiKey", True),
        ("api-key", True),
        ("fs.s3a.access.key", True),
        ("account_key", True),
        ("connection_string", True),
        ("slack_webhook_url", True),
        ("Authorization", True),
        ("smtp_pass", True),
        ("key", False),
        ("primary_key", False),
        ("tokenizer", False),
        ("token_url", False),
        ("password_file", False),
        ("max_tokens", False),
        ("bucket", False),
        ("pass", False),
        ("", False),
        ("...", False),
    ],
)
def test_a_name_tells_whether_its_value_is_secret(name: str, *, secret: bool) -> None:
    assert looks_secret(name) is secret


@pytest.mark.parametrize(
    "text",
    [
        "password: password: x",
        "a://b:c@d:e@f?token=g&key=h",
        'Authorization: "Bearer x.y"',
        "token=Bearer abc.def.ghi",
        "https://tok@h, https://u:p@h; password='a b' api_key=>z",
    ],
)
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert once != text
    assert redact(once) == once


# Texts built from what the patterns look for, so that their corners meet.
_fragments = st.sampled_from(
    (
        *("password", "token", "key", "api_key", "Authorization", "Bearer", "Basic", "sig="),
        *("https://", "a://", "user", "abc.def-1", "123", "8080", "***", "true", "eyJ"),
        *":=@/?&;\"'\\,.{}[] \n>",
    )
)


@given(st.lists(_fragments, max_size=30).map("".join))
def test_any_text_can_be_redacted_and_a_password_after_it_is_masked(text: str) -> None:
    assert "s3cr3t9" not in redact(f"{text}\npassword=s3cr3t9")


# A registered value must vanish from every text, however it was written.
_values = st.text(min_size=5, max_size=40).map(lambda text: f"7{text}")


@given(value=_values, before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_registered_value_leaves_no_text(value: str, before: str, after: str) -> None:
    registry = SecretRegistry([value])
    assert value not in registry.redact(before + " " + value + " " + after).replace(MASK, "")


@pytest.mark.parametrize(
    "value", ["hunter2-ä/+&", 'quote"and\\slash', "line one is long\nline two"]
)
def test_a_registered_value_is_masked_in_its_encoded_forms(value: str) -> None:
    registry = SecretRegistry([value])
    raw = value.encode()
    for form in (
        value,
        quote(value, safe=""),
        quote_plus(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    ):
        assert form not in registry.redact(f"<{form}>"), form


def test_of_two_registered_values_the_longer_is_masked_whole() -> None:
    registry = SecretRegistry(["hunter2", "hunter2-and-more"])
    assert registry.redact("x hunter2-and-more y hunter2 z") == "x *** y *** z"


def test_short_values_and_names_of_products_do_not_blank_ordinary_text() -> None:
    registry = SecretRegistry(["abc", "postgres", ""])
    assert registry.redact("lumos://postgres/abc") == "lumos://postgres/abc"
    assert registry.redact("password=abc") == "password=***"


def test_each_line_of_a_long_secret_is_masked_alone() -> None:
    registry = SecretRegistry(["-----BEGIN KEY-----\nMIIEowIBAAKCAQEA\nshort\n"])
    assert registry.redact("line MIIEowIBAAKCAQEA here") == "line *** here"


def test_the_registry_shows_no_value_when_printed() -> None:
    assert "hunter2" not in repr(SecretRegistry(["hunter2"]))


def test_values_registered_by_many_threads_are_all_masked() -> None:
    registry = SecretRegistry()
    values = [f"secret-number-{i}" for i in range(200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(registry.add, values))
    assert "secret-number" not in registry.redact(" ".join(values))


def test_secrets_inside_a_url_are_found_as_written_and_decoded() -> None:
    found = find_secrets("postgresql://u:p%40ss-word@h/db?token=t%2Fk")
    assert {"p%40ss-word", "p@ss-word", "t%2Fk", "t/k"} <= set(found)


def test_a_log_record_is_redacted_with_its_arguments_trace_and_extras() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s %(note)s %(api_token)s"))
    handler.addFilter(RedactingFilter(SecretRegistry(["hunter2-long"])))
    logger = logging.getLogger("lumos.test_redaction")
    logger.propagate = False
    logger.addHandler(handler)
    extra = {"note": "see hunter2-long", "api_token": "plain"}
    try:
        raise ValueError("inner hunter2-long")
    except ValueError:
        logger.exception("cannot use %s, %s", "hunter2-long", "password=x1", extra=extra)
    text = stream.getvalue()
    assert "cannot use ***, password=*** see *** ***" in text
    assert "ValueError: inner ***" in text
    assert "hunter2-long" not in text
    assert "plain" not in text
