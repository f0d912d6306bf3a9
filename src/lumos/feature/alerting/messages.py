"""The words of an alert. Names and descriptions come from sources and are never trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.changes.text import printable
from lumos.core.models import ChangeLevel

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models.alert import AffectedDataset, Alert, AlertFinding

MOST_TOLD = 20
_MOST_AFFECTED = 5
_LONGEST_NAME = 120
_LONGEST_MESSAGE = 400


class Message(NamedTuple):
    """What is sent: one line, the text, and the findings for machines."""

    title: str
    text: str
    findings: tuple[dict[str, JsonValue], ...] = ()


def message_of(alerts: Sequence[Alert]) -> Message:
    """Return one message for some alerts; what is too much to read is counted."""
    findings = [alert.finding for alert in alerts]
    lines = list(_lines(findings[:MOST_TOLD]))
    if len(findings) > MOST_TOLD:
        lines += ["", f"and {len(findings) - MOST_TOLD:,} more; see them with: lumos alerts list"]
    return Message(
        _title(findings), "\n".join(lines), tuple(finding.to_json() for finding in findings)
    )


def trial_message(channel: str) -> Message:
    """Return the message with which a channel is tried out."""
    text = f"This is a test of the channel {_name(channel)}. No dataset changed."
    return Message("Lumos: a test message", text)


def in_slack(text: str) -> str:
    """Return text as a block in which Slack reads no markup, no link and no mention."""
    quiet = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "```\n" + quiet.replace("`", "'") + "\n```"


def _title(findings: Sequence[AlertFinding]) -> str:
    breaking = sum(finding.level is ChangeLevel.BREAKING for finding in findings)
    kind, count = ("breaking change", breaking) if breaking else ("change", len(findings))
    datasets = {finding.dataset: finding.name for finding in findings}
    where = (
        _name(next(iter(datasets.values())))
        if len(datasets) == 1
        else f"{len(datasets):,} datasets"
    )
    return f"Lumos: {count:,} {kind}{'' if count == 1 else 's'} in {where}"


def _lines(findings: Sequence[AlertFinding]) -> Iterator[str]:
    blocks = groupby(findings, key=lambda finding: (finding.dataset, finding.version))
    for number, (_, block) in enumerate(blocks):
        if number:
            yield ""
        members = list(block)
        first = members[0]
        earlier = f" (was {first.previous_version})" if first.previous_version else ""
        yield f"{_name(first.name)} {first.version}{earlier}"
        yield f"  {printable(first.dataset, longest=_LONGEST_MESSAGE)}"
        for finding in members:
            told = printable(finding.message, longest=_LONGEST_MESSAGE)
            yield f"  {finding.level} {finding.rule}: {told}"
        yield f"  owners: {_names(first.owners) or 'nobody'}"
        if first.affected_count:
            yield f"  affected downstream: {_affected(first)}"


def _affected(finding: AlertFinding) -> str:
    shown = ", ".join(_with_owners(each) for each in finding.affected[:_MOST_AFFECTED])
    more = finding.affected_count - _MOST_AFFECTED
    return f"{shown} and {more:,} more" if more > 0 else shown


def _with_owners(dataset: AffectedDataset) -> str:
    owners = _names(dataset.owners)
    return f"{_name(dataset.name)} ({owners})" if owners else _name(dataset.name)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(_name(name) for name in names[:_MOST_AFFECTED])
    more = len(names) - _MOST_AFFECTED
    return f"{shown} and {more:,} more" if more > 0 else shown


def _name(text: str) -> str:
    return printable(text, longest=_LONGEST_NAME)
