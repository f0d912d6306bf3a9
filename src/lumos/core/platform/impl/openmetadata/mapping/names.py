"""Names in OpenMetadata: what it accepts, how a path of them is quoted, and where a URN lies.

A name that OpenMetadata refuses is replaced by one of letters and a digest, and the real one is
kept in the stash. Everything here is a function of its arguments, so that a dataset is found by
its URN alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from lumos.core.models import Urn

OWN: Final = "lumos"
"""The classification, glossary and service that Lumos keeps its own things under."""
FILLER: Final = "default"
"""Stands for a level that a URN does not have."""
LONGEST_NAME: Final = 256
_LONGEST_USER: Final = 64
_TABLE_LEVELS: Final = 3
_BELOW_SERVICE: Final = 2
VERBATIM: Final = "openmetadata"
"""The platform of URNs that are made of a type and a fully qualified name."""
_MADE_UP = re.compile(r".*~[0-9a-f]{16}\Z", re.DOTALL)
_REFUSED = re.compile(r'::|[>"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]')
_RESERVED_START: Final = "__reserved__"
_RESERVED: Final = {
    "::": "__reserved__colon__",
    ">": "__reserved__arrow__",
    '"': "__reserved__quote__",
}
"""How OpenMetadata's own ingestion spells what a name may not have."""
_ODD = re.compile(r"[^0-9A-Za-z_-]+")
_USER = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\Z")
_FILE_PLATFORMS: Final = frozenset(
    {"s3", "gcs", "gs", "azure", "abfs", "adls", "hdfs", "file", "files", "local", "sftp", "minio"}
)

EntityType = Literal["table", "container"]


class Place(NamedTuple):
    """Where a dataset lies in OpenMetadata: the type of its entity, and the names down to it."""

    type: EntityType
    path: tuple[str, ...]

    @property
    def fqn(self) -> str:
        return fqn(self.path)


def accepted(name: str) -> bool:
    """Return whether OpenMetadata keeps a name as it is."""
    return _is_name(name) and _RESERVED_START not in name


def entity_name(name: str) -> str:
    """Return the name itself, or one that stands for it where it would be refused.

    Characters for which OpenMetadata's own ingestion has words are spelled out as it does.
    """
    if accepted(name):
        return name
    spelled = name
    for refused, word in _RESERVED.items():
        spelled = spelled.replace(refused, word)
    fits = _RESERVED_START not in name and _is_name(spelled) and decoded(spelled) == name
    return spelled if fits else _made_up(name)


def decoded(name: str) -> str:
    """Return a name with the characters that are spelled out in it."""
    if _RESERVED_START in name:
        for refused, word in _RESERVED.items():
            name = name.replace(word, refused)
    return name


def _is_name(name: str) -> bool:
    return (
        0 < len(name) <= LONGEST_NAME
        and name == name.strip()
        and not _REFUSED.search(name)
        and not _MADE_UP.match(name)
    )


def user_name(name: str) -> str:
    """Return a name for a user: OpenMetadata takes short ones in lower case only."""
    plain = len(name) <= _LONGEST_USER and _USER.match(name) and accepted(name)
    return name if plain else _made_up(name).lower().replace("~", "--")


