"""Lumos, the layer between data sources and a data catalog."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"
_LATE = {"Lumos": "lumos.entry.sdk"}
"""What is imported when it is asked for, by name: the command line starts without it, and no
layer comes to depend on the entry points by asking for the version."""


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
