"""Walks over the bytes of a protobuf message, without knowing what it means."""

from __future__ import annotations

from collections.abc import Iterator

_MORE_FOLLOWS = 0x80
_VARINT, _COUNTED = 0, 2
_WITH_NUMBER = (_COUNTED, _VARINT)
_FIXED_LENGTHS = {1: 8, 5: 4}
"""How many bytes a value of each kind takes, of those that do not say so themselves."""
_LONGEST_VARINT = 63


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
            key = message[position]
            position += 1
            if key >= _MORE_FOLLOWS:
                key, position = varint(message, position - 1)
            wire = key & 7
            if wire in _WITH_NUMBER:
                value = message[position]
                position += 1
                if value >= _MORE_FOLLOWS:
                    value, position = varint(message, position - 1)
                if wire == _VARINT:
                    found.setdefault(key >> 3, []).append(value)
                    continue
            else:
                value = _fixed_length(wire)
            start, position = position, position + value
            if position > end:
                raise DamagedMessageError
            found.setdefault(key >> 3, []).append(message[start:position])
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
            key = message[position]
            position += 1
            if key >= _MORE_FOLLOWS:
                key, position = varint(message, position - 1)
            wire = key & 7
            if wire in _WITH_NUMBER:
                value = message[position]
                position += 1
                if value >= _MORE_FOLLOWS:
                    value, position = varint(message, position - 1)
                if wire == _VARINT:
                    found[key >> 3] = value
                else:
                    position += value
            else:
                position += _fixed_length(wire)
    except IndexError:
        raise DamagedMessageError from None
    if position != end:
        raise DamagedMessageError
    return found


def _fixed_length(wire: int) -> int:
    if wire not in _FIXED_LENGTHS:
        raise DamagedMessageError
    return _FIXED_LENGTHS[wire]


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
