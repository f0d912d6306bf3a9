"""A migration says that everything arrived only where it did: no loss goes unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Lumos, checked
from lossy_catalog import BESIDE_DATASETS, LOSSES, LossyCatalog
from lumos.core.models import DatasetLineage, LumosDataset, Tag, User, with_parts
from lumos.core.models.governance import Documentation
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.fidelity import CONCEPTS, Fidelity, FidelityReport
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.registry import Registry
from lumos.core.store.database import StateDatabase
from lumos.feature.snapshot.fidelity_count import counted_fidelity
from lumos.feature.snapshot.source import LoadedSource
from lumos.testing.platform_samples import AT
from whole_snapshot import ORDERS, whole_snapshot

REPORT = Path(".lumos/migrations/embedded-to-lossy")
MIGRATE = ("migrate", "--from", "embedded", "--to", "lossy", "--json")
DIFF = ("diff", "--source", "embedded", "--target", "lossy")


@pytest.fixture(autouse=True)
def catalogs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builtins = {"embedded": f"{EmbeddedHandler.__module__}:EmbeddedHandler"}
    registry: Registry[MetadataPlatformInterface] = Registry(
        "lumos.platforms", builtins=builtins, noun="platform"
    )
    registry.register("lossy", LossyCatalog)
    monkeypatch.setattr(PlatformFactory, "_registry", registry)
    monkeypatch.setattr(LossyCatalog, "loses", "")
    fill(Path(".lumos/lumos.db"))


def fill(path: Path) -> None:
    """Make a catalog with something of every concept in it."""
    snapshot = whole_snapshot()
    path.parent.mkdir(exist_ok=True)
    with StateDatabase.open(path) as database, database.transaction():
        catalog = EmbeddedHandler(database)
        for dataset in snapshot.datasets:
            catalog.emit_dataset(with_parts(dataset, lineage=DatasetLineage()))
        catalog.apply(Batch(edges=snapshot.lineage_edges))
        for section in ("jobs", "glossary", "tags", "domains", "users", "groups"):
            for entity in getattr(snapshot, section):
                catalog.apply(Batch(entities=[entity]))
        for urn, ids in snapshot.identity_map.items():
            for name, known in ids.items():
                catalog.apply(Batch(identities=[Identity(urn, name, known)]))
        for name, value in snapshot.extensions.items():
            catalog.apply(Batch(extensions={name: value}))


def orders(**parts: object) -> LumosDataset:
    """Return a dataset of it, changed."""
    (found,) = (each for each in whole_snapshot().datasets if each.urn == ORDERS)
    return with_parts(found, lineage=DatasetLineage(), **parts)


def counted(report: FidelityReport, concept: str) -> int:
    return sum(row.count for row in report.rows if row.concept == concept)


def page() -> str:
    return (REPORT / "report.html").read_text("utf-8")


def test_there_is_a_loss_of_every_concept() -> None:
    assert {"dataset", *LOSSES, *BESIDE_DATASETS} == set(CONCEPTS)


def test_without_loss_everything_arrived(lumos: Lumos) -> None:
    done = checked(lumos(*MIGRATE), "migrate")
    assert [check["status"] for check in done["checks"]] == ["ok", "ok"]
    assert done["differing"] == 0
    assert "<strong>Everything arrived.</strong>" in page()
    compared = checked(lumos(*DIFF, "--json"), "diff")
    assert compared["checks"] == done["checks"]


@pytest.mark.parametrize("concept", CONCEPTS)
def test_the_loss_of_a_concept_is_seen(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch, concept: str
) -> None:
    monkeypatch.setattr(LossyCatalog, "loses", concept)
    moved = lumos(*MIGRATE)

    with LossyCatalog.from_config({}) as catalog:
        left = counted_fidelity(LoadedSource(catalog.export_all(at=AT), "left"), catalog)
    assert counted(left, concept) < counted(
        counted_fidelity(LoadedSource(whole_snapshot(), "whole"), EmbeddedHandler), concept
    )
    done = moved.json()
    (warned,) = [check for check in done["checks"] if check["status"] == "warn"][:1]
    assert warned["concept"] == concept
    assert warned["count"] > 0
    assert warned["examples"]
    assert not warned["declared"]
    assert "Everything arrived" not in page()
    assert f"[warn] {warned['message']}" in page()
    assert json.loads((REPORT / "report.json").read_text("utf-8"))["checks"] == done["checks"]
    missing = concept in {"dataset", "lineage_edge"}
    assert (moved.exit_code, done["verified"]) == ((1, False) if missing else (0, True))
    assert not done["arrived"]

    compared = lumos(*DIFF, "--fail-on", "never")
    told = [line for line in compared.stdout.splitlines() if line.startswith(("[ok]", "[warn]"))]
    assert told == [f"[{check['status']}] {check['message']}" for check in done["checks"]]


def test_what_is_lost_is_told_by_concept(lumos: Lumos, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LossyCatalog, "loses", "version")
    moved = lumos(*MIGRATE[:-1])
    assert "[ok] 6/6 datasets migrated\n[ok] 3/3 lineage edges migrated\n" in moved.stdout
    assert "[warn] 5 datasets lack: version\n" in moved.stdout
    assert moved.exit_code == 0
    assert lumos(*MIGRATE, "--strict").exit_code == 1
    monkeypatch.setattr(LossyCatalog, "loses", "column_lineage")
    assert "[warn] 1 lineage edge lacks: column lineage\n" in lumos(*DIFF).stdout
    monkeypatch.setattr(LossyCatalog, "loses", "identity")
    assert "[warn] 1 identity requires manual mapping\n" in lumos(*DIFF).stdout
    compared = checked(lumos(*DIFF, "--json"), "diff")
    assert compared["checks"][-1]["examples"] == [ORDERS]


@pytest.mark.parametrize("concept", ["quality", "tag_definition", "column_lineage"])
def test_what_the_target_says_it_drops_is_told_as_that(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch, concept: str
) -> None:
    table = {**dict.fromkeys(CONCEPTS, Fidelity.NATIVE), concept: Fidelity.DROPPED}
    monkeypatch.setattr(LossyCatalog, "FIDELITY", table)
    monkeypatch.setattr(LossyCatalog, "loses", concept)

    done = checked(lumos(*MIGRATE), "migrate")

    (warned,) = [check for check in done["checks"] if check["status"] == "warn"]
    assert warned["declared"]
    assert ("(dropped by lossy)" in warned["message"]) is (concept != "tag_definition")
    assert done["arrived"]
    assert "Everything arrived that lossy keeps; what it drops is listed below." in page()
    assert lumos(*MIGRATE, "--strict").exit_code == 0


def test_what_the_target_has_besides_is_no_loss(lumos: Lumos) -> None:
    with StateDatabase.open(Path("lossy.db")) as database:
        catalog = EmbeddedHandler(database)
        catalog.emit_dataset(orders(tags=("gold", "late", "pii"), version="7.0.0"))
        catalog.apply(Batch(entities=[Tag(name="late")]))
        catalog.apply(Batch(entities=[User(username="grace", system=True, title="Admiral")]))
        catalog.apply(Batch(identities=[Identity(ORDERS, "third", "7")]))

    done = checked(lumos(*MIGRATE), "migrate")

    assert [(check["status"], check["message"]) for check in done["checks"]] == [
        ("ok", "6/6 datasets migrated"),
        ("ok", "3/3 lineage edges migrated"),
        ("ok", "1 dataset has more: tag"),
    ]
    assert done["differing"] == 1
    assert "<strong>Everything arrived.</strong>" in page()


def test_versions_that_are_counted_in_the_state_are_its_own(lumos: Lumos) -> None:
    fill(Path("lossy.db"))
    with StateDatabase.open(Path(".lumos/lumos.db")) as database:
        EmbeddedHandler(database).emit_dataset(orders(version="7.0.0"))

    done = checked(lumos("migrate", "--from", "lossy", "--to", "embedded", "--json"), "migrate")

    assert {check["status"] for check in done["checks"]} == {"ok"}
    assert done["checks"][-1]["message"] == "1 dataset has its own: version"


def test_versions_move_along_also_to_the_catalog_of_the_settings(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text("platform: lossy\n", "utf-8")
    with StateDatabase.open(Path("lossy.db")) as database:
        EmbeddedHandler(database).emit_dataset(orders(version="7.0.0"))

    done = checked(lumos(*MIGRATE), "migrate")

    assert {check["status"] for check in done["checks"]} == {"ok"}
    assert done["differing"] == 0
    assert "<strong>Everything arrived.</strong>" in page()


def test_a_version_that_was_left_as_it_is_differs(lumos: Lumos) -> None:
    with StateDatabase.open(Path("lossy.db")) as database:
        EmbeddedHandler(database).emit_dataset(orders(version="7.0.0"))

    done = checked(lumos(*MIGRATE, "--skip-existing"), "migrate")

    assert done["checks"][-1]["message"] == "1 dataset differs: version"
    assert done["checks"][-1]["status"] == "warn"
    assert "[ok] 1 dataset has its own: version\n" in lumos(*DIFF).stdout


def test_what_was_left_as_it_is_differs(lumos: Lumos) -> None:
    with StateDatabase.open(Path("lossy.db")) as database:
        documentation = Documentation(description="Other words")
        EmbeddedHandler(database).emit_dataset(orders(documentation=documentation))

    done = checked(lumos(*MIGRATE, "--skip-existing"), "migrate")

    warned = [check["message"] for check in done["checks"] if check["status"] == "warn"]
    assert warned == [
        "1 dataset differs: description",
        "1 dataset lacks: documentation",
        "1 dataset lacks: link",
    ]
