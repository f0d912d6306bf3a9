"""Profiles that were made in OpenMetadata are read, moved on and never overwritten."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import FULL_SIZE
from doubles.openmetadata_server import TOKEN, openmetadata_at, openmetadata_server
from doubles.openmetadata_store import Json, OpenMetadataStore
from lumos.core.models import LumosDataset, with_parts
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.impl.openmetadata.mapping.figures import kept_figures, told_profile

AT = 1_750_000_000_000
MOMENT = datetime.fromtimestamp(AT / 1_000, UTC)
URN = "lumos://snowflake/shop/public/orders"
SECRET = "Grace Hopper"
COLUMNS: list[Json] = [
    {"name": "id", "dataType": "BIGINT"},
    {"name": "price", "dataType": "DECIMAL", "precision": 10, "scale": 2},
    {"name": "day", "dataType": "DATE"},
    {"name": "buyer", "dataType": "STRING"},
    {
        "name": "address",
        "dataType": "STRUCT",
        "children": [{"name": "city", "dataType": "STRING"}, {"name": "zip", "dataType": "INT"}],
    },
    {
        "name": "born",
        "dataType": "INT",
        "tags": [{"tagFQN": "PII.Sensitive", "source": "Classification"}],
    },
]
TABLE_FIGURES: Json = {
    "timestamp": AT,
    "rowCount": 100.0,
    "columnCount": 6.0,
    "sizeInByte": 4096.0,
    "profileSample": 100.0,
    "createDateTime": "2024-01-02T03:04:05Z",
    "customMetrics": [{"name": "late", "value": 3.0}],
}


def figures(name: str, **more: object) -> Json:
    return {"name": name, "timestamp": AT, "valuesCount": 90.0, "nullCount": 10.0, **more}


KEPT: list[Json] = [
    figures("id", min=1.0, max=99.0, mean=50.5, stddev=2.5, distinctCount=90.0, uniqueCount=90.0,
            median=50.0, firstQuartile=25.0, thirdQuartile=75.0, nullProportion=0.1, sum=4545.0,
            histogram={"boundaries": ["0 to 50", "50 and up"], "frequencies": [45, 45]}),
    figures("price", min="0.50", max="10.00", mean=5.25),
    figures("day", min="2024-01-02", max="2024-03-04"),
    figures("buyer", minLength=2.0, maxLength=20.0, mean=7.5, distinctCount=80.0),
    figures("address.zip", min=1000, max=9999),
    figures("born"),
]  # fmt: skip
HIDDEN: dict[str, Json] = {
    "buyer": {
        "min": SECRET,
        "max": SECRET,
        "cardinalityDistribution": {"categories": [SECRET], "counts": [7]},
        "histogram": {"boundaries": [SECRET], "frequencies": [1]},
    },
    "born": {"min": 1906, "max": 1992, "mean": 1950.0, "sum": 7.0, "median": 1940.0},
}
"""What may be text of the data, or a value of a personal column."""
MADE_THERE: Json = {
    "tableProfile": TABLE_FIGURES,
    "columnProfile": [{**each, **HIDDEN.get(each["name"], {})} for each in KEPT],
}


def table(store: OpenMetadataStore, profile: Json | None = None) -> Json:
    """Make a table that others filled, with a profile of theirs."""
    store.put("services/databaseServices", {"name": "snowflake", "serviceType": "Snowflake"})
    store.put("databases", {"name": "shop", "service": "snowflake"})
    store.put("databaseSchemas", {"name": "public", "database": "snowflake.shop"})
    body: Json = {"name": "orders", "databaseSchema": "snowflake.shop.public", "columns": COLUMNS}
    made = store.put("tables", body)[0]
    if profile is not None:
        store.put_profile(made["id"], profile)
    return made


def own(at: str = "2025-06-15T15:06:40Z", **parts: object) -> LumosDataset:
    """Return a dataset with a profile of Lumos, by default of the time of the one made there."""
    fields = [{"name": "id", "type": "INT64"}, {"name": "buyer", "type": "STRING"}]
    column = {"path": "id", "type": "INT64", "value_count": 8, "null_count": 1, "misfit_count": 2}
    profile = {"profiled_at": at, "row_count": 9, "file_count": 3, "columns": [column]}
    document: dict[str, object] = {
        "urn": URN,
        "name": "orders",
        "platform": "snowflake",
        "schema": {"fields": fields},
        "profile": profile,
    }
    return LumosDataset.from_json({**document, **parts})


def shown(store: OpenMetadataStore) -> list[Json]:
    """Return the profiles that the server has of its only table."""
    return [profile for profiles in store.profiles.values() for profile in profiles]


def test_a_profile_made_there_is_read_with_its_columns(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    table(store, MADE_THERE)

    (found,) = platform.list()

    assert found == platform.get_dataset(URN)
    assert found.profile is not None
    assert (found.profile.profiled_at, found.profile.row_count) == (MOMENT, 100)
    assert found.statistics is not None
    assert (found.statistics.row_count, found.statistics.total_size_bytes) == (100, 4096)
    columns = {column.path: column for column in found.profile.columns}
    assert list(columns) == ["id", "price", "day", "buyer", "address.zip", "born"]
    first = columns["id"]
    assert (first.type, first.value_count, first.null_count) == ("INT64", 90, 10)
    assert (first.min, first.max, first.mean, first.distinct_count) == (1, 99, 50.5, 90)
    assert [(each.share, each.value) for each in first.quantiles] == [
        (0.25, 25),
        (0.5, 50),
        (0.75, 75),
    ]
    assert (columns["price"].min, columns["price"].max) == ("0.50", "10.00")
    assert (columns["day"].min, columns["day"].max) == ("2024-01-02", "2024-03-04")
    assert (columns["address.zip"].min, columns["address.zip"].max) == (1000, 9999)


def test_text_of_the_data_and_values_of_personal_columns_stay_there(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    table(store, MADE_THERE)

    found = platform.get_dataset(URN)

    assert found.profile is not None
    columns = {column.path: column for column in found.profile.columns}
    buyer, born = columns["buyer"], columns["born"]
    assert (buyer.min, buyer.max, buyer.mean) == (None, None, None)
    assert buyer.length is not None
    assert (buyer.length.min, buyer.length.mean, buyer.length.max) == (2, 7.5, 20)
    assert (born.value_count, born.min, born.max, born.mean, born.quantiles) == (
        90, None, None, None, ())  # fmt: skip
    written = json.dumps(found.to_json())
    assert SECRET not in written
    assert "1906" not in written


def test_it_comes_back_on_another_server_and_is_written_once(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    table(store, MADE_THERE)
    found = platform.get_dataset(URN)
    with openmetadata_server() as (url, other), openmetadata_at(url) as target:
        target.emit_dataset(found)

        assert shown(other) == [{"tableProfile": TABLE_FIGURES, "columnProfile": KEPT}]
        assert target.get_dataset(URN) == found
        other.requests.clear()
        target.emit_dataset(found)
        assert other.writes() == []
    platform.emit_dataset(found)
    assert store.writes() == []


DAY = 86_400_000
EARLIER: list[Json] = [
    {"timestamp": AT - 3 * DAY, "rowCount": 90.0, "customMetrics": [{"name": "late", "value": 1}]},
    {"timestamp": AT - DAY, "rowCount": 95.0},
]
WRITES: list[Json] = [
    {"timestamp": AT - 2 * DAY, "operation": "INSERT", "rowsAffected": 5},
    {"timestamp": AT - 1_000, "operation": "DELETE", "rowsAffected": 0},
]


def with_history(store: OpenMetadataStore) -> None:
    """Make a table with profiles of several times, and with what was written to it."""
    made = table(store)
    for each in ({"timestamp": AT - 31 * DAY, "rowCount": 1.0}, *EARLIER):
        store.put_profile(made["id"], {"tableProfile": each})
    store.put_profile(made["id"], {**MADE_THERE, "systemProfile": WRITES})


def test_earlier_profiles_and_writes_are_kept_and_tell_of_freshness(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    with_history(store)

    found = platform.get_dataset(URN)

    kept: Any = found.to_json()["extensions"]
    assert kept["openmetadata"]["profile"]["earlierProfiles"] == EARLIER
    assert kept["openmetadata"]["profile"]["systemProfile"] == WRITES
    assert found.statistics is not None
    assert found.statistics.last_modified == datetime.fromtimestamp((AT - 1_000) / 1_000, UTC)
    assert [*platform.list()] == [found]


def test_earlier_profiles_and_writes_come_to_another_server_before_the_latest_one(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    with_history(store)
    found = platform.get_dataset(URN)
    with openmetadata_server() as (url, other), openmetadata_at(url) as target:
        target.emit_dataset(found)

        latest = {"tableProfile": TABLE_FIGURES, "columnProfile": KEPT, "systemProfile": WRITES}
        assert shown(other) == [*({"tableProfile": each} for each in EARLIER), latest]
        assert target.get_dataset(URN) == found
        other.requests.clear()
        target.emit_dataset(found)
        assert other.writes() == []


def test_what_a_write_was_is_told_in_no_words_but_those_that_are_known(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    made = table(store)
    odd = {"timestamp": AT, "operation": SECRET, "rowsAffected": SECRET, "by": SECRET}
    store.put_profile(made["id"], {**MADE_THERE, "systemProfile": [odd]})

    assert SECRET not in json.dumps(platform.get_dataset(URN).to_json())


def test_no_history_is_asked_for_where_none_is_wanted_or_there_is_no_profile(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    table(store)
    platform.get_dataset(URN)
    (identity,) = (each["id"] for each in store.entities["tables"].values())
    store.put_profile(identity, MADE_THERE)
    config: Json = {"server": store.url, "auth_token": TOKEN, "profile_days": 0}
    with OpenMetadataHandler.from_config(config) as brief:
        found = brief.get_dataset(URN)

    asked = [
        path for _, path in store.requests if path.endswith(("/tableProfile", "/systemProfile"))
    ]
    assert asked == []
    assert found.profile == platform.get_dataset(URN).profile


def test_a_change_of_the_dataset_leaves_their_profile_as_it_is(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    table(store, MADE_THERE)
    tagged = with_parts(platform.get_dataset(URN), tags=("gold",))

    platform.emit_dataset(tagged)

    assert shown(store) == [MADE_THERE]
    assert platform.get_dataset(URN) == tagged


def test_the_newer_profile_counts_and_nothing_of_the_other_is_mixed_in(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    dataset = own()
    platform.emit_dataset(dataset)
    ((identity, _),) = store.profiles.items()
    older = {"tableProfile": {"timestamp": AT - 1, "rowCount": 1}, "columnProfile": []}
    store.put_profile(identity, older)
    assert platform.get_dataset(URN) == dataset

    newer = {"tableProfile": {"timestamp": AT + 1, "rowCount": 7}, "columnProfile": [KEPT[0]]}
    store.put_profile(identity, newer)
    found = platform.get_dataset(URN)

    assert found.profile is not None
    assert (found.profile.row_count, found.profile.file_count) == (7, 0)
    assert [column.misfit_count for column in found.profile.columns] == [0]
    store.requests.clear()
    platform.emit_dataset(dataset)  # which says what was written before
    assert store.writes() == []


def test_a_profile_that_was_taken_away_does_not_come_back(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(own())
    earlier = own("2025-06-14T15:06:40Z")
    for dataset in (earlier, own(profile=None), own(profile=None, tags=["gold"])):
        platform.emit_dataset(dataset)
        assert platform.get_dataset(URN) == dataset

    (table_,) = store.entities["tables"].values()
    newer = {"tableProfile": {"timestamp": AT + 1, "rowCount": 7}, "columnProfile": []}
    store.put_profile(table_["id"], newer)
    found = platform.get_dataset(URN).profile
    assert found is not None
    assert found.row_count == 7


def test_a_profile_of_lumos_that_changed_replaces_the_one_of_its_time(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(own())
    profile = {"profiled_at": "2025-06-15T15:06:40Z", "row_count": 10, "file_count": 3}
    changed = own(profile=profile)
    platform.emit_dataset(changed)

    assert [each["tableProfile"]["rowCount"] for each in shown(store)] == [10]
    assert platform.get_dataset(URN) == changed


def test_a_profile_of_a_time_that_the_server_refuses_is_kept_but_not_shown(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    early = own("1970-01-02T00:00:00Z")
    platform.emit_dataset(early)

    assert shown(store) == []
    assert platform.get_dataset(URN) == early


def test_a_sample_tells_its_share_and_the_rows_that_were_looked_at(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    sampled = {"timestamp": AT, "rowCount": 1000, "profileSample": 10.0}
    table(store, {"tableProfile": sampled, "columnProfile": [KEPT[0]]})

    found = platform.get_dataset(URN)

    assert found.profile is not None
    assert found.statistics is not None
    assert (found.profile.sample, found.profile.row_count) == (0.1, 100)
    assert found.statistics.row_count == 1000


def test_size_and_times_alone_are_statistics_and_come_back_on_another_server(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    table(store, {"tableProfile": {"timestamp": AT, "sizeInByte": 5.0}, "columnProfile": []})

    found = platform.get_dataset(URN)

    assert found.profile is None
    assert found.statistics is not None
    assert found.statistics.total_size_bytes == 5
    with openmetadata_server() as (url, _), openmetadata_at(url) as target:
        target.emit_dataset(found)
        assert target.get_dataset(URN) == found
    platform.emit_dataset(found)
    assert store.writes() == []


def test_what_a_snapshot_calls_a_profile_of_openmetadata_may_be_anything(
    platform: OpenMetadataHandler,
) -> None:
    for given_ in ("x", {"tableProfile": 3}, {"tableProfile": {"timestamp": AT}}, [1]):
        odd = own(extensions={"openmetadata": {"profile": given_}})
        platform.emit_dataset(odd)
        assert platform.get_dataset(URN) == odd


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.just(SECRET),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("k"), inner, max_size=1),
    max_leaves=5,
)
_NAMES = st.sampled_from(
    ["timestamp", "valuesCount", "nullCount", "nullProportion", "distinctCount", "min", "max",
     "mean", "stddev", "median", "minLength", "maxLength", "cardinalityDistribution", "other"]
)  # fmt: skip


@settings(max_examples=2_000 if FULL_SIZE else 60)
@given(st.dictionaries(_NAMES, _VALUES), st.dictionaries(_NAMES, _VALUES), _VALUES)
def test_no_answer_of_a_server_breaks_the_reading_or_gets_text_through(
    column: dict[str, Any], other: dict[str, Any], rows: Any
) -> None:
    columns = [{"name": "id", "profile": column}, {"name": "buyer", "profile": other}]
    answer: Json = {"profile": {"timestamp": AT, "rowCount": rows}, "columns": columns}

    kept = kept_figures(answer, own())

    assert kept is not None
    assert SECRET not in json.dumps(kept)
    profile = told_profile(kept, own())
    assert profile is None or SECRET not in json.dumps(profile.to_json())
