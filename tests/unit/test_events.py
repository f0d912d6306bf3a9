"""Events: told once, redacted once, heard by report, display and log."""

from __future__ import annotations

import logging
import re
import string
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typing_extensions import override

import lumos
from lumos.core.errors import LumosError
from lumos.core.event_kinds import EVENT_KINDS
from lumos.core.events import current_run, emit, is_logged, running
from lumos.core.logs import HumanFormatter, JsonFormatter
from lumos.core.platform.http import CatalogHttp, RetryPolicy
from lumos.core.progress import SILENT, EventProgress, Progress
from lumos.core.redaction import SecretRegistry
from lumos.core.run_report import RunRecorder
from scripted_server import Reply, scripted_server

PACKAGE = Path(lumos.__file__).parent
NOW = datetime(2026, 1, 31, tzinfo=UTC)
EMITTED = re.compile(r'\b(?:emit|tell|is_logged)\(\s*(?:self\.\w+,\s*)?"([a-z.]+)"')


class Kept(logging.Handler):
    """Keeps the records of a test."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of(self, event: str) -> list[logging.LogRecord]:
        return [record for record in self.records if getattr(record, "event", None) == event]


@pytest.fixture
def log() -> Iterator[Kept]:
    """What a program hears that listens to everything."""
    kept, logger = Kept(), logging.getLogger("lumos")
    logger.addHandler(kept)
    logger.setLevel(logging.DEBUG)
    yield kept
    logger.removeHandler(kept)
    logger.setLevel(logging.NOTSET)


def fields(record: logging.LogRecord) -> dict[str, object]:
    found: dict[str, object] = record.fields  # type: ignore[attr-defined]
    return found


def test_every_event_that_code_emits_is_documented_and_the_other_way_round() -> None:
    code = "\n".join(file.read_text("utf-8") for file in PACKAGE.rglob("*.py"))
    assert set(EMITTED.findall(code)) == EVENT_KINDS.keys()


@pytest.mark.parametrize("name", EVENT_KINDS)
def test_the_text_of_an_event_names_fields_that_it_always_has(name: str) -> None:
    kind = EVENT_KINDS[name]
    named = {field for _, field, _, _ in string.Formatter().parse(kind.text) if field}
    assert named <= kind.fields.keys() - kind.optional


def test_without_a_handler_nothing_is_logged() -> None:
    script = """
import lumos.entry.sdk, logging
from lumos.core.events import emit, is_logged
assert not is_logged("item.failed")
emit("notice", text="unheard")
logger = logging.getLogger("lumos")
assert [type(each) for each in logger.handlers] == [logging.NullHandler], logger.handlers
assert logger.level == logging.NOTSET and not logging.getLogger().handlers
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == done.stderr == ""


def test_a_program_that_logs_its_own_way_gets_plain_lines(log: Kept) -> None:
    emit("run.warning", text="50 % of it")
    (record,) = log.records
    assert record.name == "lumos.run"
    assert record.getMessage() == "50 % of it"


def test_an_operation_and_one_that_it_calls_have_one_id(log: Kept) -> None:
    with running("ingest"), running("sync"):
        emit("notice", text="x")
    (inner,) = log.of("notice")
    assert inner.operation == "sync"  # type: ignore[attr-defined]
    assert {record.run for record in log.records} == {inner.run}  # type: ignore[attr-defined]
    with running("ingest"):
        pass
    assert len({record.run for record in log.records}) == 2  # type: ignore[attr-defined]
    assert current_run() is None


def test_two_threads_are_two_runs(log: Kept) -> None:
    def work() -> None:
        with running("ingest"):
            pass

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({record.run for record in log.of("run.started")}) == 2  # type: ignore[attr-defined]


def test_phases_end_with_the_next_one_or_with_the_operation(log: Kept) -> None:
    with running("ingest"):
        SILENT.stage("listing")
        SILENT.stage("reading files", total=3)
        SILENT.advance(3)
    ended = [fields(record) for record in log.of("phase.finished")]
    assert [each["phase"] for each in ended] == ["listing", "reading files"]
    assert ended[1]["done"] == 3
    assert "done" not in ended[0]
    (finished,) = log.of("run.finished")
    assert float(str(fields(finished)["seconds"])) >= sum(float(str(e["seconds"])) for e in ended)


def test_an_operation_that_fails_says_why_and_how_long_it_took(log: Kept) -> None:
    @running("import")
    def fail() -> None:
        raise LumosError("token=abcdefgh12345678 refused")

    with pytest.raises(LumosError):
        fail()
    (failed,) = log.of("run.failed")
    assert fields(failed)["reason"] == "token=*** refused"
    assert fields(failed)["code"] == LumosError.code
    assert failed.levelno == logging.ERROR


