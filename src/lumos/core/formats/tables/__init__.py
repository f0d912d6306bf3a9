"""Table formats, read from their logs: Delta, Iceberg and Hudi; never as loose files."""

from lumos.core.errors import UnexpectedJsonError, UnreadableItemError
from lumos.core.formats.tables.access import TableAccess, TableEntry
from lumos.core.formats.tables.facts import PartitionField, TableFacts
from lumos.core.formats.tables.marks import (
    DELTA,
    HUDI,
    ICEBERG,
    TABLE_FORMATS,
    TableMark,
    inside_table,
    table_of_path,
    table_roots,
)

__all__ = [
    "TABLE_FORMATS",
    "PartitionField",
    "TableAccess",
    "TableEntry",
    "TableFacts",
    "TableMark",
    "inside_table",
    "read_table",
    "table_of_path",
    "table_roots",
]


def read_table(kind: str, root: str, access: TableAccess) -> TableFacts:
    """Return the facts of a table, read from its log alone.

    Args:
        kind: `delta`, `iceberg` or `hudi`, as `table_of_path` returns it.
        root: the folder of the table, relative to the source's root.
        access: reads and lists the source's files.

    Raises:
        UnreadableItemError: the log or metadata is damaged, incomplete or cannot be read.
    """
    try:
        return _read(kind, root, access)
    except UnexpectedJsonError as error:
        raise UnreadableItemError(f"its log is damaged: {error}") from None


def _read(kind: str, root: str, access: TableAccess) -> TableFacts:
    if kind == DELTA:
        from lumos.core.formats.tables.delta import read_delta

        return read_delta(root, access)
    if kind == ICEBERG:
        from lumos.core.formats.tables.iceberg import read_iceberg

        return read_iceberg(root, access)
    if kind == HUDI:
        from lumos.core.formats.tables.hudi import read_hudi

        return read_hudi(root, access)
    raise UnreadableItemError(
        f"no table format is called {kind!r}", hint=f"known are: {', '.join(TABLE_FORMATS)}"
    )
