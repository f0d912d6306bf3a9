"""Whether this process is Lumos's own, or that of a program that uses Lumos as a library.

Switches that hold for a whole process, such as those of garbage collection, are Lumos's to set in
its own process only.
"""

from __future__ import annotations

_claims: list[None] = []


def claim_process() -> None:
    """Say that this process was started to run Lumos; the command line does so first of all."""
    _claims.append(None)


def is_own_process() -> bool:
    """Tell whether Lumos may set what holds for the whole process."""
    return bool(_claims)
