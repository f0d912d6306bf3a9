"""Datasets found by Atlas's own index, by their own text and by that of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from lumos.core.errors import PlatformForbiddenError
from lumos.core.json_reading import find_object
from lumos.core.platform.impl.atlas.mapping.datasets import is_placeholder
from lumos.core.platform.impl.atlas.mapping.typedefs import COLUMN, DATASET
from lumos.core.platform.search_match import WINDOW, Candidate, Narrowed
from lumos.core.platform.threads import mapped
from lumos.core.platform.unreadable import UNFIT

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.impl.atlas.reader.datasets import DatasetReader

_WORKERS: Final = 8


class AtlasSearch:
    """Asks basic search for the types that stand for datasets."""

    def __init__(
        self,
        client: AtlasClient,
        reader: DatasetReader,
        *,
        table_types: tuple[str, ...],
        is_known: Callable[[str], bool],
    ) -> None:
        self._client = client
        self._reader = reader
        self._table_types = table_types
        self._is_known = is_known

    def narrowed(self, words: tuple[str, ...]) -> Narrowed:
        """Return the datasets that hold all of the words in a text that Atlas searches.

        A column is a separate entity there, so a word of a column and one of its dataset are
        in no text together: the longest of several words is asked for alone as well.
        """
        guids: dict[str, None] = {}
        beyond = 0
        asked = [words] if len(words) <= 1 else [words, (max(words, key=len),)]
        for number, some in enumerate(asked):
            found, more = self._guids(some)
            guids |= dict.fromkeys(found)
            beyond += more if number == len(asked) - 1 else 0
        chosen = [*guids][:WINDOW]
        beyond = max(beyond, len(guids) - len(chosen))
        entities, referred = self._client.entities(chosen)
        candidates = []
        for entity in (each for each in entities if not is_placeholder(each)):
            with suppress(*UNFIT):  # a listing names it
                dataset = self._reader.dataset(entity, referred)
                candidates.append(Candidate(dataset, _updated(entity), _name(entity)))
        return Narrowed(_each_once(candidates), len(candidates) + beyond)

    def _guids(self, words: tuple[str, ...]) -> tuple[list[str], int]:
        guids: list[str] = []
        beyond = 0
        for type_name in (*self._table_types, DATASET):
            heads, total = self._heads(type_name, words)
            beyond += max(0, total - len(heads))
            guids += [str(head.get("guid")) for head in heads]
        if words:
            guids += self._datasets_of_columns(words)
        return guids, beyond

    def _datasets_of_columns(self, words: tuple[str, ...]) -> Iterator[str]:
        heads, _ = self._heads(COLUMN, words)
        urns = dict.fromkeys((_name(head) or "").partition("#")[0] for head in heads)
        held = mapped(
            self._guid_of, [urn for urn in urns if urn], workers=min(_WORKERS, len(urns) or 1)
        )
        return (guid for guid in held if guid is not None)

    def _guid_of(self, urn: str) -> str | None:
        """Return the GUID of a dataset that is there and may be read."""
        try:
            held = self._client.entity(DATASET, urn)
        except PlatformForbiddenError:
            return None
        return None if held is None else str(held[0].get("guid"))

    def _heads(self, type_name: str, words: tuple[str, ...]) -> tuple[list[Json], int]:
        if not self._is_known(type_name):
            return [], 0
        query = " AND ".join(f"*{word}*" for word in words)
        return self._client.found(type_name, query, most=WINDOW)


def _each_once(candidates: list[Candidate]) -> list[Candidate]:
    """Return one candidate for each dataset; what Lumos wrote of it counts."""
    return [*{candidate.dataset.urn: candidate for candidate in candidates}.values()]


def _name(entity: Json) -> str | None:
    name = find_object(entity, "attributes").get("qualifiedName")
    return name if isinstance(name, str) else None


def _updated(entity: Json) -> datetime | None:
    moment = entity.get("updateTime")
    try:
        return datetime.fromtimestamp(moment / 1000, UTC) if isinstance(moment, int) else None
    except (ValueError, OverflowError, OSError):
        return None