def term_stand_in(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return where a term lies whose name another term of its glossary has already."""
    return (OWN, _made_up(".".join(path)))


def is_made_up(name: str) -> bool:
    """Return whether a name stands for one that OpenMetadata refuses."""
    return bool(_MADE_UP.match(name))


def fqn(path: Iterable[str]) -> str:
    """Return the fully qualified name of a path; a part with a dot is quoted."""
    return ".".join(f'"{part}"' if "." in part else part for part in path)


def path_of(name: str) -> tuple[str, ...]:
    """Return the parts of a fully qualified name, unquoted."""
    parts: list[str] = []
    rest = name
    while rest:
        if rest.startswith('"') and '"' in rest[1:]:
            part, _, rest = rest[1:].partition('"')
            rest = rest.removeprefix(".")
        else:
            part, _, rest = rest.partition(".")
        parts.append(part)
    return tuple(parts)


def place_of(urn: Urn) -> Place:
    """Return where the dataset of a URN lies: files in containers, all else in tables."""
    parts = urn.parts
    if urn.platform == VERBATIM and (verbatim := _verbatim_place(urn)):
        return verbatim
    if urn.platform in _FILE_PLATFORMS:
        first, rest = parts[0], parts[1:]
        names = (entity_name(first), _joined(rest)) if rest else (entity_name(first),)
        return Place("container", (urn.platform, *names))
    *above, name = parts
    schema = _level(above.pop(), lowest=not above) if above else FILLER
    database = _level_path(above) if above else FILLER
    return Place("table", (urn.platform, database, schema, entity_name(name)))


def urn_of(type_: str, name: str) -> Urn | None:
    """Return the URN whose place has this name; None where only the stash has it."""
    service, *path = path_of(name)
    if not path or not all(path) or any(map(is_made_up, path)):
        return None
    if type_ not in {"table", "container"}:
        return None
    parts = _parts(type_, path) if _is_platform(service) else []
    if type_ == "table":
        parts = [decoded(part) for part in parts]
    return Urn.of(service, *parts) if all(parts) and parts else verbatim_urn(type_, name)


def verbatim_urn(type_: str, name: str) -> Urn:
    """Return a URN for what only OpenMetadata can place, such as a service named `My Warehouse`."""
    return Urn.of(VERBATIM, type_, *path_of(name))


def nested_place(urn: Urn) -> Place | None:
    """Return where a container lies that others put into containers within containers."""
    parts = urn.parts
    if urn.platform not in _FILE_PLATFORMS or len(parts) <= _BELOW_SERVICE:
        return None
    return Place("container", (urn.platform, *parts)) if all(map(accepted, parts)) else None


def job_urn(name: str) -> Urn | None:
    """Return the URN of the job that the pipeline of this name stands for."""
    service, *path = path_of(name)
    parts = [part for each in path for part in each.split("/")]
    if not parts or not all(parts):
        return None
    return Urn.of(service, *parts) if _is_platform(service) else verbatim_urn("pipeline", name)


def _verbatim_place(urn: Urn) -> Place | None:
    type_, *path = urn.parts
    if len(path) < _BELOW_SERVICE or urn_of(type_, fqn(path)) != urn:
        return None
    return Place("table" if type_ == "table" else "container", tuple(path))


def _parts(type_: str, path: list[str]) -> list[str]:
    """Return the parts of a URN, none where they do not lead back to the path."""
    if type_ == "container":
        *above, last = path
        nested = len(above) > 1 and any("/" in name for name in path)
        return [] if nested else [*above, *(last.split("/") if above else (last,))]
    if len(path) != _TABLE_LEVELS:
        return []
    database, schema, table = path
    levels = [] if database == FILLER else database.split("/")
    levels += [] if schema == FILLER and not levels else [schema]
    return [*levels, table]


def pipeline_path(urn: Urn) -> tuple[str, str]:
    """Return service and name of the pipeline that stands for a job."""
    service, *path = urn.parts[1:] or ("",)
    if path and job_urn(fqn((service, *path))) == urn:
        return service, _joined(path)
    return urn.platform, _joined(urn.parts)


def levels_of(name: str, *, most: int | None = None) -> tuple[str, ...] | None:
    """Read dots in the name of a tag, term or domain as levels, where each can be one."""
    parts = tuple(name.split("."))
    fits = len(parts) > 1 and (most is None or len(parts) <= most)
    if fits and parts[0] != OWN and all(accepted(part) and '"' not in part for part in parts):
        return parts
    return None


def label_path(name: str, *, most: int | None = None) -> tuple[str, ...]:
    """Return the path of a tag or term: `PII.Sensitive` by its levels, `gold` among Lumos's own."""
    return levels_of(name, most=most) or (OWN, entity_name(name))


def label_name(path: tuple[str, ...]) -> str:
    """Return how Lumos calls the tag or term of a path."""
    return ".".join(map(decoded, path[1:] if path[0] == OWN else path))


def _made_up(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_ODD.sub('_', name)[:40].strip('_')}~{digest}"


def _joined(parts: Iterable[str]) -> str:
    """Return one name for several parts; it can be split again unless it is made up."""
    given = tuple(parts)
    text = "/".join(given)
    plain = all(part and "/" not in part for part in given) and accepted(text)
    return text if plain else _made_up("\0".join(given))


def _level(name: str, *, lowest: bool) -> str:
    confusable = lowest and name == FILLER
    return _made_up(name) if confusable else entity_name(name)


def _level_path(parts: list[str]) -> str:
    name = _joined(parts)
    return _made_up(name) if name == FILLER else name


def _is_platform(service: str) -> bool:
    return bool(re.match(r"[a-z][a-z0-9_.-]*\Z", service))
