"""Folders of files that do or do not belong together, with the truth, and what Lumos makes of them.

A file is a path and its columns; it is never written, since only paths and schemas decide.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from lumos.feature.discovery.assembling import path_place
from lumos.feature.discovery.fold import DatasetFold, FileRow
from lumos.feature.discovery.grouping import grouped, grouping_text, kept_names

Rng = random.Random
_COMMON: Final = ("id", "name", "date", "status")
_WORDS: Final = (
    "amount", "city", "colour", "weight", "length", "owner", "price", "region", "rating", "stock",
    "team", "title", "total", "unit", "vendor", "volume", "yield", "zone", "engine", "doctor",
    "patient", "room", "crop", "harvest", "voltage", "current", "author", "isbn", "pages", "genre",
)  # fmt: skip
_THINGS: Final = ("ticket", "orders", "report", "survey", "sample", "trip", "invoice", "level")


class GroupedFile(NamedTuple):
    """A file, by its path and columns."""

    path: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class MessyFolder:
    """Files of one folder, and which of them belong together."""

    kind: str
    files: tuple[GroupedFile, ...]
    truth: frozenset[frozenset[str]]


def messy_folder(rng: Rng, *, number: int = 0) -> MessyFolder:
    """Return one folder of a kind that is drawn."""
    kind = rng.choice(sorted(_KINDS))
    folder = f"{rng.choice(('in', 'raw/crm', 'shared/export'))}/folder{number}x"
    groups = _KINDS[kind](rng, folder)
    files = [file for group in groups for file in group]
    rng.shuffle(files)
    truth = frozenset(frozenset(file.path for file in group) for group in groups)
    return MessyFolder(kind, tuple(files), truth)


def _columns(rng: Rng) -> tuple[str, ...]:
    return tuple(rng.sample(_WORDS, k=rng.randint(3, 7))) + tuple(rng.sample(_COMMON, k=1))


def _unlike(rng: Rng, count: int) -> list[tuple[str, ...]]:
    """Return sets of columns of which no two have more than one in common."""
    words = rng.sample(_WORDS, k=len(_WORDS))
    size = max(2, min(5, len(words) // count))
    common = rng.choice(((), ("id",), ("name",)))
    return [(*common, *words[place * size : (place + 1) * size]) for place in range(count)]


def _drifted(rng: Rng, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return columns as another file of the same dataset has them: one more, or one fewer."""
    if rng.random() < 0.6:
        return columns
    if rng.random() < 0.5:
        return (*columns, rng.choice(("extra", "comment", "source")))
    return columns[: max(3, len(columns) - 1)]


def _numbers(rng: Rng, count: int) -> list[str]:
    return rng.choice(
        (
            [str(n) for n in range(1, count + 1)],
            [f"{n:03}" for n in range(count)],
            [str(n) for n in sorted(rng.sample(range(100, 999), k=count))],
        )
    )


def _names(rng: Rng, count: int) -> list[str]:
    thing = rng.choice(_THINGS)
    mark = rng.choice(("_", "-", " ", ""))
    ending = rng.choice((".csv", ".json", ".xlsx", ".parquet"))
    return [f"{thing}{mark}{number}{ending}" for number in _numbers(rng, count)]


