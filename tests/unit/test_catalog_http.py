"""Speaking HTTP to a catalog, against a real server on loopback that misbehaves."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from lumos.core.errors import (
    ConfigurationError,
    InvalidModelError,
    PlatformAnswerError,
    PlatformAuthError,
    PlatformConflictError,
    PlatformError,
    PlatformFailureError,
    PlatformForbiddenError,
    PlatformNotFoundError,
    PlatformUnavailableError,
)
from lumos.core.platform.http import CatalogHttp, RetryPolicy, failing_at_once
from lumos.core.platform.login import NOBODY, PASSWORD, TOKEN, Login, server_of
from lumos.core.platform.refusals import Streak, ends_run
from lumos.core.platform.server_message import server_message
from lumos.core.platform.threads import mapped
from lumos.core.redaction import redact
from scripted_server import Reply, ScriptedServer, scripted_server

QUICK = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.002)
SECRET = "hunter2-token"
PAGE = b"<html><body>hunter2 stack trace</body></html>"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


@pytest.fixture
def http(server: ScriptedServer) -> Iterator[CatalogHttp]:
    with client(server.url) as opened:
        yield opened


def client(url: str, *, retries: RetryPolicy = QUICK, timeout: float = 300.0) -> CatalogHttp:
    headers = {"Authorization": f"Bearer {SECRET}"}
    return CatalogHttp(url, name="cat", headers=headers, timeout=timeout, retries=retries)


def refused(http: CatalogHttp, kind: type[PlatformError], method: str = "GET") -> PlatformError:
    with pytest.raises(kind) as raised:
        http.json(method, "/v1/things", params={"q": "hunter2"})
    error = raised.value
    assert type(error) is kind
    assert re.match(rf"cat: {method} /v1/things at http://127\.0\.0\.1:\d+: ", error.message), (
        error.message
    )
    assert error.hint
    assert "hunter2" not in f"{error.message} {error.hint}"
    assert "\n" not in error.message
    return error


def test_a_json_answer_is_returned_and_headers_and_body_are_sent(
    server: ScriptedServer, http: CatalogHttp
) -> None:
    server.answer(
        Reply(body=b'{"a": [1, "\xc3\xa4"]}', content_type="application/json;charset=utf-8")
    )
    answer = http.json(
        "PATCH", "v1/x", body=[{"op": "add"}], content_type="application/json-patch+json"
    )
    assert answer == {"a": [1, "ä"]}
    (seen,) = server.seen
    assert (seen.method, seen.path, seen.body) == ("PATCH", "/v1/x", b'[{"op":"add"}]')
    assert seen.headers["Content-Type"] == "application/json-patch+json"
    assert seen.headers["Authorization"] == f"Bearer {SECRET}"


def test_paths_are_appended_to_the_path_of_the_base_url(server: ScriptedServer) -> None:
    with client(f"{server.url}/api/") as http:
        http.json("GET", "/v1/a%2Fb", params={"limit": 5, "deep": True})
    assert server.seen[0].path == "/api/v1/a%2Fb?limit=5&deep=true"


def test_an_empty_answer_is_none(server: ScriptedServer, http: CatalogHttp) -> None:
    server.answer(Reply(204, b"", content_type=None))
    assert http.json("DELETE", "/v1/x") is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, PlatformError),
        (401, PlatformAuthError),
        (403, PlatformForbiddenError),
        (404, PlatformNotFoundError),
        (405, PlatformNotFoundError),
        (409, PlatformConflictError),
        (412, PlatformConflictError),
        (413, PlatformError),
        (415, PlatformError),
        (302, PlatformAnswerError),
    ],
)
@pytest.mark.parametrize("html", [False, True])
def test_a_refusal_is_one_clear_line_and_is_not_tried_again(
    server: ScriptedServer,
    http: CatalogHttp,
    status: int,
    kind: type[PlatformError],
    html: bool,
) -> None:
    body = PAGE if html else b'{"message": "no, Bearer %s"}' % SECRET.encode()
    server.answer(Reply(status, body, "text/html" if html else "application/json"))
    assert f"({status})" in refused(http, kind).message
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 422])
@pytest.mark.parametrize("key", ["message", "error", "errorMessage"])
def test_the_message_of_the_server_is_shown_in_the_line(
    server: ScriptedServer, http: CatalogHttp, status: int, key: str
) -> None:
    said = "ann is unauthorized to CREATE entities"
    server.answer(Reply(status, json.dumps({"code": status, key: f"{said}.\n"}).encode()))
    with pytest.raises(PlatformError) as raised:
        http.json("GET", "/v1/things")
    assert raised.value.message.endswith(f" ({status}): {said}")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no: {token} is old", "no: *** is old"),
        ("password=opensesame is wrong", "password=*** is wrong"),
        ('cannot read {"name": "Ann", "iban": "DE1"}', "cannot read…"),
        ("not a date at [Source: (String) 1999]", "not a date…"),
        ("a\x1b[31m\tb\r\nc", "a [31m b c"),
        ("x" * 900, "x" * 300 + "…"),
        ("", ""),
        (["first", "second"], "first"),
        ({"message": "within"}, "within"),
        (7, ""),
    ],
)
def test_of_the_message_nothing_secret_and_no_echo_of_the_request_is_shown(
    said: object, shown: str
) -> None:
    given = said.replace("{token}", SECRET) if isinstance(said, str) else said
    content = json.dumps({"message": given}).encode()
    assert server_message(content, "application/json", secrets=[SECRET]) == shown
    assert server_message(content, "text/html") == ""
    assert server_message(content[:-1], "application/json") == ""


def test_what_is_forbidden_of_one_thing_does_not_end_a_run() -> None:
    assert ends_run(PlatformAuthError("expired"))
    assert not ends_run(PlatformForbiddenError("not yours"))
    assert not Streak().ends_run(PlatformForbiddenError("not yours"))


@pytest.mark.parametrize(
    ("login", "told", "advice"),
    [
        (TOKEN, "the token is not accepted (401)", "expired"),
        (PASSWORD, "the username and the password are not accepted (401)", "password"),
        (NOBODY, "a request without a login is not accepted (401)", "set the token"),
    ],
    ids=["token", "password", "nobody"],
)
def test_a_login_that_is_not_accepted_is_called_what_was_set(
    server: ScriptedServer, login: Login, told: str, advice: str
) -> None:
    server.answer(Reply(401))
    with CatalogHttp(server.url, name="cat", timeout=300, login=login) as http:
        error = refused(http, PlatformAuthError)
    assert error.message.endswith(told)
    assert advice in str(error.hint)
    assert redact(error.message) == error.message
    assert redact(str(error.hint)) == error.hint


@pytest.mark.parametrize("login", [TOKEN, PASSWORD, NOBODY], ids=["token", "password", "nobody"])
def test_a_login_that_is_not_allowed_something_is_told_as_such(
    server: ScriptedServer, login: Login
) -> None:
    server.answer(Reply(403))
    with CatalogHttp(server.url, name="cat", timeout=300, login=login) as http:
        error = refused(http, PlatformForbiddenError)
    assert error.message.endswith(f"{login.forbidden} (403)")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://localhost:8080/", "http://localhost:8080"),
        ("https://catalog.example.org/api/v1/", "https://catalog.example.org"),
        ("https://ann:hunter2@catalog.example.org:8585/api/", "https://catalog.example.org:8585"),
        ("https://hunter2@h/?token=hunter2#hunter2", "https://h"),
        ("http://[::1]:21000/hunter2/", "http://[::1]:21000"),
        ("http://ann:12/hunter2@h:80/", "its server"),
        ("http://ann:12#hunter2@h:80/", "its server"),
        ("http://ann:12?hunter2@h:80/", "its server"),
    ],
)
def test_of_a_url_messages_show_the_server_alone(url: str, shown: str) -> None:
    assert server_of(url) == shown


def test_a_status_can_be_declared_to_be_no_error(server: ScriptedServer, http: CatalogHttp) -> None:
    server.answer(Reply(404, b'{"code": 404}'))
    assert http.json("GET", "/v1/x", ok=(200, 404)) == {"code": 404}


@pytest.mark.parametrize(
    "fault",
    [
        Reply(429, PAGE, "text/html", headers={"Retry-After": "0"}),
        Reply(500, PAGE, "text/html"),
        Reply(502, PAGE, "text/html"),
        Reply(503, b"", headers={"Retry-After": "soon"}),
        Reply(504, b""),
        Reply(200, b'{"a": 1', promised=100),
        Reply(200, b'{"a": '),
        Reply(hang_up=True),
    ],
    ids=["429", "500", "502", "503", "504", "half-way", "truncated", "reset"],
)
def test_what_may_pass_is_tried_again_and_then_told(
    server: ScriptedServer, http: CatalogHttp, fault: Reply
) -> None:
    server.answer(fault, fault, Reply(body=b'{"a": 1}'))
    assert http.json("GET", "/v1/x") == {"a": 1}
    assert len(server.seen) == 3
    server.answer(fault)
    with pytest.raises(PlatformError) as raised:
        http.json("GET", "/v1/x")
    assert isinstance(raised.value, PlatformUnavailableError | PlatformAnswerError)
    assert "hunter2" not in raised.value.message
    assert len(server.seen) == 6


def test_a_server_that_does_not_answer_in_time_is_told(server: ScriptedServer) -> None:
    server.answer(Reply(silent=True))
    with client(server.url, timeout=0.5, retries=QUICK._replace(attempts=2)) as http:
        error = refused(http, PlatformUnavailableError)
    assert "in time" in error.message
    assert error.retryable
    deadline = time.monotonic() + 300  # a busy server may hear of a request after its end
    while len(server.seen) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(server.seen) == 2


def test_a_server_that_is_down_is_told() -> None:
    with scripted_server() as server:
        url = server.url
    with client(url) as http:
        assert "cannot be reached" in refused(http, PlatformUnavailableError).message


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(Reply(500), PlatformFailureError), (Reply(hang_up=True), PlatformUnavailableError)],
    ids=["500", "reset"],
)
def test_a_post_that_may_have_been_done_is_not_sent_twice(
    server: ScriptedServer, http: CatalogHttp, fault: Reply, kind: type[PlatformError]
) -> None:
    server.answer(fault)
    refused(http, kind, "POST")
    assert len(server.seen) == 1
    with pytest.raises(PlatformUnavailableError):
        http.json("POST", "/v1/things", body={}, idempotent=True)
    assert len(server.seen) == 4


def test_what_a_catalog_fails_at_is_not_repeated_where_it_failed_before(
    server: ScriptedServer, http: CatalogHttp
) -> None:
    server.answer(Reply(500))
    with failing_at_once():
        refused(http, PlatformFailureError)
    assert len(server.seen) == 1
    server.answer(Reply(503), Reply(body=b"{}"))
    with failing_at_once():
        assert http.json("GET", "/v1/x") == {}


@pytest.mark.parametrize("status", [429, 503])
def test_a_post_that_was_refused_before_it_was_done_is_sent_again(
    server: ScriptedServer, http: CatalogHttp, status: int
) -> None:
    server.answer(Reply(status), Reply(201, b'{"id": 7}'))
    assert http.json("POST", "/v1/things", body={"a": 1}) == {"id": 7}
    assert [seen.body for seen in server.seen] == [b'{"a":1}'] * 2


def test_a_server_may_ask_for_a_wait_and_a_long_one_ends_it(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    sleep, here = time.sleep, threading.current_thread()

    def noted(seconds: float) -> None:
        if threading.current_thread() is here:  # others wait as usual
            waits.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr("time.sleep", noted)
    policy = QUICK._replace(attempts=4, longest_retry_after=60)
    past = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    server.answer(
        Reply(429, headers={"Retry-After": "30"}),
        Reply(503, headers={"Retry-After": past}),
        Reply(429, headers={"Retry-After": "61"}),
    )
    with client(server.url, retries=policy) as http:
        error = refused(http, PlatformUnavailableError)
    assert "refused for now (429) and asks to wait 61 s" in error.message
    assert len(server.seen) == 3
    assert waits[0] == pytest.approx(30)
    assert waits[1:] in ([], [0.0])


def test_all_requests_of_a_run_share_one_budget_of_repeats(server: ScriptedServer) -> None:
    server.answer(Reply(503))
    with client(server.url, retries=QUICK._replace(budget=3)) as http:
        for _ in range(4):
            refused(http, PlatformUnavailableError)
    assert len(server.seen) == 4 + 3


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(200, PAGE, "text/html; charset=utf-8"), "a web page"),
        (Reply(200, b"hunter2", "text/plain"), "no JSON"),
        (Reply(200, b"\x00\x01", "application/octet-stream"), "no JSON"),
    ],
    ids=["html", "text", "binary"],
)
def test_an_answer_of_another_kind_is_told_at_once(
    server: ScriptedServer, http: CatalogHttp, reply: Reply, told: str
) -> None:
    server.answer(reply)
    assert told in refused(http, PlatformAnswerError).message
    assert len(server.seen) == 1


def test_json_of_a_kind_of_its_own_is_json(server: ScriptedServer, http: CatalogHttp) -> None:
    server.answer(Reply(body=b"[]", content_type="application/vnd.cat.v2+json"))
    assert http.json("GET", "/v1/x") == []


def test_pages_are_read_until_there_are_no_more(server: ScriptedServer, http: CatalogHttp) -> None:
    server.answer(Reply(body=b'{"after": "b"}'), Reply(body=b'{"after": null}'))

    def following(page: object) -> dict[str, str] | None:
        assert isinstance(page, dict)
        return {"after": page["after"]} if page["after"] else None

    assert len(list(http.pages("GET", "/v1/x", params={"limit": 2}, following=following))) == 2
    assert [seen.path for seen in server.seen] == ["/v1/x?limit=2", "/v1/x?limit=2&after=b"]


def test_a_list_that_leads_back_to_itself_ends_in_an_error(
    server: ScriptedServer, http: CatalogHttp
) -> None:
    pages = http.pages("GET", "/v1/x", following=lambda _: {"after": "same"})
    with pytest.raises(PlatformAnswerError, match="same page"):
        list(pages)
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    "url", ["", "localhost:80", "ftp://h", "http://", "http://[", "http://h:0"]
)
def test_an_address_that_is_none_is_told_by_the_settings(url: str) -> None:
    with pytest.raises(ConfigurationError, match="platform 'cat': its URL"):
        client(url)


def test_a_file_of_authorities_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigurationError, match="cannot be made"):
        CatalogHttp("https://h", name="cat", verify="/nowhere/ca.pem")


def test_a_body_that_is_no_json_is_refused_before_it_is_sent(
    server: ScriptedServer, http: CatalogHttp
) -> None:
    with pytest.raises(InvalidModelError):
        http.json("PUT", "/v1/x", body={"a": object()})
    assert not server.seen


def test_items_are_mapped_in_their_order_by_no_more_threads_than_asked_for() -> None:
    lock, together, most = threading.Lock(), 0, 0
    meeting = threading.Barrier(3, timeout=300)

    def act(item: int) -> int:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        meeting.wait()
        with lock:
            together -= 1
        return item * 2

    assert list(mapped(act, iter(range(30)), workers=3)) == [2 * n for n in range(30)]
    assert most == 3


def test_the_first_error_of_a_mapping_ends_it() -> None:
    done: list[int] = []

    def act(item: int) -> None:
        if item == 2:
            raise PlatformError("no")
        done.append(item)

    with pytest.raises(PlatformError):
        list(mapped(act, iter(range(1000)), workers=2))
    assert len(done) < 20
