"""Layouts of tools whose paths can only be read by knowing the tool.

Each has a mark that nothing else has, such as the folder `AWSLogs`, so that a path is still
judged alone.
"""

from __future__ import annotations

import re

from lumos.feature.discovery.folders import Folders, Segment

_AWS = re.compile(
    r"(?P<above>(?:.*/)?AWSLogs)/(?:(?P<organization>o-[a-z0-9]+)/)?(?P<account>\d{12})/"
    r"(?P<service>[A-Za-z][A-Za-z-]*)/(?:(?P<region>[a-z]{2}(?:-[a-z]+)+-\d|global)|(?P<vpc>vpc-[0-9a-f]+))/"
    r"(?:(?P<web_acl>[^/]*[^/\d][^/]*)/)?(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})/"
    r"(?:(?P<hour>\d{2})/(?:(?P<minute>\d{2})/)?)?(?:(?P<kind>[A-Za-z]+)/)?"
    r"(?:[^/]*_(?P<log>connectionlog|userlog|useractivitylog)_)?[^/]+"
)
_AZURE = re.compile(
    r"(?P<above>(?:.*/)?[^/]+)/resourceId=/(?P<resource>.+)/"
    r"y=(?P<year>\d{4})/m=(?P<month>\d{2})/d=(?P<day>\d{2})/h=(?P<hour>\d{2})/m=(?P<minute>\d{2})"
    r"/[^/]+"
)
_ICEBERG_FILE = re.compile(
    r"\d{5}-\d+-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?:-\d+)?(?:-deletes)?\.\w+"
)
_ICEBERG_HASH = re.compile(r"(?:[01]{4}/){3}[01]{8}/|[0-9a-zA-Z_-]{8}/(?=[^/]+=)")
_AWS_PARTITIONS = (
    ("organization", "{organization}"), ("account", "{account}"), ("service", ""),
    ("region", "{region}"), ("vpc", "{vpc}"), ("web_acl", "{web_acl}"),
    ("year", "{yyyy}"), ("month", "{mm}"), ("day", "{dd}"), ("hour", "{hh}"), ("minute", "{mi}"),
)  # fmt: skip
_AZURE_DATE = (
    ("year", "y={yyyy}"), ("month", "m={mm}"), ("day", "d={dd}"), ("hour", "h={hh}"),
    ("minute", "m={mi}"),
)  # fmt: skip
_IN_DATE = frozenset({"year", "month", "day", "hour", "minute"})


def known_folders(path: str) -> Folders | None:
    """Return what the folders of a known tool say; None where the path shows no such tool."""
    if "AWSLogs/" in path and (match := _AWS.fullmatch(path)):
        return _of_aws(match)
    if "/resourceId=/" in path and (match := _AZURE.fullmatch(path)):
        return _of_azure(match)
    return None


def without_hashes(parent: str, file: str) -> str:
    """Return the folder of a file without those that Iceberg adds to spread its files."""
    head, mark, rest = f"{parent}/".rpartition("/data/")
    if not mark or not _ICEBERG_FILE.fullmatch(file):
        return parent
    return f"{head}/data/{_ICEBERG_HASH.sub('', rest, count=1)}".rstrip("/")


def _of_aws(match: re.Match[str]) -> Folders:
    above = match["above"].split("/")
    kind = [match["kind"]] if match["kind"] else []
    shown, segments = [], []
    for key, form in _AWS_PARTITIONS:
        value = match[key]
        if value is None:
            continue
        shown.append(form or value)
        if form:
            segments.append(Segment(key, value, form, in_date=key in _IN_DATE))
    found = Folders.of(
        [*above, match["service"], *kind, *([match["log"]] if match["log"] else [])],
        above,
        template="/".join([*shown, *kind]),
        segments=segments,
    )
    account = found.keys.index("account")  # its number may begin with a zero
    types = (*found.types[:account], "STRING", *found.types[account + 1 :])
    return found._replace(types=types)


def _of_azure(match: re.Match[str]) -> Folders:
    above = match["above"].split("/")
    segments = [
        Segment("resourceId", match["resource"], "resourceId={resourceId}", in_date=False),
        *(Segment(form[0], match[key], form, in_date=True) for key, form in _AZURE_DATE),
    ]
    template = "/".join(segment.template for segment in segments)
    return Folders.of(above, above, template=template, segments=segments)
