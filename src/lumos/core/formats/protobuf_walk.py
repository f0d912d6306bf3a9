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


class DamagedMessageError(ValueError):
    """The bytes are no protobuf message."""


def parts_of(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield each value of a message with its number: a varint as it is, any other as its bytes.

    Raises:
        DamagedMessageError: the bytes are no message.
    """
    position, end = 0, len(message)
    try:
        while position < end:
            key = message[position]
            position += 1
            if key >= _MORE_FOLLOWS:
                key, position = varint(message, position - 1)
            match key & 7:
                case Wire.VARINT:
                    number = message[position]
                    position += 1
                    if number >= _MORE_FOLLOWS:
                        number, position = varint(message, position - 1)
                    yield key >> 3, number
                    continue
                case Wire.COUNTED:
                    length = message[position]
                    position += 1
                    if length >= _MORE_FOLLOWS:
                        length, position = varint(message, position - 1)
                case Wire.EIGHT_BYTES:
                    length = 8
                case Wire.FOUR_BYTES:
                    length = 4
                case _:
                    raise DamagedMessageError
            start, position = position, position + length
            if position > end:
                raise DamagedMessageError
            yield key >> 3, message[start:position]
    except IndexError:
        raise DamagedMessageError from None


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
