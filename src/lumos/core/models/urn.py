"""The name of anything Lumos knows: `lumos://<platform>/<path…>`, percent-encoded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from typing_extensions import override

from lumos.core.errors import InvalidUrnError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

_SCHEME = "lumos://"
_SAFE = "-._~=@+:,$"
_PLATFORM = re.compile(r"[a-z][a-z0-9_.-]*\Z")
_CANONICAL = re.compile(
    r"lumos://[a-z][a-z0-9_.-]*(/(?!\.{1,2}(/|\Z))([A-Za-z0-9\-._~=@+:,$]|%[0-9A-F]{2})+)+\Z"
)
LONGEST_URN = 2_500
"""The bytes of the longest URN that is stored: the B-tree of PostgreSQL takes keys up to 2,700."""
_DIGEST_DIGITS = 32
_DIGEST = re.compile(rf"~[0-9a-f]{{{_DIGEST_DIGITS}}}\Z")
_SHORTEST_CUT = LONGEST_URN - 20
"""A shortened URN is longer than this: it ends where not one more encoded character fits."""
_DOT_SEGMENTS = {".": "%2E", "..": "%2E%2E"}
_EXAMPLE = "lumos://s3/bucket/raw/events"


class Urn(str):
    """A canonical URN; equal names have equal text, so URNs sort and compare as strings.

    A Unicode name of any kind can be a path part, also one with `/` or an undecodable file name
    as `os.fsdecode` gives it. No part is ever `.` or `..`, and no URN holds a quote or a space.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Read a URN, bringing equivalent spellings to the canonical one.

        Raises:
            InvalidUrnError: the text is not a Lumos URN.
        """
        if isinstance(text, cls):
            return text
        if _CANONICAL.match(text) and _decodes_to_itself(text):
            return super().__new__(cls, text)
        platform, parts = _split(text)
        return super().__new__(cls, _join(platform, parts))

    @classmethod
    def of(cls, platform: str, *parts: str) -> Self:
        """Name something by platform and plain, unencoded path parts."""
        return super().__new__(cls, _join(platform, parts))

    @classmethod
    def canonical(cls, text: str) -> Self:
        """Take text that is known to be a canonical URN: one that was written and not changed."""
        return super().__new__(cls, text)

    @classmethod
    def of_path(cls, platform: str, *parts: str) -> Self:
        """Name something by a path of any length.

        A name that would exceed `LONGEST_URN` is cut after the last character that fits, and ends
        in `~` and the digest of the whole name. So does a name that only looks like that, so that
        no two paths get the same URN.
        """
        whole = _join(platform, parts)
        if len(whole) <= _SHORTEST_CUT:
            return super().__new__(cls, whole)
        if len(whole) <= LONGEST_URN and not _DIGEST.search(whole):
            return super().__new__(cls, whole)
        digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGEST_DIGITS]
        *above, last = _cut(platform, parts, most=LONGEST_URN - 1 - _DIGEST_DIGITS)
        return super().__new__(cls, _join(platform, (*above, f"{last}~{digest}")))

    @property
    def is_shortened(self) -> bool:
        """Whether the path was cut and the URN ends in a digest, as `of_path` does it."""
        return len(self) > _SHORTEST_CUT and _DIGEST.search(self) is not None

    def is_within(self, platform: str, *folder: str) -> bool:
        """Return whether the path begins with a folder, as far as a shortened path shows it."""
        if platform != self.platform:
            return False
        parts = self.parts
        if not self.is_shortened:
            return parts[: len(folder)] == folder
        *above, last = (*parts[:-1], _DIGEST.sub("", parts[-1]))
        if len(above) >= len(folder):
            return tuple(above[: len(folder)]) == folder
        return tuple(above) == folder[: len(above)] and folder[len(above)].startswith(last)

    @property
    def platform(self) -> str:
        return self[len(_SCHEME) :].split("/", 1)[0]

    @property
    def parts(self) -> tuple[str, ...]:
        """The path parts as plain text."""
        return tuple(_decode(part) for part in self[len(_SCHEME) :].split("/")[1:])

    @property
    def name(self) -> str:
        """The last path part as plain text."""
        return _decode(self.rsplit("/", 1)[1])

    @override
    def __repr__(self) -> str:
        return f"Urn({str.__repr__(self)})"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls._validated,
            core_schema.str_schema(),
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": "^lumos://[a-z][a-z0-9_.-]*/", "examples": [_EXAMPLE]}

    @classmethod
    def _validated(cls, text: str) -> Self:
        try:
            return cls(text)
        except InvalidUrnError as error:
            raise PydanticCustomError("urn", "{reason}", {"reason": error.message}) from None


def _decodes_to_itself(text: str) -> bool:
    """Return whether no needlessly encoded character is left in canonical-looking text."""
    return "%" not in text or _join(*_split(text)) == text


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    if not text.startswith(_SCHEME):
        raise InvalidUrnError("a URN begins with lumos://", hint=f"for example {_EXAMPLE}")
    platform, *parts = text.removeprefix(_SCHEME).split("/")
    return platform, tuple(_decode(part) for part in parts)


def _join(platform: str, parts: Iterable[str]) -> str:
    if not _PLATFORM.match(platform):
        raise InvalidUrnError(
            "the platform of a URN is lower-case letters, digits, '.', '_' or '-'",
            hint=f"for example {_EXAMPLE}",
        )
    encoded = [_encode(part) for part in parts]
    if not encoded or not all(encoded):
        raise InvalidUrnError(
            "a URN has a path of one or more non-empty parts", hint=f"for example {_EXAMPLE}"
        )
    return "/".join((_SCHEME + platform, *encoded))


def _cut(platform: str, parts: Iterable[str], *, most: int) -> list[str]:
    """Return the longest beginning of a path whose URN has at most so many bytes."""
    left = most - len(_SCHEME) - len(platform)
    kept: list[str] = []
    for part in parts:
        left -= 1
        size = len(_encode(part))
        if size <= left:
            kept.append(part)
            left -= size
            continue
        beginning = _beginning(part, left)
        return [*kept, beginning] if beginning else kept
    return kept


def _beginning(part: str, most: int) -> str:
    """Return as many characters of a part as fit into so many bytes once they are encoded."""
    for end, character in enumerate(part):
        most -= len(quote_from_bytes(character.encode("utf-8", "surrogateescape"), safe=_SAFE))
        if most < 0:
            return part[:end]
    return part


def _encode(part: str) -> str:
    try:
        raw = part.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidUrnError("a URN part holds a code point that is no character") from None
    return _DOT_SEGMENTS.get(part) or quote_from_bytes(raw, safe=_SAFE)


def _decode(part: str) -> str:
    return unquote_to_bytes(part).decode("utf-8", "surrogateescape")
