"""What the folders above a file say: which of them are partitions, and of what form.

Hive folders (`key=value`) are partitions anywhere, and so are dates of at least a quarter, so that
a landing zone with a folder for each day does not make new datasets every day. A year alone, a
number and a time in seconds are partitions only at the end, and only for files that have no plain
meaningful name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from lumos.feature.discovery.dates import (
    date_form,
    is_day,
    is_epoch,
    is_hour,
    is_minute,
    is_month,
    is_year,
    named_date,
)

HIVE_NULLS: Final = frozenset({"__HIVE_DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"})
NULL_FOLDER: Final = "__NULL__"
"""The folder that Snowflake gives rows without a partition."""

_HIVE = re.compile(r"([^\s=/]+)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,18}")
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}", re.IGNORECASE)
_OF_WRITER = re.compile(  # Hive's transactions and unions, Paimon's buckets
    r"base_\d{7,}|(?:delete_)?delta_\d{7,}_\d{7,}(?:_\d{4,})?|HIVE_UNION_SUBDIR_\d+|bucket-\d+"
    rf"|{NULL_FOLDER}"
)
_WHOLE_NUMBER = re.compile(r"(?:0|-?[1-9][0-9]{0,18})")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LARGEST_INT32: Final = 2**31 - 1
_LARGEST_INT64: Final = 2**63 - 1
_RUN = re.compile(
    r"(?P<word>sync|run|batch|job|load|attempt|task|shard|partition|chunk)[-_](?P<number>[0-9]+)",
    re.IGNORECASE,
)
_NUMBER_KEY: Final = "number"
_SAYS_NOTHING: Final = frozenset({"data"})

_YEAR_KEY = re.compile(r"(?:.*_)?(?:year|yyyy|yr|y)", re.IGNORECASE)
_MONTH_KEY = re.compile(r"(?:.*_)?(?:month|mon|mm|m)", re.IGNORECASE)
_DAY_KEY = re.compile(r"(?:.*_)?(?:day|dd|d)", re.IGNORECASE)
_HOUR_KEY = re.compile(r"(?:.*_)?(?:hour|hh|hr|h)", re.IGNORECASE)
_MINUTE_KEY = re.compile(r"(?:.*_)?(?:minute|min|mi)", re.IGNORECASE)
_DATE_KEY = re.compile(
    r"(?:.*_)?(?:date|dt|ds|day|dd|d|ymd|yyyymmdd|pt|snapshot|month|mm|yyyymm|ym|hour|time)"
    r"|date_?(?:id|key|hour)|dateint",
    re.IGNORECASE,
)
_TIME_KEY = re.compile(
    "|".join(
        f"(?:{key.pattern})" for key in (_YEAR_KEY, _MONTH_KEY, _DAY_KEY, _HOUR_KEY, _DATE_KEY)
    ),
    re.IGNORECASE,
)


_MANY_NAMES = 16_384
"""So many names of folders are remembered: days and hours come again in every dataset."""


class Segment(NamedTuple):
    """One folder that is a partition."""

    key: str
    value: str | None
    """Decoded; None for the folder that Hive gives rows without a value."""
    template: str
    """The folder with its value replaced by a form, such as `day={dd}` or `{yyyy-mm-dd}`."""
    in_date: bool
    """It is a date, or a part of one."""
    name: str = ""
    """What the folder is called beside its date."""


class Folders(NamedTuple):
    """The folders of a file, by kind."""

    dataset: tuple[str, ...]
    """All that is no partition."""
    prefix: str
    """What comes before the first partition, between slashes."""
    template: str | None
    keys: tuple[str, ...]
    values: tuple[str | None, ...]
    types: tuple[str, ...]
    """The canonical type that fits each value; empty for a value that is null."""

    @classmethod
    def of(
        cls,
        dataset: Sequence[str],
        above: Sequence[str],
        *,
        template: str | None = None,
        segments: Sequence[Segment] = (),
    ) -> Folders:
        """Put together what was found out."""
        return cls(
            tuple(dataset),
            "".join([f"/{part}" for part in above]) + "/",
            template,
            tuple([segment.key for segment in segments]),
            tuple([segment.value for segment in segments]),
            tuple([_value_type(segment.value, in_date=segment.in_date) for segment in segments]),
        )


@lru_cache(maxsize=8192)
def read_folders(
    parent: str, *, nameless: bool, years: bool = False, keep_last: bool = False
) -> Folders:
    """Split the path of a folder, relative to the source, into partitions and plain folders.

    Args:
        parent: the path of the folder.
        nameless: the file has no meaningful name, so that the folders must name the dataset.
        years: a lone year at the end is a partition, as it is for nameless files.
        keep_last: the last folder is a name, even where it is a number.
    """
    parts = [part for part in parent.split("/") if part]
    if nameless:
        while len(parts) > 1 and _OF_WRITER.fullmatch(parts[-1]):
            parts.pop()
    segments = _partitions_anywhere(parts)
    if not keep_last:
        _add_partitions_at_the_end(parts, segments, nameless=nameless, years=nameless or years)
    dataset = _dataset(parts, segments, nameless=nameless)
    if not segments:
        return Folders.of(dataset, parts)
    first = min(segments)
    shown = [segments[i].template if i in segments else parts[i] for i in range(first, len(parts))]
    return Folders.of(
        dataset,
        parts[:first],
        template="/".join(shown),
        segments=[segments[i] for i in sorted(segments)],
    )


def hive_segment(part: str, *, after_hour: bool = False) -> Segment | None:
    """Read a folder of the form `key=value`; None when it has another form."""
    if "=" not in part:
        return None
    match = _HIVE.fullmatch(part)
    if match is None:
        return None
    key, value = unquote(match[1]), unquote(match[2])
    if value in HIVE_NULLS:
        return Segment(key, None, f"{key}={{{key}}}", in_date=bool(_TIME_KEY.fullmatch(key)))
    form = "mi" if after_hour and is_minute(value) and key in "mM" else _form_of(key, value)
    return Segment(key, value, f"{key}={{{form or key}}}", in_date=form is not None)


@lru_cache(maxsize=_MANY_NAMES)
def _value_type(value: str | None, *, in_date: bool) -> str:
    """Return the canonical type that holds the value of a partition; empty for none."""
    if value is None:
        return ""
    if in_date and _DAY.fullmatch(value):
        return "DATE"
    if in_date and value.isdecimal():
        return "INT32" if len(value) <= len("yyyymmdd") else "INT64"
    if _WHOLE_NUMBER.fullmatch(value):
        size = abs(int(value))
        if size <= _LARGEST_INT32:
            return "INT32"
        if size <= _LARGEST_INT64:
            return "INT64"
    return "STRING"


def _dataset(
    parts: Sequence[str], segments: dict[int, Segment], *, nameless: bool
) -> tuple[str, ...]:
    plain = [i for i in range(len(parts)) if i not in segments]
    named = [i for i, segment in segments.items() if segment.name]
    if nameless and named and max(named) > max(plain, default=-1):
        return (*(parts[i] for i in plain), segments[max(named)].name)
    if nameless and len(plain) > 1 and parts[plain[-1]] in _SAYS_NOTHING:
        plain.pop()
    return tuple([parts[i] for i in plain])


def _partitions_anywhere(parts: Sequence[str]) -> dict[int, Segment]:
    found: dict[int, Segment] = {}
    index = 0
    while index < len(parts):
        run = _run_of_dates(parts, index)
        if not run:
            above = found.get(index - 1)
            after_hour = above is not None and above.template.endswith("={hh}")
            if segment := _partition(parts[index], after_hour=after_hour):
                run = [segment]
        found.update(enumerate(run, start=index))
        index += max(len(run), 1)
    return found


@lru_cache(maxsize=_MANY_NAMES)
def _partition(part: str, *, after_hour: bool) -> Segment | None:
    return hive_segment(part, after_hour=after_hour) or _run(part) or _named_date(part)


def _add_partitions_at_the_end(
    parts: Sequence[str], found: dict[int, Segment], *, nameless: bool, years: bool
) -> None:
    numbers: list[int] = []
    for index in range(len(parts) - 1, -1, -1):
        if index in found:
            continue
        above_a_date = index + 1 in found and "=" not in found[index + 1].template
        segment = _year_or_month(parts[index]) if years or above_a_date else None
        if segment is None and nameless and index > 0:
            segment = _one_of_many(parts[index], below=found.get(index - 1))
            if segment is not None and segment.key == _NUMBER_KEY:
                numbers.append(index)
        if segment is None:
            break
        found[index] = segment
    for count, index in enumerate(reversed(numbers[:-1]), start=2):
        key = f"{_NUMBER_KEY}_{count}"
        found[index] = found[index]._replace(key=key, template=f"{{{key}}}")


def _one_of_many(part: str, *, below: Segment | None) -> Segment | None:
    """Read a folder that only numbers one of many, and is no name."""
    if is_epoch(part):
        return Segment("epoch", part, "{epoch}", in_date=False)
    if _NUMBER.fullmatch(part):
        return Segment(_NUMBER_KEY, part, f"{{{_NUMBER_KEY}}}", in_date=False)
    if below is not None and _ID.fullmatch(part):
        return Segment("id", part, "{id}", in_date=False)
    return None


def _run_of_dates(parts: Sequence[str], start: int) -> list[Segment]:
    """Return the longest date without keys that begins at a folder; a year alone is none."""
    first = parts[start]
    if not first[:1].isdigit():
        return []
    if single := _single_folder(first):
        following = parts[start + 1] if start + 1 < len(parts) else ""
        if single.key == "date" and is_hour(following):
            return [single, Segment("hour", following, "{hh}", in_date=True)]
        return [single]
    if not is_year(first):
        return []
    run = [Segment("year", first, "{yyyy}", in_date=True)]
    checks = (
        ("month", "{mm}", is_month),
        ("day", "{dd}", None),
        ("hour", "{hh}", is_hour),
        ("minute", "{mi}", is_minute),
    )
    for (key, form, check), part in zip(checks, parts[start + 1 : start + 5], strict=False):
        fits = check(part) if check else is_day(first, parts[start + 1], part)
        if not fits and key == "day" and part.isdecimal():
            return []  # 2024/02/30 is not a month with a folder called 30
        if not fits:
            break
        run.append(Segment(key, part, form, in_date=True))
    return run if len(run) > 1 else []


@lru_cache(maxsize=_MANY_NAMES)
def _single_folder(part: str) -> Segment | None:
    """Read a folder that holds a quarter or less; a month only where it is no plain number."""
    form = date_form(part)
    if form is None or (form.key == "month" and form.is_compact):
        return None
    return Segment(form.key, part, f"{{{form.form}}}", in_date=True)


def _named_date(part: str) -> Segment | None:
    """Read a folder that is called by a name and a day: `nightly_2024-01-15`."""
    found = named_date(part)
    if found is None:
        return None
    before, day, after = found
    form = date_form(day)
    template = f"{before}{{{form.form if form else day}}}{after}"
    return Segment("date", day, template, in_date=True, name=(before or after).strip("-_. "))


def _run(part: str) -> Segment | None:
    """Read a folder for one run of a writer: `sync_123`."""
    match = _RUN.fullmatch(part)
    if match is None:
        return None
    word, number = match["word"], match["number"]
    key = word.lower()
    return Segment(key, number, f"{part[: -len(number)]}{{{key}}}", in_date=False)


def _year_or_month(part: str) -> Segment | None:
    if is_year(part):
        return Segment("year", part, "{yyyy}", in_date=True)
    form = date_form(part)
    if form is not None and form.key == "month":
        return Segment("month", part, f"{{{form.form}}}", in_date=True)
    return None


def _form_of(key: str, value: str) -> str | None:
    """Return the form of a Hive value that is a date or a part of one."""
    if form := date_form(value):
        needs_key = form.is_compact or (form.key == "month" and "-" not in form.form)
        return form.form if not needs_key or _DATE_KEY.fullmatch(key) else None
    if is_year(value):
        return "yyyy" if _YEAR_KEY.fullmatch(key) else None
    for expression, form_, check in (
        (_MONTH_KEY, "mm", is_month),
        (_DAY_KEY, "dd", lambda text: is_day("2000", "1", text)),
        (_HOUR_KEY, "hh", is_hour),
        (_MINUTE_KEY, "mi", is_minute),
    ):
        if expression.fullmatch(key):
            return form_ if check(value) else None
    return None
