"""Full-text search over datasets: FTS5 on SQLite, tsvector on PostgreSQL, the same answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from typing_extensions import override

from lumos.core.store.catalog.search_words import distinct_words, name_key, query_words
from lumos.core.store.sql_text import storable

if TYPE_CHECKING:
    from lumos.core.models import FieldType, LumosDataset
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Parameters, Row, SqlValue

MOST_QUERY_WORDS = 32
_LONGEST_QUERY = 2_000
LONGEST_LABEL = 500
LARGEST_INDEX_ENTRY = 400_000
_EVERYTHING = frozenset({"", "*"})

_COLUMNS = """
    d.urn, d.name, d.platform, d.format, d.quality_score, d.updated_at, d.document,
    d.observed,    d.contract_hash, d.version, d.checksum,
    COALESCE((SELECT v.version FROM versions v WHERE v.urn = d.urn
              ORDER BY v.sequence DESC LIMIT 1), d.version) AS current_version
"""


class SearchText(NamedTuple):
    """The words of one dataset, those of most weight first."""

    name: list[str]
    fields: list[str]
    labels: list[str]
    prose: list[str]

    @classmethod
    def of(cls, dataset: LumosDataset) -> SearchText:
        fields = list(_all_fields(dataset.schema.fields))
        documentation = dataset.documentation
        return cls(
            name=distinct_words([dataset.name]),
            fields=distinct_words([name for name, _ in fields]),
            labels=distinct_words(_labels(dataset)),
            prose=distinct_words(
                [
                    documentation.description,
                    documentation.business_context,
                    *(description for _, description in fields),
                ]
            ),
        ).bounded()

    def bounded(self) -> SearchText:
        """Leave out the words of least weight of a dataset that is too large for one entry."""
        left = LARGEST_INDEX_ENTRY
        kept: list[list[str]] = []
        for words in self:
            column: list[str] = []
            for word in words:
                left -= len(word.encode()) + 8
                if left < 0:
                    break
                column.append(word)
            kept.append(column)
        return SearchText(*kept)


@dataclass(frozen=True)
class Wanted:
    """What a search looks for; `None` leaves a filter out."""

    query: str = ""
    platform: str | None = None
    owner: str | None = None
    tag: str | None = None
    column: str | None = None

    @cached_property
    def text(self) -> str:
        return self.query[:_LONGEST_QUERY].strip()

    @cached_property
    def words(self) -> tuple[str, ...]:
        return query_words(self.text)[:MOST_QUERY_WORDS]

    @cached_property
    def column_words(self) -> tuple[str, ...]:
        return query_words((self.column or "")[:_LONGEST_QUERY])[:MOST_QUERY_WORDS]


class SearchIndex(ABC):
    """The words of all datasets, and the way to find datasets by them."""

    _indexed: ClassVar[str]
    _tier: ClassVar[str]
    _rank: ClassVar[str]

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    @classmethod
    def on(cls, database: StateDatabase) -> SearchIndex:
        """Return the index of a database, for its engine."""
        return Fts5Index(database) if database.dialect == "sqlite" else TsvectorIndex(database)

    @abstractmethod
    def put(self, dataset_id: int, text: SearchText) -> None:
        """Set the words of a dataset."""

    @abstractmethod
    def remove(self, dataset_id: int) -> None:
        """Forget the words of a dataset."""

    @abstractmethod
    def page(self, after: int | None, *, limit: int) -> list[tuple[int, SearchText]]:
        """Return the words of the next datasets in the order of their ids."""

    @abstractmethod
    def _match(self, words: tuple[str, ...], *, within: Literal["name", "fields"] | None) -> str:
        """Return the engine's query for datasets that have a word with each beginning."""

    @abstractmethod
    def _both(self, one: str, other: str) -> str:
        """Return the engine's query for datasets that two queries find."""

    def find(
        self, wanted: Wanted, *, min_quality: float | None, limit: int, offset: int
    ) -> list[Row]:
        """Return the datasets that match, names before all else, in a stable order."""
        return self._page(wanted, _at_least(min_quality), limit=limit, offset=offset)

    def find_below(self, wanted: Wanted, *, min_quality: float, limit: int) -> list[Row]:
        """Return datasets that match but whose score is too low or not known."""
        below = ("COALESCE(d.quality_score, -1) < :min_quality", {"min_quality": min_quality})
        return self._page(wanted, below, limit=limit, offset=0)

    def count(self, wanted: Wanted, *, min_quality: float | None) -> int:
        """Return how many datasets match."""
        source = self._source(wanted)
        if source is None:
            return 0
        text, params = source
        condition, more = _at_least(min_quality)
        sql = f"SELECT count(*) AS number {text} AND {condition}"
        return self._database.query(sql, {**params, **more})[0].integer("number")

    def _page(
        self, wanted: Wanted, quality: tuple[str, Parameters], *, limit: int, offset: int
    ) -> list[Row]:
        source = self._source(wanted)
        if source is None:
            return []
        text, params = source
        condition, more = quality
        order = f"{self._tier}, {self._rank}, d.urn" if wanted.words else "d.urn"
        sql = (
            f"SELECT {_COLUMNS} {text} AND {condition} ORDER BY {order} LIMIT :limit OFFSET :offset"
        )
        if wanted.words:
            name_match = self._match(wanted.words, within="name")
            more = {**more, "name_key": name_key(wanted.text), "name_match": name_match}
        return self._database.query(sql, {**params, **more, "limit": limit, "offset": offset})

    def _source(self, wanted: Wanted) -> tuple[str, dict[str, SqlValue]] | None:
        """Return FROM and WHERE with parameters; none when nothing can match."""
        params: dict[str, SqlValue] = {}
        if not wanted.words and wanted.text not in _EVERYTHING:
            return None
        if wanted.column is not None and not wanted.column_words:
            return None
        match = self._match(wanted.words, within=None) if wanted.words else ""
        if wanted.column_words:
            column_match = self._match(wanted.column_words, within="fields")
            match = self._both(match, column_match) if match else column_match
        text = self._indexed if match else "FROM datasets d WHERE 1 = 1"
        if match:
            params["match"] = match
        if wanted.platform is not None:
            text += " AND d.platform = :platform"
            params["platform"] = label(wanted.platform)
        for kind, value in (("owner", wanted.owner), ("tag", wanted.tag)):
            if value is not None:
                text += (
                    " AND EXISTS (SELECT 1 FROM dataset_labels l WHERE l.dataset_id = d.id"  # noqa: S608
                    f" AND l.kind = '{kind}' AND l.value = :{kind})"
                )
                params[kind] = label(value)
        return text, params


