"""A run report tells everything that happened, and no secret."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest
from pydantic import ValidationError

from lumos.core.errors import PlatformUnavailableError, UnreadableItemError
from lumos.core.redaction import SecretRegistry
from lumos.core.run_report import RunRecorder, RunReport

START = datetime(2024, 1, 15, 8, 0, tzinfo=UTC)
END = START + timedelta(seconds=12.34)


def _recorder(*, keep_done: bool = False) -> RunRecorder:
    return RunRecorder(
        "ingest", started_at=START, keep_done=keep_done, secrets=SecretRegistry(["hunter2-long"])
    )


def test_done_items_are_counted_and_kept_only_when_asked_for() -> None:
    for keep_done in (False, True):
        recorder = _recorder(keep_done=keep_done)
        for i in range(3):
            recorder.done(f"table-{i}")
        report = recorder.finish(at=END)
        assert report.counts.done == report.counts.total == 3
        assert len(report.items) == (3 if keep_done else 0)


def test_what_failed_elsewhere_keeps_the_parts_of_its_error() -> None:
    recorder = _recorder()
    failed = partial(
        recorder.failed_elsewhere,
        "db",
        reason="no hunter2-long",
        code="LUM-220",
        hint="ask hunter2-long",
        retryable=True,
    )
    failed(scope_seen=True)
    assert recorder.finish(at=END).complete
    failed()
    report = recorder.finish(at=END)
    assert not report.complete
    assert (report.failed[0].code, report.failed[0].retryable) == ("LUM-220", True)
    assert "hunter2" not in json.dumps(report.as_json())


def test_items_handled_elsewhere_are_counted() -> None:
    recorder = _recorder()
    recorder.done_many(10_000)
    recorder.done("one more")
    assert recorder.finish(at=END).counts.done == 10_001


def test_a_failed_item_carries_what_its_error_knows() -> None:
    recorder = _recorder()
    recorder.failed("datahub", PlatformUnavailableError("no answer", hint="is it up?"))
    recorder.failed("a.csv", ValueError("bad header"))
    recorder.failed("b.csv", "truncated")
    first, second, third = recorder.finish(at=END).failed
    assert (first.reason, first.code, first.hint, first.retryable) == (
        "no answer",
        "LUM-401",
        "is it up?",
        True,
    )
    assert (second.reason, second.code, second.retryable) == ("ValueError: bad header", None, False)
    assert third.reason == "truncated"


def test_a_failed_item_makes_the_report_incomplete() -> None:
    recorder = _recorder()
    recorder.done("a")
    recorder.skipped("b", reason="excluded")
    assert recorder.finish(at=END).complete
    recorder.failed("c", "cannot list")
    assert not recorder.finish(at=END).complete


def test_a_known_item_that_cannot_be_read_leaves_the_scope_complete() -> None:
    recorder = _recorder()
    recorder.failed("a.csv", UnreadableItemError("bad header"), scope_seen=True)
    report = recorder.finish(at=END)
    assert report.complete
    assert report.counts.failed == 1
    recorder.failed("prefix/", "no permission")
    recorder.failed("b.csv", "bad header", scope_seen=True)
    assert not recorder.finish(at=END).complete


def test_a_scope_left_early_is_incomplete_and_says_why() -> None:
    recorder = _recorder()
    recorder.incomplete(reason="stopped by the user")
    report = recorder.finish(at=END)
    assert not report.complete
    assert report.warnings == ("stopped by the user",)


def test_the_text_gives_counts_then_items_grouped_by_reason() -> None:
    recorder = _recorder()
    recorder.done_many(5)
    for i in range(7):
        recorder.failed(f"f{i}.csv", UnreadableItemError("bad header", hint="check the file"))
    recorder.failed("g.csv", "truncated")
    recorder.skipped("tmp.csv", reason="excluded by a pattern")
    recorder.warning("clock differs")
    recorder.warning("clock differs")
    assert recorder.finish(at=END).as_text(shown_per_reason=2) == (
        "ingest: 5 done, 1 skipped, 8 failed in 12.3 s\n"
        "incomplete: part of the scope was not seen; what may lie there is not taken as removed\n"
        "warning: clock differs\n"
        "failed: bad header [LUM-221]\n"
        "  hint: check the file\n"
        "  f0.csv\n"
        "  f1.csv\n"
        "  ... and 5 more\n"
        "failed: truncated\n"
        "  g.csv\n"
        "skipped: excluded by a pattern\n"
        "  tmp.csv"
    )


def test_the_json_holds_every_item_and_loads_back_equal() -> None:
    recorder = _recorder(keep_done=True)
    recorder.done("a")
    for i in range(50):
        recorder.failed(f"f{i}", "same reason")
    recorder.skipped("s", reason="excluded")
    report = recorder.finish(at=END)
    text = json.dumps(report.as_json())
    assert len(json.loads(text)["items"]) == 52
    assert json.loads(text)["started_at"] == "2024-01-15T08:00:00Z"
    assert RunReport.model_validate_json(text) == report


def test_no_secret_enters_a_report() -> None:
    recorder = RunRecorder(
        "ingest hunter2-long",
        started_at=START,
        keep_done=True,
        secrets=SecretRegistry(["hunter2-long"]),
    )
    recorder.done("postgresql://u:planted-1@h/db hunter2-long")
    recorder.skipped("x?token=planted-2", reason="password=planted-3")
    recorder.failed("hunter2-long", PlatformUnavailableError("hunter2-long", hint="hunter2-long"))
    recorder.failed("y", OSError("cannot open https://u:planted-4@h"))
    recorder.warning("Authorization: Bearer planted-5")
    report = recorder.finish(at=END)
    for text in (json.dumps(report.as_json()), report.as_text(), repr(report)):
        assert "hunter2" not in text
        assert "planted" not in text


def test_times_need_a_zone_and_keep_it() -> None:
    recorder = RunRecorder("x", started_at=datetime(2024, 1, 1))
    with pytest.raises(ValidationError):
        recorder.finish(at=END)
    zone = timezone(timedelta(hours=2))
    report = _recorder().finish(at=END.astimezone(zone))
    assert report.finished_at == END


def test_a_report_cannot_be_changed() -> None:
    report = _recorder().finish(at=END)
    with pytest.raises(ValidationError):
        report.complete = False  # type: ignore[misc]


def test_a_name_with_line_ends_stays_in_its_line() -> None:
    recorder = _recorder()
    recorder.failed("a\nfailed: made up\r\u2028.csv", "it is empty", scope_seen=True)
    recorder.warning("b\n.csv: odd")

    assert recorder.finish(at=END).as_text().splitlines()[1:] == [
        r"warning: b\n.csv: odd",
        "failed: it is empty",
        r"  a\nfailed: made up\n\n.csv",
    ]


def test_json_names_every_file_of_a_warning_and_text_the_first() -> None:
    recorder = RunRecorder("ingest", started_at=START)
    for name in ("a", "b", "c"):
        recorder.warning(f"/lake/{name}.csv: it is cut off")
    recorder.warning("source x: it is slow")
    report = recorder.finish(at=END)
    assert len(report.as_json()["warnings"]) == 4  # type: ignore[arg-type]
    assert "warning: /lake/a.csv and 2 more: it is cut off" in report.as_text()
    assert "warning: source x: it is slow" in report.as_text()
