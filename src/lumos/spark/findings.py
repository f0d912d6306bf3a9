"""What a run found, for publishing and for its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lumos.spark.parquet_rows import count_rows
from lumos.spark.stages.compare import differing, states_frame
from lumos.spark.stages.rows import BuiltDataset

if TYPE_CHECKING:
    import pyarrow.dataset as pads
    from pyspark.sql import DataFrame, Row

    from lumos.spark.file_index import IndexTables, Session
    from lumos.spark.listing import Listing

_FEW_DATASETS = 5_000
"""So many that differ are taken at once; more of them come in a stream."""


class ProblemFile(NamedTuple):
    """A file, or a folder, and what is wrong with it."""

    source: str
    path: bytes
    reason: str
    dataset: str | None = None
    retry: bool = False
    """Whether the reason may pass by itself."""


class FileNotice(NamedTuple):
    """Something to say about one file."""

    source: str
    path: bytes
    warnings: str | None
    skipped: str | None


class FailedDataset(NamedTuple):
    """A dataset that could not be built from its files."""

    source: str
    dataset: str
    reason: str


class FormatCount(NamedTuple):
    """The datasets of one format, and what is odd about some of them."""

    format: str
    datasets: int
    warnings: tuple[tuple[str, str], ...]
    """URN and text of each dataset that has any."""


class FoundTables:
    """The datasets of a run, whatever found them; most of it is read without a job of Spark."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sources: list[str] = []
        self._now: IndexTables | None = None

    @property
    def tables(self) -> IndexTables:
        """All that is known after the run, of every source."""
        if self._now is None:
            raise RuntimeError("tables are there once a run is over")
        return self._now

    @property
    def may_need_spark(self) -> bool:
        """Whether `differing` may need a job; `found` always does."""
        return count_rows(self.tables.folder / "datasets") > _FEW_DATASETS

    def found(self) -> Iterator[BuiltDataset]:
        """Yield every dataset of the run in ascending order of URN."""
        for row in _in_order(self._datasets().select(*BuiltDataset._fields), "urn", "source"):
            yield BuiltDataset(*row)

    def differing(
        self, states: Iterable[tuple[str, str]], *, source: str | None = None
    ) -> Iterator[BuiltDataset | str]:
        """Yield the datasets that a catalog does not know as they are now, by URN.

        One that it knows and that was not found is yielded as its URN alone.

        Args:
            states: URN and hash of what was last written to the catalog.
            source: the only source to look at; two sources may say something of one dataset.
        """
        import pyarrow.dataset as pads

        known = dict(states)
        differing: set[str] = set()
        gone = set(known)
        of_source = pads.scalar(True) if source is None else pads.field("source") == source
        for row in self._built_rows(("urn", "hash"), of_source):
            urn, digest = map(str, row)
            gone.discard(urn)
            if known.get(urn) != digest:
                differing.add(urn)
        if len(differing) > _FEW_DATASETS:
            yield from self._differing(known, source=source)
            return
        where = of_source & pads.field("urn").isin(list(differing))
        rows = self._rows("datasets", BuiltDataset._fields, where) if differing else ()
        built = (BuiltDataset(*row) for row in rows)  # type: ignore[arg-type]
        found = {
            (each.urn, each.source): each for each in built if known.get(each.urn) != each.hash
        }
        yielded: dict[tuple[str, str], BuiltDataset | str] = {**found, **{(u, ""): u for u in gone}}
        for key in sorted(yielded, key=lambda key: (key[0].encode("utf-8"), key[1])):
            yield yielded[key]

    def formats_by_urn(self) -> dict[str, str]:
        """Return the format of each dataset, once for each URN."""
        return {str(urn): str(name) for urn, name in self._built_rows(("urn", "format"))}

    def formats(self) -> list[FormatCount]:
        """Count the datasets of each format, most first."""
        counts: Counter[str] = Counter()
        odd: dict[str, list[tuple[str, str]]] = {}
        for name, urn, warnings in self._built_rows(("format", "urn", "warnings")):
            counts[str(name)] += 1
            if warnings is not None:
                odd.setdefault(str(name), []).append((str(urn), str(warnings)))
        found = [
            FormatCount(name, count, tuple(sorted(odd.get(name, ()))))
            for name, count in counts.items()
        ]
        return sorted(found, key=lambda each: (-each.datasets, each.format))

    def _datasets(self, source: str | None = None) -> DataFrame:
        datasets = self.tables.datasets
        sources = self._sources if source is None else [source]
        return datasets.where(datasets.source.isin(sources) & datasets.reason.isNull())

    def _built_rows(
        self, columns: Sequence[str], where: pads.Expression | None = None
    ) -> Iterator[tuple[object, ...]]:
        import pyarrow.dataset as pads

        is_built = pads.field("reason").is_null()
        return self._rows("datasets", columns, is_built if where is None else is_built & where)

    def _rows(
        self, table: str, columns: Sequence[str], where: pads.Expression | None = None
    ) -> Iterator[tuple[object, ...]]:
        return self.tables.rows(table, columns, sources=self._sources, where=where)

    def _differing(
        self, states: Mapping[str, str], *, source: str | None
    ) -> Iterator[BuiltDataset | str]:
        known = states_frame(self._session(), states.items())
        for row in _in_order(differing(self._datasets(source), known), "urn", "source"):
            found = row["source"] is not None
            yield BuiltDataset(*(row[name] for name in BuiltDataset._fields)) if found else row.urn


