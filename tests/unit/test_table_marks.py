from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.formats.tables import (
    PartitionField,
    TableFacts,
    TableMark,
    inside_table,
    table_of_path,
    table_roots,
)
from lumos.core.models import Field, Schema, TypeName

UUID = "8a62c37d-4573-4021-952a-c0baef7d21d0"
DELTA_ANCHORS = (
    "00000000000000000003.json",
    "00000000000000000010.checkpoint.parquet",
    "00000000000000000010.checkpoint.0000000001.0000000002.parquet",
    f"00000000000000000010.checkpoint.{UUID}.json",
    f"00000000000000000010.checkpoint.{UUID}.parquet",
    "00000000000000000004.00000000000000000006.compacted.json",
    "_last_checkpoint",
)
ICEBERG_ANCHORS = (
    f"00003-{UUID}.metadata.json",
    f"00003-{UUID}.gz.metadata.json",
    f"00003-{UUID}.metadata.json.gz",
    f"{UUID}.metadata.json",
    "v3.metadata.json",
    "v3.gz.metadata.json",
    "version-hint.text",
)


@pytest.mark.parametrize("root", ["", "orders", "sales/2024/orders"])
@pytest.mark.parametrize(
    ("kind", "inner"),
    [
        *(("delta", f"_delta_log/{name}") for name in DELTA_ANCHORS),
        *(("iceberg", f"metadata/{name}") for name in ICEBERG_ANCHORS),
        ("hudi", ".hoodie/hoodie.properties"),
    ],
)
def test_a_file_of_the_log_shows_where_the_table_is(root: str, kind: str, inner: str) -> None:
    path = f"{root}/{inner}" if root else inner

    assert table_of_path(path) == TableMark(kind, root, is_log=True, is_anchor=True)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (f"t/_delta_log/_sidecars/{UUID}.parquet", "delta"),
        ("t/_delta_log/00000000000000000003.crc", "delta"),
        ("t/_delta_log/.tmp/x", "delta"),
        ("t/.hoodie/20240101000000000.commit", "hudi"),
        ("t/.hoodie/timeline/20240101000000000_20240101000001000.commit", "hudi"),
        ("t/.hoodie/metadata/.hoodie/hoodie.properties", "hudi"),
        (f"t/metadata/snap-123-1-{UUID}.avro", "iceberg"),
        (f"t/metadata/{UUID}-m0.avro", "iceberg"),
        (f"t/metadata/20240101_{UUID}.stats", "iceberg"),
    ],
)
def test_other_files_of_a_log_belong_to_it_but_prove_nothing(path: str, kind: str) -> None:
    assert table_of_path(path) == TableMark(kind, "t", is_log=True, is_anchor=False)
    assert table_roots([TableMark(kind, "t", is_log=True, is_anchor=False)]) == {}


@pytest.mark.parametrize(
    "path",
    [
        "sales/orders/part-00000.parquet",
        "sales/my_delta_log/00000000000000000003.json",
        "sales/x.hoodie/hoodie.properties",
        "sales/metadata/orders.json",
        "sales/metadata/notes.metadata.json",
        "sales/mymetadata/v1.metadata.json",
        "v1.metadata.json",
        "_delta_log",
        "t/day=1/.hoodie_partition_metadata",
        "",
    ],
)
def test_any_other_path_marks_no_table(path: str) -> None:
    assert table_of_path(path) is None


def test_files_below_a_root_are_the_tables_own() -> None:
    roots = {"lake/orders": "delta", "lake/orders/inner": "iceberg", "": "hudi"}

    def inside(path: str) -> tuple[str, str, bool]:
        mark = inside_table(path, roots)
        assert mark is not None
        return mark.kind, mark.root, mark.is_log

    assert inside("lake/orders/day=1/part-0.parquet") == ("delta", "lake/orders", False)
    assert inside("lake/orders/_delta_log/00000000000000000000.json") == (
        "delta",
        "lake/orders",
        True,
    )
    assert inside("lake/orders/inner/data/x.parquet") == ("iceberg", "lake/orders/inner", False)
    assert inside("lake/orders2/x.parquet") == ("hudi", "", False)
    assert inside("x.parquet") == ("hudi", "", False)
    assert inside_table("lake/orders2/x.parquet", {"lake/orders": "delta"}) is None
    assert inside_table("x.parquet", {}) is None


def test_a_table_in_two_formats_is_read_as_the_foremost() -> None:
    marks = [
        TableMark("iceberg", "b", is_log=True, is_anchor=True),
        TableMark("delta", "b", is_log=True, is_anchor=True),
        TableMark("hudi", "b", is_log=True, is_anchor=True),
        TableMark("hudi", "a", is_log=True, is_anchor=True),
    ]

    assert list(table_roots(marks).items()) == [("a", "hudi"), ("b", "delta")]


@given(st.text(alphabet="ab/_.", max_size=40), st.sampled_from(["_delta_log", ".hoodie"]))
def test_a_mark_never_names_a_root_that_is_not_above_its_file(text: str, log: str) -> None:
    path = f"{text}/{log}/{text}"

    mark = table_of_path(path)

    assert mark is not None
    assert path.startswith(mark.root)
    assert not mark.root.endswith("/")


@given(
    st.builds(
        TableFacts,
        format=st.sampled_from(["delta", "iceberg", "hudi"]),
        schema=st.just(Schema(fields=(Field(name="id", type=TypeName.INT64),))),
        name=st.none() | st.text(),
        partitioning=st.lists(
            st.builds(PartitionField, st.text(), st.text(), st.text()), max_size=2
        ).map(tuple),
        keys=st.lists(st.text(), max_size=2).map(tuple),
        properties=st.dictionaries(st.text(), st.text(), max_size=2),
        version=st.none() | st.text(),
        rows=st.none() | st.integers(0, 2**63 - 1),
        rows_exact=st.booleans(),
        files=st.none() | st.integers(0, 2**63 - 1),
        observations=st.dictionaries(st.text(), st.lists(st.integers()), max_size=2),
        warnings=st.lists(st.text(), max_size=2).map(tuple),
    )
)
def test_facts_of_a_table_survive_json(facts: TableFacts) -> None:
    assert TableFacts.from_json(facts.to_json()) == facts
