"""Profiles: whom a change is judged for, by name, alias and `_transitive` form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType

from typing_extensions import override

from lumos.core.errors import UnknownNameError

DEFAULT_PROFILE = "lumos"

PROFILES: Mapping[str, str] = MappingProxyType(
    {
        "lumos": "everyone, by the rules of Lumos: what breaks a reader or a writer is breaking",
        "readers": "those who read: old readers get on with new data",
        "writers": "those who write: what old writers write is still accepted",
        "full": "readers and writers: the worse of both counts",
        "iceberg": "tables of Apache Iceberg: what the table cannot do in place is breaking",
        "iceberg_v3": "the same for tables of format version 3, which promote more types",
        "delta": "tables of Delta Lake: what the table cannot do in place is breaking",
        "avro": "messages of Apache Avro: new readers can resolve what old writers wrote",
    }
)
"""What each profile protects."""

BASES: Mapping[str, str] = MappingProxyType({"iceberg_v3": "iceberg"})
"""The profile that another one refines; all others refine `lumos`."""

CONFLUENT_ALIASES: Mapping[str, str] = MappingProxyType(
    {"forward": "readers", "backward": "writers", "full": "full"}
)
"""The names of Confluent's schema registry; `BACKWARD` there protects new readers of old data."""

_TRANSITIVE = "_transitive"


@dataclass(frozen=True, slots=True)
class Profile:
    """Whom a change is judged for, and whether against every version that is kept."""

    name: str
    transitive: bool = False

    @override
    def __str__(self) -> str:
        return self.name + (_TRANSITIVE if self.transitive else "")


@lru_cache(maxsize=64)
def resolve_profile(name: str) -> Profile:
    """Return the profile of a name or alias, in capitals or not: `BACKWARD_TRANSITIVE`.

    Raises:
        UnknownNameError: there is no such profile.
    """
    wanted = name.strip().lower().replace("-", "_")
    plain = wanted.removesuffix(_TRANSITIVE)
    known = CONFLUENT_ALIASES.get(plain, plain)
    if known not in PROFILES:
        near = get_close_matches(plain, (*PROFILES, *CONFLUENT_ALIASES), n=1)
        raise UnknownNameError(
            "there is no such profile of change rules",
            hint=f"did you mean {near[0]}?" if near else f"one of {', '.join(PROFILES)}",
        )
    return Profile(known, transitive=plain != wanted)
