"""A reader that does to its process what damaged files do, told by the name of the file."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from typing import BinaryIO

from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file


def _spin() -> None:
    while True:
        pass


def _fail() -> None:
    raise RuntimeError("data-value-4711")


def _talk() -> None:
    os.write(2, b"data-value-4711\n" * 100_000)
    sys.stderr.flush()


DEEDS: dict[str, Callable[[], object]] = {
    "abort": os.abort,
    "segfault": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(3),
    "hang": lambda: time.sleep(1_000),
    "spin": _spin,
    "fail": _fail,
    "memory": lambda: bytearray(8 * 1024 * 1024 * 1024),
    "talk": _talk,
}


def read(stream: BinaryIO, *, size: int, name: str) -> FileFacts:
    DEEDS.get(name.partition(".")[0], lambda: None)()
    return read_file(stream, size=size, name=name)


def environment(stream: BinaryIO, *, size: int, name: str) -> FileFacts:
    """Tell the names of the environment in place of facts."""
    facts = read_file(stream, size=size, name=name)
    return FileFacts(format=facts.format, schema=facts.schema, warnings=tuple(os.environ))