class Findings(FoundTables):
    """The datasets and problems of a run over storages."""

    def __init__(self, session: Session, listing: Listing) -> None:
        super().__init__(session)
        self._listing = listing

    def failed(self) -> Iterator[FailedDataset]:
        """Yield the datasets that could not be built."""
        import pyarrow.dataset as pads

        rows = self._rows("datasets", FailedDataset._fields, pads.field("reason").is_valid())
        yield from sorted(FailedDataset(*row) for row in rows)  # type: ignore[arg-type]

    def sources_with_files(self) -> set[str]:
        """Return the sources in which at least one file was found."""
        return {source for source, files in self._listing.files_of().items() if files}

    def unlisted(self) -> Iterator[ProblemFile]:
        """Yield what could not be listed."""
        for source, path, error in self._listing.unlisted:
            yield ProblemFile(source, path, error)

    def skipped_links(self) -> list[tuple[str, bytes]]:
        """Return source and path of each symlink that leads outside of its source."""
        return self._listing.links

    def unreadable(self) -> Iterator[ProblemFile]:
        """Yield the files that could not be read."""
        import pyarrow.dataset as pads

        columns = ("source", "path", "reason", "dataset", "retry")
        rows = self._rows("items", columns, pads.field("reason").is_valid())
        found = [ProblemFile(*row) for row in rows]  # type: ignore[arg-type]
        yield from sorted(found, key=lambda each: (each.source, each.path))

    def groupings(self) -> dict[str, dict[str, list[str]]]:
        """Return how files were put together by what is in them, by source and group."""
        import pyarrow.dataset as pads

        found: dict[str, dict[str, list[str]]] = {source: {} for source in self._sources}
        rows = self._built_rows(
            ("source", "dataset", "grouping"), pads.field("grouping").is_valid()
        )
        for source, dataset, grouping in sorted(map(_texts, rows)):
            found[source].setdefault(dataset, []).append(grouping)
        return found

    def notices(self) -> Iterator[FileNotice]:
        """Yield the warnings of each file, and why files were left out."""
        import pyarrow.dataset as pads

        said = pads.field("warnings").is_valid() | (pads.field("skipped") != "")
        columns = ("source", "path", "warnings", "skipped")
        found = {FileNotice(*row) for row in self._rows("items", columns, said)}  # type: ignore[arg-type]
        yield from sorted(found, key=lambda each: (each.source, each.path, each.warnings or ""))


def _texts(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(map(str, row))


def _in_order(frame: DataFrame, *columns: str) -> Iterator[Row]:
    """Yield the rows in order, as one task streams them: one job, and bounded memory."""
    yield from frame.coalesce(1).sortWithinPartitions(*columns).toLocalIterator()
