"""What the folders above a file say: which of them are partitions, and of what form.

Hive folders (`key=value`) and dates at the end of a path are partitions. A date of at least a
month is one also further up, so that a landing zone with a folder for each day does not make new
datasets every day. A year alone is one only for files that have no plain name of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

HIVE_NULLS: Final = frozenset({"__HIVE_DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"})

_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_HOURS = 24
_HIVE = re.compile(r"([^\s=/]+)=(.*)", re.DOTALL)
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_ONE_OR_TWO_DIGITS = re.compile(r"[0-9]{1,2}")
_DAY_FOLDER = re.compile(r"((?:19|20)[0-9]{2})([-_.]?)([0-9]{2})\2([0-9]{2})")
_HOUR_FOLDER = re.compile(r"((?:19|20)[0-9]{2})([-_.]?)([0-9]{2})\2([0-9]{2})[-_.T]?([0-9]{2})")
_MONTH_FOLDER = re.compile(r"((?:19|20)[0-9]{2})([-_.]?)([0-9]{2})")

_YEAR_KEY = re.compile(r"(?:.*_)?(?:year|yyyy|yr|y)", re.IGNORECASE)
_MONTH_KEY = re.compile(r"(?:.*_)?(?:month|mon|mm|m)", re.IGNORECASE)
_DAY_KEY = re.compile(r"(?:.*_)?(?:day|dd|d)", re.IGNORECASE)
_HOUR_KEY = re.compile(r"(?:.*_)?(?:hour|hh|hr|h)", re.IGNORECASE)
_DATE_KEY = re.compile(
    r"(?:.*_)?(?:date|dt|ds|day|dd|d|ymd|yyyymmdd|pt|snapshot|month|mm|yyyymm|ym)"
    r"|date_?(?:id|key)|dateint",
    re.IGNORECASE,
)
_TIME_KEY = re.compile(
    "|".join(
        f"(?:{key.pattern})" for key in (_YEAR_KEY, _MONTH_KEY, _DAY_KEY, _HOUR_KEY, _DATE_KEY)
    ),
    re.IGNORECASE,
)


class Segment(NamedTuple):
    """One folder that is a partition."""

    key: str
    value: str | None
    """Decoded; None for the folder that Hive gives rows without a value."""
    template: str
    """The folder with its value replaced by a form, such as `day={dd}` or `{yyyy-mm-dd}`."""
    in_date: bool
    """It is a date, or a part of one."""


class Folders(NamedTuple):
    """The folders of a file, told apart."""

    dataset: tuple[str, ...]
    """All that is no partition."""
    above: tuple[str, ...]
    """What comes before the first partition."""
    template: str | None
    segments: tuple[Segment, ...]


@lru_cache(maxsize=8192)
def read_folders(parent: str, *, lone_years: bool) -> Folders:
    """Tell partitions from plain folders, for the path of a folder relative to the source."""
    parts = [part for part in parent.split("/") if part]
    segments = _dates_anywhere(parts)
    _add_partitions_at_the_end(parts, segments, lone_years=lone_years)
    if not segments:
        return Folders(tuple(parts), tuple(parts), None, ())
    first = min(segments)
    shown = [segments[i].template if i in segments else parts[i] for i in range(first, len(parts))]
    return Folders(
        dataset=tuple(part for i, part in enumerate(parts) if i not in segments),
        above=tuple(parts[:first]),
        template="/".join(shown),
        segments=tuple(segments[i] for i in sorted(segments)),
    )


def hive_segment(part: str) -> Segment | None:
    """Read a folder of the form `key=value`; None when it has another form."""
    match = _HIVE.fullmatch(part)
    if match is None:
        return None
    key, value = unquote(match[1]), unquote(match[2])
    if value in HIVE_NULLS:
        return Segment(key, None, f"{key}={{{key}}}", in_date=bool(_TIME_KEY.fullmatch(key)))
    form = _form_of(key, value)
    return Segment(key, value, f"{key}={{{form or key}}}", in_date=form is not None)


def _dates_anywhere(parts: Sequence[str]) -> dict[int, Segment]:
    found: dict[int, Segment] = {}
    index = 0
    while index < len(parts):
        run = _run_of_dates(parts, index)
        if not run and (hive := hive_segment(parts[index])) and hive.in_date:
            run = [hive]
        found.update(enumerate(run, start=index))
        index += max(len(run), 1)
    return found


def _add_partitions_at_the_end(
    parts: Sequence[str], found: dict[int, Segment], *, lone_years: bool
) -> None:
    for index in range(len(parts) - 1, -1, -1):
        if index in found:
            continue
        above_a_date = index + 1 in found and "=" not in found[index + 1].template
        segment = hive_segment(parts[index])
        if segment is None and (lone_years or above_a_date):
            segment = _year_or_month(parts[index])
        if segment is None:
            return
        found[index] = segment


def _run_of_dates(parts: Sequence[str], start: int) -> list[Segment]:
    """Return the longest date without keys that begins at a folder; a year alone is none."""
    first = parts[start]
    if not first[:1].isdigit():
        return []
    if single := _single_folder(first):
        following = parts[start + 1] if start + 1 < len(parts) else ""
        if single.key == "date" and _is_hour(following):
            return [single, Segment("hour", following, "{hh}", in_date=True)]
        return [single]
    if not _YEAR.fullmatch(first):
        return []
    run = [Segment("year", first, "{yyyy}", in_date=True)]
    checks = (("month", "{mm}", _is_month), ("day", "{dd}", None), ("hour", "{hh}", _is_hour))
    for (key, form, check), part in zip(checks, parts[start + 1 : start + 4], strict=False):
        fits = check(part) if check else _is_day(first, parts[start + 1], part)
        if not fits and key == "day" and part.isdecimal():
            return []  # 2024/02/30 is not a month with a folder called 30
        if not fits:
            break
        run.append(Segment(key, part, form, in_date=True))
    return run if len(run) > 1 else []


def _single_folder(part: str) -> Segment | None:
    """Read a folder that holds a day, an hour, or a month written with a separator."""
    if (match := _DAY_FOLDER.fullmatch(part)) and _is_day(match[1], match[3], match[4]):
        separator = match[2]
        return Segment("date", part, f"{{yyyy{separator}mm{separator}dd}}", in_date=True)
    if (
        (match := _HOUR_FOLDER.fullmatch(part))
        and _is_day(match[1], match[3], match[4])
        and _is_hour(match[5])
    ):
        separator, gap = match[2], part[match.end(4) : match.start(5)]
        form = f"{{yyyy{separator}mm{separator}dd{gap}hh}}"
        return Segment("hour", part, form, in_date=True)
    if (match := _MONTH_FOLDER.fullmatch(part)) and match[2] and _is_month(match[3]):
        return Segment("month", part, f"{{yyyy{match[2]}mm}}", in_date=True)
    return None


def _year_or_month(part: str) -> Segment | None:
    if _YEAR.fullmatch(part):
        return Segment("year", part, "{yyyy}", in_date=True)
    if (match := _MONTH_FOLDER.fullmatch(part)) and not match[2] and _is_month(match[3]):
        return Segment("month", part, "{yyyymm}", in_date=True)
    return None


def _form_of(key: str, value: str) -> str | None:
    """Return the form of a Hive value that is a date or a part of one."""
    if (match := _DAY_FOLDER.fullmatch(value)) and _is_day(match[1], match[3], match[4]):
        if match[2] or _DATE_KEY.fullmatch(key):
            return f"yyyy{match[2]}mm{match[2]}dd"
        return None
    if (match := _MONTH_FOLDER.fullmatch(value)) and _is_month(match[3]):
        if match[2] == "-" or _DATE_KEY.fullmatch(key):
            return f"yyyy{match[2]}mm"
        return None
    if _YEAR.fullmatch(value) and _YEAR_KEY.fullmatch(key):
        return "yyyy"
    if _is_month(value) and _MONTH_KEY.fullmatch(key):
        return "mm"
    if _is_day("2000", "1", value) and _DAY_KEY.fullmatch(key):
        return "dd"
    if _is_hour(value) and _HOUR_KEY.fullmatch(key):
        return "hh"
    return None


def _is_month(text: str) -> bool:
    return bool(_ONE_OR_TWO_DIGITS.fullmatch(text)) and 1 <= int(text) <= len(_DAYS)


def _is_day(year: str, month: str, day: str) -> bool:
    if not (_is_month(month) and _ONE_OR_TWO_DIGITS.fullmatch(day)):
        return False
    is_leap = int(year) % 4 == 0 and (int(year) % 100 != 0 or int(year) % 400 == 0)
    longest = _DAYS[int(month) - 1] if is_leap or int(month) != 2 else 28  # noqa: PLR2004
    return 1 <= int(day) <= longest


def _is_hour(text: str) -> bool:
    return bool(_ONE_OR_TWO_DIGITS.fullmatch(text)) and int(text) < _HOURS
