"""Datasets found by DataHub's own index."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lumos.core.platform.impl.datahub.client import SCROLL, StoredEntity, entities_in, held_of
from lumos.core.platform.search_match import WINDOW, Candidate, Narrowed
from lumos.core.platform.unreadable import UNFIT

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.platform.http import CatalogHttp
    from lumos.core.platform.impl.datahub.mapping.aspects import DatasetConversion


def narrowed(
    http: CatalogHttp,
    conversion: DatasetConversion,
    *,
    words: tuple[str, ...],
    is_dataset: Callable[[StoredEntity], bool],
) -> Narrowed:
    """Return the datasets that hold all of the words in a field that DataHub searches."""
    answer = http.json(
        "POST",
        SCROLL,
        params={
            "count": WINDOW,
            "query": " AND ".join(f"*{word}*" for word in words) or "*",
            "skipCache": "true",
            "includeSoftDelete": "false",
            "systemMetadata": "true",
        },
        body={"entities": ["dataset"], "aspects": []},
        idempotent=True,
    )
    entities = entities_in(http, answer)
    page = answer if isinstance(answer, dict) else {}
    candidates = []
    for entity in entities:
        held = held_of(entity)
        if is_dataset(held):
            with suppress(*UNFIT):  # a listing names it
                dataset = conversion.dataset(held.urn, held.aspects)
                candidates.append(Candidate(dataset, _observed(entity), held.urn))
    told = page.get("totalCount")
    beyond = told - len(entities) if isinstance(told, int) else int(bool(page.get("scrollId")))
    return Narrowed(candidates, len(candidates) + max(0, beyond))


def _observed(entity: Json) -> datetime | None:
    """Return when the server last saw an entity, where it states that."""
    moments: list[int] = []
    for aspect in entity.values():
        system = aspect.get("systemMetadata") if isinstance(aspect, dict) else None
        moment = system.get("lastObserved") if isinstance(system, dict) else None
        if isinstance(moment, int) and moment > 0:
            moments.append(moment)
    try:
        return datetime.fromtimestamp(max(moments) / 1000, UTC) if moments else None
    except (ValueError, OverflowError, OSError):
        return None
