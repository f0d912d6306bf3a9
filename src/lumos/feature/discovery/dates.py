"""Dates and times in the names of folders: whether a name is one, and in which form.

Forms are spelled with `yyyy`, `mm` (month), `dd`, `hh`, `mi` (minute), `ss`, `Www` (week) and `Qq`
(quarter), so that `2024-01-15T10-11Z` has the form `yyyy-mm-ddThh-miZ`.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final, NamedTuple

_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_HOURS: Final = 24
_SIXTY: Final = 60
_YEAR_DIGITS: Final = r"(?:19|20)[0-9]{2}"
_ONE_OR_TWO_DIGITS = re.compile(r"[0-9]{1,2}")
_TWO_DIGITS = re.compile(r"[0-9]{2}")
_YEAR = re.compile(_YEAR_DIGITS)
_STAMP = re.compile(
    rf"({_YEAR_DIGITS})([-_.]?)([0-9]{{2}})\2([0-9]{{2}})"
    r"(?:([-_.T]{0,2})([0-9]{2})(?:([-_.:]?)([0-9]{2})(?:\7([0-9]{2}))?)?(Z?))?"
)
_MONTH = re.compile(rf"({_YEAR_DIGITS})([-_.]?)([0-9]{{2}})")
_WEEK = re.compile(rf"{_YEAR_DIGITS}([-_]?)W[0-5][0-9]")
_QUARTER = re.compile(rf"{_YEAR_DIGITS}([-_]?)Q[1-4]")
_RANGE = re.compile(
    r"([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2})([-_])([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2})"
)
_YEAR_LAST = re.compile(rf"([0-9]{{2}})([-_.])([0-9]{{2}})\2({_YEAR_DIGITS})")
_EPOCH = re.compile(r"1[0-9]{9}(?:[0-9]{3})?")
_NAMED = re.compile(
    rf"(?P<before>\D.*?[-_. ])(?P<last>{_YEAR_DIGITS}(?P<s>[-_.]?)[0-9]{{2}}(?P=s)[0-9]{{2}})"
    rf"|(?P<first>{_YEAR_DIGITS}(?P<t>[-_.]?)[0-9]{{2}}(?P=t)[0-9]{{2}})(?P<after>[-_. ]\D.*)"
)
KEYS_OF_FORMS: Final = MappingProxyType(
    {
        "yyyy": "year", "mm": "month", "dd": "day", "hh": "hour", "mi": "minute", "ss": "second",
        "Www": "week", "Qq": "quarter",
    }
)  # fmt: skip
"""What a folder is called that holds one part of a date and nothing else."""


class DateForm(NamedTuple):
    """What a name says of time."""

    key: str
    """What the date stands for: `date`, `hour`, `time`, `month`, `week`, `quarter` or `year`."""
    form: str
    is_compact: bool
    """It is nothing but digits, so that it could also be a number."""


def date_form(text: str) -> DateForm | None:
    """Return the form of a name that is a date of a quarter or less; None for any other."""
    if not text[:2].isdigit():
        return None
    if match := _YEAR_LAST.fullmatch(text):
        return _year_last(match)
    if match := _STAMP.fullmatch(text):
        return _stamp(match)
    if (match := _MONTH.fullmatch(text)) and is_month(match[3]):
        return DateForm("month", f"yyyy{match[2]}mm", is_compact=not match[2])
    if match := _WEEK.fullmatch(text):
        return DateForm("week", f"yyyy{match[1]}Www", is_compact=False)
    if match := _QUARTER.fullmatch(text):
        return DateForm("quarter", f"yyyy{match[1]}Qq", is_compact=False)
    if match := _RANGE.fullmatch(text):
        ends = [date_form(match[1]), date_form(match[3])]
        if ends[0] and ends[1] and ends[0].key == ends[1].key == "date":
            form = f"{ends[0].form}{match[2]}{ends[1].form}"
            return DateForm("date", form, is_compact=False)
    return None


def named_date(text: str) -> tuple[str, str, str] | None:
    """Return what stands before the date of a name with a day in it, the date, and what follows."""
    match = _NAMED.fullmatch(text)
    if match is None:
        return None
    day = match["last"] or match["first"]
    form = date_form(day)
    if form is None or form.key != "date":
        return None
    return match["before"] or "", day, match["after"] or ""


def is_year(text: str) -> bool:
    return bool(_YEAR.fullmatch(text))


def is_epoch(text: str) -> bool:
    """Return the time of a number of seconds or milliseconds since 1970, of this century."""
    return bool(_EPOCH.fullmatch(text))


def is_month(text: str) -> bool:
    return bool(_ONE_OR_TWO_DIGITS.fullmatch(text)) and 1 <= int(text) <= len(_DAYS)


def is_day(year: str, month: str, day: str) -> bool:
    if not (is_month(month) and _ONE_OR_TWO_DIGITS.fullmatch(day)):
        return False
    is_leap = int(year) % 4 == 0 and (int(year) % 100 != 0 or int(year) % 400 == 0)
    longest = _DAYS[int(month) - 1] if is_leap or int(month) != 2 else 28  # noqa: PLR2004
    return 1 <= int(day) <= longest


def is_hour(text: str) -> bool:
    return bool(_ONE_OR_TWO_DIGITS.fullmatch(text)) and int(text) < _HOURS


def is_minute(text: str) -> bool:
    return bool(_TWO_DIGITS.fullmatch(text)) and int(text) < _SIXTY


def _year_last(match: re.Match[str]) -> DateForm | None:
    """Read a day before or after its month; where both would do, dots mean that it is before."""
    first, separator, second, year = match.groups()
    forms = [
        (form, is_day(year, month, day))
        for form, month, day in (
            ("mm{0}dd{0}yyyy", first, second),
            ("dd{0}mm{0}yyyy", second, first),
        )
    ]
    if separator == ".":
        forms.reverse()
    for form, fits in forms:
        if fits:
            return DateForm("date", form.format(separator), is_compact=False)
    return None


def _stamp(match: re.Match[str]) -> DateForm | None:
    year, separator, month, day, gap, hour, between, minute, second, zone = match.groups()
    if not is_day(year, month, day):
        return None
    form = f"yyyy{separator}mm{separator}dd"
    if hour is None:
        return DateForm("date", form, is_compact=not separator)
    if (separator and not gap) or not is_hour(hour):
        return None
    if any(part is not None and not is_minute(part) for part in (minute, second)):
        return None
    form += f"{gap}hh"
    form += "" if minute is None else f"{between}mi"
    form += "" if second is None else f"{between}ss"
    key = "hour" if minute is None else "time"
    return DateForm(key, form + zone, is_compact=not (separator or gap or between or zone))
