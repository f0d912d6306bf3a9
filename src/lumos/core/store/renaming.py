"""Giving datasets of the state other URNs, with their history and all that refers to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lumos.core.errors import InvalidModelError, StateError
from lumos.core.json_reading import find_object, find_value
from lumos.core.models import LumosDataset
from lumos.core.models.base import sha256_of
from lumos.core.models.origin import FOLDER, ORIGIN
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.catalog.observed_parts import join_document, split_document
from lumos.core.store.catalog.search import SearchIndex, SearchText
from lumos.core.store.checksums import DATASETS, SYNC_STATES, pass_over
from lumos.core.store.documents import stored_object, stored_text
from lumos.core.store.state_move import COPIED, StateTable, pages_of, table_columns
from lumos.core.store.sync_states import FORMER_NAME, WHOLE_NAME, state_key
from lumos.core.store.version_states import packed, unpacked

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue

FORMER_URN: Final = "lumos"
"""In the identity map: the URN that the dataset had before."""
_KEPT: Final = frozenset({"runs", "dataset_labels", "scan_marks", "configured_sources"})
"""Tables that name no dataset, or record what once happened."""
_EDGES: Final = frozenset({"lineage_edges", "edge_contributions"})
_DAMAGED: Final = (StateError, InvalidModelError, ValueError)
"""What reading a damaged document raises; ValueError comes from a place that is no number."""
_AT_A_TIME: Final = 500
_URN: Final = re.compile(r"lumos://[a-z][a-z0-9_.-]*/[A-Za-z0-9\-._~=@+:,$%/]+")
_PUNCTUATION: Final = ".,:"

_Values = dict[str, "SqlValue"]


@dataclass(frozen=True)
class Renaming:
    """Which URNs become which."""

    names: Mapping[str, str] = field(default_factory=dict)
    """New URNs by old ones."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Beginnings of URNs, each with a slash at its end, for what is in no catalog any more."""
    kept: frozenset[str] = frozenset()
    """URNs that begin so and stay."""

    def __bool__(self) -> bool:
        return bool(self.names)

    def of(self, urn: str) -> str:
        """Return the new URN; the same where it stays."""
        if (new := self.names.get(urn)) is not None:
            return new
        for old, now in self.folders.items():
            if urn.startswith(old) and urn not in self.kept:
                return now + urn.removeprefix(old)
        return urn

    def in_text(self, text: str) -> str:
        """Return a text, such as a JSON document, with every URN in it renamed."""
        return _URN.sub(self._replaced, text) if "lumos://" in text else text

    def _replaced(self, match: re.Match[str]) -> str:
        found = match[0]
        if found in self.names:
            return self.names[found]
        urn = found.rstrip(_PUNCTUATION)
        return self.of(urn) + found[len(urn) :]


def rename_datasets(database: StateDatabase, renaming: Renaming) -> None:
    """Rename datasets wherever the state names them, as part of the caller's transaction.

    Their versions, contributions, measurements, alerts and lineage go along. A contract that names
    others by URN, by its lineage, gets their new names in every version, so that nothing looks
    changed. Damaged rows get the new name too and stay damaged.
    """
    if not renaming:
        return
    _clear_way(database, renaming)
    _remember_for_catalogs(database, renaming)
    for table in COPIED:
        if table.name not in _KEPT:
            _rename_rows(database, table, renaming)
    _remove_copied_versions(database, renaming)
    _renew_datasets(database, renaming)
    tables = CatalogTables(database)
    for old, new in renaming.names.items():
        tables.identities.put(new, FORMER_URN, external_id=old)


def _remove_copied_versions(database: StateDatabase, renaming: Renaming) -> None:
    """Remove versions under their old names, also of datasets that are gone."""
    rows = database.query("SELECT DISTINCT urn FROM versions")
    olds = {urn for urn in (row.text("urn") for row in rows) if renaming.of(urn) != urn}
    database.execute_many("DELETE FROM versions WHERE urn = :urn", ({"urn": old} for old in olds))


def _clear_way(database: StateDatabase, renaming: Renaming) -> None:
    """Remove what nobody has a dataset for and stands where a row of a renamed one goes."""
    for name in ("contributions", "observations", "identity_map"):
        statement = f"DELETE FROM {name} WHERE urn = :urn"  # noqa: S608 - names of this module
        for some in _chunks(sorted(renaming.names.values())):
            database.execute_many(statement, ({"urn": urn} for urn in some))


