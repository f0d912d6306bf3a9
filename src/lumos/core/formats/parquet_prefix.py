"""The part of a Parquet footer that spells its schema, byte for byte.

A footer begins with its version and then its schema. Two that begin with the same bytes up to the
end of the schema have the same one; to compare bytes is quicker than to write a schema as text.
"""

from __future__ import annotations

from typing import Final

_I32, _LIST, _STRUCT = 5, 9, 12
_VERSION_FIELD: Final = 1 << 4 | _I32
_SCHEMA_FIELD: Final = 1 << 4 | _LIST
_LONG_LIST = 15
_KNOWN_BY: Final = 64
"""So many bytes differ between most schemas."""
_MOST_ALIKE: Final = 32
_MOST_BYTES: Final = 8 * 1024 * 1024


class KnownPrefixes:
    """The beginnings of footers that were met before."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[bytes]] = {}
        self._bytes = 0

    def of(self, footer: bytes) -> bytes | None:
        """Return the bytes of a footer up to the end of its schema; None where it is unusual."""
        alike = self._known.get(footer[:_KNOWN_BY])
        for place, known in enumerate(alike or ()):
            if footer.startswith(known):
                if place and alike:
                    alike.insert(0, alike.pop(place))
                return known
        prefix = _prefix(footer)
        if prefix is not None:
            self._remember(prefix, footer[:_KNOWN_BY])
        return prefix

    def _remember(self, prefix: bytes, begin: bytes) -> None:
        self._bytes += len(prefix)
        if self._bytes > _MOST_BYTES:
            self._known.clear()
            self._bytes = len(prefix)
        alike = self._known.setdefault(begin, [])
        alike.insert(0, prefix)
        del alike[_MOST_ALIKE:]


def _prefix(footer: bytes) -> bytes | None:
    try:
        if footer[0] != _VERSION_FIELD:
            return None
        place = _after_number(footer, 1)
        if footer[place] != _SCHEMA_FIELD:
            return None
        return footer[: _after_value(footer, place + 1, _LIST)]
    except (IndexError, _UnusualError, RecursionError):
        return None


class _UnusualError(Exception):
    """The bytes are not what the compact protocol of Thrift allows."""


def _after_number(data: bytes, place: int) -> int:
    while data[place] & 0x80:
        place += 1
    return place + 1


def _number(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while data[place] & 0x80:
        value |= (data[place] & 0x7F) << shift
        shift += 7
        place += 1
    return value | data[place] << shift, place + 1


def _after_struct(data: bytes, place: int) -> int:
    while head := data[place]:
        place += 1
        if not head >> 4:  # the number of the field follows
            place = _after_number(data, place)
        place = _after_value(data, place, head & 0x0F)
    return place + 1


def _after_value(data: bytes, place: int, kind: int) -> int:
    """Return where a value ends; schemas hold numbers, text, lists and structs only."""
    match kind:
        case 1 | 2:  # true and false have no value
            return place
        case 3:
            return place + 1
        case 4 | 5 | 6:
            return _after_number(data, place)
        case 8:
            size, place = _number(data, place)
            return place + size
        case 9:
            head = data[place]
            size, place = head >> 4, place + 1
            if size == _LONG_LIST:
                size, place = _number(data, place)
            if head & 0x0F != _STRUCT:
                raise _UnusualError
            for _ in range(size):
                place = _after_struct(data, place)
            return place
        case 12:
            return _after_struct(data, place)
    raise _UnusualError
