"""Source types and URLs are checked when settings are loaded; doctor connects to each source."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from command_line import Lumos
from lumos.core.settings.addresses import address_problems
from scripted_server import Reply, scripted_server

SECRET = "hunter2-hunter2"


def checks(lumos: Lumos) -> dict[str, dict[str, str]]:
    """Return what doctor found, by name."""
    return {each["name"]: each for each in lumos("doctor", "--json").json()["checks"]}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{type: postgress}", "did you mean 'postgres'?"),
        ("{source_type: S3x}", "did you mean 's3'?"),
        ("{source: {type: kafak}}", "did you mean 'kafka'?"),
        ("{type: unheard-of}", "known: azure, dbt, "),
    ],
)
def test_an_unknown_type_is_told_where_it_stands(lumos: Lumos, written: str, said: str) -> None:
    Path("lumos.yaml").write_text(
        f"sources:\n  - {{type: local, path: .}}\n  - {written}\n", "utf-8"
    )
    for command in (("search", "x"), ("ingest",)):
        result = lumos(*command)
        assert result.exit_code == 2
        assert "sources[1].type names no source type of Lumos" in result.error_line
        assert said in result.error_line
    assert lumos("search", "x").error_line.startswith("lumos: lumos.yaml:3: ")


def test_a_type_of_the_product_documents_loads_and_is_said_to_have_no_effect(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text("sources: [{type: kafka}, {type: snowflake}]\n", "utf-8")
    lumos("init")
    result = lumos("search", "x")
    assert result.exit_code == 0
    assert "without effect in this version: sources of type kafka, sources of type snowflake" in (
        result.stderr
    )
    assert not [name for name in checks(lumos) if name.startswith("source")]


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("platform_config: {datahub: {gms_server: 'URL'}}", "platform_config.datahub.gms_server"),
        ("sources: [{type: s3, name: a, bucket: b, endpoint_url: 'URL'}]", "endpoint_url"),
        ("sources: [{type: s3, name: a, config: {endpoint_url: 'URL'}}]", "endpoint_url"),
    ],
)
@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"htps://{SECRET}.example", "did you mean 'https://'?"),
        (f"https:/{SECRET}.example", "'//' is missing"),
        (f"https://{SECRET}.example:80x", "its port is not a number"),
        (f"https://{SECRET}.example:99999", "its port is not a number"),
        (f"https:///{SECRET}", "it names no host"),
        (f"https://[{SECRET}", "its host cannot be read"),
        (f"https://a {SECRET}", "it holds a space"),
    ],
)
def test_a_malformed_url_is_told_by_its_key(
    lumos: Lumos, section: str, key: str, *, url: str, said: str
) -> None:
    Path("lumos.yaml").write_text(section.replace("URL", url), "utf-8")
    result = lumos("search", "x")
    assert result.exit_code == 2
    assert f"{key} " in result.error_line
    assert said in result.error_line
    assert SECRET not in result.error_line


def test_the_address_of_the_state_is_checked_too(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text("database_url: postgresq://a/b\n", "utf-8")
    assert "did you mean 'postgresql://'?" in lumos("search", "x").error_line


@pytest.mark.parametrize(
    "url",
    [
        *("http://[::1]:80/x", "https://ä.example", "s3://bucket/x", "localhost:8080", "host"),
        *("postgresql://a,b:5432,c/shop", "custom-protocol://x", "mysql+pymysql://a/b", ""),
        *("sqlite:///x.db", "file:///x", "https://user:p%20w@host:1/p?q#f", "/a/folder"),
    ],
)
def test_a_url_that_may_be_meant_is_accepted(url: str) -> None:
    assert not [*address_problems({"sources": [{"type": "x", "url": url}]})]


def test_a_url_with_a_variable_that_is_not_set_is_no_second_problem(lumos: Lumos) -> None:
    lumos("init")
    Path("lumos.yaml").write_text(
        "platform_config: {datahub: {gms_server: 'https://${UNSET_HOST}:80'}}\n", "utf-8"
    )
    assert lumos("search", "x").exit_code == 0


@given(st.text(max_size=30))
@example("http://[")
@example("http://\x00:1")
def test_no_text_breaks_the_check_and_none_is_echoed(text: str) -> None:
    for path, said in address_problems({"sources": [{"url": f"http://{text}"}]}):
        assert path == ("sources", 0, "url")
        assert len(text) < 8 or text not in said


def test_doctor_connects_to_each_source_and_says_how_it_is(lumos: Lumos, project: Path) -> None:
    (project / "lake").mkdir()
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # taken, and not listened at
        port = held.getsockname()[1]
        address = f"postgresql://reader:{SECRET}@127.0.0.1:{port}/shop"
        Path("lumos.yaml").write_text(
            "sources:\n"
            "  - {type: local, name: lake, path: lake}\n"
            "  - {type: local, name: gone, path: nowhere}\n"
            f"  - {{type: postgres, name: shop, url: '{address}'}}\n"
            "  - {type: s3, name: wrong, bucket: b, no_such_key: 1}\n"
            "  - {type: postgres, name: later, url: '${UNSET_URL}'}\n",
            "utf-8",
        )
        found = checks(lumos)
    assert found["source lake"]["status"] == "ok"
    assert str(project / "lake") in found["source lake"]["detail"]
    assert found["source gone"]["status"] == "fail"
    assert "nowhere" in found["source gone"]["detail"]
    assert found["source shop"]["status"] == "fail"
    assert found["source wrong"]["status"] == "fail"
    assert "no_such_key" in found["source wrong"]["detail"]
    assert found["source later"]["status"] == "warn"
    assert found["source later"]["detail"] == "not checked: see environment variables"
    assert SECRET not in json.dumps(found)


def test_a_source_that_hangs_holds_doctor_up_for_a_bounded_time(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.core.controllers.system_controller.DOCTOR_SECONDS", 0.5)
    with scripted_server() as server:
        server.answer(Reply(silent=True))
        Path("lumos.yaml").write_text(
            "sources:\n"
            + "".join(
                f"  - {{type: s3, name: s{number}, bucket: b, endpoint_url: '{server.url}', "
                f"access_key_id: a, secret_access_key: {SECRET}}}\n"
                for number in range(3)
            ),
            "utf-8",
        )
        began = time.monotonic()
        found = checks(lumos)
        assert time.monotonic() - began < 60
    for number in range(3):
        assert found[f"source s{number}"]["status"] == "fail"
        assert "did not answer within 0.5 s" in found[f"source s{number}"]["detail"]
