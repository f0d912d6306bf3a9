"""What the name of a file says: format, codec, and the dataset name without its numbers and dates.

Only the name is looked at, so every file is judged alone and always the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

_FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "parquet": "parquet",
        "parq": "parquet",
        "pq": "parquet",
        "csv": "csv",
        "tsv": "csv",
        "tab": "csv",
        "psv": "csv",
        "json": "json",
        "jsonl": "json",
        "ndjson": "json",
        "jsonlines": "json",
        "geojson": "json",
        "avro": "avro",
        "orc": "orc",
        "arrow": "arrow",
        "feather": "arrow",
        "ipc": "arrow",
        "xml": "xml",
        "xlsx": "excel",
        "xls": "excel",
        "txt": "text",
        "text": "text",
        "dat": "text",
        "log": "text",
    }
)
"""The format that each extension stands for; only a hint, since the bytes decide."""

_CODECS: Final = frozenset(
    {
        "gz", "gzip", "bz2", "bzip2", "zst", "zstd", "snappy", "sz", "lz4", "lzo", "xz", "lzma",
        "br", "brotli", "deflate", "z", "zlib", "zip", "encrypted",
    }
)  # fmt: skip
UNKNOWN: Final = "unknown"
"""Stands where a name needs a format that nobody knows."""

# No dataset name ends like this, so that `.csv` can be appended to distinguish two datasets.
_NEVER_LAST = frozenset(
    {*_FORMATS, *_FORMATS.values(), "delta", "iceberg", "hudi", "tfrecord", "tfrecords", UNKNOWN}
)
_SEPARATORS = "-_. +~"

_YEAR = r"(?:19|20)\d\d"
_MONTH = r"(?:0[1-9]|1[0-2])"
_DAY = r"(?:0[1-9]|[12]\d|3[01])"
_MONTH_NAME = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_TIME = (
    r"(?:[-_T .]?(?:[01]\d|2[0-3])(?:[-_:.h]?[0-5]\d){0,2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
_DATE = (  # its first three groups are separators
    rf"(?:{_YEAR}([-_.]?){_MONTH}(?:\1{_DAY}{_TIME})?"
    rf"|{_YEAR}[-_]?(?:Q[1-4]|W[0-5]\d)|Q[1-4][-_]?{_YEAR}"
    rf"|{_DAY}([-_.]){_MONTH}\2{_YEAR}|{_MONTH}([-_.]){_DAY}\3{_YEAR}"
    rf"|(?:\d{{1,2}}[-_ ]?)?{_MONTH_NAME}[-_ ]?{_YEAR}|{_YEAR}[-_ ]?{_MONTH_NAME}|{_YEAR})"
)
_WHOLE_DAY = rf"{_YEAR}(?P<s>[-_.]?){_MONTH}(?P=s){_DAY}"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_HASH = r"(?=[a-f]*\d)[0-9a-f]{16,}"
_RANDOM = r"(?=(?:[a-z]*+\d++[a-z]++){3})[a-z0-9]{20,}"
_LAST_DATE = re.compile(
    rf"(?:^|[-_. +])(?:[A-Za-z]\w*=)?{_DATE}$|(?<=\D){_YEAR}{_MONTH}{_DAY}$", re.IGNORECASE
)
_FIRST_DATE = re.compile(rf"^{_DATE}[-_. +]+(?=\D)", re.IGNORECASE)
_DATE_WITHIN = re.compile(rf"(?<=\w)[-_. ]{_YEAR}([-_.]?){_MONTH}(?:\1{_DAY})?(?=[-_. ]\D)")
_ID_AFTER_A_NUMBER = re.compile(  # CloudFront, Pub/Sub, Adjust, Datadog
    rf"(?P<before>(?:^|[-_.])(?:{_WHOLE_DAY}{_TIME}|{_UUID}|{_HASH}|\d{{4,}}))"
    r"[-_.](?:(?=[A-Z]*\d+[A-Z])[0-9A-Z]{6,}|(?P<scrambled>[0-9A-Z]{16,}))$",
    re.IGNORECASE,
)
_FIRST_NUMBER = re.compile(r"^\d{10,}[-_.](?=\D|\d+[A-Za-z])")
_SCRAMBLED_SHARE: Final = 0.36
_SHARD = re.compile(
    rf"""(?:
        (?:^|[-_.+ ]) \d+ [-_]of[-_] \d+                # x-00001-of-00010
      | (?:^|[-_.+ ]) (?:part|chunk|shard|split) [-_.]? \d+
      | (?:^|[-_.+ ]) \d{{4}}_part_\d{{2,}}              # Redshift
      | [-_]pane[-_]\d+(?:[-_]last)?                    # Beam
      | [-_][mr][-_]\d{{5}}                             # Hadoop
      | \+\d+\+\d+                                      # topic+partition+offset
      | [-_]\d+[-_]0\d{{9,}}                             # topic-partition-offset
      | (?:_\d{{1,4}}){{3,}}                              # Snowflake
      | _\d{{4}}(?:_\d\d){{5}}_[0-9a-f]{{4,}}_v\d        # usage logs of Google
      | (?:\.\d+){{4,}}                                  # Camus
      | @{{1,2}}\d+                                       # MySQL Shell
      | [-_.]\d\d:\d\d:\d\d-\d\d:\d\d:\d\d               # Zeek
      | [ ]\(\d+\)                                      # a copy
      | \#\d+
      | (?:^|[-_.+]) {_UUID} (?:[-.]c\d+|[-_]\d+)?
      | (?:^|[-_.+]) {_HASH} (?:[-_]\d+)?
      | (?:^|[-_.+ ]) \d{{3,}}
    )$""",
    re.IGNORECASE | re.VERBOSE,
)
# Atomic: a token that fits in two ways must not be tried in both, or long names take for ever.
_MACHINE = rf"(?>{_UUID}|{_HASH}|{_RANDOM}|\d+)"
_MACHINE_AFTER = rf"(?>{_UUID}|{_HASH}|{_RANDOM}|[0-9a-f]{{8,}}|\d+)"
_OF_WRITERS = ("export", "extract", "archive", "dump", "sdc", "flumedata")
"""Words that are names only where they stand alone."""
_NAMELESS = re.compile(
    rf"""(?:
        (?:compacted-)?part[-_](?:[mr][-_])?(?:\d+|{_UUID})(?:[-_.].*)?  # Hadoop, Spark, Flink
      | (?:part|data|file|output|chunk|shard|split|segment|block|batch|partition|object)
        (?:[-_. ]?{_MACHINE}(?:[-_.]{_MACHINE})*)?
      | part\.task_.*                                   # Gobblin
      | \d+\.part                                       # Dask
      | (?:{"|".join(_OF_WRITERS)})(?:[-_.]{_MACHINE})+
      | [0-9a-f]{{8}}-v_\w+_node\d{{4}}-\d+-\d+          # Vertica
      | run-\d+-part-.*                                 # Glue
      | {_MACHINE}(?:[-_.]{_MACHINE_AFTER})*(?:_copy_\d+)?  # Hive, counters, times
      | (?:\d{{6}}_\d+_)?\d{{8}}_\d{{6}}_\d{{5}}_[a-z0-9]{{5}}.*       # Trino
      | [0-9a-f]{{16}}-[0-9a-f]{{8,16}}_\d+_data\.\d+   # Impala
      | bucket[-_]\d+(?:[-_]\d+)*
      | load[0-9a-f]{{8}}                                # AWS DMS
      | ls\.s3\..*                                      # Logstash
      | \d\d-object\w{{8}}                              # Fluent Bit
      | \d\d:\d\d:\d\d_\d\d:\d\d:\d\d_\w+               # Google Cloud Logging
      | \d{{12}}_[a-z-]+_[a-z]{{2}}(?:-[a-z]+)+-\d_.*\d{{8}}T\d{{4}}Z_.*   # logs of AWS
      | [A-Za-z_]\w*=[^=]*                              # a partition that became a file
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_FIREHOSE = re.compile(rf"(.+)-\d{{1,5}}-{_YEAR}(?:-\d\d){{5}}-{_UUID}", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_ORDINAL = re.compile(r"\d\d-(?=[A-Za-z])")
_ROTATED = re.compile(r"(.+)\.\d{1,4}")


_COUNTED = re.compile(r"(?P<stem>.*[^\W\d_])[-_. ]?(?P<number>[0-9]{1,6})", re.DOTALL)
_VERSIONED = re.compile(r"(?:.*[-_. ])?v", re.IGNORECASE)
_GENERIC = re.compile(
    r"(?:data|file|output|object|batch|segment|block)[-_. ]?[0-9]{0,6}|[1-9][0-9]{0,5}",
    re.IGNORECASE,
)
"""Names of which people give one to files that have nothing to do with each other."""
_OF_ONE_WRITER = re.compile(
    rf".*(?:[-_]of[-_]\d+|(?:part|chunk|shard|split)[-_.]?\d+|{_UUID}|{_HASH})(?:[-_.].*)?",
    re.IGNORECASE | re.DOTALL,
)


class Bond(StrEnum):
    """Why a path proposes that a file belongs together with others."""

    COUNTED = "counted"
    """A number of one or two digits, or one right behind the name: `orders_1`, `orders100`."""
    NUMBERED = "numbered"
    """A longer number, or an id."""
    DATED = "dated"
    GENERIC = "generic"
    """A name that says nothing, such as `data2`."""
    PARTITION = "partition"
    """A plain name below `key=value` folders."""


class FileName(NamedTuple):
    """What one file name says."""

    stem: str
    """The dataset's name in it; empty where the file has no meaningful name."""
    format: str | None
    compression: str | None
    numbered: bool
    """The name distinguishes one file of several from the others."""
    dated: bool
    of_writer: bool = False
    """The name is that of the program that wrote the file, which may write all sorts of data."""
    alone: str = ""
    """What the file is called where it has nothing to do with others of its kind."""
    bond: Bond | None = None
    """Why it may belong to others; None where nothing but its path has to be looked at."""


@lru_cache(maxsize=8192)
def read_file_name(name: str) -> FileName:
    """Return what a file name says; any text is a file name."""
    rest, format_, compression = without_extensions(name)
    if match := _ROTATED.fullmatch(rest):  # access.log.1
        bare, inner_format, inner_codec = without_extensions(match[1])
        if bare != match[1]:
            return FileName(
                bare,
                format_ or inner_format,
                compression or inner_codec,
                numbered=True,
                dated=False,
            )
    if _NAMELESS.fullmatch(rest):
        bond = Bond.GENERIC if _GENERIC.fullmatch(rest) else None
        return FileName("", format_, compression, numbered=True, dated=False, alone=rest, bond=bond)
    if match := _FIREHOSE.fullmatch(rest):
        return FileName(match[1], format_, compression, numbered=True, dated=True, of_writer=True)
    stem, dated = _without_numbers(rest)
    bare, inner_format, inner_codec = without_extensions(stem)  # train.csv-00001-of-00010
    format_, compression = format_ or inner_format, compression or inner_codec
    if stem == rest:
        return _counted(rest, format_, compression)
    is_of_writer = bare.lower() in _OF_WRITERS and rest.startswith(bare)
    if not bare or is_of_writer or _NAMELESS.fullmatch(bare):
        return FileName("", format_, compression, numbered=True, dated=dated)
    bond = Bond.DATED if dated else Bond.NUMBERED
    return FileName(
        bare,
        format_,
        compression,
        numbered=True,
        dated=dated,
        alone=rest,
        bond=None if _OF_ONE_WRITER.fullmatch(rest) else bond,
    )


def _counted(rest: str, format_: str | None, compression: str | None) -> FileName:
    """Read a name that may end with a small number; a version is a separate name."""
    match = _COUNTED.fullmatch(rest)
    if match is None or _VERSIONED.fullmatch(match["stem"]):
        return FileName(rest, format_, compression, numbered=False, dated=False)
    return FileName(
        match["stem"],
        format_,
        compression,
        numbered=True,
        dated=False,
        alone=rest,
        bond=Bond.COUNTED,
    )


def without_extensions(name: str) -> tuple[str, str | None, str | None]:
    """Return the name without what it says of format and codec, and those two."""
    format_ = compression = None
    while True:
        stem, dot, extension = name.rpartition(".")
        extension = extension.lower()
        if not dot or not stem:
            return name, format_, compression
        if extension in _CODECS:
            compression = compression or extension
        elif extension in _NEVER_LAST:
            if format_ in (None, "text"):  # x.json.log is JSON
                format_ = _FORMATS.get(extension) or format_
        else:
            return name, format_, compression
        name = stem


def _without_numbers(stem: str) -> tuple[str, bool]:
    """Take dates, shard numbers and random ids off both ends, as often as there are any."""
    dated = False
    while _DIGIT.search(stem):
        if (match := _ID_AFTER_A_NUMBER.search(stem)) and _is_id(match["scrambled"]):
            stem = stem[: match.end("before")]
        elif match := _FIRST_DATE.search(stem):
            stem, dated = stem[match.end() :], True
        elif match := _LAST_DATE.search(stem):
            stem, dated = stem[: match.start()], True
        elif match := _SHARD.search(stem):
            stem = stem[: match.start()]
        elif match := _DATE_WITHIN.search(stem):
            stem, dated = stem[: match.start()] + stem[match.end() :], True
        elif match := (dated and _ORDINAL.match(stem)) or _FIRST_NUMBER.match(stem):
            stem = stem[match.end() :]
        else:
            break
        stem = stem.strip(_SEPARATORS)
    return stem, dated


def _is_id(text: str | None) -> bool:
    """Return whether text is a random id, not joined words: its letters change far more often."""
    if text is None:
        return True
    kinds = ["0" if c.isdigit() else "A" if c.isupper() else "a" for c in text]
    changes = sum(one != other for one, other in pairwise(kinds))
    return changes >= _SCRAMBLED_SHARE * len(text)
