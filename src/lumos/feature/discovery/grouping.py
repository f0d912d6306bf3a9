"""Decides which files of one proposed group are one dataset, by what is in them.

A path proposes a group: names that count (`ticket-101`), generic names (`data2`), and all files
below one set of `key=value` folders. Files whose names alone say that they are parts of one dataset
(`part-00001`) are never taken apart. All others stay together only where their columns are alike.

The result is a function of the files and of the names that were given before, so that neither the
order of files nor how many of them are read again changes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, NamedTuple

import orjson

from lumos.feature.discovery.file_names import Bond
from lumos.feature.discovery.fold import FormatFold

Parts = tuple[str, ...]
Columns = frozenset[str]

MOST_SCHEMAS: Final = 200
"""A group with more different schemas is not divided."""
_ALIKE = 0.5
_CONTAINED = 0.8
_DATED_ALIKE = 0.25
_NAMED = 3
_LONGEST_NUMBER = 18
_DIGITS: Final = re.compile(r"([0-9]+)")


class Group(NamedTuple):
    """Files that are one dataset."""

    format: str
    dataset: Parts
    files: FormatFold
    columns: tuple[str, ...] = ()
    """What the dataset is known by again; empty where its paths alone decide."""
    reason: str | None = None
    """Why files were not put together, said once for all groups of a name."""


@dataclass
class _Cell:
    """Files that are not taken apart."""

    files: FormatFold
    schemas: list[Columns]
    kind: Bond | None = None
    alone: Parts | None = None

    @property
    def count(self) -> int:
        return self.files.file_count


@dataclass
class _Cluster:
    """Cells that are one dataset."""

    cells: list[_Cell] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(cell.count for cell in self.cells)

    @property
    def columns(self) -> Columns:
        return frozenset().union(*(names for cell in self.cells for names in cell.schemas))

    @property
    def is_sure(self) -> bool:
        return any(cell.kind is None for cell in self.cells)

    @property
    def alone(self) -> Parts:
        return min((cell.alone for cell in self.cells if cell.alone), key=natural_order)

    @property
    def rank(self) -> tuple[bool, int, object]:
        return not self.is_sure, -self.count, () if self.is_sure else natural_order(self.alone)

    def merged(self) -> FormatFold:
        files = FormatFold()
        for cell in self.cells:
            files.merge(cell.files)
        return files


Kept = Mapping[str, Mapping[Parts, Columns]]
"""The names that datasets of a group were given before, with their columns, by format."""


def grouped(
    dataset: Parts,
    cells: Mapping[str, FormatFold],
    *,
    schemas: Mapping[str, str | bytes],
    kept: Kept,
) -> list[Group]:
    """Return the datasets of a proposed group, each with its name and files.

    Args:
        dataset: the name of the group.
        cells: its files, as `DatasetFold` keeps them apart.
        schemas: the schema of each fingerprint, as JSON.
        kept: what the datasets of the group were called before.
    """
    by_format: dict[str, list[_Cell]] = {}
    for key, files in sorted(cells.items()):
        format_, _, kind = key.partition("\n")
        found_columns = [columns_of(schemas[each]) for each in sorted(files.schemas)]
        alone = None if files.alone is None else tuple(orjson.loads(files.alone)[1:])
        bond = Bond(kind.partition("\n")[0]) if kind else None
        by_format.setdefault(format_, []).append(_Cell(files, found_columns, bond, alone))
    groups: list[Group] = []
    for format_, found in by_format.items():
        clusters = sorted(_clusters(found), key=lambda cluster: cluster.rank)
        names = _names(dataset, clusters, kept=kept.get(format_, {}))
        is_open = any(cell.kind is not None for cell in found)
        reason = _reason(clusters, names) if len(clusters) > 1 else None
        for cluster, name in zip(clusters, names, strict=True):
            columns = tuple(sorted(cluster.columns)) if is_open else ()
            groups.append(Group(format_, name, cluster.merged(), columns, reason))
            reason = None
    return groups


def columns_of(schema: str | bytes) -> Columns:
    """Return what makes schemas comparable: names, or places and types where there are no names."""
    document = orjson.loads(schema)
    fields = document.get("fields", ())
    if document.get("positional"):
        return frozenset(f"{place}:{each['type']}" for place, each in enumerate(fields))
    return frozenset(each["name"].casefold() for each in fields)


def are_alike(one: Columns, other: Columns, *, is_dated: bool = False) -> bool:
    """Return whether two schemas may be of one dataset; one without columns says nothing."""
    if not one or not other:
        return True
    common = len(one & other)
    share = common / len(one | other)
    if is_dated:
        return share >= _DATED_ALIKE
    contained = common / min(len(one), len(other))
    return share >= _ALIKE or (common > 1 and contained >= _CONTAINED)


def natural_order(parts: Parts) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """Return what names are sorted by: numbers in them as numbers."""
    return tuple(
        tuple(
            (0, int(piece), piece)
            if piece.isdecimal() and len(piece) <= _LONGEST_NUMBER
            else (1, 0, piece)
            for piece in _DIGITS.split(part)
        )
        for part in parts
    )


def _clusters(cells: Sequence[_Cell]) -> list[_Cluster]:
    stems = [cell for cell in cells if cell.kind is Bond.PARTITION]
    others = [cell for cell in cells if cell.kind not in (None, Bond.PARTITION)]
    sure = [cell for cell in cells if cell.kind is None]
    if _are_tables(stems):
        # Names of tables are never given to the folder above.
        return [*_alike([_Cluster(sure)] if sure else [], others), *(_Cluster([s]) for s in stems)]
    base = [*sure, *(_Cell(cell.files, cell.schemas) for cell in stems)]
    return _alike([_Cluster(base)] if base else [], others)


def _alike(base: list[_Cluster], cells: Sequence[_Cell]) -> list[_Cluster]:
    """Put cells together that are alike, also where only others between them are like both."""
    clusters = [*base, *(_Cluster([cell]) for cell in cells)]
    if len({names for cluster in clusters for c in cluster.cells for names in c.schemas}) > (
        MOST_SCHEMAS
    ):
        return [_Cluster([cell for cluster in clusters for cell in cluster.cells])]
    joined = list(range(len(clusters)))

    def root(place: int) -> int:
        while joined[place] != place:
            place = joined[place]
        return place

    for one, other in combinations(range(len(clusters)), 2):
        if root(one) != root(other) and _belong_together(clusters[one], clusters[other]):
            joined[max(root(one), root(other))] = min(root(one), root(other))
    found: dict[int, _Cluster] = {}
    for place, cluster in enumerate(clusters):
        found.setdefault(root(place), _Cluster()).cells.extend(cluster.cells)
    return list(found.values())


def _belong_together(one: _Cluster, other: _Cluster) -> bool:
    is_dated = all(cell.kind is Bond.DATED for cluster in (one, other) for cell in cluster.cells)
    return any(
        are_alike(mine, theirs, is_dated=is_dated)
        for mine in _schemas(one)
        for theirs in _schemas(other)
    )


def _schemas(cluster: _Cluster) -> set[Columns]:
    return {names for cell in cluster.cells for names in cell.schemas}


def _are_tables(stems: Sequence[_Cell]) -> bool:
    """Return whether partitions repeat the same several names with different schemas."""
    if len(stems) == 1 or any(cell.alone is None for cell in stems):
        return False  # one name, or too many to be those of tables
    partitions = [cell.files.partition_count for cell in stems]
    every = len({each for cell in stems for each in cell.files.partitions()})
    if not stems or 2 * min(partitions) <= max(every, *partitions):
        return False
    return len(_alike([], [_Cell(c.files, [_Cluster([c]).columns], c.kind) for c in stems])) > 1


def _names(
    dataset: Parts, clusters: Sequence[_Cluster], *, kept: Mapping[Parts, Columns]
) -> list[Parts]:
    """Name clusters: as they were called before; else by the group, or by their first file."""
    names: dict[int, Parts] = {}
    if clusters and clusters[0].is_sure:
        names[0] = dataset
    for name in sorted(kept, key=natural_order):
        if name in names.values():
            continue
        place = _heir(name, kept[name], clusters, taken=names)
        if place is not None:
            names[place] = name
    total = sum(cluster.count for cluster in clusters)
    for place, cluster in enumerate(clusters):
        if place not in names:
            names[place] = _new_name(dataset, cluster, total=total, taken=set(names.values()))
    return [names[place] for place in range(len(clusters))]


def _heir(
    name: Parts, columns: Columns, clusters: Sequence[_Cluster], *, taken: Mapping[int, Parts]
) -> int | None:
    """Return the cluster that keeps a name: with its file, or with the columns most alike."""
    best, best_fit = None, (False, 0.0)
    for place, cluster in enumerate(clusters):
        if place in taken or not are_alike(columns, cluster.columns):
            continue
        both = columns | cluster.columns
        share = len(columns & cluster.columns) / len(both) if both else 1.0
        fit = (any(cell.alone == name for cell in cluster.cells), share)
        if best is None or fit > best_fit:
            best, best_fit = place, fit
    return best


def _new_name(dataset: Parts, cluster: _Cluster, *, total: int, taken: set[Parts]) -> Parts:
    is_lone_count = cluster.count == 1 and cluster.cells[0].kind is Bond.COUNTED
    if cluster.cells[0].kind is Bond.PARTITION:
        return cluster.alone
    is_most = cluster.count == total or (cluster.count > 1 and 2 * cluster.count > total)
    if is_most and not is_lone_count and dataset not in taken:
        return dataset
    name = cluster.alone
    if name in taken:  # the same name with another ending
        path = cluster.merged().paths[0]
        name = (*name[:-1], path.rpartition("/")[2])
    return name


def _reason(clusters: Sequence[_Cluster], names: Sequence[Parts]) -> str:
    every = sorted((name[-1] if name else "" for name in names), key=lambda n: natural_order((n,)))
    shown = ", ".join(every[:_NAMED])
    more = f" and {len(every) - _NAMED:,} more" if len(every) > _NAMED else ""
    if any(cell.kind is Bond.PARTITION for cluster in clusters for cell in cluster.cells):
        return (
            f"partitions repeat names with different columns, so each is a dataset: {shown}{more}"
        )
    return (
        "files that are named like parts of one dataset are kept apart, "
        f"because their columns differ: {shown}{more}"
    )


def grouping_text(group: Group) -> str | None:
    """Return what later runs must know to call a dataset the same; None where paths decide."""
    if not group.columns:
        return None
    return orjson.dumps([group.format, [*group.dataset], [*group.columns]]).decode()


def kept_names(text: str | None) -> Kept:
    """Return what `grouping_text` wrote of each dataset of a group, of which text is a list."""
    kept: dict[str, dict[Parts, Columns]] = {}
    for format_, name, columns in orjson.loads(text) if text else ():
        kept.setdefault(format_, {})[tuple(name)] = frozenset(columns)
    return kept
