"""Datasets found by words in names, comments, columns and the stash.

Snowflake has no index of these: one statement reads the tables, one the columns that hold a word,
and one the documents that do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from lumos.core.errors import InvalidUrnError, PlatformAnswerError
from lumos.core.models import Urn
from lumos.core.models.base import canonical_json
from lumos.core.platform.impl.snowflake.mapping.records import PLATFORM, TableRecord
from lumos.core.platform.impl.snowflake.side_store import unpacked
from lumos.core.store.catalog.search_words import distinct_words

if TYPE_CHECKING:
    from lumos.core.platform.impl.snowflake.reader import TableReader
    from lumos.core.platform.impl.snowflake.side_store import StashTable


def holding(
    words: tuple[str, ...],
    heads: Mapping[Urn, TableRecord],
    *,
    reader: TableReader,
    table: StashTable,
    section: str,
) -> list[Urn]:
    """Return the datasets that hold all of the words, in ascending order; all, for no word."""
    if not words:
        return sorted({*heads, *_urns(table.names(section))})
    texts: dict[Urn, list[str | None]] = defaultdict(list)
    for urn, head in heads.items():
        texts[urn] += [PLATFORM, *head.key, head.comment, head.owner]
    for key, *column in reader.columns_with(words):
        texts[key.urn] += column
    for name, text in table.texts_with(section, words).items():
        with suppress(InvalidUrnError, PlatformAnswerError):  # a listing names it
            texts[Urn(name)] += [name, canonical_json(unpacked(text)).decode()]
    return sorted(urn for urn, said in texts.items() if _hold(said, words))


def _urns(names: Iterable[str]) -> Iterator[Urn]:
    for name in names:
        with suppress(InvalidUrnError):  # a listing names it
            yield Urn(name)


def _hold(texts: list[str | None], words: tuple[str, ...]) -> bool:
    known = " ".join(distinct_words(texts))
    return all(word in known for word in words)
