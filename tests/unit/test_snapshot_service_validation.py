from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from lumos.core.errors import InputUnreadableError
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource, open_source
from lumos.feature.snapshot.validation import CheckStatus, validate, validate_document
from snapshot_samples import AT, sample_snapshot

Document = dict[str, Any]


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "snapshots", part_bytes=4_000)


@pytest.fixture
def document() -> Document:
    loaded: Document = orjson.loads(orjson.dumps(sample_snapshot().to_json()))
    return loaded


def lines(document: Document) -> tuple[str, ...]:
    return validate_document(document, "sample").lines()


def test_a_good_document_is_reported_as_the_product_shows_it() -> None:
    document: Document = sample_snapshot().to_json()
    bare = {
        name: value
        for name, value in document.items()
        if name not in {"jobs", "glossary", "tags", "domains", "users", "groups", "statistics"}
    }

    assert validate_document(bare, "bare").lines() == (
        "[ok] 40 datasets",
        "[ok] 39 lineage edges",
        "[ok] All references resolved",
    )


def test_every_section_is_counted(document: Document) -> None:
    assert lines(document) == (
        "[ok] 40 datasets",
        "[ok] 1 job",
        "[ok] 39 lineage edges",
        "[ok] 1 glossary term",
        "[ok] 1 tag",
        "[ok] 1 domain",
        "[ok] 1 user",
        "[ok] 1 group",
        "[ok] All references resolved",
    )


def test_large_numbers_are_written_as_people_read_them(document: Document) -> None:
    edge = document["lineage_edges"][0]
    document["lineage_edges"] = [
        {**edge, "job_urn": f"lumos://airflow/x/{number}"} for number in range(1_234)
    ]
    document["jobs"] = []

    assert "[ok] 1,234 lineage edges" in lines(document)


def test_one_bad_dataset_does_not_hide_the_others(document: Document) -> None:
    document["datasets"][3]["schema"]["fields"][0]["type"] = "s3cret-value"
    document["datasets"][7] = "nonsense"
    del document["datasets"][9]["name"]

    report = validate_document(document, "sample")
    check = next(each for each in report.checks if each.check == "datasets")

    assert check.status is CheckStatus.FAIL
    assert check.count == 3
    assert check.message.startswith("3 of 40 datasets are not valid: ")
    assert "table_00003" in check.details[0]
    assert "item 8" in check.details[1]
    assert "table_00009" in check.details[2]
    assert "s3cret-value" not in str(report.as_json())
    assert not report.ok


def test_duplicate_urns_fail(document: Document) -> None:
    document["datasets"].append(document["datasets"][0])

    report = validate_document(document, "sample")

    assert not report.ok
    assert any(
        line.startswith("[fail] 1 dataset is there more than once: lumos://s3/lake/raw/table_0")
        for line in report.lines()
    )


def test_a_spelling_of_the_same_urn_is_a_duplicate(document: Document) -> None:
    document["datasets"][1]["urn"] = "lumos://s3/lake/raw/table%5F00000"

    assert "duplicates.datasets" in {
        check.check for check in validate_document(document, "sample").checks
    }


def test_lineage_out_of_the_snapshot_is_a_warning_with_names(document: Document) -> None:
    document["lineage_edges"][0]["upstream_urn"] = "lumos://kafka/orders"
    document["lineage_edges"][1]["upstream_urn"] = "lumos://kafka/clicks"

    report = validate_document(document, "sample")
    check = next(each for each in report.checks if each.check == "references.lineage")

    assert check.status is CheckStatus.WARN
    assert check.details == ("lumos://kafka/clicks", "lumos://kafka/orders")
    assert report.ok
    assert report.status is CheckStatus.WARN
    assert "[ok] All references resolved" not in report.lines()


def test_names_are_capped_and_counted(document: Document) -> None:
    for number, edge in enumerate(document["lineage_edges"]):
        edge["upstream_urn"] = f"lumos://kafka/topic{number:02d}"

    checks = validate_document(document, "sample").checks
    check = next(each for each in checks if each.check == "references.lineage")

    assert check.count == 39
    assert len(check.details) == 20
    assert check.message.endswith("(and 36 more)")


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (
            lambda d: (d["users"][0].update(username="bo"), d["groups"][0].update(members=[])),
            "references.owners",
        ),
        (lambda d: d["groups"][0].update(name="other"), "references.owners"),
        (lambda d: d["groups"][0].update(members=["bo"]), "references.members"),
        (lambda d: d["groups"][0].update(admins=["bo"]), "references.members"),
        (lambda d: d["jobs"][0].update(inputs=["lumos://kafka/x"]), "references.jobs"),
        (lambda d: d["jobs"][0].update(outputs=["lumos://kafka/x"]), "references.jobs"),
        (
            lambda d: d["lineage_edges"][0].update(job_urn="lumos://airflow/none/none"),
            "references.edge_jobs",
        ),
        (
            lambda d: d["datasets"][0]["schema"].update(
                foreign_keys=[{"columns": ["id"], "references": "lumos://s3/lake/none"}]
            ),
            "references.foreign_keys",
        ),
        (
            lambda d: d["datasets"][0]["schema"].update(
                foreign_keys=[{"columns": ["id"], "references": "public.none"}]
            ),
            "references.foreign_keys",
        ),
    ],
)
def test_each_kind_of_reference_is_followed(document: Document, change: Any, check: str) -> None:
    change(document)

    report = validate_document(document, "sample")

    assert {each.check for each in report.checks if each.status is CheckStatus.WARN} == {check}
    assert report.ok


