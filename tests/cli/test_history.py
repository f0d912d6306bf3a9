"""`lumos history` and `compare`: the documents' shapes in text, YAML and JSON."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from command_line import FEBRUARY, JANUARY, ORDERS, Lumos, checked
from lumos.core.models import AlertState, DatasetVersion, LumosDataset, Urn
from lumos.core.store.database import StateDatabase
from lumos.core.store.history import HistoryRepository
from lumos.feature.versioning.planning import VersionPlanner

GOLDEN = Path(__file__).parents[1] / "golden" / "product_documents" / "outputs"
EVENTS = Urn.of("kafka", "user_events")
BESIDE = ("urn", "category", "author", "previous_version", "cloud_version")
STATES = (
    ("2023-06-01T10:00:00+00:00", "event_id user_id timestamp event_type", "STRING"),
    ("2023-09-15T14:30:00+00:00", "event_id user_id timestamp event_type session_id", "STRING"),
    ("2024-01-10T09:00:00+00:00", "event_id user_id timestamp event_type session_id", "INT64"),
)


def events(columns: str, user: str) -> LumosDataset:
    fields = [
        {"name": name, "type": user if name == "user_id" else "STRING"} for name in columns.split()
    ]
    return LumosDataset.from_json(
        {
            "urn": EVENTS,
            "name": "user_events",
            "platform": "kafka",
            "schema": {"fields": fields},
        }
    )


@pytest.fixture
def documented(lumos: Lumos, project: Path) -> Lumos:
    """A project whose history is the one that the product documents show."""
    planner = VersionPlanner()
    current: DatasetVersion | None = None
    known = None
    with StateDatabase.open(project / ".lumos" / "lumos.db") as database:
        history = HistoryRepository(database)
        for text, columns, user in STATES:
            at, state = datetime.fromisoformat(text), events(columns, user)
            if current is None or known is None:
                planned = planner.first(state, at=at, author="jane")
            else:
                found = planner.next(current, known, new=state, at=at, author="jane")
                assert found is not None
                planned = found
            current, known = planned.version, state
            if current.backward_compatible is False:
                current = current.model_copy(update={"breaking_change_alert": AlertState.SENT})
            history.append(EVENTS, current, dataset=state, changes=planned.changes)
    return lumos


@pytest.fixture
def shop(lumos: Lumos) -> Lumos:
    for snapshot in (JANUARY, FEBRUARY):
        assert lumos("import", snapshot).exit_code == 0
    return lumos


def without_what_lumos_adds(text: str) -> list[str]:
    return [
        line
        for line in text.splitlines()
        if line and not line.startswith("#") and line.split(":")[0].strip() not in BESIDE
    ]


def test_a_history_in_yaml_is_line_by_line_that_of_the_product_documents(
    documented: Lumos,
) -> None:
    printed = documented("history", EVENTS, "--format", "yaml").stdout

    sample = (GOLDEN / "schema_history.yaml").read_text()
    assert without_what_lumos_adds(printed) == without_what_lumos_adds(sample)
    assert printed.splitlines()[:2] == ["dataset: user_events", f"urn: {EVENTS}"]
    for line in (
        "    category: SCHEMA_CHANGE",
        "    author: jane",
        "    previous_version: 1.1.0",
        "    cloud_version: S-3",
    ):
        assert line in printed.splitlines()


def test_a_history_in_json_has_the_keys_and_values_of_the_product_documents(
    documented: Lumos,
) -> None:
    found = checked(documented("history", EVENTS, "--json"), "history")
    assert found == documented("history", EVENTS, "--format", "json").json()

    for entry in (found, *found["schema_history"]):
        for name in BESIDE:
            entry.pop(name, None)
    sample = YAML(typ="safe").load(GOLDEN / "schema_history.yaml")
    for entry in sample["schema_history"]:
        entry["timestamp"] = f"{entry['timestamp'].replace(tzinfo=None).isoformat()}Z"
    assert found == sample


def test_a_history_in_text_tells_versions_details_and_alerts(documented: Lumos) -> None:
    assert documented("history", EVENTS).stdout.splitlines() == [
        EVENTS,
        "  1.0.0    2023-06-01 10:00  S-1  FIRST  by jane",
        "           columns: event_id, user_id, timestamp, event_type",
        "  1.1.0    2023-09-15 14:30  S-2  COLUMN_ADDED  by jane",
        "           column: session_id, type: STRING",
        "  2.0.0    2024-01-10 09:00  S-3  COLUMN_TYPE_CHANGED  BREAKING  alert SENT  by jane",
        "           column: user_id, old_type: STRING, new_type: INT64",
    ]


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (("--limit", "1"), ["2.0.0"]),
        (("--limit", "2"), ["1.1.0", "2.0.0"]),
        (("--since", "2023-09-15"), ["1.1.0", "2.0.0"]),
        (("--since", "2023-09-15T14:30:00Z"), ["1.1.0", "2.0.0"]),
        (("--since", "2023-09-15T14:30:00.000001+00:00"), ["2.0.0"]),
        (("--since", "2023-09-15T17:00:00+02:00"), ["2.0.0"]),
        (("--since", "2023-01-01", "--limit", "1"), ["2.0.0"]),
        (("--since", "2030-01-01"), []),
    ],
)
def test_a_history_can_be_cut(
    documented: Lumos, options: tuple[str, ...], numbers: list[str]
) -> None:
    found = documented("history", EVENTS, "--json", *options).json()
    assert [version["version"] for version in found["schema_history"]] == numbers


def test_blame_tells_which_version_brought_a_column_in_and_which_changed_it(
    documented: Lumos,
) -> None:
    assert documented("history", EVENTS, "--blame").stdout.splitlines() == [
        f"{EVENTS}  2.0.0",
        "  event_id    1.0.0    2023-06-01 10:00  added  by jane",
        "  user_id     2.0.0    2024-01-10 09:00  changed  by jane  since 1.0.0",
        "  timestamp   1.0.0    2023-06-01 10:00  added  by jane",
        "  event_type  1.0.0    2023-06-01 10:00  added  by jane",
        "  session_id  1.1.0    2023-09-15 14:30  added  by jane",
    ]
    found = checked(documented("history", EVENTS, "--blame", "--json"), "history-blame")
    assert found["columns"][4] == {
        "path": "session_id",
        "type": "STRING",
        "added": {
            "version": "1.1.0",
            "timestamp": "2023-09-15T14:30:00Z",
            "author": "jane",
            "cloud_version": "S-2",
        },
    }
    in_yaml = documented("history", EVENTS, "--blame", "--format", "yaml").stdout
    assert "      timestamp: 2023-09-15T14:30:00Z" in in_yaml.splitlines()


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (("1.1.0", "2.0.0"), None),
        (("S-2", "S-3"), "from 1.1.0 to 2.0.0"),
        (("previous", "latest"), "from 1.1.0 to 2.0.0"),
        ((), "from 1.1.0 to 2.0.0"),
        (("S-2",), "from 1.1.0 to 2.0.0"),
    ],
)
def test_versions_are_compared_by_any_name(
    documented: Lumos, names: tuple[str, ...], line: str | None
) -> None:
    lines = documented("compare", EVENTS, *names).stdout.splitlines()
    assert lines[0] == (line or EVENTS)
    assert "user_id" in lines[-1]
    compared = checked(documented("compare", EVENTS, *names, "--json"), "compare")
    assert (compared["from_version"], compared["to_version"]) == ("1.1.0", "2.0.0")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("history", EVENTS, "--since", "yesterday"), "not a time"),
        (("history", EVENTS, "--blame", "--limit", "1"), "--blame"),
        (("history", EVENTS, "--format", "xml"), "xml"),
        (("history", EVENTS, "--limit", "0"), "--limit"),
    ],
)
def test_a_wrong_option_is_told_as_such(
    documented: Lumos, arguments: tuple[str, ...], says: str
) -> None:
    result = documented(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.error_line


def test_an_unknown_version_is_told_with_the_known_ones(documented: Lumos) -> None:
    result = documented("compare", EVENTS, "S-9", "latest")
    assert result.exit_code == 3
    assert "1.0.0, 1.1.0, 2.0.0" in result.error_line


def test_several_changes_of_one_version_are_counted(shop: Lumos) -> None:
    lines = shop("history", ORDERS).stdout.splitlines()
    assert lines[-1] == "           column: coupon_code, type: STRING, and 1 more change"


def test_a_change_is_kept_although_no_history_was_kept_before(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("features: {schema_tracking: false}\n")
    lumos("import", JANUARY)
    (project / "lumos.yaml").unlink()
    lumos("import", FEBRUARY)

    versions = checked(lumos("history", ORDERS, "--json"), "history")["schema_history"]

    assert [each["version"] for each in versions] == ["1.0.0", "2.0.0"]
    assert versions[-1]["backward_compatible"] is False
    assert "field.removed" in lumos("compare", ORDERS).stdout
