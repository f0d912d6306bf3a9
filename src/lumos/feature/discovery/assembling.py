"""Finds the dataset that a file belongs to, from its path alone.

A path is judged without a look at any other file. So files can be placed one by one on many
machines, and a new file never moves an old one to another dataset.

The rules, in this order:

1. Hidden, temporary and housekeeping files are no data.
2. `key=value` folders and dates at the end of the path are partitions; so is a date of at least a
   month further up. A lone year is a partition only for files without a plain name of their own.
3. A file without a name of its own (`part-00001`, `000000_0`, a UUID) belongs to its folder.
4. A name with a date, a random id, or a number of three digits and more at its end belongs to the
   name without them: `orders_2024-01-31.csv` to `orders`.
5. A name equal to that of the folder belongs to the folder: `orders/orders.csv` to `orders`.
6. Any other file is a dataset of its own, called by its name without format and codec.

Files of one dataset in two formats are two datasets; `dataset_names` tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from lumos.feature.discovery.file_names import UNKNOWN, read_file_name, without_extensions
from lumos.feature.discovery.folders import Folders, Segment, read_folders

Parts = tuple[str, ...]

_TEMPORARY: Final = (
    ".crc", ".tmp", ".temp", ".inprogress", ".swp", "~", "._copying_", "_$folder$",
)  # fmt: skip
_HOUSEKEEPING: Final = frozenset({"thumbs.db", "desktop.ini", "version-hint.text"})
_ICEBERG_METADATA: Final = re.compile(
    r"(?:^|/)metadata/(?:[^/]*\.metadata\.json(?:\.gz)?|snap-[^/]*\.avro|[^/]*-m\d+\.avro"
    r"|[^/]*\.stats|[^/]*\.puffin)$"
)
_PREFERRED_FORMATS: Final = (
    "delta", "iceberg", "hudi", "parquet", "orc", "avro", "json", "csv",
)  # fmt: skip
_WHOLE_NUMBER = re.compile(r"(?:0|-?[1-9][0-9]{0,18})")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LARGEST_INT32 = 2**31 - 1
_LARGEST_INT64 = 2**63 - 1


class FilePlace(NamedTuple):
    """Where a file belongs."""

    dataset: Parts
    """The plain path parts that name the dataset; empty where it is the source's root itself."""
    prefix: str
    """What all its files have in front: a folder such as `/raw/orders/`, or a file's whole path."""
    partitioning: str | None
    """The template of the partitions, such as `year={yyyy}/month={mm}`."""
    partition_keys: Parts
    partition_values: tuple[str | None, ...]
    partition_types: Parts
    """The canonical type that fits each value; empty for a value that is null."""
    format: str | None
    """What the extension says; the bytes decide."""
    compression: str | None
    shard: bool
    """The file's name tells it from others of the same dataset and partition."""


def place_of(path: str) -> FilePlace | None:
    """Place a file, given by its path relative to the source's root, with `/` between the parts.

    Returns:
        None for a file that holds no data of its own: hidden, temporary, or a table's bookkeeping.
    """
    if _is_no_data(path):
        return None
    parent, _, file = path.rpartition("/")
    name = read_file_name(file)
    years = read_folders(parent, lone_years=True)
    is_folder_name = not name.stem or _same(name.stem, years.dataset)
    folders = years
    if not (is_folder_name or name.dated):
        folders = read_folders(parent, lone_years=False)
        is_folder_name = _same(name.stem, folders.dataset)
    dataset, folder_format = folders.dataset, None
    if not is_folder_name:
        dataset = (*dataset, name.stem)
    elif dataset:
        last, folder_format, _ = without_extensions(dataset[-1])  # what Spark wrote to x.parquet/
        dataset = (*dataset[:-1], last)
    is_alone = not (is_folder_name or name.numbered or folders.segments)
    return FilePlace(
        dataset=dataset,
        prefix=_prefix(folders, file if is_alone else ""),
        partitioning=folders.template,
        partition_keys=tuple([segment.key for segment in folders.segments]),
        partition_values=tuple([segment.value for segment in folders.segments]),
        partition_types=tuple([_value_type(segment) for segment in folders.segments]),
        format=name.format or folder_format,
        compression=name.compression,
        shard=name.numbered,
    )


def dataset_names(dataset: Parts, formats: Iterable[str | None]) -> dict[str | None, Parts]:
    """Name the datasets that lie under one name in several formats.

    A single format keeps the plain name. Of several, the one that is foremost among Delta, Iceberg,
    Hudi, Parquet, ORC, Avro, JSON and CSV keeps it; each other one gets its format appended, as in
    `orders.csv`. No plain name ends with a format and no part of one begins with a dot, so names
    never collide; the second format of a dataset that is the root itself is called `.csv`.
    """
    first, *others = sorted(set(formats), key=_preference)
    *above, last = dataset or ("",)
    return {
        first: dataset,
        **{other: (*above, f"{last}.{other or UNKNOWN}") for other in others},
    }


def _preference(format_: str | None) -> tuple[int, str]:
    if format_ is None:
        return len(_PREFERRED_FORMATS) + 1, ""
    if format_ in _PREFERRED_FORMATS:
        return _PREFERRED_FORMATS.index(format_), format_
    return len(_PREFERRED_FORMATS), format_


def _is_no_data(path: str) -> bool:
    lowered = path.lower()
    name = lowered.rpartition("/")[2]
    if not name or name.endswith(_TEMPORARY) or name in _HOUSEKEEPING:
        return True
    if path[0] in "._" or "/." in path or "/_" in path:
        for part in path.split("/"):
            if part.startswith(".") or (part.startswith("_") and "=" not in part):
                return True
    return "metadata/" in lowered and bool(_ICEBERG_METADATA.search(lowered))


def _same(stem: str, dataset: Parts) -> bool:
    return bool(dataset) and stem.casefold() == without_extensions(dataset[-1])[0].casefold()


def _prefix(folders: Folders, file: str) -> str:
    above = "".join(f"/{part}" for part in folders.above)
    return f"{above}/{file}"


def _value_type(segment: Segment) -> str:
    value = segment.value
    if value is None:
        return ""
    if _DAY.fullmatch(value) and segment.in_date:
        return "DATE"
    if segment.in_date and value.isdecimal():
        return "INT32" if len(value) <= len("yyyymmdd") else "INT64"
    if _WHOLE_NUMBER.fullmatch(value):
        size = abs(int(value))
        if size <= _LARGEST_INT32:
            return "INT32"
        if size <= _LARGEST_INT64:
            return "INT64"
    return "STRING"