class Fts5Index(SearchIndex):
    """The index in SQLite."""

    _indexed = (
        "FROM search_index JOIN datasets d ON d.id = search_index.rowid "
        "WHERE search_index MATCH :match"
    )
    _tier = (
        "CASE WHEN d.name_key = :name_key THEN 0 WHEN d.id IN "
        "(SELECT s.rowid FROM search_index s WHERE s.search_index MATCH :name_match) "
        "THEN 1 ELSE 2 END"
    )
    _rank = "bm25(search_index, 8.0, 4.0, 2.0, 1.0)"

    @override
    def put(self, dataset_id: int, text: SearchText) -> None:
        self.remove(dataset_id)
        self._database.execute(
            "INSERT INTO search_index (rowid, name, fields, labels, prose) "
            "VALUES (:id, :name, :fields, :labels, :prose)",
            {"id": dataset_id, **{key: " ".join(words) for key, words in text._asdict().items()}},
        )

    @override
    def remove(self, dataset_id: int) -> None:
        self._database.execute("DELETE FROM search_index WHERE rowid = :id", {"id": dataset_id})

    @override
    def page(self, after: int | None, *, limit: int) -> list[tuple[int, SearchText]]:
        rows = self._database.query(
            "SELECT rowid AS id, name, fields, labels, prose FROM search_index "
            "WHERE :after IS NULL OR rowid > :after ORDER BY rowid LIMIT :limit",
            {"after": after, "limit": limit},
        )
        return [
            (
                row.integer("id"),
                SearchText(*(row.text(name).split() for name in SearchText._fields)),
            )
            for row in rows
        ]

    @override
    def _match(self, words: tuple[str, ...], *, within: Literal["name", "fields"] | None) -> str:
        # A word holds letters, digits, marks and symbols only: there is no quote to escape.
        text = " AND ".join(f'"{word}"*' for word in words)
        return f"{{{within}}} : ({text})" if within else text

    @override
    def _both(self, one: str, other: str) -> str:
        return f"({one}) AND ({other})"


