"""Proposes the dataset that a file belongs to, from its path alone.

A path is judged without a look at any other file, so that files can be placed one by one on many
machines. Where its name leaves open whether it belongs to others of its kind, the place has a bond,
and `grouping` decides by what is in the files.

The rules, in this order:

1. Hidden, temporary and housekeeping files are no data.
2. `key=value` folders, and dates of a quarter or less, are partitions wherever they stand.
3. For files without a plain name, a year, a number or a time in seconds at the end is a partition
   too, and folders that writers add (`data`, `bucket-0`, `delta_0000023_0000023`) are no names.
4. A file without a meaningful name (`part-00001`, `000000_0`, a UUID) belongs to its folder.
5. A name with a date, a random id, or a number belongs to the name without them:
   `orders_2024-01-31.csv` to `orders`.
6. A name equal to that of the folder, or of the last few folders together, belongs to the folder.
7. Below `key=value` folders a file of any name belongs to the folder above.
8. Any other file is a separate dataset, called by its name without format and codec.

What the rules 4, 5 and 7 propose is decided by the columns, in `grouping`.

Layouts that need knowledge of their tool, such as `AWSLogs`, are in `known_layouts`.
Files of one dataset in two formats are two datasets; `dataset_names` gives them two names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from lumos.core.models.base import canonical_json
from lumos.feature.discovery.file_names import (
    UNKNOWN,
    Bond,
    FileName,
    read_file_name,
    without_extensions,
)
from lumos.feature.discovery.folders import Folders, read_folders
from lumos.feature.discovery.known_layouts import known_folders, without_hashes
from lumos.feature.discovery.no_data import is_no_data

PathParts = tuple[str, ...]

_NEAR: Final = 3
"""So many folders above a file may lend it their name."""
_PREFERRED_FORMATS: Final = (
    "delta", "iceberg", "hudi", "parquet", "orc", "avro", "json", "csv",
)  # fmt: skip


class FilePlace(NamedTuple):
    """Where a file belongs."""

    dataset: PathParts
    """The plain path parts that name the dataset; empty where it is the source's root itself."""
    prefix: str
    """What all its files have in front: a folder such as `/raw/orders/`, or a file's whole path."""
    partitioning: str | None
    """The template of the partitions, such as `year={yyyy}/month={mm}`."""
    partition_keys: PathParts
    partition_values: tuple[str | None, ...]
    partition_types: PathParts
    """The canonical type that fits each value; empty for a value that is null."""
    format: str | None
    """What the extension says; the bytes decide."""
    compression: str | None
    shard: bool
    """The file's name is unique within its dataset and partition."""
    bond: Bond | None = None
    """Why it may belong to others of the dataset; None where its path says that it does."""
    alone: PathParts = ()
    """What its dataset is called where it does not."""

    @property
    def layout(self) -> str:
        """How the file lies, as the JSON that a fold takes."""
        return _layout(
            self.prefix, self.partitioning, keys=self.partition_keys, types=self.partition_types
        )

    @property
    def partition(self) -> str:
        """The values of its partition, as the JSON that a fold takes."""
        return _partition(self.partition_values)


def path_place(path: str) -> FilePlace | None:
    """Place a file, given by its path relative to the source's root, with `/` between the parts.

    Returns:
        None for a file that holds no data: hidden, temporary, or a table's bookkeeping.
    """
    if is_no_data(path):
        return None
    parent, _, file = path.rpartition("/")
    name = read_file_name(file)
    if known := known_folders(path):
        return _known(known, name)
    parent = without_hashes(parent, file)
    folders, is_folder_name = _folders(parent, file, name=name)
    dataset, folder_format = folders.dataset, None
    bond, alone = name.bond, (*folders.dataset, name.alone)
    if not is_folder_name and "={" in (folders.template or ""):
        bond, alone = Bond.PARTITION, (*dataset, name.stem)
    elif not is_folder_name:
        dataset = (*dataset, name.stem)
    elif dataset:
        last, folder_format, _ = without_extensions(dataset[-1])  # what Spark wrote to x.parquet/
        dataset = (*dataset[:-1], last)
    if is_folder_name and folders.keys:
        bond = None
    is_alone = not (is_folder_name or name.numbered or folders.keys)
    return FilePlace(
        dataset=dataset,
        prefix=f"{folders.prefix}{file}" if is_alone else folders.prefix,
        partitioning=folders.template,
        partition_keys=folders.keys,
        partition_values=folders.values,
        partition_types=folders.types,
        format=name.format or folder_format,
        compression=name.compression,
        shard=name.numbered,
        bond=bond,
        alone=alone if bond else (),
    )


def _folders(parent: str, file: str, *, name: FileName) -> tuple[Folders, bool]:
    """Read the folders, and return whether they name the dataset without the file's help."""
    last = parent.rpartition("/")[2]
    repeated = last.isdecimal() and file.startswith((f"{last}_", f"{last}-", f"{last}."))
    nameless = read_folders(parent, nameless=True, keep_last=repeated)
    if not name.stem or _same(name.stem, nameless.dataset):
        return nameless, True
    if name.of_writer and nameless.dataset and nameless.keys:
        return nameless, True
    folders = read_folders(parent, nameless=False, years=name.dated)
    return folders, _same(name.stem, folders.dataset)


def _known(folders: Folders, name: FileName) -> FilePlace:
    return FilePlace(
        dataset=folders.dataset,
        prefix=folders.prefix,
        partitioning=folders.template,
        partition_keys=folders.keys,
        partition_values=folders.values,
        partition_types=folders.types,
        format=name.format,
        compression=name.compression,
        shard=True,
    )


def dataset_names(dataset: PathParts, formats: Iterable[str | None]) -> dict[str | None, PathParts]:
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


@lru_cache(maxsize=4096)
def _layout(prefix: str, partitioning: str | None, *, keys: PathParts, types: PathParts) -> str:
    document = {
        "prefix": prefix,
        "partitioning": partitioning,
        "partition_keys": keys,
        "partition_types": types,
    }
    return canonical_json(document).decode()


@lru_cache(maxsize=4096)
def _partition(values: tuple[str | None, ...]) -> str:
    return canonical_json(values).decode()


def _same(stem: str, dataset: PathParts) -> bool:
    """Return whether a file is called like a folder above it, or like the last few together."""
    name = stem.casefold()
    if not dataset:
        return False
    near = [part.casefold() for part in dataset[-_NEAR:]]
    near[-1] = without_extensions(dataset[-1])[0].casefold()
    if name in near:
        return True
    if not name.endswith(near[-1]):
        return False
    joined = re.sub(r"[-_.]", "/", name)
    return any(
        re.sub(r"[-_.]", "/", "/".join(near[start:])) == joined for start in range(len(near) - 1)
    )