def _remember_for_catalogs(database: StateDatabase, renaming: Renaming) -> None:
    """Note under which names other catalogs have the datasets, unless they were renamed before."""
    for some in _chunks(sorted(renaming.names)):
        marks = {f"u{place}": urn for place, urn in enumerate(some)}
        rows = database.query(
            "SELECT target, name, updated_at FROM sync_states s WHERE kind = 'dataset' "  # noqa: S608
            f"AND name IN ({', '.join(f':{mark}' for mark in marks)}) AND NOT EXISTS "
            "(SELECT 1 FROM sync_states f WHERE f.target = s.target AND f.kind = :former "
            "AND f.name = s.name)",
            {**marks, "former": FORMER_NAME},
        )
        for row in rows:
            name = row.text("name")
            values: _Values = {
                "target": row.text("target"),
                "kind": FORMER_NAME,
                "name": name,
                "hash": name,
                "kept": None,
                "updated_at": row.text("updated_at"),
            }
            database.execute(
                "INSERT INTO sync_states (target, kind, name, hash, kept, updated_at, checksum) "
                "VALUES (:target, :kind, :name, :hash, :kept, :updated_at, :checksum)",
                {**values, "checksum": SYNC_STATES.checksum(values)},
            )


def _rename_rows(database: StateDatabase, table: StateTable, renaming: Renaming) -> None:
    columns = table_columns(database, table.name)
    rewrite = _REWRITES.get(table.name, _rewritten)
    for rows in pages_of(database, table, columns):
        for row in rows:
            before: _Values = dict(zip(columns, row.values, strict=True))
            after = rewrite(before, renaming)
            if after == before:
                continue
            for check in table.checks:
                if check.is_whole(row):
                    after[check.column] = _checksum(check.earlier, after, check.checksum)
            _write(database, table, before, after)


def _checksum(
    earlier: str | None, values: _Values, checksum: Callable[[Mapping[str, SqlValue]], int]
) -> int:
    """Return the checksum of a row, also of one that an earlier Lumos wrote."""
    if earlier is not None and values["state"] is None:
        return checksum({**values, "state": values[earlier]})
    return checksum(values)


def _write(database: StateDatabase, table: StateTable, before: _Values, after: _Values) -> None:
    old_key = {f"old_{name}": before[name] for name in table.key}
    where = " AND ".join(f"{name} = :old_{name}" for name in table.key)
    is_renamed = any(before[name] != after[name] for name in table.key)
    if table.name == "versions" and is_renamed:  # changes refer to it until they are renamed too
        names = ", ".join(after)
        marks = ", ".join(f":{name}" for name in after)
        database.execute(f"INSERT INTO versions ({names}) VALUES ({marks})", after)  # noqa: S608
        return
    if table.name in _EDGES and is_renamed:
        same = " AND ".join(f"{name} = :{name}" for name in table.key)
        key = {name: after[name] for name in table.key}
        database.execute(f"DELETE FROM {table.name} WHERE {same}", key)  # noqa: S608
    changed = {name: value for name, value in after.items() if value != before[name]}
    given = ", ".join(f"{name} = :{name}" for name in changed)
    statement = f"UPDATE {table.name} SET {given} WHERE {where}"  # noqa: S608 - names of the schema
    database.execute(statement, {**changed, **old_key})


def _rewritten(before: _Values, renaming: Renaming) -> _Values:
    return {
        name: renaming.in_text(value) if isinstance(value, str) else value
        for name, value in before.items()
    }


def _rewritten_dataset(before: _Values, renaming: Renaming) -> _Values:
    document, observed = str(before["document"]), before["observed"]
    after = {**before, "urn": renaming.of(str(before["urn"]))}
    try:
        whole = document if observed is None else join_document(document, str(observed))
        text = renaming.in_text(whole)
        if after["urn"] != before["urn"]:
            text = _without_folder(text)
        if text != whole:
            after.update(split_document(stored_object(text))._asdict())
    except _DAMAGED:  # a damaged document stays as it is
        return after
    return after


def _rewritten_edge(before: _Values, renaming: Renaming) -> _Values:
    after = _rewritten(before, renaming)
    if after == before:
        return before
    try:
        job = stored_object(str(after["document"])).get("job_urn") or ""
    except _DAMAGED:  # a damaged edge keeps its key
        return {**after, "edge_key": before["edge_key"]}
    key = (after["upstream_urn"], after["downstream_urn"], job)
    return {**after, "edge_key": sha256_of(key)}


