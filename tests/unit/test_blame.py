"""Blame: every column is told with the version that brought it in and the one that changed it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lumos.core.models import DatasetVersion, LumosDataset, Urn
from lumos.feature.versioning.blame import FieldBlame, blame
from strategies import datasets

AT = datetime(2024, 1, 10, 9, tzinfo=UTC)
URN = Urn.of("kafka", "user_events")
INT = {"name": "n", "type": "INT64"}


def told(*schemas: list[dict[str, object]], gone: int | None = None) -> dict[str, FieldBlame]:
    states = []
    for number, fields in enumerate(schemas):
        version = DatasetVersion(
            version=f"{number + 1}.0.0",
            timestamp=AT + timedelta(days=number),
            author=f"author-{number + 1}",
            change_type="DATASET_REMOVED" if number == gone else None,
        )
        document = {"urn": URN, "name": "e", "platform": "kafka", "schema": {"fields": fields}}
        states.append((version, LumosDataset.from_json(document)))
    return {each.path: each for each in blame(states)}


def marks(found: FieldBlame) -> tuple[str, str | None]:
    return found.added.version, found.changed.version if found.changed else None


def column(name: str, kind: str = "STRING", **parts: object) -> dict[str, object]:
    return {"name": name, "type": kind, **parts}


def test_a_column_is_as_old_as_its_first_version_and_changed_by_the_last_that_touched_it() -> None:
    found = told(
        [column("a"), column("b")],
        [column("a"), column("b", "INT64"), column("c")],
        [column("c"), column("a", description="Text."), column("b", "INT64")],
    )

    assert {path: marks(each) for path, each in found.items()} == {
        "c": ("2.0.0", None),
        "a": ("1.0.0", "3.0.0"),
        "b": ("1.0.0", "2.0.0"),
    }
    assert [*found] == ["c", "a", "b"], "in the order of the newest version"
    changed = found["b"].changed
    assert changed is not None
    assert (changed.author, changed.timestamp) == ("author-2", AT + timedelta(days=1))
    assert found["b"].type == "INT64"


def test_a_column_that_was_removed_and_came_back_is_as_old_as_its_return() -> None:
    found = told([column("a"), column("b")], [column("a")], [column("a"), column("b")])

    assert marks(found["b"]) == ("3.0.0", None)


def test_all_columns_of_a_dataset_that_was_gone_are_as_old_as_its_return() -> None:
    fields = [column("a")]

    assert marks(told(fields, fields, fields, gone=1)["a"]) == ("3.0.0", None)
    assert told(fields, fields, gone=1) == {}


def test_members_are_told_apart_from_the_struct_that_holds_them() -> None:
    found = told(
        [column("s", "STRUCT", fields=[INT])],
        [column("s", "STRUCT", fields=[INT, column("t")])],
        [column("s", "STRUCT", fields=[column("n", "DOUBLE"), column("t")])],
    )

    assert {path: marks(each) for path, each in found.items()} == {
        "s": ("1.0.0", None),
        "s.n": ("1.0.0", "3.0.0"),
        "s.t": ("2.0.0", None),
    }


def test_members_inside_lists_maps_and_unions_have_the_paths_of_changes() -> None:
    struct = {"type": "STRUCT", "fields": [INT]}
    text = {"type": "STRING"}
    found = told(
        [
            column("l", "ARRAY", items=struct),
            column("m", "MAP", key=text, value=struct),
            column("u", "UNION", branches=[text, struct]),
            column("a.b"),
        ]
    )

    assert [*found] == ["l", "l[].n", "m", "m{value}.n", "u", "u<STRUCT>.n", "`a.b`"]


def test_the_items_of_a_list_are_a_part_of_the_column() -> None:
    found = told(
        [column("l", "ARRAY", items={"type": "INT32"})],
        [column("l", "ARRAY", items={"type": "INT64"})],
    )

    assert marks(found["l"]) == ("1.0.0", "2.0.0")
    assert found["l"].type == "ARRAY<INT64>"


def test_without_versions_there_is_nobody_to_blame() -> None:
    assert blame(()) == ()


@given(states=st.lists(datasets(urn=st.just(URN)), min_size=1, max_size=4))
def test_every_column_of_the_newest_version_is_told_and_no_other(
    states: list[LumosDataset],
) -> None:
    versions = [DatasetVersion(version=f"{n}.0.0", timestamp=AT) for n in range(len(states))]
    found = blame(zip(versions, states, strict=True))

    tops = [field.name for field in states[-1].schema.fields]
    assert len(found) >= len(tops)
    assert all(each.added.version <= each.latest.version for each in found)
