"""Tables found in the database of Amundsen by words within their names and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, func, select, union

from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.amundsen.mapping.keys import is_latin
from lumos.core.platform.impl.amundsen.reader import CARRIER, listed, read_datasets
from lumos.core.platform.search_match import WINDOW, Candidate, Narrowed
from lumos.core.platform.unreadable import UnreadableItems

if TYPE_CHECKING:
    from sqlalchemy import Column, ColumnElement, Connection

_OF_COLUMN = tables.COLUMN.c.rk
_TEXTS: tuple[tuple[Column[str], Column[str]], ...] = (
    (tables.TABLE.c.rk, tables.TABLE.c.rk),
    (tables.COLUMN.c.table_rk, tables.COLUMN.c.name),
    (tables.TABLE_DESCRIPTION.c.table_rk, tables.TABLE_DESCRIPTION.c.description),
    (tables.NOTE.c.table_rk, tables.NOTE.c.description),
    (tables.TABLE_TAG.c.table_rk, tables.TABLE_TAG.c.tag_rk),
    (tables.TABLE_BADGE.c.table_rk, tables.TABLE_BADGE.c.badge_rk),
    (tables.TABLE_OWNER.c.table_rk, tables.TABLE_OWNER.c.user_rk),
)
"""The columns that hold what a table is known by, each with the column that names the table."""
_COLUMN_TEXTS: tuple[tuple[Column[str], Column[str]], ...] = (
    (tables.COLUMN_DESCRIPTION.c.column_rk, tables.COLUMN_DESCRIPTION.c.description),
    (tables.COLUMN_BADGE.c.column_rk, tables.COLUMN_BADGE.c.badge_rk),
)


def narrowed(connection: Connection, words: tuple[str, ...]) -> Narrowed:
    """Return the datasets whose rows hold all of the words."""
    key = tables.TABLE.c.rk
    condition = and_(key != CARRIER.text, *(_holding(word) for word in words))
    total = connection.execute(select(func.count()).where(condition)).scalar_one()
    found = connection.execute(select(key).where(condition).order_by(key).limit(WINDOW))
    keys = [row[0] for row in found]
    places = listed(connection, keys=keys) if keys else []
    datasets = read_datasets(connection, places, unread=UnreadableItems())  # a listing names them
    names = {place.urn: place.key for place in places}
    candidates = [Candidate(dataset, external_id=names.get(dataset.urn)) for dataset in datasets]
    return Narrowed(candidates, len(candidates) + max(0, total - len(keys)))


def _holding(word: str) -> ColumnElement[bool]:
    pattern = f"%{word}%"  # a word of a search holds no sign that LIKE knows
    texts, column_texts = _TEXTS, _COLUMN_TEXTS
    if not is_latin(word):  # MySQL refuses to look for it in a key, which cannot hold it
        texts = tuple(pair for pair in texts if not pair[1].name.endswith("rk"))
        column_texts = tuple(pair for pair in column_texts if not pair[1].name.endswith("rk"))
    parts = [select(key).where(func.lower(text).like(pattern)) for key, text in texts]
    parts += [
        select(tables.COLUMN.c.table_rk)
        .join(key.table, key == _OF_COLUMN)
        .where(func.lower(text).like(pattern))
        for key, text in column_texts
    ]
    return tables.TABLE.c.rk.in_(union(*parts))