def _counted_alike(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    columns = _columns(rng)
    names = _names(rng, rng.randint(2, 12))
    return [[GroupedFile(f"{folder}/{name}", _drifted(rng, columns)) for name in names]]


def _counted_unlike(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    names = _names(rng, rng.randint(2, 6))
    columns = _unlike(rng, len(names))
    return [[GroupedFile(f"{folder}/{n}", c)] for n, c in zip(names, columns, strict=True)]


def _counted_mixed(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    names = _names(rng, 8)
    rng.shuffle(names)
    main, *others = _unlike(rng, 3)
    alike = [GroupedFile(f"{folder}/{name}", main) for name in names[:6]]
    return [
        alike,
        *([GroupedFile(f"{folder}/{n}", c)] for n, c in zip(names[6:], others, strict=True)),
    ]


def _generic_unlike(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    word = rng.choice(("data", "file", "output"))
    names = [f"{word}.csv", *(f"{word}{n}.csv" for n in range(2, rng.randint(3, 6)))]
    columns = _unlike(rng, len(names))
    return [[GroupedFile(f"{folder}/{n}", c)] for n, c in zip(names, columns, strict=True)]


def _generic_alike(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    columns = _columns(rng)
    return [[GroupedFile(f"{folder}/data{n or ''}.csv", _drifted(rng, columns)) for n in range(4)]]


def _plain_names(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    names = rng.sample(("customers", "products", "stores", "staff", "rates"), k=3)
    return [[GroupedFile(f"{folder}/{name}.csv", _columns(rng))] for name in names]


def _dated(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    columns = _columns(rng)
    thing = rng.choice(_THINGS)
    days = [f"2024-0{rng.randint(1, 9)}-{day:02}" for day in range(1, rng.randint(3, 15))]
    return [[GroupedFile(f"{folder}/{thing}_{day}.csv", _drifted(rng, columns)) for day in days]]


def _parts(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    return [
        [GroupedFile(f"{folder}/part-{n:05}.parquet", c) for n, c in enumerate(_unlike(rng, 3))]
    ]


def _partitions(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    columns = _columns(rng)
    key = rng.choice(("dt", "region", "year"))
    return [
        [
            GroupedFile(
                f"{folder}/{key}={2000 + n}/{rng.choice(_WORDS)}{rng.choice(('', '_1', '-x'))}.csv",
                _drifted(rng, columns),
            )
            for n in range(rng.randint(2, 8))
        ]
    ]


def _partitioned_tables(rng: Rng, folder: str) -> list[list[GroupedFile]]:
    names = rng.sample(("customers", "products", "stores", "staff"), k=rng.randint(2, 3))
    days = range(1, rng.randint(3, 9))
    return [
        [GroupedFile(f"{folder}/dt=2024-01-{day:02}/{name}.csv", columns) for day in days]
        for name, columns in zip(names, _unlike(rng, len(names)), strict=True)
    ]


_KINDS: Final = {
    "counted and alike": _counted_alike,
    "counted and unlike": _counted_unlike,
    "counted, some unlike": _counted_mixed,
    "generic and unlike": _generic_unlike,
    "generic and alike": _generic_alike,
    "plain names": _plain_names,
    "dated": _dated,
    "parts of a writer": _parts,
    "partitions with any names": _partitions,
    "partitions of several tables": _partitioned_tables,
}


Marks = dict[str, list[str]]
"""What a run keeps in the state of each group."""


def datasets_of(
    files: Iterable[GroupedFile],
    *,
    marks: Mapping[str, Sequence[str]] | None = None,
    pieces: int = 1,
) -> tuple[dict[str, frozenset[str]], Marks]:
    """Return the files of each dataset by name, up to 20, and what the next run has to know.

    Args:
        files: what lies there, in the order in which it is met.
        marks: what an earlier run kept.
        pieces: how many tasks the files are met by.
    """
    folds: dict[tuple[str, ...], list[DatasetFold]] = {}
    schemas: dict[str, str] = {}
    for position, file in enumerate(files):
        place = path_place(file.path)
        assert place is not None
        fields = [{"name": name, "type": "STRING"} for name in file.columns]
        fingerprint = "/".join(file.columns)
        schemas[fingerprint] = orjson.dumps({"fields": fields}).decode()
        bond = orjson.dumps([place.bond, *place.alone]).decode() if place.bond else None
        row = FileRow(
            size=1,
            mtime_us=1,
            layout=place.layout,
            partition=place.partition,
            format=place.format or "",
            fingerprint=fingerprint,
            path=file.path.encode(),
            bond=bond,
        )
        parts = folds.setdefault(place.dataset, [DatasetFold() for _ in range(pieces)])
        parts[position % pieces].add(row)
    found: dict[str, frozenset[str]] = {}
    kept: Marks = {}
    for dataset, parts in folds.items():
        whole = DatasetFold()
        for part in parts:
            whole.merge(DatasetFold.from_bytes(part.to_bytes()))
        key = "/".join(dataset)
        before = (marks or {}).get(key)
        names = kept_names(f"[{','.join(before)}]" if before else None)
        for group in grouped(dataset, whole.formats, schemas=schemas, kept=names):
            name = f"{'/'.join(group.dataset)} {group.format}"
            assert name not in found
            found[name] = frozenset(group.files.paths)
            if text := grouping_text(group):
                kept.setdefault(key, []).append(text)
    return found, kept
