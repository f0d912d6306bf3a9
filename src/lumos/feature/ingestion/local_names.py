"""Which datasets of the state carry a folder of a machine in their URN, or another root."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from lumos.core.models import Urn
from lumos.core.models.origin import folder_of, origin_in
from lumos.core.storage.port import printable
from lumos.core.store.checksums import DATASETS, pass_over, whole_rows
from lumos.core.store.documents import stored_object
from lumos.core.store.renaming import Renaming
from lumos.core.store.sql_text import as_key

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase
    from lumos.feature.ingestion.scan.sources import ScanSource

_PAGE: Final = 500


class _Known(NamedTuple):
    """A dataset of the state that a source found."""

    urn: Urn
    placed: tuple[str, ...]
    """Its own parts, below the root of the source."""
    folder: str | None
    """Where the source was when it was found: another project may have a source of that name."""


def renamed_datasets(database: StateDatabase, sources: Iterable[ScanSource]) -> list[Renaming]:
    """Return which datasets of local sources have another URN now, in the order to rename them.

    Earlier versions put every folder down to a local dataset into its URN. The root of a source may
    also have been changed since its datasets were found.
    """
    names: dict[str, str] = {}
    folders: dict[str, str] = {}
    for source in sources:
        if source.root.path is None:
            continue
        root = Urn.of_path(source.root.platform, *source.root.parts)
        for known in _doubtful(database, source, root=root):
            new = _new_name(known, source)
            if new == known.urn or known.folder != printable(source.root.path):
                continue
            names[known.urn] = new
            above = known.urn.parts[: len(known.urn.parts) - len(known.placed)]
            if source.is_whole_folder and above and not known.urn.is_shortened:
                folders[f"{Urn.of(source.root.platform, *above)}/"] = f"{root}/"
    taken = _existing(database, names.values()) - names.keys()
    names = {old: new for old, new in names.items() if new not in taken}
    if not names:
        return []
    plain = {old: new for old, new in folders.items() if not _nested(old, new)}
    others = _existing_below(database, plain) - names.keys()
    return [
        Renaming(step, plain if number == 0 else {}, frozenset(others))
        for number, step in enumerate(_in_order(names))
    ]


def _new_name(known: _Known, source: ScanSource) -> Urn:
    own = known.placed
    if own and not known.urn.is_shortened:
        own = known.urn.parts[-len(own) :]  # the second format of a name has it at its end
    return Urn.of_path(source.root.platform, *source.root.parts, *own)


def _doubtful(database: StateDatabase, source: ScanSource, *, root: Urn) -> Iterator[_Known]:
    """Yield the datasets of a source whose URN does not begin with its root, which are few.

    If the folder itself begins like the root, the URNs alone do not show it, and all are looked at.
    """
    folders = str(source.root.path).strip("/").split("/")
    elsewhere = "AND NOT (urn = :root OR (urn > :below AND urn < :behind))"
    condition = "" if folders[0] == source.root.parts[0] else elsewhere
    below = {"root": root, "below": f"{root}/", "behind": f"{root}0"}  # 0 follows the slash
    yield from _datasets_of(database, source.storage.name, condition, below if condition else {})


def _datasets_of(
    database: StateDatabase, source: str, condition: str, given: Mapping[str, str]
) -> Iterator[_Known]:
    after = ""
    while True:
        rows = database.query(
            f"{DATASETS.select()} WHERE origin = :origin AND urn > :after {condition} "
            f"ORDER BY urn LIMIT {_PAGE}",
            {"origin": as_key(source), "after": after, **given},
        )
        if not rows:
            return
        for row in whole_rows(rows, DATASETS, pass_over):
            document = stored_object(row.text("document"))
            extensions, location = document.get("extensions"), document.get("location")
            origin = origin_in(extensions) if isinstance(extensions, dict) else None
            if origin is not None and origin.source == source:
                placed = tuple(map(str, orjson.loads(origin.dataset)))
                path = location.get("path") if isinstance(location, dict) else None
                folder = (
                    str(path)
                    if path
                    else folder_of(extensions)
                    if isinstance(extensions, dict)
                    else None
                )
                yield _Known(Urn.canonical(row.text("urn")), placed, folder)
        after = rows[-1].text("urn")


def _existing(database: StateDatabase, urns: Iterable[str]) -> set[str]:
    """Return the URNs that a dataset or a history has already."""
    found: set[str] = set()
    every = sorted(urns)
    for start in range(0, len(every), _PAGE):
        marks = {f"u{place}": urn for place, urn in enumerate(every[start : start + _PAGE])}
        for table in ("datasets", "versions"):
            rows = database.query(
                f"SELECT urn FROM {table} WHERE urn IN "  # noqa: S608 - names of this module
                f"({', '.join(f':{mark}' for mark in marks)})",
                marks,
            )
            found.update(row.text("urn") for row in rows)
    return found


def _existing_below(database: StateDatabase, folders: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    for folder in folders:
        rows = database.query(
            "SELECT urn FROM datasets WHERE urn > :first AND urn < :last",
            {"first": folder, "last": f"{folder[:-1]}0"},  # what follows a slash
        )
        found.update(row.text("urn") for row in rows)
    return found


def _nested(old: str, new: str) -> bool:
    return old.startswith(new) or new.startswith(old)


def _in_order(names: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield what to rename step by step, so that no step needs a name that is still in use.

    Names that change in a circle are left out.
    """
    left = dict(names)
    while left:
        step = {old: new for old, new in left.items() if new not in left}
        if not step:
            return
        yield step
        left = {old: new for old, new in left.items() if old not in step}
