"""What the pipeline does with files, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakes import write_lake
from lumos.core.models import Urn
from lumos.core.models.base import canonical_json
from lumos.core.models.urn import LONGEST_URN
from lumos.core.storage.local import LocalSource
from lumos.feature.discovery.building import FoundDataset
from lumos.feature.discovery.datasets import SourceRoot
from lumos.feature.discovery.path_specs import PathSpecs
from lumos.feature.ingestion.scan.file_functions import StorageFunctions, _place
from lumos.feature.ingestion.scan.sources import ScanSource
from lumos.spark.stages.datasets import DatasetPieces
from lumos.spark.stages.rows import FileRow, ItemToRead

BARE_SOURCE = ScanSource(
    LocalSource(name="lake", path="/srv/lake"),
    SourceRoot("local", parts=("srv", "lake"), path="/srv/lake"),
    "/srv/lake",
)


def items_of(functions: StorageFunctions) -> list[ItemToRead]:
    return [
        ItemToRead("lake", file.path, file.size or 0, file.mtime_us or 0, None, file.kind)
        for file in functions.list_unit("lake", "")
    ]


def test_every_task_tells_each_schema_once_whatever_readers_told_before(tmp_path: Path) -> None:
    source = LocalSource(name="lake", path=str(write_lake(tmp_path / "lake")))
    functions = StorageFunctions({"lake": ScanSource.of(source)})
    items = items_of(functions)

    for _ in range(3):
        outcomes = [outcome for _, outcome in functions.read_items(items)]
        told = [each.fingerprint for each in outcomes if each.schema is not None]
        assert sorted(told) == sorted({each.fingerprint for each in outcomes})  # type: ignore[type-var]
        assert len(outcomes) == 4


PARTS = st.one_of(
    st.binary(min_size=1, max_size=40),
    st.builds(lambda part, times: (part * times)[:255], st.binary(min_size=1), st.integers(1, 255)),
    st.sampled_from([b"year=2026", b"dt=\xff", b"k=%0A", b"2026-03-01", b"part-0", b"..."]),
).filter(lambda part: b"/" not in part and b"\0" not in part and part not in (b".", b".."))


@given(st.lists(PARTS, min_size=1, max_size=15), st.sampled_from([b"", b".csv", b".parquet"]))
def test_a_file_under_any_path_becomes_a_dataset_with_a_valid_urn(
    parts: list[bytes], suffix: bytes
) -> None:
    functions = StorageFunctions({"lake": BARE_SOURCE})
    path = b"/".join(parts) + suffix
    place = _place(ItemToRead("lake", path, 1, 1, None, None), BARE_SOURCE.path_specs)
    if place is None:
        return
    fold = functions.new_fold()
    fold.add(
        FileRow(
            path, 1, 1, place.layout, place.partition, "csv", "f", 1, None, None, None, None, None
        )
    )
    pieces = DatasetPieces("lake", place.dataset, [fold.to_bytes()], {"f": '{"fields": []}'})

    (built,) = functions.build_datasets(pieces)

    assert built.reason is None
    assert Urn(built.urn) == built.urn
    assert len(built.urn) <= LONGEST_URN
    assert BARE_SOURCE.holds(Urn(built.urn))
    assert (
        Urn(built.urn).is_shortened
        or place.dataset
        == canonical_json(Urn(built.urn).parts[len(BARE_SOURCE.root.parts) :]).decode()
    )


def test_a_dataset_of_one_format_that_cannot_be_built_costs_no_other_format() -> None:
    functions = StorageFunctions({"lake": BARE_SOURCE})
    fold = functions.new_fold()
    for number, format_ in enumerate(("csv", "parquet")):
        place = _place(ItemToRead("lake", b"orders/x.csv", 1, 1, None, None), PathSpecs())
        assert place is not None
        fold.add(
            FileRow(
                b"x",
                1,
                1,
                place.layout,
                place.partition,
                format_,
                f"f{number}",
                1,
                None,
                None,
                None,
                None,
                None,
            )
        )
    schemas = {"f0": '{"fields": []}', "f1": '{"fields": [{"name": "", "type": 7}]}'}

    csv, parquet = functions.build_datasets(
        DatasetPieces("lake", '["orders","x"]', [fold.to_bytes()], schemas)
    )

    assert (csv.format, csv.reason) == ("csv", None)
    assert csv.urn.endswith("/x.csv")
    assert parquet.format == "parquet"
    assert (parquet.urn, parquet.document) == ("", "")
    assert "not a valid Schema" in (parquet.reason or "")


def test_pieces_that_cannot_be_added_up_are_one_failed_dataset() -> None:
    functions = StorageFunctions({"lake": BARE_SOURCE})

    (failed,) = functions.build_datasets(DatasetPieces("lake", '["orders"]', [b"{"], {}))

    assert failed.reason == "Lumos cannot describe it (JSONDecodeError)"


def test_want_of_memory_is_no_failure_of_a_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    def scarce() -> FoundDataset:
        raise MemoryError

    monkeypatch.setattr(StorageFunctions, "_builders", lambda *_: [("csv", None, scarce)])
    rows = StorageFunctions({"lake": BARE_SOURCE}).build_datasets(
        DatasetPieces("lake", '["orders"]', [b"{}"], {})
    )

    with pytest.raises(MemoryError):
        next(iter(rows))
