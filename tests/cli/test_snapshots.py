"""Snapshots on the command line: exported in part and in both forms, verified, signed, pruned."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from command_line import JANUARY, Lumos, checked
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from snapshot_keys import private_key, public_key
from snapshot_samples import AT, sample_snapshot


@pytest.fixture
def shop(lumos: Lumos) -> Lumos:
    """A project with the catalog of the shop."""
    assert lumos("import", JANUARY).exit_code == 0
    return lumos


def urns(path: str) -> list[str]:
    return [item["urn"] for item in json.loads(Path(path).read_text())["datasets"]]


def test_file_and_folder_of_a_catalog_turn_into_each_other(shop: Lumos) -> None:
    made = checked(shop("export", "--output", "a.json", "--json"), "export")
    folder = checked(shop("export", "--snapshot", "a.json", "-o", "b/", "--json"), "export")
    back = checked(shop("export", "--snapshot", "b", "-o", "c.json", "--json"), "export")

    assert (made["form"], folder["form"], back["form"]) == ("document", "folder", "document")
    assert made["content_hash"] == folder["content_hash"] == back["content_hash"]
    assert Path("a.json").read_bytes() == Path("c.json").read_bytes()
    for reference in ("a.json", "b", "c.json"):
        assert shop("validate", reference).exit_code == 0
        assert shop("snapshot", "verify", reference).exit_code == 0
    assert "0 changes" in shop("diff", "--source", "a.json", "--target", "b").stdout


def test_a_form_can_be_asked_for(shop: Lumos) -> None:
    assert shop("export", "-o", "named", "--form", "folder").exit_code == 0
    assert Path("named/manifest.json").is_file()
    assert shop("export", "-o", "-", "--form", "folder").exit_code == 2


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--dataset", "lumos://postgres/*"], "lumos://postgres/"),
        (["--dataset", "orders"], "lumos://postgres/shop/public/orders"),
        (["--dataset-platform", "snowflake"], "lumos://snowflake/"),
        (["--owner", "payments"], "lumos://"),
        (["--tag", "pii"], "lumos://"),
    ],
)
def test_a_part_of_the_catalog_is_exported(shop: Lumos, options: list[str], wanted: str) -> None:
    shop("export", "-o", "all.json")

    result = shop("export", "-o", "part.json", *options)

    assert result.exit_code == 0, result.stderr
    assert 0 < len(urns("part.json")) < len(urns("all.json"))
    assert all(urn.startswith(wanted) for urn in urns("part.json"))
    document = json.loads(Path("part.json").read_text())
    assert document["complete"] is False
    whole = {item["urn"]: item for item in json.loads(Path("all.json").read_text())["datasets"]}
    assert all(whole[item["urn"]] == item for item in document["datasets"])
    assert shop("validate", "part.json").exit_code == 0
    shop("export", "--snapshot", "all.json", "-o", "again.json", *options)
    assert json.loads(Path("again.json").read_text())["datasets"] == document["datasets"]


def test_a_partial_export_keeps_the_tags_and_terms_of_nested_columns(lumos: Lumos) -> None:
    inner = {"name": "zip", "type": "STRING", "tags": ["pii"], "glossary_terms": ["Address"]}
    column = {"name": "home", "type": "ARRAY", "items": {"type": "STRUCT", "fields": [inner]}}
    document = {
        "snapshot_schema_version": 1,
        "lumos_version": "0.1.0",
        "export_timestamp": "2024-01-31T00:00:00Z",
        "source_platform": "test",
        "datasets": [
            {
                "urn": "lumos://s3/lake/people",
                "name": "people",
                "platform": "s3",
                "schema": {"fields": [column]},
            }
        ],
        "tags": [{"name": "pii", "description": "personal"}, {"name": "unused"}],
        "glossary": [{"name": "Address", "definition": "where one lives"}],
    }
    Path("all.json").write_text(json.dumps(document))

    done = lumos("export", "--snapshot", "all.json", "--dataset", "people", "-o", "part.json")

    assert done.exit_code == 0, done.stderr
    part = json.loads(Path("part.json").read_text())
    assert [tag["name"] for tag in part["tags"]] == ["pii"]
    assert [term["name"] for term in part["glossary"]] == ["Address"]


def test_kinds_of_choice_narrow_each_other_and_nothing_found_is_no_error(shop: Lumos) -> None:
    shop("export", "-o", "none.json", "--dataset", "orders", "--dataset-platform", "kafka")

    assert urns("none.json") == []


def test_a_changed_file_is_refused_by_every_command(shop: Lumos) -> None:
    shop("export", "-o", "a.json")
    text = Path("a.json").read_text()
    Path("a.json").write_text(text.replace("orders", "ORDERS", 1))

    verified = shop("snapshot", "verify", "a.json")

    assert verified.exit_code == 3
    assert "its content_sha256 does not match" in verified.error_line
    assert shop("import", "a.json").exit_code == 3
    assert shop("diff", "--source", "a.json", "--target", "embedded").exit_code == 3
    validated = shop("validate", "a.json")
    assert validated.exit_code == 1
    assert "[fail] snapshot a.json was edited or damaged" in validated.stdout


def test_a_newer_snapshot_is_refused_in_one_line(shop: Lumos) -> None:
    document = json.loads(Path(JANUARY).read_text())
    Path("newer.json").write_text(json.dumps({**document, "snapshot_schema_version": 99}))

    for command in (["import"], ["export", "-o", "x.json", "--snapshot"]):
        assert "has schema version 99" in shop(*command, "newer.json").error_line


def test_a_snapshot_is_signed_and_checked(shop: Lumos, tmp_path: Path) -> None:
    key = private_key(tmp_path)
    shop("snapshot", "create")
    shop("export", "-o", "a.json")

    for reference in ("latest", "a.json"):
        signed = checked(
            shop("snapshot", "sign", reference, "--key", str(key), "--json"), "snapshot-sign"
        )
        verified = shop("snapshot", "verify", reference, "--key", str(public_key(key)))
        assert verified.exit_code == 0
        assert f"signed by {signed['signed_by']}" in verified.stdout
    refused = shop("snapshot", "sign", "a.json", "--key", str(public_key(key)))
    assert refused.exit_code == 3
    assert "holds no private Ed25519 key" in refused.error_line
    report = checked(shop("snapshot", "verify", "--json"), "snapshot-verify")
    assert report["reports"][0]["signed_by"]


def test_old_snapshots_are_pruned_by_options_or_settings(lumos: Lumos) -> None:
    store = SnapshotStore(Path(".lumos/snapshots"))
    ids = [store.write(sample_snapshot(1), at=AT + timedelta(days=day)).id for day in range(4)]
    unruled = lumos("snapshot", "prune")
    assert unruled.exit_code == 2
    assert "there is no rule for what to keep" in unruled.error_line

    rehearsed = lumos("snapshot", "prune", "--keep-last", "3", "--dry-run")
    assert rehearsed.stdout.splitlines()[0] == ids[0]
    assert [info.id for info in store.list()] == ids
    Path("lumos.yaml").write_text("snapshots:\n  retention:\n    keep_last: 3\n")
    pruned = checked(lumos("snapshot", "prune", "--json"), "snapshot-prune")
    assert (pruned["removed"], pruned["kept"]) == ([ids[0]], 3)
    lumos("snapshot", "prune", "--keep-last", "1")

    assert [info.id for info in store.list()] == ids[-1:]
    assert lumos("snapshot", "prune", "--keep-last", "0").exit_code == 2


def store_at(project: Path, moment: datetime, note: str) -> str:
    store = SnapshotStore(project / ".lumos" / "snapshots")
    return store.write(sample_snapshot(2, note=note), at=moment).id


def test_a_snapshot_dated_in_the_future_is_warned_of_and_is_not_the_latest(
    lumos: Lumos, project: Path
) -> None:
    lumos("init")
    now = datetime.now(UTC)
    ahead = store_at(project, now + timedelta(days=365), "ahead")
    last = store_at(project, now, "last")

    told = checked(lumos("snapshot", "list", "--json"), "snapshot-list")
    assert [(each["id"], each["sequence"]) for each in told["snapshots"]] == [(ahead, 1), (last, 2)]
    (warning,) = told["warnings"]
    assert warning.startswith(f"snapshot {ahead} is dated in the future")
    assert warning in lumos("snapshot", "list").stdout
    assert warning in lumos("snapshot", "prune", "--keep-last", "9").stdout
    (check,) = [
        each for each in lumos("doctor", "--json").json()["checks"] if each["name"] == "clock"
    ]
    assert (check["status"], check["detail"]) == ("warn", warning)
    assert last in lumos("snapshot", "verify", "latest").stdout

    assert lumos("snapshot", "prune", "--keep-last", "1").exit_code == 0

    (kept,) = lumos("snapshot", "list", "--json").json()["snapshots"]
    assert kept["id"] == last
    (check,) = [
        each for each in lumos("doctor", "--json").json()["checks"] if each["name"] == "clock"
    ]
    assert check["status"] == "ok"