def test_report_and_log_hear_the_same_redacted_event(log: Kept) -> None:
    secrets = SecretRegistry(["hunter2-long"])
    with running("ingest"):
        recorder = RunRecorder("ingest", started_at=NOW, secrets=secrets)
        recorder.failed("/lake/a", LumosError("no: hunter2-long", hint="ask hunter2-long"))
        recorder.skipped("/lake/hunter2-long", reason="a link")
        recorder.done_many(3)
        report = recorder.finish(at=NOW)
    (failed,) = log.of("item.failed")
    (skipped,) = log.of("item.skipped")
    assert fields(failed)["reason"] == report.failed[0].reason == "no: ***"
    assert fields(failed)["hint"] == "ask ***"
    assert fields(failed)["code"] == report.failed[0].code
    assert fields(skipped)["item"] == report.skipped[0].item == "/lake/***"
    (finished,) = log.of("run.finished")
    assert {key: fields(finished)[key] for key in ("done", "skipped", "failed")} == {
        "done": 3,
        "skipped": 1,
        "failed": 1,
    }


def test_display_and_log_hear_the_same_events(log: Kept) -> None:
    class Shown(Progress):
        def __init__(self) -> None:
            self.lines: list[object] = []

        @override
        def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
            self.lines.append((name, total, unit))

        @override
        def advance(self, done: int) -> None:
            self.lines.append(done)

        @override
        def note(self, text: str) -> None:
            self.lines.append(text)

    shown = Shown()
    told = EventProgress(shown)
    told.note("starting Spark")
    told.stage("sending", total=2, unit="datasets")
    told.advance(2)
    assert shown.lines == ["starting Spark", ("sending", 2, "datasets"), 2]
    assert [record.getMessage() for record in log.records] == ["starting Spark", "sending"]


@pytest.mark.parametrize("formatter", [HumanFormatter(), JsonFormatter()])
def test_a_name_can_forge_no_line_and_steer_no_terminal(
    log: Kept, formatter: logging.Formatter
) -> None:
    name = 'a\n2026-01-01 ERROR forged\r\x1b[2J\u202e\u2028{}"\udcff'
    emit("item.skipped", item=name, reason=name)
    plain = {"name": "lumos.plugin", "levelname": "WARNING", "msg": "plain %s", "args": (name,)}
    for record in (*log.records, logging.makeLogRecord(plain)):
        line = formatter.format(record)
        assert line.isprintable()
        assert "\\n2026" in line
        line.encode()


def test_what_a_plug_in_logs_is_redacted_too(log: Kept) -> None:
    try:
        raise ValueError("password=abcdefgh1234")
    except ValueError:
        logging.getLogger("lumos.plugin").exception("token=%s", "abcdefgh12345678")
    line = HumanFormatter().format(log.records[0])
    assert "abcdefgh" not in line
    assert "ValueError" in line


def test_a_request_that_is_sent_again_is_logged_with_wait_and_reason(log: Kept) -> None:
    quick = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.002)
    with scripted_server() as server:
        server.answer(Reply(503), Reply(429, headers={"Retry-After": "0"}), Reply(body=b"[1]"))
        with CatalogHttp(f"{server.url}/api?token=abcdefgh1234", name="x", retries=quick) as http:
            assert http.json("GET", "/a", params={"key": "abcdefgh1234"}) == [1]
    first, second = (fields(record) for record in log.of("http.retried"))
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert "503" in str(first["reason"])
    assert "429" in str(second["reason"])
    assert second["wait_seconds"] == 0
    assert first["server"] == server.url
    assert "abcdefgh" not in str(first) + str(second)


def test_a_request_that_is_not_sent_again_is_no_retry(log: Kept) -> None:
    quick = RetryPolicy(attempts=2, first_wait=0.001, longest_wait=0.002)
    with scripted_server() as server:
        server.answer(Reply(503))
        with (
            CatalogHttp(server.url, name="x", retries=quick) as http,
            pytest.raises(LumosError),
        ):
            http.json("GET", "/a")
    assert len(log.of("http.retried")) == 1


def test_debug_events_are_only_gathered_where_somebody_asks_for_them(log: Kept) -> None:
    assert is_logged("file.reread")
    logging.getLogger("lumos").setLevel(logging.INFO)
    assert not is_logged("file.reread")
    logging.getLogger("lumos.file").setLevel(logging.DEBUG)
    try:
        assert is_logged("file.reread")
    finally:
        logging.getLogger("lumos.file").setLevel(logging.NOTSET)