def _rewritten_contribution(before: _Values, renaming: Renaming) -> _Values:
    after = _rewritten(before, renaming)
    if after["urn"] != before["urn"] and isinstance(after["document"], str):
        with suppress(*_DAMAGED):  # it stays as it is
            after["document"] = _without_folder(after["document"])
    return after


def _rewritten_version(before: _Values, renaming: Renaming) -> _Values:
    after = _rewritten({**before, "state": None}, renaming)
    after["state"] = before["state"]
    is_renamed = after["urn"] != before["urn"]
    state = before["state"]
    try:
        text = unpacked(state) if isinstance(state, bytes) else str(before["dataset"])
        new = renaming.in_text(text)
        new = _without_folder(new) if is_renamed else new
        if new == text:
            return after
        if isinstance(state, bytes):
            after["state"] = packed(new.encode())
        else:
            after["dataset"] = new
        if before["contract_hash"] is not None:
            after["contract_hash"] = LumosDataset.from_json(stored_object(new)).contract_hash
    except _DAMAGED:  # a damaged state stays as it is
        return after
    return after


def _rewritten_sync_state(before: _Values, renaming: Renaming) -> _Values:
    """Rename what a catalog was sent; its hash shows that it is to be sent again."""
    kept = before["kept"]
    kept = renaming.in_text(kept) if isinstance(kept, str) else kept
    name = renaming.in_text(str(before["name"]))
    if isinstance(kept, str) and WHOLE_NAME in kept:  # the name is cut and identifies nothing
        with suppress(*_DAMAGED):  # it keeps its name
            whole = stored_object(kept).get(WHOLE_NAME)
            name = state_key(whole) if isinstance(whole, str) else name
    return {**before, "name": state_key(name), "kept": kept}


_REWRITES: Final[Mapping[str, Callable[[_Values, Renaming], _Values]]] = {
    "datasets": _rewritten_dataset,
    "contributions": _rewritten_contribution,
    "versions": _rewritten_version,
    "sync_states": _rewritten_sync_state,
    **dict.fromkeys(_EDGES, _rewritten_edge),
}


def _without_folder(text: str) -> str:
    """Return a document of a dataset without the folder of this machine in its location."""
    document = stored_object(text)
    facets = document.get("facets")
    holder = facets if isinstance(facets, dict) else document
    location = holder.get("location")
    if not isinstance(location, dict) or "path" not in location:
        return text
    folder = location.pop("path")
    extensions = find_object(holder, "extensions")
    origin = find_value(find_object(extensions, "add") or extensions, ORIGIN)
    if isinstance(origin, dict):
        origin[FOLDER] = folder
    return stored_text(document)


def _renew_datasets(database: StateDatabase, renaming: Renaming) -> None:
    """Bring hashes and words for search up to date with the new names."""
    news = [*renaming.names.values()]
    affected = {*news, *_downstream(database, news)}
    tables, index = CatalogTables(database), SearchIndex.on(database)
    for some in _chunks(sorted(affected)):
        marks = {f"u{place}": urn for place, urn in enumerate(some)}
        rows = database.query(
            f"{DATASETS.select('id')} WHERE urn IN ({', '.join(f':{mark}' for mark in marks)})",
            marks,
        )
        known = {row.text("urn"): row for row in rows}
        for dataset in tables.datasets_named(some, damaged=pass_over):
            row = known[dataset.urn]
            index.put(row.integer("id"), SearchText.of(dataset))
            _renew_hash(database, row, dataset)


def _renew_hash(database: StateDatabase, row: Row, dataset: LumosDataset) -> None:
    values = {name: row[name] for name in DATASETS.columns}
    values["contract_hash"] = dataset.contract_hash
    database.execute(
        "UPDATE datasets SET contract_hash = :hash, checksum = :checksum WHERE urn = :urn",
        {"hash": dataset.contract_hash, "checksum": DATASETS.checksum(values), "urn": dataset.urn},
    )


def _downstream(database: StateDatabase, urns: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for some in _chunks(urns):
        marks = {f"u{place}": urn for place, urn in enumerate(some)}
        rows = database.query(
            "SELECT DISTINCT downstream_urn FROM lineage_edges WHERE upstream_urn IN "  # noqa: S608
            f"({', '.join(f':{mark}' for mark in marks)})",
            marks,
        )
        found.update(row.text("downstream_urn") for row in rows)
    return found


def _chunks(items: Sequence[str]) -> Iterable[Sequence[str]]:
    return (items[start : start + _AT_A_TIME] for start in range(0, len(items), _AT_A_TIME))
