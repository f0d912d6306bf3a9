"""Flat columns out of delimited text: every value as text, by the place of its column."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

from lumos.spark.stages.profiling import NUMBERS, ColumnKind, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.csv import InvalidRow

    from lumos.core.formats.facts import FileFacts
    from lumos.feature.profiling.columns import ProfiledColumn

_BLOCK_BYTES = 4 * 1024 * 1024
_LINES_BEFORE_ROWS = 200
_NOTHING: Final = ("", "null", "\\n", "na", "n/a", "none")
_TRUE: Final = "true"


class CsvRows:
    """The rows of an open CSV file; those with too many or few values are counted, not read."""

    def __init__(self, facts: FileFacts, *, head: str) -> None:
        """Read a file as its facts say it is written.

        Args:
            facts: how it is written, and its columns.
            head: its first lines, by which those before its rows are found.
        """
        self._properties = facts.properties
        self._names = [field.name for field in facts.schema.fields]
        self._lines_before = self._counted_before(head)
        self.ragged = 0

    def batches(
        self, stream: BinaryIO, columns: Sequence[ProfiledColumn]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the flat columns of the rows, some megabytes at a time."""
        from pyarrow import csv as arrow_csv

        trailing = int(self._properties.get("trailing_delimiter") == _TRUE)
        places = [f"p{place}" for place in range(len(self._names) + trailing)]
        reader = arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                column_names=places,
                encoding=self._properties.get("encoding", "utf-8"),
                block_size=_BLOCK_BYTES,
                skip_rows=self._lines_before,
                skip_rows_after_names=int(self._properties.get("header") == _TRUE),
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._properties.get("delimiter", ","),
                quote_char=self._properties.get("quote") or False,
                escape_char=self._properties.get("escape") or False,
                newlines_in_values=True,
                invalid_row_handler=self._pass_over,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(places, _text_type()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        of_name = dict(zip(self._names, places, strict=False))
        for batch in reader:
            yield self._flat(batch, columns, of_name=of_name)

    def _counted_before(self, head: str) -> int:
        """Count the comments, titles and the like that come before the rows."""
        delimiter = self._properties.get("delimiter", ",")
        count = 0
        for line in head.splitlines()[:_LINES_BEFORE_ROWS]:
            cells = next(csv.reader([line], delimiter=delimiter), [])
            is_prose = len(self._names) > 1 and sum(map(bool, cells)) <= 1
            if not (line.startswith("#") or line[:4].casefold() == "sep=" or is_prose):
                break
            count += 1
        return count

    def _flat(
        self,
        batch: pa.RecordBatch,
        columns: Sequence[ProfiledColumn],
        *,
        of_name: Mapping[str, str],
    ) -> pa.RecordBatch:
        import pyarrow as pa

        arrays = []
        for column in columns:
            place = of_name.get(column.field.name)
            if place is None:
                arrays.append(pa.nulls(batch.num_rows, arrow_type(column.flat)))
            else:
                arrays.append(self._values(batch.column(place), column.flat.kind))
        return pa.RecordBatch.from_arrays(arrays, names=[column.flat.name for column in columns])

    def _values(self, texts: pa.Array, kind: ColumnKind) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        if kind in (ColumnKind.TEXT, ColumnKind.IDENTIFIER):
            return texts
        trimmed = pc.utf8_trim_whitespace(texts)
        is_nothing = pc.is_in(pc.utf8_lower(trimmed), pa.array(_NOTHING))
        found = pc.if_else(is_nothing, pa.scalar(None, pa.string()), trimmed)
        if kind is ColumnKind.PRESENT:
            return pc.if_else(pc.is_valid(found), True, pa.scalar(None, pa.bool_()))
        if kind in NUMBERS and self._properties.get("decimal") == ",":
            whole = pc.replace_substring(found, ".", "")
            return pc.replace_substring(whole, ",", ".")
        if kind in NUMBERS and self._properties.get("thousands") == ",":
            return pc.replace_substring_regex(found, "[,'\u2019\u00a0\u202f]", "")
        return found

    def _pass_over(self, _row: InvalidRow) -> str:
        self.ragged += 1
        return "skip"


def _text_type() -> pa.DataType:
    import pyarrow as pa

    return pa.string()
