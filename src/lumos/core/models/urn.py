"""The name of anything Lumos knows: `lumos://<platform>/<path…>`, percent-encoded."""

from __future__ import annotations

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
    """Tell whether no needlessly encoded character is left in canonical-looking text."""
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


def _encode(part: str) -> str:
    try:
        raw = part.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidUrnError("a URN part holds a code point that is no character") from None
    return _DOT_SEGMENTS.get(part) or quote_from_bytes(raw, safe=_SAFE)


def _decode(part: str) -> str:
    return unquote_to_bytes(part).decode("utf-8", "surrogateescape")
