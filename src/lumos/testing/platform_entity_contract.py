"""The part of the platform contract that is about owners, people, vocabulary and jobs."""
# ruff: noqa: S101 - these are tests

from __future__ import annotations

import pytest

from lumos.core.errors import DatasetNotFoundError, InvalidModelError
from lumos.core.models import Owner, with_parts
from lumos.core.platform.abilities import EntityAbility
from lumos.core.platform.batch import Batch
from lumos.core.platform.interface import (
    ENTITY_KINDS,
    Capability,
    EntityKind,
    MetadataPlatformInterface,
)
from lumos.testing.platform_samples import ENTITY_MAKERS, HOSTILE_NAMES, MISSING, rich_dataset
from lumos.testing.platform_search_contract import requires


@requires(Capability.OWNERSHIP)
class OwnershipContract:
    """Owners are added one by one."""

    def test_owners_are_added_once_and_others_stay(
        self, platform: MetadataPlatformInterface
    ) -> None:
        platform.emit_dataset(rich_dataset())
        for _ in range(2):
            platform.emit_ownership(rich_dataset().urn, "o'grace", "BUSINESS_OWNER")
            platform.emit_ownership(rich_dataset().urn, "data", category="group")

        added = Owner(user="o'grace", type="BUSINESS_OWNER"), Owner(group="data")
        found = platform.get_dataset(rich_dataset().urn)
        expected = (*rich_dataset().ownership.owners, *added)
        assert found == with_parts(rich_dataset(), ownership=expected)

    def test_a_missing_dataset_has_no_owners(self, platform: MetadataPlatformInterface) -> None:
        with pytest.raises(DatasetNotFoundError):
            platform.emit_ownership(MISSING, "ada")

    @pytest.mark.parametrize(("owner", "category"), [("", "user"), ("ada", "robot")])
    def test_what_is_no_owner_is_refused(
        self, platform: MetadataPlatformInterface, owner: str, category: str
    ) -> None:
        platform.emit_dataset(rich_dataset())
        with pytest.raises(InvalidModelError):
            platform.emit_ownership(rich_dataset().urn, owner, category=category)

        assert platform.get_dataset(rich_dataset().urn) == rich_dataset()


@requires(Capability.ENTITIES)
class EntityContract:
    """Users, groups, tags, terms, domains and jobs."""

    @pytest.mark.parametrize("kind", ENTITY_KINDS)
    def test_entities_come_back_equal_once_and_in_order(
        self, platform: MetadataPlatformInterface, kind: EntityKind
    ) -> None:
        names = sorted([*HOSTILE_NAMES.values(), "A", "b", "a"])
        entities = [ENTITY_MAKERS[kind](name) for name in names]
        for entity in (*reversed(entities), *entities):
            platform.apply(Batch(entities=[entity]))

        found = [*EntityAbility.of(platform).list_entities(kind)]
        if kind == "job":
            entities.sort(key=lambda entity: str(getattr(entity, "urn", "")))
        assert found == entities
        for other in ENTITY_KINDS:
            assert other == kind or [*EntityAbility.of(platform).list_entities(other)] == []

    @pytest.mark.parametrize("kind", ENTITY_KINDS)
    def test_the_last_emit_counts(
        self, platform: MetadataPlatformInterface, kind: EntityKind
    ) -> None:
        first = ENTITY_MAKERS[kind]("one")
        field = "properties" if kind == "job" else "description"
        field = {"user": "title", "glossary_term": "definition"}.get(kind, field)
        value: object = {"a": "b"} if kind == "job" else "new"
        second = type(first).model_validate({**dict(first), field: value})
        platform.apply(Batch(entities=[first]))
        platform.apply(Batch(entities=[second]))

        assert [*EntityAbility.of(platform).list_entities(kind)] == [second]
