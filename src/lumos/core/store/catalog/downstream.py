"""Who is made from a dataset, and who answers for it, as the state database knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lumos.core.models import Group, Ownership, User
from lumos.core.models.alert import AffectedDataset
from lumos.core.store.checksums import DATASETS, ENTITIES
from lumos.core.store.documents import as_model, stored_object

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase


class Downstream:
    """Walks lineage edges and looks up owners; what is damaged is passed over."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def of(self, urn: str, *, depth: int, limit: int) -> tuple[AffectedDataset, ...]:
        """Return the datasets within some steps downstream, the nearest first; jobs are passed."""
        seen = {urn}
        found: list[AffectedDataset] = []
        nearest = [urn]
        for _ in range(depth):
            following = [each for each in self._next_to(nearest) if each not in seen]
            if not following:
                break
            seen.update(following)
            for each in following:
                if dataset := self._affected(each):
                    found.append(dataset)
                    if len(found) == limit:
                        return tuple(found)
            nearest = following
        return tuple(found)

    def groups_of_users(self) -> dict[str, frozenset[str]]:
        """Return the groups of each user, by membership or by the user's own teams."""
        groups: dict[str, set[str]] = {}
        for row in self._entities("group"):
            group = as_model(Group, row)
            for user in (*group.members, *group.admins):
                groups.setdefault(user, set()).add(group.name)
        for row in self._entities("user"):
            user_entity = as_model(User, row)
            groups.setdefault(user_entity.username, set()).update(user_entity.teams)
        return {user: frozenset(names) for user, names in groups.items()}

    def _entities(self, kind: str) -> Iterable[str]:
        rows = self._database.query(
            f"{ENTITIES.select()} WHERE kind = :kind ORDER BY name", {"kind": kind}
        )
        return (row.text("document") for row in rows if ENTITIES.is_whole(row))

    def _next_to(self, urns: Iterable[str]) -> list[str]:
        following: dict[str, None] = {}
        for urn in urns:
            for row in self._database.query(
                "SELECT DISTINCT downstream_urn FROM lineage_edges WHERE upstream_urn = :urn "
                "ORDER BY downstream_urn",
                {"urn": urn},
            ):
                following[row.text("downstream_urn")] = None
        return list(following)

    def _affected(self, urn: str) -> AffectedDataset | None:
        rows = self._database.query(f"{DATASETS.select()} WHERE urn = :urn", {"urn": urn})
        if not rows or not DATASETS.is_whole(rows[0]):
            return None
        document = stored_object(rows[0].text("document"))
        ownership = Ownership.from_json(document.get("ownership", {}))
        return AffectedDataset.from_json(
            {
                "urn": urn,
                "name": document["name"],
                "owners": tuple(owner.name for owner in ownership.owners),
            }
        )