class TsvectorIndex(SearchIndex):
    """The index in PostgreSQL."""

    _indexed = (
        "FROM search_index s JOIN datasets d ON d.id = s.dataset_id "
        "WHERE s.words @@ CAST(:match AS tsquery)"
    )
    _tier = (
        "CASE WHEN d.name_key = :name_key THEN 0 "
        "WHEN s.words @@ CAST(:name_match AS tsquery) THEN 1 ELSE 2 END"
    )
    _rank = "ts_rank(s.words, CAST(:match AS tsquery)) DESC"

    @override
    def put(self, dataset_id: int, text: SearchText) -> None:
        places: dict[str, list[str]] = {}
        for position, (weight, words) in enumerate(zip("ABCD", text, strict=True), start=1):
            for word in words:
                places.setdefault(word, []).append(f"{position}{weight}")
        self._database.execute(
            "INSERT INTO search_index (dataset_id, words) VALUES (:id, CAST(:words AS tsvector)) "
            "ON CONFLICT (dataset_id) DO UPDATE SET words = excluded.words",
            {
                "id": dataset_id,
                "words": " ".join(f"'{word}':{','.join(at)}" for word, at in places.items()),
            },
        )

    @override
    def remove(self, dataset_id: int) -> None:
        self._database.execute(
            "DELETE FROM search_index WHERE dataset_id = :id", {"id": dataset_id}
        )

    @override
    def page(self, after: int | None, *, limit: int) -> list[tuple[int, SearchText]]:
        rows = self._database.query(
            "SELECT s.dataset_id AS id, w.lexeme AS word, "
            "array_to_string(w.weights, '') AS weights "
            "FROM (SELECT dataset_id, words FROM search_index "
            "WHERE CAST(:after AS bigint) IS NULL OR dataset_id > :after "
            "ORDER BY dataset_id LIMIT :limit) s "
            "LEFT JOIN LATERAL unnest(s.words) w ON true ORDER BY s.dataset_id",
            {"after": after, "limit": limit},
        )
        found: dict[int, SearchText] = {}
        for row in rows:
            text = found.setdefault(row.integer("id"), SearchText([], [], [], []))
            for weight in row.optional_text("weights") or "":
                text["ABCD".index(weight)].append(row.text("word"))
        return [*found.items()]

    @override
    def _match(self, words: tuple[str, ...], *, within: Literal["name", "fields"] | None) -> str:
        mark = {None: "*", "name": "*A", "fields": "*B"}[within]
        return " & ".join(f"'{word}':{mark}" for word in words)

    @override
    def _both(self, one: str, other: str) -> str:
        return f"({one}) & ({other})"


def label(value: str) -> str:
    """Return an owner, tag or platform as it is compared: in any case, within an index's size."""
    return storable(value.casefold())[:LONGEST_LABEL]


def labels_of(dataset: LumosDataset) -> set[tuple[str, str]]:
    """Return the owners and tags of a dataset and its fields, as filters compare them."""
    owners = {("owner", label(owner.name)) for owner in dataset.ownership.owners}
    tags = {("tag", label(tag)) for tag in dataset.tags}
    field_tags = {("tag", label(tag)) for field in dataset.schema.fields for tag in field.tags}
    return owners | tags | field_tags


def _at_least(min_quality: float | None) -> tuple[str, Parameters]:
    if min_quality is None:
        return "1 = 1", {}
    return "d.quality_score >= :min_quality", {"min_quality": min_quality}


def _labels(dataset: LumosDataset) -> Iterator[str | None]:
    yield dataset.platform
    yield from dataset.urn.parts
    yield from (dataset.format, dataset.database, dataset.namespace, dataset.environment)
    yield from dataset.tags
    yield from (owner.name for owner in dataset.ownership.owners)
    yield from dataset.governance.domains
    yield from dataset.governance.glossary_terms
    for field in dataset.schema.fields:
        yield from field.tags
        yield from field.glossary_terms


def _all_fields(types: tuple[FieldType, ...]) -> Iterator[tuple[str | None, str | None]]:
    """Yield name and description of every field at any depth."""
    stack = [*types[::-1]]
    while stack:
        node = stack.pop()
        yield getattr(node, "name", None), node.description
        inner = (*node.fields, node.items, node.key, node.value, *node.branches)
        stack.extend(part for part in reversed(inner) if part is not None)
