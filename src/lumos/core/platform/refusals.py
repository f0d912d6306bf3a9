"""Which failure of one item spares the others, and which ends a run."""

from __future__ import annotations

from typing import Final

from lumos.core.errors import (
    DamagedDocumentError,
    InvalidModelError,
    LumosError,
    PlatformAuthError,
    PlatformCertificateError,
    PlatformConflictError,
    PlatformError,
    PlatformFailureError,
    PlatformForbiddenError,
    UnstorableValueError,
)

REFUSALS: Final = (PlatformError, InvalidModelError, DamagedDocumentError, UnstorableValueError)
"""What a catalog or its adapter may say of one item."""


_MOST_IN_A_ROW: Final = 50
"""A catalog that fails at so many things, one after the other, would fail at all of them."""


def ends_run(error: LumosError) -> bool:
    """Return whether every other item would fail too: no answer, an expired token or certificate.

    An item that somebody else changed meanwhile, that the catalog fails at or that the token does
    not allow says nothing of the next one.
    """
    if isinstance(error, PlatformConflictError | PlatformFailureError | PlatformForbiddenError):
        return False
    return error.retryable or isinstance(error, PlatformAuthError | PlatformCertificateError)


class Streak:
    """Notices that a catalog fails at everything."""

    def __init__(self) -> None:
        self._failed = 0

    def ends_run(self, error: LumosError | None) -> bool:
        """Return whether to go on after an item, given its outcome."""
        self._failed = self._failed + 1 if isinstance(error, PlatformFailureError) else 0
        return error is not None and (ends_run(error) or self._failed >= _MOST_IN_A_ROW)
