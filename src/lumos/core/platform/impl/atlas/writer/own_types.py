"""The types that Lumos needs in Atlas: defined on first use, and brought up to date."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from lumos.core.errors import PlatformAuthError, PlatformConflictError, PlatformForbiddenError
from lumos.core.json_reading import objects_among
from lumos.core.platform.impl.atlas.mapping.typedefs import (
    DATASET,
    ENTITY_TYPES,
    TYPE_NAMES,
    definitions,
    grown,
    is_older,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.impl.atlas.writer.vocabulary import Vocabulary

_TRIES = 3


class OwnTypes:
    """Sees to it, once, that the server has the types."""

    def __init__(self, client: AtlasClient, vocabulary: Vocabulary) -> None:
        self._client = client
        self._vocabulary = vocabulary
        self._lock = Lock()
        self._done = False

    def ensure(self) -> None:
        """Define what is missing, and redefine what an earlier version of Lumos defined.

        Raises:
            PlatformAuthError: the types of Lumos are missing, and the login may not define any.
        """
        try:
            self._ensure()
        except PlatformForbiddenError as error:
            raise PlatformAuthError(
                f"{self._client.place}: the types of Lumos are missing or older than this "
                "version, and the login may not define types",
                hint="write once with the login of an Atlas administrator; afterwards one that "
                "may write entities is enough",
            ) from error

    def _ensure(self) -> None:
        with self._lock:
            if self._done:
                return
            for left in reversed(range(_TRIES)):
                known = self._vocabulary.type_names().keys()
                missing = frozenset(TYPE_NAMES) - known
                if DATASET in known and is_older(self._client.entity_type(DATASET)):
                    self._bring_up_to_date(frozenset(ENTITY_TYPES) - missing)
                if not missing:
                    break
                self._vocabulary.forget()
                try:
                    self._client.define(definitions(missing), anew=True)
                except PlatformConflictError:  # another process was faster
                    if not left:
                        raise
            self._done = True

    def _bring_up_to_date(self, names: frozenset[str]) -> None:
        """Redefine types with what people added to them, which Atlas would not let go."""
        wanted = definitions(names)
        types: list[JsonValue] = [
            grown(self._client.entity_type(str(each["name"])), each)
            for each in objects_among(wanted["entityDefs"])
        ]
        self._client.define({**wanted, "entityDefs": types}, anew=False)
