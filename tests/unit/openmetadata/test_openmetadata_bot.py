"""With a bot's token and a server's default rules everything arrives, and edits of people stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from doubles.openmetadata_rules import BOT
from doubles.openmetadata_server import TOKEN, openmetadata_at
from doubles.openmetadata_store import Json, OpenMetadataStore
from given_work import GivenWork, given_project
from lumos.core.controllers.sync_controller import SyncController
from lumos.core.models import DatasetLineage, Snapshot, Urn, load_snapshot, with_parts
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.run_report import RunReport
from lumos.core.runtime.settings import FeatureSettings, LumosSettings
from lumos.core.store.database import StateDatabase
from lumos.feature.sync.results import SyncResult
from lumos.testing.platform_samples import AT
from whole_snapshot import CUSTOMERS, ORDERS, whole_snapshot

SHOP = Path(__file__).parents[3] / "examples/shop/january.json"


def shop() -> Snapshot:
    return load_snapshot(json.loads(SHOP.read_text("utf-8")))


SETTINGS = LumosSettings(features=FeatureSettings(schema_tracking=False))


class World:
    """A catalog of Lumos, and the way from it to a server."""

    def __init__(self, database: StateDatabase, store: OpenMetadataStore) -> None:
        self.local = EmbeddedHandler(database)
        self.store = store
        self.reports: list[RunReport] = []
        self._database = database

    def fill(self, snapshot: Snapshot) -> None:
        catalog = self.local
        sections = ("jobs", "glossary", "tags", "domains", "users", "groups")
        with self._database.transaction():
            for dataset in snapshot.datasets:
                catalog.emit_dataset(with_parts(dataset, lineage=DatasetLineage()))
            for section in sections:
                catalog.apply(Batch(entities=getattr(snapshot, section)))
            catalog.apply(
                Batch(
                    edges=snapshot.lineage_edges,
                    identities=[
                        Identity(Urn(urn), name, known)
                        for urn, ids in snapshot.identity_map.items()
                        for name, known in ids.items()
                    ],
                    extensions=snapshot.extensions,
                )
            )

    def sync(self, *, token: str = TOKEN, full: bool = False) -> SyncResult:
        """Sync once, as a new process does."""
        with openmetadata_at(self.store.url, token=token) as target:
            work = GivenWork(
                given_project(Path("nowhere"), SETTINGS, clock=lambda: AT),
                database=self._database,
                platforms={"there": target},
                reports=self.reports,
            )
            self.store.requests.clear()
            return SyncController(work).sync("there", full=full)

    def there(self) -> object:
        with openmetadata_at(self.store.url) as target:
            return _whole(target.export_all(at=AT))


def _whole(snapshot: Snapshot) -> Json:
    document = snapshot.to_json()
    document.pop("source_platform")
    return document


@pytest.fixture
def world(tmp_path: Path, store: OpenMetadataStore) -> Iterator[World]:
    with StateDatabase.open(tmp_path / "lumos.db") as database:
        yield World(database, store)


@pytest.mark.parametrize("snapshot", [shop, whole_snapshot], ids=["shop", "every concept"])
def test_everything_arrives_with_the_token_of_a_bot_and_a_second_sync_sends_nothing(
    world: World, snapshot: object
) -> None:
    assert callable(snapshot)
    world.fill(snapshot())
    world.sync()
    assert [report.failed for report in world.reports] == [()]
    assert world.there() == _whole(world.local.export_all(at=AT))

    world.sync()
    assert world.store.requests == [] or world.store.writes() == []
    world.sync(full=True)
    assert world.store.writes() == []


def edited(store: OpenMetadataStore) -> dict[str, Json]:
    """Edit in the user interface, and return what people see of it now."""
    table = store.entities["tables"]["postgres.shop.public.orders"]
    container = store.entities["containers"]["s3.lake.raw/customers"]
    pipeline = store.entities["pipelines"]["airflow.daily/load_revenue"]
    user, team = store.entities["users"]["ada"], store.entities["teams"]["shop"]
    term = store.entities["glossaryTerms"]["lumos.Revenue"]
    grace = store.reference("users", store.entities["users"]["grace"])
    label = {"tagFQN": "Tier.Tier1", "source": "Classification", "labelType": "Manual"}
    table["owners"] = [grace]
    table["tags"] = [*table["tags"], label]
    for each in (table, container, pipeline, user, team, term):
        each["displayName"] = f"The {each['name']} of people"
        each["description"] = f"What people say of {each['name']}"
        each["version"] = round(each["version"] + 0.1, 1)
    return {each["fullyQualifiedName"]: _seen(each) for each in
            (table, container, pipeline, user, team, term)}  # fmt: skip


def _seen(entity: Json) -> Json:
    parts: Json = {name: entity.get(name) for name in ("displayName", "description", "owners")}
    return {**parts, "tags": sorted(each["tagFQN"] for each in entity.get("tags") or [])}


@pytest.mark.parametrize("token", ["token-of-the-double", "token-of-an-administrator"])
def test_nothing_that_people_set_in_the_user_interface_is_changed(world: World, token: str) -> None:
    world.fill(whole_snapshot())
    world.sync(token=token)
    seen = edited(world.store)

    for urn in (ORDERS, CUSTOMERS):  # Lumos has something new to say of all that they edited
        held = world.local.get_dataset(urn)
        changed = with_parts(held, name="renamed", version="9.0.0", lineage=DatasetLineage())
        world.local.emit_dataset(changed)
    (job,) = world.local.list_entities("job")
    world.local.apply(Batch(entities=[job.model_copy(update={"name": "renamed", "type": "X"})]))
    for options in ({}, {"full": True}):
        world.sync(token=token, **options)
        assert [report.failed for report in world.reports] == [()] * len(world.reports)
        now = {name: _seen(each) for entities in world.store.entities.values()
               for name, each in entities.items() if name in seen}  # fmt: skip
        assert now == seen
    world.sync(token=token, full=True)
    assert world.store.writes() == []
    with openmetadata_at(world.store.url) as target:
        assert target.get_dataset(ORDERS).name == "renamed"
        (shown,) = target.list_entities("job")
        assert shown.to_json()["name"] == "renamed"


def test_a_renamed_dataset_job_and_team_end_no_sync_and_are_reported(world: World) -> None:
    world.fill(whole_snapshot())
    world.sync()
    for urn in (ORDERS, CUSTOMERS):
        held = world.local.get_dataset(urn)
        world.local.emit_dataset(with_parts(held, name="renamed", lineage=DatasetLineage()))
    (group,) = world.local.list_entities("group")
    world.local.apply(Batch(entities=[group.model_copy(update={"display_name": "The market"})]))

    world.sync()

    report = world.reports[-1]
    assert report.failed == ()
    (warning,) = [each for each in report.warnings if "displayName" in each]
    assert "EditDisplayName denied by role IngestionBotRole" in warning
    assert world.store.entities["teams"]["shop"]["displayName"] == "The shop"
    assert world.there() == _whole(world.local.export_all(at=AT))
    assert world.store.caller == BOT
