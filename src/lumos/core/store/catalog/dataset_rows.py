"""Datasets as rows of their table: the statements that write them, and what each column holds."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.models import Contributor, ContributorKind, LumosDataset
from lumos.core.models.base import canonical_json
from lumos.core.models.facets import OBSERVED_PARTS
from lumos.core.models.origin import origin_of
from lumos.core.store.catalog.observed_parts import SplitDocument, split_document, whole_text
from lumos.core.store.catalog.search import label
from lumos.core.store.catalog.search_words import name_key
from lumos.core.store.checksums import DATASETS
from lumos.core.store.documents import as_moment, checked_key, stored_object, stored_text
from lumos.core.store.sql_text import as_key, storable

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.store.engine import Row, SqlValue

SELECT_DATASETS = """
SELECT d.urn, d.document, d.observed, d.version, d.contract_hash, d.checksum,
       (SELECT v.version FROM versions v WHERE v.urn = d.urn
        ORDER BY v.sequence DESC LIMIT 1) AS current_version
FROM datasets d
"""
PUT_DATASET = """
INSERT INTO datasets (urn, name, name_key, platform, format, contract_hash, version,
                      quality_score, document, observed, origin, contributor, found_hash,
                      updated_at, checksum)
VALUES (:urn, :name, :name_key, :platform, :format, :contract_hash, :version,
        :quality_score, :document, :observed, :origin, :contributor, :found_hash,
        :updated_at, :checksum)
ON CONFLICT (urn) DO UPDATE SET
    name = excluded.name, name_key = excluded.name_key, platform = excluded.platform,
    format = excluded.format, contract_hash = excluded.contract_hash, version = excluded.version,
    quality_score = excluded.quality_score, document = excluded.document,
    observed = excluded.observed, origin = excluded.origin, contributor = excluded.contributor,
    found_hash = excluded.found_hash, updated_at = excluded.updated_at,
    checksum = excluded.checksum
"""
PUT_OBSERVED = """
UPDATE datasets SET quality_score = :quality_score, observed = :observed,
    contributor = :contributor, found_hash = :found_hash, updated_at = :updated_at,
    checksum = :checksum
WHERE urn = :urn
"""
OBSERVED_COLUMNS: Final = (
    "urn", "quality_score", "observed", "contributor", "found_hash", "updated_at", "checksum",
)  # fmt: skip
"""What is written where nothing but observations changed."""
EDITOR = Contributor(ContributorKind.PEOPLE, "embedded")
"""The contributor of writes to the catalog that name none."""


class DatasetRow(NamedTuple):
    """A dataset as it is to be stored."""

    values: dict[str, SqlValue]
    document: dict[str, JsonValue]
    """Without what was observed."""
    observed: dict[str, JsonValue]
    texts: SplitDocument


def dataset_row(dataset: LumosDataset) -> DatasetRow:
    document = dataset.to_json()
    contract_hash = dataset.contract_hash_of(document)
    document.pop("lineage", None)
    texts = split_document(document)
    observed = {part: document.pop(part) for part in OBSERVED_PARTS if part in document}
    row: dict[str, SqlValue] = {
        "urn": dataset.urn,
        "name": storable(dataset.name),
        "name_key": name_key(dataset.name),
        "platform": label(dataset.platform),
        "format": storable(dataset.format) if dataset.format else None,
        "contract_hash": contract_hash,
        "version": storable(dataset.version) if dataset.version else None,
        "quality_score": dataset.quality.score if dataset.quality else None,
        "document": texts.document,
        "observed": texts.observed,
        "origin": as_key(origin.source) if (origin := origin_of(dataset)) else None,
    }
    row["checksum"] = DATASETS.checksum(row)
    return DatasetRow(row, document, observed, texts)


def bare_row(dataset: LumosDataset, *, at: datetime) -> dict[str, SqlValue]:
    row: dict[str, SqlValue] = {
        "urn": checked_key(dataset.urn),
        "name": "",
        "name_key": "",
        "platform": "",
        "format": None,
        "contract_hash": "",
        "version": None,
        "quality_score": None,
        "document": stored_text(dataset.document),
        "observed": None,
        "origin": None,
        "contributor": str(EDITOR),
        "found_hash": None,
        "updated_at": as_moment(at),
    }
    row["checksum"] = DATASETS.checksum(row)
    return row


def is_same(stored: Row | None, row: DatasetRow) -> bool:
    names = ("document", "observed", "checksum")  # which covers the other columns
    return stored is not None and all(stored[name] == row.values[name] for name in names)


def differs_in_observations_alone(stored: Row | None, row: DatasetRow) -> bool:
    if stored is None or not DATASETS.is_whole(stored):
        return False
    return all(stored[name] == row.values[name] for name in ("document", *DATASETS.keys))


def stored_document(row: Row, version: str | None) -> bytes:
    """Return the stored document of a dataset with its newest version, if it has one."""
    text = whole_text(row)
    if version is None:
        return text.encode()
    if row.optional_text("version") is None:  # no other name in a dataset comes after this one
        return f'{text[:-1]},"version":{stored_text(version)}}}'.encode()
    return canonical_json({**stored_object(text), "version": version})
