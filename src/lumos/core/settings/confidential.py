"""Settings with credentials, which no ordinary pickle may hold.

Pickles end up in the memory and the files of Spark, where others may read them. Code that forgets
to seal such settings (`lumos.core.storage.sealed`) fails instead of leaking them.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from typing import Any

from pydantic import BaseModel
from typing_extensions import override

from lumos.core.settings.base import SettingsModel
from lumos.core.settings.validation import holds_secrets


class ConfidentialSettings(SettingsModel):
    """Settings that refuse to be pickled where they hold credentials."""

    @property
    def has_credentials(self) -> bool:
        """Whether any of its values is a secret."""
        return holds_secrets(self)

    @override
    def __getstate__(self) -> dict[Any, Any]:
        if self.has_credentials:
            name = getattr(self, "name", type(self).__name__)
            raise TypeError(f"source '{name}' holds credentials and must not be pickled")
        return super().__getstate__()


def pickle_with_credentials(value: object) -> bytes:
    """Return a pickle of a value with the credentials in it, for this process or a seal alone."""
    stream = io.BytesIO()
    _CredentialPickler(stream, pickle.HIGHEST_PROTOCOL).dump(value)
    return stream.getvalue()


class _CredentialPickler(pickle.Pickler):
    @override
    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, ConfidentialSettings):
            return copyreg.__newobj__, (type(obj),), BaseModel.__getstate__(obj)  # type: ignore[attr-defined]
        return NotImplemented
