"""Walks over the bytes of a protobuf message, without knowing what it means."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

_MORE_FOLLOWS = 0x80
_LONGEST_VARINT = 63


class Wire(IntEnum):
    """How protobuf writes a value."""

    VARINT = 0
    EIGHT_BYTES = 1
    COUNTED = 2
    FOUR_BYTES = 5


_WITH_NUMBER = (Wire.VARINT, Wire.COUNTED)


class DamagedMessageError(ValueError):
    """The bytes are no protobuf message."""


def parts_of(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield each value of a message with its number: a varint as it is, any other as its bytes.

    Raises:
        DamagedMessageError: the bytes are no message.
    """
    for number, values in values_of(message).items():
        for value in values:
            yield number, value


def values_of(message: bytes) -> dict[int, list[int | bytes]]:
    """Return the values of a message by their numbers: varints as they are, others as bytes.

    Raises:
        DamagedMessageError: the bytes are no message.
    """
    found: dict[int, list[int | bytes]] = {}
    position, end = 0, len(message)
    try:
        while position < end:
            key, position = message[position], position + 1
            if key >= _MORE_FOLLOWS:
                key, position = varint(message, position - 1)
            start = position
            value, position = message[position], position + 1
            if value >= _MORE_FOLLOWS and key & 7 in _WITH_NUMBER:
                value, position = varint(message, start)
            if key & 7:
                start, position = _span(key & 7, start, position, value)
                if position > end:
                    raise DamagedMessageError
                found.setdefault(key >> 3, []).append(message[start:position])
            else:
                found.setdefault(key >> 3, []).append(value)
    except IndexError:
        raise DamagedMessageError from None
    return found


def numbers_of(message: bytes) -> dict[int, int]:
    """Return the plain numbers of a message, without looking at anything else in it.

    Raises:
        DamagedMessageError: the bytes are no message.
    """
    found: dict[int, int] = {}
    position, end = 0, len(message)
    try:
        while position < end:
            key, position = message[position], position + 1
            if key >= _MORE_FOLLOWS:
                key, position = varint(message, position - 1)
            start = position
            value, position = message[position], position + 1
            if value >= _MORE_FOLLOWS and key & 7 in _WITH_NUMBER:
                value, position = varint(message, start)
            if key & 7:
                _, position = _span(key & 7, start, position, value)
            else:
                found[key >> 3] = value
    except IndexError:
        raise DamagedMessageError from None
    if position != end:
        raise DamagedMessageError
    return found


def _span(wire: int, start: int, position: int, length: int) -> tuple[int, int]:
    """Return where the bytes of a value begin and end."""
    if wire == Wire.COUNTED:
        return position, position + length
    if wire == Wire.EIGHT_BYTES:
        return start, start + 8
    if wire == Wire.FOUR_BYTES:
        return start, start + 4
    raise DamagedMessageError


def varint(message: bytes, position: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it.

    Raises:
        IndexError: the message ends within the number.
        DamagedMessageError: the number has no end.
    """
    number = shift = 0
    while True:
        byte = message[position]
        position += 1
        number |= (byte & ~_MORE_FOLLOWS) << shift
        if byte < _MORE_FOLLOWS:
            return number, position
        shift += 7
        if shift > _LONGEST_VARINT:
            raise DamagedMessageError


def packed(value: int | bytes) -> list[int]:
    """Return the numbers of a repeated value, whichever of its two forms it has.

    Raises:
        DamagedMessageError: the bytes are no numbers.
    """
    if isinstance(value, int):
        return [value]
    numbers, position = [], 0
    try:
        while position < len(value):
            number, position = varint(value, position)
            numbers.append(number)
    except IndexError:
        raise DamagedMessageError from None
    return numbers


def signed(number: int) -> int:
    """Return the number that zigzag encoding made of a signed one."""
    return (number >> 1) ^ -(number & 1)
