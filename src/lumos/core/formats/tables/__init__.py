"""Table formats, read from their logs: Delta, Iceberg and Hudi; never as loose files."""

from lumos.core.formats.tables.access import TableAccess, TableEntry
from lumos.core.formats.tables.facts import PartitionField, TableFacts
from lumos.core.formats.tables.marks import (
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
    "table_of_path",
    "table_roots",
]
