"""What DataHub calls the things that Lumos knows, and the way back.

The way there is a function of the Lumos URN alone. The way back is exact for every URN of DataHub:
one that no plain Lumos URN leads to is kept whole as `lumos://datahub/urn:li:…`. Only URNs that
DataHub finds too long end in a digest; the full name is stored with the entity.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from lumos.core.errors import InvalidUrnError
from lumos.core.models.urn import Urn

PLATFORM: Final = "datahub"
DEFAULT_ENVIRONMENT: Final = "PROD"
LONGEST_URN: Final = 480
"""DataHub takes 512 bytes after URL encoding; a column's URN needs some of them."""
_BY_PATH: Final = frozenset(
    {"s3", "gcs", "abs", "adls", "azure", "hdfs", "local", "file", "dbfs", "kafka", "pulsar"}
)
"""Platforms in whose names a dot is a letter like any other."""
_ENVIRONMENT_PART: Final = re.compile(r"env=([A-Z][A-Z_]*)\Z")
_DATASET: Final = re.compile(
    r"urn:li:dataset:\(urn:li:dataPlatform:([^,()]+),(.*),([A-Z][A-Z_]*)\)\Z", re.DOTALL
)
_ANY_DATASET: Final = re.compile(
    r"urn:li:dataset:\(urn:li:dataPlatform:[^,()]+,.*,[^,()]+\)\Z", re.DOTALL
)
"""Also one in an environment that no plain Lumos URN can name."""
_JOB: Final = re.compile(
    r"urn:li:dataJob:\(urn:li:dataFlow:\(([^,()]+),(.*),([^,()]+)\),(.*)\)\Z", re.DOTALL
)
_UNSAFE: Final = re.compile(r"[%,()\s\x00-\x1f\x7f-\xa0\u2028-\u202e\u241f\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"(?:%[0-9A-F]{2})+")
_DIGEST: Final = re.compile(r"~[0-9a-f]{64}\Z")
_NO_FLOW: Final = "_"


@lru_cache(maxsize=4096)
def dataset_urn(urn: str, *, environment: str = DEFAULT_ENVIRONMENT) -> str:
    """Return what DataHub calls a dataset."""
    name = Urn(urn)
    parts = name.parts
    if name.platform == PLATFORM and len(parts) == 1 and _ANY_DATASET.match(parts[0]):
        return parts[0]
    given = _ENVIRONMENT_PART.match(parts[0]) if len(parts) > 1 else None
    if given:
        environment, parts = given[1], parts[1:]
    separator = _separator(name.platform)
    path = separator.join(escaped(part, more=separator) for part in parts)
    platform = f"urn:li:dataPlatform:{name.platform}"
    return _fitted("urn:li:dataset:({},{},{})", platform, path, environment, identity=name)


def lumos_dataset_urn(urn: str, *, environment: str = DEFAULT_ENVIRONMENT) -> Urn:
    """Return what Lumos calls a dataset of DataHub.

    Raises:
        InvalidUrnError: the text names no dataset.
    """
    if _DATASET.match(urn) is None and _ANY_DATASET.match(urn):
        return Urn.of(PLATFORM, urn)
    platform, parts, given = parts_of(urn)
    if given != environment:
        parts.insert(0, f"env={given}")
    try:
        plain = Urn.of(platform, *parts)
    except InvalidUrnError:
        return Urn.of(PLATFORM, urn)
    same = dataset_urn(plain, environment=environment) == urn
    return plain if same else Urn.of(PLATFORM, urn)


def parts_of(urn: str) -> tuple[str, list[str], str]:
    """Return the platform, the parts of the name and the environment of a dataset of DataHub.

    Raises:
        InvalidUrnError: the text names no dataset.
    """
    match = _DATASET.match(urn)
    if match is None:
        raise InvalidUrnError("DataHub gave a name of a dataset that is none")
    platform, path, environment = match.groups()
    parts = [unescaped(part) for part in path.split(_separator(platform))]
    return platform, parts, environment


def job_urn(urn: str, *, environment: str = DEFAULT_ENVIRONMENT) -> str:
    """Return what DataHub calls a job."""
    name = Urn(urn)
    parts = name.parts
    if name.platform == PLATFORM and len(parts) == 1 and _JOB.match(parts[0]):
        return parts[0]
    given = _ENVIRONMENT_PART.match(parts[0]) if len(parts) > 1 else None
    if given:
        environment, parts = given[1], parts[1:]
    flow = "/".join(_flow_part(part) for part in parts[:-1]) or _NO_FLOW
    pattern = "urn:li:dataJob:(urn:li:dataFlow:({},{},{}),{})"
    whole = pattern.format(name.platform, flow, environment, escaped(parts[-1], more="/"))
    if _length(whole) <= LONGEST_URN:
        return whole
    return pattern.format(name.platform, _NO_FLOW, environment, f"~{_digest(name)}")


def lumos_job_urn(urn: str, *, environment: str = DEFAULT_ENVIRONMENT) -> Urn:
    """Return what Lumos calls a job of DataHub.

    Raises:
        InvalidUrnError: the text names no job.
    """
    match = _JOB.match(urn)
    if match is None:
        raise InvalidUrnError("DataHub gave a name of a job that is none")
    platform, flow, given, job = match.groups()
    parts = [] if flow == _NO_FLOW else [unescaped(part) for part in flow.split("/")]
    parts.append(unescaped(job))
    if given != environment:
        parts.insert(0, f"env={given}")
    try:
        plain = Urn.of(platform, *parts)
    except InvalidUrnError:
        return Urn.of(PLATFORM, urn)
    return plain if job_urn(plain, environment=environment) == urn else Urn.of(PLATFORM, urn)


def flow_urn(job: str) -> str:
    """Return the flow that a job of DataHub belongs to."""
    return job[len("urn:li:dataJob:(") : job.index("),") + 1]


def simple_urn(kind: str, name: str) -> str:
    """Return what DataHub calls a tag, term, domain, user, group or type of owner."""
    whole = f"urn:li:{kind}:{escaped(name)}"
    if _length(whole) <= LONGEST_URN:
        return whole
    return f"urn:li:{kind}:~{_digest(name)}"


def simple_name(urn: str) -> str:
    """Return the name within a URN of DataHub that has no parts."""
    return unescaped(urn.split(":", 3)[3]) if urn.count(":") >= 3 else urn  # noqa: PLR2004


def is_shortened(urn: str) -> bool:
    """Return whether a name was too long for DataHub and cannot be had back from the URN."""
    return bool(_DIGEST.search(urn.rstrip(")").rsplit(",", 1)[0])) or bool(
        _DIGEST.search(urn.rstrip(")"))
    )


def field_urn(dataset: str, field_path: str) -> str:
    """Return what DataHub calls a column."""
    return f"urn:li:schemaField:({dataset},{field_path})"


def field_of(urn: str) -> tuple[str, str] | None:
    """Return the dataset and the field path within a column's URN."""
    if not urn.startswith("urn:li:schemaField:(urn:li:dataset:("):
        return None
    inner = urn[len("urn:li:schemaField:(") : -1]
    end = re.search(r",[A-Z][A-Z_]*\),", inner)
    return (inner[: end.end() - 1], inner[end.end() :]) if end else None


def escaped(text: str, *, more: str = "") -> str:
    """Return text in which no character means something to a URN of DataHub."""
    safe = _UNSAFE.sub(_hexadecimal, text)
    return safe.replace(more, f"%{ord(more):02X}") if more else safe


def unescaped(text: str) -> str:
    """Return the text that was escaped."""
    return _ESCAPE.sub(
        lambda match: unquote_to_bytes(match[0]).decode("utf-8", "surrogateescape"), text
    )


def _hexadecimal(match: re.Match[str]) -> str:
    raw = match[0].encode("utf-8", "surrogateescape")
    return "".join(f"%{byte:02X}" for byte in raw)


def _flow_part(part: str) -> str:
    return "%5F" if part == _NO_FLOW else escaped(part, more="/")


def _separator(platform: str) -> str:
    return "/" if platform in _BY_PATH else "."


def _fitted(pattern: str, platform: str, path: str, environment: str, *, identity: str) -> str:
    whole = pattern.format(platform, path, environment)
    if _length(whole) <= LONGEST_URN:
        return whole
    return pattern.format(platform, f"~{_digest(identity)}", environment)


def _length(text: str) -> int:
    most = len(text) * (3 if text.isascii() else 12)  # of characters as URLs spell them
    return most if most <= LONGEST_URN else len(quote(text, safe=""))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