@pytest.mark.parametrize("kind", ["users", "groups"])
def test_owners_are_looked_for_wherever_people_of_any_kind_are_listed(
    document: Document, kind: str
) -> None:
    del document[kind]
    del document["statistics"]

    assert any("is not among the users and groups" in line for line in lines(document))


def test_a_snapshot_without_people_is_not_asked_for_its_owners(document: Document) -> None:
    del document["users"]
    del document["groups"]
    del document["statistics"]

    assert "[ok] All references resolved" in lines(document)


@pytest.mark.parametrize("name", ["public.table_00002", "table_00002"])
def test_a_foreign_key_may_name_a_dataset_without_urn(document: Document, name: str) -> None:
    document["datasets"][0]["schema"]["foreign_keys"] = [{"columns": ["id"], "references": name}]

    assert "[ok] All references resolved" in lines(document)


def test_an_edge_may_end_at_a_job(document: Document) -> None:
    document["lineage_edges"][0]["upstream_urn"] = "lumos://airflow/daily/load"
    del document["datasets"][0]["lineage"]
    del document["datasets"][1]["lineage"]

    assert "[ok] All references resolved" in lines(document)


def test_stale_statistics_are_a_warning(document: Document) -> None:
    document["statistics"]["datasets"] = 41
    document["statistics"]["fields"] = "1,000"

    found = [line for line in lines(document) if line.startswith("[warn]")]

    assert found == [
        "[warn] 2 counts in statistics differ from the content: "
        "datasets: 41 stated, 40 there; fields: 1,000 stated, 120 there"
    ]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d.pop("lumos_version"), "lumos_version"),
        (lambda d: d.update(export_timestamp="yesterday"), "export_timestamp"),
        (lambda d: d.update(surprise=1), "surprise"),
        (lambda d: d.update(datasets={"a": 1}), "datasets is not a list"),
        (lambda d: d.update(snapshot_schema_version=99), "schema version 99"),
        (lambda d: d.update(statistics={"datasets": "many"}), "statistics"),
        (lambda d: [d.pop(name) for name in [*d]], "not a Lumos snapshot"),
    ],
)
def test_a_wrong_head_fails(document: Document, change: Any, text: str) -> None:
    change(document)

    report = validate_document(document, "sample")

    failed = [line for line in report.lines() if line.startswith("[fail]")]
    assert text.lower() in failed[0].lower()
    assert not report.ok


def test_a_document_of_version_0_is_valid() -> None:
    document: Document = {
        "lumos_version": "0.0.1",
        "export_timestamp": "2026-01-01T00:00:00Z",
        "source_platform": "datahub",
        "datasets": [
            {
                "urn": "lumos://s3/a",
                "name": "a",
                "platform": "s3",
                "lineage": {"upstream": ["lumos://s3/b"]},
            },
            {"urn": "lumos://s3/b", "name": "b", "platform": "s3"},
        ],
    }

    assert validate_document(document, "old").lines() == (
        "[ok] 2 datasets",
        "[ok] 1 lineage edge",
        "[ok] All references resolved",
    )


def test_every_form_can_be_validated(store: SnapshotStore, tmp_path: Path) -> None:
    info = store.write(sample_snapshot(), at=AT)
    target = tmp_path / "backup.json"
    export_document(LoadedSource(sample_snapshot(), "memory"), target)

    document = validate(str(target), store=store)
    for reference in ("latest", info.id, str(store.root / info.id)):
        report = validate(reference, store=store)
        assert report.lines()[0] == f"[ok] {info.parts} parts match their checksums"
        assert report.lines()[1:] == document.lines()
    assert document.ok


def test_a_damaged_part_fails_and_the_rest_is_still_checked(store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(), at=AT)
    part = next((store.root / info.id).glob("users-*"))
    part.write_bytes(part.read_bytes()[::-1])

    report = validate(info.id, store=store)

    assert not report.ok
    assert part.name in report.lines()[0]
    assert "[ok] 40 datasets" in report.lines()


