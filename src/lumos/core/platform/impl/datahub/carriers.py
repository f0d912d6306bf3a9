"""What DataHub has no place for, kept in containers that are marked as removed.

Those are identities in other catalogs, extensions of snapshots, and what tags and groups cannot
hold. No list and no search of DataHub shows them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from lumos.core.models import Urn
from lumos.core.platform.impl.datahub.client import Write
from lumos.core.platform.impl.datahub.stash import KEY, packed, unpacked

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.platform.impl.datahub.client import DataHubClient

Json = dict[str, "JsonValue"]
_CONTAINER: Final = "container"
_PROPERTIES: Final = "containerProperties"
_PREFIX: Final = "urn:li:container:lumos-"


class Carriers:
    """Keeps and reads documents of Lumos in containers that nobody sees."""

    def __init__(self, client: DataHubClient) -> None:
        self._client = client

    def put_identity(self, urn: str, catalog: str, *, external_id: str) -> None:
        """Keep what a catalog calls a dataset."""
        self._put("identity", [urn, catalog], external_id)

    def identities(self) -> dict[Urn, dict[str, str]]:
        """Return what other catalogs call each dataset."""
        found: dict[Urn, dict[str, str]] = {}
        for name, value in self._all("identity"):
            urn, catalog = cast("list[str]", name)
            found.setdefault(Urn(urn), {})[catalog] = str(value)
        return {urn: dict(sorted(found[urn].items())) for urn in sorted(found)}

    def put_extension(self, name: str, value: JsonValue) -> None:
        """Keep something under a name."""
        self._put("extension", name, value)

    def extensions(self) -> dict[str, JsonValue]:
        """Return everything that is kept under a name."""
        found = {str(name): value for name, value in self._all("extension")}
        return dict(sorted(found.items()))

    def put_residue(self, kind: str, entity: str, left: JsonValue) -> None:
        """Keep what an entity of DataHub cannot hold; None is nothing."""
        if left is None:
            self._client.delete(_CONTAINER, _urn(kind, entity))
        else:
            self._put(kind, entity, left)

    def residues(self, kind: str) -> dict[str, JsonValue]:
        """Return what the entities of a kind cannot hold, by their URNs."""
        return {str(entity): left for entity, left in self._all(kind)}

    def _put(self, kind: str, name: JsonValue, value: JsonValue) -> None:
        document = packed([name, value])
        urn = _urn(kind, name)
        properties: Json = {"name": f"Lumos {kind}", "customProperties": {KEY: document}}
        self._client.write(
            [Write(_CONTAINER, urn, {_PROPERTIES: properties, "status": {"removed": True}})]
        )

    def _all(self, kind: str) -> Iterator[tuple[JsonValue, JsonValue]]:
        prefix = f"{_PREFIX}{kind}-"
        for held in self._client.scroll(_CONTAINER, aspects=(_PROPERTIES,), include_removed=True):
            properties = held.aspects.get(_PROPERTIES)
            if not held.urn.startswith(prefix) or not isinstance(properties, dict):
                continue
            custom = cast("Json", properties.get("customProperties") or {})
            match unpacked(custom.get(KEY)):
                case [name, value]:
                    yield name, value


def _urn(kind: str, name: JsonValue) -> str:
    digest = hashlib.md5(packed(name).encode(), usedforsecurity=False).hexdigest()
    return f"{_PREFIX}{kind}-{digest}"
