"""Which failure of one item spares the others, and which ends a run."""

from __future__ import annotations

from typing import Final

from lumos.core.errors import (
    InvalidModelError,
    LumosError,
    PlatformAuthError,
    PlatformConflictError,
    PlatformError,
)

REFUSALS: Final = (PlatformError, InvalidModelError)
"""What a catalog or its adapter may say of one item."""


def ends_run(error: LumosError) -> bool:
    """Tell whether no other item would fare better: no answer, or a token that expired.

    An item that somebody else changed meanwhile is its own matter.
    """
    if isinstance(error, PlatformConflictError):
        return False
    return error.retryable or isinstance(error, PlatformAuthError)
