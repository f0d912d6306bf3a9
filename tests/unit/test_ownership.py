"""Users, groups and owners by file, on the embedded catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lumos.core.errors import (
    CapabilityError,
    ConfigurationError,
    PlatformUnavailableError,
)
from lumos.core.models import Group, LumosDataset, Owner, Urn, User
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import Capability
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.settings import InvalidSettingsError, read_document
from lumos.feature.ownership import OwnershipService

START = datetime(2024, 1, 1, tzinfo=UTC)
EXAMPLES = Path(__file__).parents[2] / "examples" / "people"
ORDERS = Urn("lumos://local/lake/shop/orders.parquet")
CUSTOMERS = Urn("lumos://snowflake/FINANCE/public/customers")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[EmbeddedHandler]:
    catalog = EmbeddedHandler.from_config({"database_url": str(tmp_path / "lumos.db")})
    with catalog:
        catalog.emit_dataset(
            LumosDataset(urn=ORDERS, name="orders", platform="local", format="parquet")
        )
        catalog.emit_dataset(
            LumosDataset(
                urn=CUSTOMERS,
                name="customers",
                platform="snowflake",
                database="FINANCE",
                namespace="public",
                environment="PROD",
            )
        )
        yield catalog


def run(platform: EmbeddedHandler, operation: str, document: Any, **options: Any) -> RunReport:
    recorder = RunRecorder(operation, started_at=START, keep_done=True)
    getattr(OwnershipService(platform, **options), operation)(document, recorder=recorder)
    return recorder.finish(at=START)


def outcomes(report: RunReport) -> list[tuple[str, str, str | None]]:
    return [(item.status, item.item, item.reason) for item in report.items]


def assign(platform: EmbeddedHandler, *assignments: dict[str, Any]) -> RunReport:
    return run(platform, "assign", {"assignments": list(assignments)})


def owners(platform: EmbeddedHandler, urn: str) -> tuple[Owner, ...]:
    return platform.get_dataset(urn).ownership.owners


def test_the_examples_are_written_once_and_a_second_run_changes_nothing(
    platform: EmbeddedHandler,
) -> None:
    documents = {
        "create_users": read_document(EXAMPLES / "users.yaml"),
        "create_groups": read_document(EXAMPLES / "groups.yaml"),
        "assign": read_document(EXAMPLES / "owners.yaml"),
    }
    for operation, document in documents.items():
        report = run(platform, operation, document)
        assert (report.failed, report.skipped, report.warnings) == ((), (), ())
        assert report.counts.done >= 2
    before = platform.export_all(at=START)
    for operation, document in documents.items():
        report = run(platform, operation, document)
        assert report.counts.done == report.counts.failed == 0
        assert {item.reason for item in report.skipped} == {"unchanged"}
    assert platform.export_all(at=START) == before
    assert owners(platform, CUSTOMERS) == (
        Owner(group="finance-team", type="DATA_STEWARD"),
        Owner(user="ravi.patel", type="BUSINESS_OWNER"),
    )


def test_the_earlier_frameworks_files_are_accepted_as_they_are(
    platform: EmbeddedHandler, tmp_path: Path
) -> None:
    user = {
        "username": "jdoe",
        "display_name": "J. Doe",
        "first_name": "J.",
        "last_name": "Doe",
        "full_name": "J. Doe",
        "email": "jdoe@example.com",
        "title": "Engineer",
        "department_name": "Data",
        "department_id": 12,
        "about_me": "",
        "teams": ["core"],
        "skills": ["sql"],
        "picture_link": "https://example.com/j.png",
        "manager_urn": "urn:li:corpuser:boss",
        "country_code": "CH",
        "system": False,
        "custom_properties": {"floor": 2},
    }
    group = {
        "name": "core",
        "display_name": "Core",
        "description": "d",
        "members": ["jdoe"],
        "admins": [],
    }
    assignment = {
        "owner_name": "jdoe",
        "owner_category": "user",
        "ownership_type": "DATA_STEWARD",
        "entity": {"datatype": "parquet", "dataset_name": "orders", "env": "PROD"},
    }
    files = {
        "create_users": {"operation": "create_users", "description": "d", "users": [user]},
        "create_groups": {"operation": "create_groups", "groups": [group]},
        "assign": {"operation": "assign_ownership", "assignments": [assignment]},
    }
    for operation, content in files.items():
        path = tmp_path / f"{operation}.json"
        path.write_text(json.dumps(content))
        report = run(platform, operation, read_document(path))
        assert (report.counts.done, report.items[0].reason) == (1, None)
    assert list(platform.list_entities("user")) == [User.from_json(user)]
    assert list(platform.list_entities("group")) == [Group.from_json(group)]
    assert owners(platform, ORDERS) == (Owner(user="jdoe", type="DATA_STEWARD"),)


def test_a_changed_user_is_brought_up_to_date(platform: EmbeddedHandler) -> None:
    run(platform, "create_users", {"users": [{"username": "a", "title": "old"}]})
    report = run(platform, "create_users", {"users": [{"username": "a", "title": "new"}]})
    assert outcomes(report) == [("done", "user a", None)]
    assert list(platform.list_entities("user")) == [User(username="a", title="new")]


def test_a_wrong_item_is_named_with_its_line_and_spares_the_others(
    platform: EmbeddedHandler, tmp_path: Path
) -> None:
    path = tmp_path / "users.yaml"
    path.write_text("users:\n- username: a\n- username: b\n  emial: x@y.z\n- {}\n- username: c\n")
    report = run(platform, "create_users", read_document(path))
    assert outcomes(report) == [
        ("done", "user a", None),
        ("failed", "users[1]", f"{path}:4: unknown key 'emial'; did you mean 'email'?"),
        ("failed", "users[2]", f"{path}:5: key 'username' is missing"),
        ("done", "user c", None),
    ]
    assert "x@y.z" not in str(report.as_json())
    assert report.complete


def test_a_user_given_twice_and_differently_is_reported_not_chosen(
    platform: EmbeddedHandler,
) -> None:
    users = [{"username": "a"}, {"username": "a", "title": "x"}, {"username": "a"}]
    report = run(platform, "create_users", {"users": users})
    assert outcomes(report) == [
        ("done", "user a", None),
        ("failed", "user a", "user a is given twice, and differently"),
        ("skipped", "user a", "unchanged"),
    ]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "must be a mapping"),
        ({"user": []}, "unknown key 'user'; did you mean 'users'"),
        ({"groups": []}, "key 'users' is missing"),
        ({"users": {"username": "a"}}, "users must be a list"),
    ],
)
def test_a_document_of_another_shape_is_refused_as_a_whole(
    platform: EmbeddedHandler, document: Any, said: str
) -> None:
    with pytest.raises(InvalidSettingsError, match=said):
        run(platform, "create_users", document)


def test_a_document_that_is_meant_for_something_else_is_refused(platform: EmbeddedHandler) -> None:
    with pytest.raises(ConfigurationError, match="meant for create_groups, not for create_users"):
        run(platform, "create_users", {"operation": "create_groups", "users": []})


@pytest.mark.parametrize(
    "reference",
    [
        str(CUSTOMERS),
        "customers",
        "public.customers",
        "FINANCE.public.customers",
        "FINANCE/public/customers",
        {"name": "customers", "platform": "Snowflake"},
        {"data_type": "snowflake", "dataset": "customers", "env": "prod"},
    ],
)
def test_a_dataset_is_found_by_urn_or_by_any_unambiguous_name(
    platform: EmbeddedHandler, reference: Any
) -> None:
    report = assign(platform, {"dataset": reference, "group": "g"})
    assert report.counts.done == 1
    assert owners(platform, CUSTOMERS) == (Owner(group="g"),)


@pytest.mark.parametrize(
    ("reference", "reason", "code"),
    [
        ("nothing", "no dataset is called nothing", "LUM-404"),
        ({"name": "orders", "platform": "csv"}, "no dataset is called orders (csv)", "LUM-404"),
        (
            {"name": "customers", "env": "DEV"},
            "no dataset is called customers (DEV)",
            "LUM-404",
        ),
        ("lumos://s3/none", "embedded has no dataset lumos://s3/none", "LUM-403"),
        ("lumos://S3/x", "the platform of a URN is lower-case", "LUM-201"),
    ],
)
def test_a_reference_that_fits_nothing_is_reported(
    platform: EmbeddedHandler, reference: Any, reason: str, code: str
) -> None:
    report = assign(platform, {"dataset": reference, "user": "u"}, {"dataset": ORDERS, "user": "u"})
    (failure,) = report.failed
    assert (failure.reason or "").startswith(reason)
    assert failure.code == code
    assert failure.item.startswith("assignments[0]: ")
    assert report.counts.done == 1


def test_a_reference_that_fits_several_is_reported_with_their_urns(
    platform: EmbeddedHandler,
) -> None:
    other = Urn("lumos://s3/lake/orders")
    platform.emit_dataset(LumosDataset(urn=other, name="orders", platform="s3", format="parquet"))
    report = assign(platform, {"dataset": "orders", "user": "u"})
    assert report.failed[0].reason == f"2 datasets are called orders: {ORDERS}, {other}"
    assert owners(platform, ORDERS) == owners(platform, other) == ()
    report = assign(platform, {"dataset": {"name": "orders", "platform": "s3"}, "user": "u"})
    assert report.counts.done == 1


def test_an_owner_without_category_is_looked_up_and_never_guessed(
    platform: EmbeddedHandler,
) -> None:
    platform.apply(Batch(entities=[User(username="both")]))
    platform.apply(Batch(entities=[Group(name="both")]))
    platform.apply(Batch(entities=[Group(name="team")]))
    report = assign(
        platform,
        {"dataset": "orders", "owner": "team"},
        {"dataset": "orders", "owner": "both"},
        {"dataset": "orders", "owner": "nobody"},
        {"dataset": "orders", "owner": "both", "category": "group"},
    )
    assert [item.reason for item in report.failed] == [
        "both a user and a group are called both",
        "no user or group is called nobody",
    ]
    assert owners(platform, ORDERS) == (Owner(group="both"), Owner(group="team"))


def test_an_owner_whom_the_catalog_does_not_know_is_assigned_with_a_warning(
    platform: EmbeddedHandler,
) -> None:
    report = assign(platform, {"dataset": "orders", "user": "jane.smiht"})
    assert report.counts.done == 1
    assert report.warnings == ("user jane.smiht is not known to the catalog",)


@pytest.mark.parametrize(
    "who", [{}, {"user": "a", "group": "b"}, {"user": "a", "category": "user"}, {"owner": ""}]
)
def test_an_assignment_names_exactly_one_owner(
    platform: EmbeddedHandler, who: dict[str, str]
) -> None:
    report = assign(platform, {"dataset": "orders", **who})
    assert [item.item for item in report.failed] == ["assignments[0]"]
    assert owners(platform, ORDERS) == ()


def test_other_owners_stay_and_each_dataset_is_published_once(platform: EmbeddedHandler) -> None:
    platform.emit_ownership(ORDERS, "first")
    published: list[tuple[LumosDataset, LumosDataset]] = []

    def publish(old: LumosDataset, new: LumosDataset) -> None:
        published.append((old, new))
        platform.emit_dataset(new)

    document = {
        "assignments": [
            {"dataset": ORDERS, "user": "second"},
            {"dataset": CUSTOMERS, "user": "x"},
            {"dataset": "orders", "group": "third", "type": "consumer"},
            {"dataset": "orders", "user": "first"},
        ]
    }
    report = run(platform, "assign", document, publish=publish)
    assert [old.urn for old, _ in published] == [ORDERS, CUSTOMERS]
    assert published[0][0].ownership.owners == (Owner(user="first"),)
    assert owners(platform, ORDERS) == (
        Owner(group="third", type="CONSUMER"),
        Owner(user="first"),
        Owner(user="second"),
    )
    assert (report.counts.done, report.counts.skipped) == (3, 1)


def test_a_catalog_that_fails_for_one_dataset_still_gets_the_others(
    platform: EmbeddedHandler,
) -> None:
    def publish(old: LumosDataset, new: LumosDataset) -> None:
        if new.urn == ORDERS:
            raise PlatformUnavailableError("the catalog did not answer")
        platform.emit_dataset(new)

    document = {
        "assignments": [{"dataset": ORDERS, "user": "u"}, {"dataset": CUSTOMERS, "user": "u"}]
    }
    report = run(platform, "assign", document, publish=publish)
    assert [(item.status, item.retryable) for item in report.items] == [
        ("failed", True),
        ("done", False),
    ]


def test_a_catalog_without_people_says_so_but_still_takes_owners(tmp_path: Path) -> None:
    class Plain(EmbeddedHandler):
        capabilities = frozenset(Capability) - {Capability.ENTITIES}

    with Plain.from_config({"database_url": str(tmp_path / "plain.db")}) as catalog:
        catalog.emit_dataset(LumosDataset(urn=ORDERS, name="orders", platform="local"))
        with pytest.raises(CapabilityError):
            run(catalog, "create_users", {"users": [{"username": "a"}]})
        report = assign(catalog, {"dataset": "orders", "user": "a"})
        assert (report.counts.done, report.warnings) == (1, ())