def test_a_damaged_manifest_fails(store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(), at=AT)
    path = store.root / info.id / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b"embedded", b"embeddad"))

    report = validate(info.id, store=store)

    assert not report.ok
    assert "manifest.json" in report.lines()[0]


def test_a_missing_document_is_an_error(store: SnapshotStore) -> None:
    with pytest.raises(InputUnreadableError):
        validate("nowhere.json", store=store)


def test_the_machine_form_names_check_status_and_count(document: Document) -> None:
    form = validate_document(document, "sample").as_json()

    assert form["status"] == "ok"
    assert isinstance(form["checks"], list)
    assert form["checks"][0] == {
        "check": "datasets",
        "status": "ok",
        "message": "40 datasets",
        "count": 40,
        "details": [],
    }


def test_one_of_a_kind_is_told_in_the_singular(document: Document) -> None:
    document["datasets"][0]["ownership"]["owners"].append({"user": "bo"})
    document["groups"][0]["admins"] = ["cy"]
    document["tags"] *= 2
    document["jobs"][0]["outputs"] = ["lumos://kafka/orders"]
    document["lineage_edges"][0]["upstream_urn"] = "lumos://kafka/orders"
    document["statistics"] = {"jobs": 2}
    document["groups"] = [*document["groups"], {"name": ""}]

    told = [line for line in lines(document) if not line.startswith("[ok]")]

    assert [line.split(": ")[0] for line in told] == [
        "[fail] 1 of 2 groups is not valid",
        "[warn] 1 tag is there more than once",
        "[warn] 1 end of lineage edges is outside the snapshot",
        "[warn] 1 neighbour that a dataset lists has no lineage edge and is not taken over",
        "[warn] 1 input or output of jobs is outside the snapshot",
        "[warn] 1 owner is not among the users and groups",
        "[warn] 1 member or administrator of groups is not among the users",
        "[warn] 1 count in statistics differs from the content",
    ]


def test_lineage_that_no_edge_backs_is_a_warning_by_name(document: Document) -> None:
    gone = document["lineage_edges"].pop(0)

    report = validate_document(document, "sample")
    check = next(each for each in report.checks if each.check == "references.listed_lineage")

    assert check.status is CheckStatus.WARN
    assert check.details == (f"{gone['upstream_urn']} -> {gone['downstream_urn']}",)
    assert report.ok


def test_lineage_of_a_document_without_any_edges_is_not_lost(document: Document) -> None:
    del document["lineage_edges"]

    assert "[ok] 39 lineage edges" in lines(document)
    assert "[ok] All references resolved" in lines(document)


def test_a_section_with_an_unreadable_part_is_never_told_to_be_fine(store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(), at=AT)
    for part in (store.root / info.id).glob("lineage_edges-*"):
        part.write_bytes(part.read_bytes()[::-1])

    told = validate(info.id, store=store).lines()

    assert any(line.startswith("[fail] Lineage edges are not all here: ") for line in told)
    assert not any(line.startswith("[ok]") and "lineage" in line for line in told)
    assert not any("references" in line or "statistics" in line for line in told)
    assert "[ok] 40 datasets" in told


def test_a_value_that_looks_like_a_credential_is_a_warning_that_does_not_tell_it(
    document: Document,
) -> None:
    document["datasets"][0]["location"] = {
        "path": "jdbc:postgresql://ana:hunter2@db/shop",
        "prefix": "raw/",
    }
    document["datasets"][1]["properties"] = {
        "api_key": "hunter2",
        "connection": {"urls": ["https://x.example/?sig=hunter2"]},
        "token_count": "12",
        "owner": "ana",
        "password": "***",
    }

    report = validate_document(document, "sample")
    check = next(each for each in report.checks if each.check == "secrets")

    assert check.status is CheckStatus.WARN
    assert [detail.split("raw/")[1] for detail in check.details] == [
        "table_00000: location.path",
        "table_00001: properties.api_key",
        "table_00001: properties.connection",
    ]
    assert check.message.startswith("3 values look like credentials: ")
    assert "hunter2" not in str(report.as_json())
    assert report.ok


def test_an_item_without_a_name_of_text_is_told_by_its_place(document: Document) -> None:
    document["datasets"][2]["urn"] = {"token": "hunter2"}

    told = str(validate_document(document, "sample").as_json())

    assert "item 3" in told
    assert "hunter2" not in told


def test_a_file_name_that_is_no_unicode_can_be_told(store: SnapshotStore, tmp_path: Path) -> None:
    target = tmp_path / os.fsdecode(b"caf\xe9.json")
    export_document(LoadedSource(sample_snapshot(2), "memory"), target)

    report = validate(str(target), store=store)

    assert report.ok
    assert orjson.dumps(report.as_json())
    assert open_source(str(target), store=store).name.endswith("caf?.json")
