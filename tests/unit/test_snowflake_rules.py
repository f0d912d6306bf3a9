"""What an ordinary account of Snowflake refuses, hides or limits, on the emulator with a role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from doubles.snowflake_account import DATABASE, SnowflakeAccount, snowflake_over
from lumos.core.errors import PlatformAuthError, PlatformForbiddenError
from lumos.core.models import LumosDataset, Tag, Urn, with_parts
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import looked_up
from lumos.core.platform.impl.snowflake.handler import SnowflakeHandler
from lumos.core.platform.impl.snowflake.mapping.sql import literal, qualified
from lumos.core.platform.refusals import ends_run
from lumos.testing.platform_samples import dataset

NAMES = ("A", "B", "C", "D")
KEYS = {name: (DATABASE, "PUBLIC", name) for name in NAMES}
URNS = {name: Urn.of("snowflake", *key) for name, key in KEYS.items()}
MADE_BY_OTHERS = (
    *(f'CREATE TABLE {qualified(*key)} ("ID" NUMBER, "NOTE" VARCHAR)' for key in KEYS.values()),
    f'CREATE SCHEMA "{DATABASE}"."GOVERNANCE"',
    f'CREATE TAG "{DATABASE}"."GOVERNANCE"."PII"',
    *(
        f'ALTER TABLE {qualified(*key)} SET TAG "{DATABASE}"."GOVERNANCE"."PII" = {literal("yes")}'
        for key in KEYS.values()
    ),
)


@pytest.fixture(scope="module")
def shared_account() -> SnowflakeAccount:
    return SnowflakeAccount()


@pytest.fixture
def account(shared_account: SnowflakeAccount) -> SnowflakeAccount:
    shared_account.reset()
    shared_account.run(*MADE_BY_OTHERS)
    return shared_account


@pytest.fixture
def platform(account: SnowflakeAccount) -> Iterator[SnowflakeHandler]:
    with snowflake_over(account) as platform:
        yield platform


def described(name: str, text: str = "by Lumos") -> LumosDataset:
    return with_parts(
        dataset(name),
        urn=URNS[name],
        platform="snowflake",
        documentation={"description": text},
        tags=["PII=yes"],
    )


def unreadable(platform: SnowflakeHandler) -> list[tuple[str, type[Exception]]]:
    return [(each.name, type(each.error)) for each in platform.unreadable()]


class TestPrivileges:
    def test_a_table_that_the_role_may_not_change_is_refused_and_the_others_are_written(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        account.role.may_not_change.add(KEYS["C"])
        wanted = [described(name) for name in NAMES]
        seen = platform.find_datasets([one.urn for one in wanted])

        with pytest.raises(PlatformForbiddenError) as caught:
            platform.apply(Batch(datasets=wanted), seen)

        assert not ends_run(caught.value)
        for one in wanted:  # as a sync sends them after a refusal
            if one.urn != URNS["C"]:
                platform.apply(Batch(datasets=[one]), seen)
        found = platform.find_datasets([one.urn for one in wanted])
        texts = [found[one.urn].dataset for one in wanted]
        assert [each and each.documentation.description for each in texts] == [
            *("by Lumos", "by Lumos", None, "by Lumos"),
        ]

    def test_without_the_right_to_its_own_schema_nothing_is_tried_further(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        account.role.may_not_change.add((DATABASE, "LUMOS"))

        with pytest.raises(PlatformAuthError, match=r"SHOP\.LUMOS") as caught:
            platform.emit_dataset(dataset("no table"))

        assert ends_run(caught.value)

    def test_a_table_whose_tags_may_not_be_read_is_noted_and_does_not_look_untagged(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        account.role.may_not_see_tags_of.add(KEYS["B"])

        assert [one.urn for one in platform.list()] == [URNS[name] for name in "ACD"]
        assert unreadable(platform) == [(str(URNS["B"]), PlatformForbiddenError)]
        assert platform.search("snowflake").total == 3
        found = looked_up(platform, [*URNS.values()], workers=1)
        assert isinstance(found[URNS["B"]], PlatformForbiddenError)
        assert [name for name, urn in URNS.items() if getattr(found[urn], "dataset", None)] == [
            *"ACD"
        ]

    def test_a_table_that_is_dropped_while_its_tags_are_read_is_gone(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        heads = platform._reader.heads()
        account.role.may_not_see_tags_of.add(KEYS["B"])
        account.run(f"DROP TABLE {qualified(*KEYS['B'])}")

        assert sorted(platform._reader.filled([*heads.values()])) == [URNS[name] for name in "ACD"]

    def test_tables_of_a_schema_that_is_hidden_are_noted_and_not_gone(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        platform.apply(Batch(datasets=[described("A"), dataset("no table")]))
        account.role.may_not_see.add((DATABASE, "PUBLIC"))

        assert [one.urn for one in platform.list()] == [dataset("no table").urn]
        assert unreadable(platform) == [(str(URNS["A"]), PlatformForbiddenError)]

    def test_what_was_said_of_a_table_that_was_hidden_for_a_while_is_still_known(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        whole = with_parts(described("A"), properties={"team": "sales"})
        platform.emit_dataset(whole)
        account.role.may_not_see.add(KEYS["A"])
        platform.emit_dataset(whole)
        account.role.may_not_see.clear()

        found = platform.get_dataset(URNS["A"])
        assert found.documentation.description == "by Lumos"
        assert (found.properties, found.tags) == ({"team": "sales"}, ("PII=yes",))


class TestTags:
    def test_a_tag_that_snowflake_carried_over_is_not_the_tables_own(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        account.propagated.add((DATABASE, "GOVERNANCE", "PII"))

        assert {one.tags for one in platform.list()} == {()}


class TestKinds:
    @pytest.mark.parametrize(
        "kind", ["DYNAMIC TABLE", "ICEBERG TABLE", "EXTERNAL TABLE", "MATERIALIZED VIEW"]
    )
    def test_a_table_of_a_special_kind_is_called_what_it_is(
        self, account: SnowflakeAccount, platform: SnowflakeHandler, kind: str
    ) -> None:
        account.kinds[KEYS["A"]] = kind
        own = platform.get_dataset(URNS["A"]).extensions["snowflake"]
        assert isinstance(own, Mapping)
        assert own["table_type"] == kind
        fields = [{"name": "ID", "type": "DECIMAL", "precision": 38, "tags": ["key"]}]
        one = described("A", f"one {kind}")
        whole = with_parts(one, tags=["gold", "PII=yes"], schema={"fields": fields})
        platform.emit_dataset(whole)

        assert account.comments[KEYS["A"]] == f"one {kind}"
        assert {tag[2] for tag in account.uses[KEYS["A"], None]} == {"PII", "gold"}
        assert {tag[2] for tag in account.uses[KEYS["A"], "ID"]} == {"key"}
        assert platform.get_dataset(URNS["A"]).tags == whole.tags

    def test_comments_of_columns_of_a_materialized_view_are_kept_beside(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        account.kinds[KEYS["A"]] = "MATERIALIZED VIEW"
        fields = [{"name": "ID", "type": "DECIMAL", "precision": 38, "description": "a number"}]
        platform.emit_dataset(with_parts(described("A"), schema={"fields": fields}))

        found = platform.get_dataset(URNS["A"])
        assert found.schema.fields[0].description == "a number"
        assert not any("ALTER COLUMN" in each for each in account.statements)


class TestLimits:
    def test_a_database_that_is_too_large_for_one_statement_is_read_by_parts(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        account.run(f'CREATE SCHEMA "{DATABASE}"."OTHER"')
        account.run(f'CREATE TABLE "{DATABASE}"."OTHER"."E" ("ID" NUMBER)')
        whole = [*platform.list()]
        account.most_rows = 4

        assert [*platform.list()] == whole
        assert len(whole) == len(NAMES) + 1
        assert platform.search("NOTE").total == len(NAMES)

    def test_more_tags_than_one_statement_shows_are_listed_by_schema(
        self,
        account: SnowflakeAccount,
        platform: SnowflakeHandler,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("doubles.snowflake_account.MOST_SHOWN", 3)
        monkeypatch.setattr("lumos.core.platform.impl.snowflake.writer.entities.MOST_SHOWN", 3)
        account.run(*(f'CREATE TAG "{DATABASE}"."PUBLIC"."T{n}"' for n in range(2)))
        account.run(f'CREATE TAG "{DATABASE}"."GOVERNANCE"."COST"')

        listed = [tag.name for tag in platform.list_entities("tag") if isinstance(tag, Tag)]

        assert listed == ["COST", "PII", "T0", "T1"]
        assert platform.unreadable() == ()
        account.run(*(f'CREATE TAG "{DATABASE}"."PUBLIC"."T{n}"' for n in range(2, 5)))
        assert len([*platform.list_entities("tag")]) == 5
        assert [each.kind for each in platform.unreadable()] == ["tag"]


class TestSessions:
    def test_a_session_that_ended_is_begun_again(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        before = [*platform.list()]
        account.expired_logins = account.logins

        assert [*platform.list()] == before

    def test_a_login_that_is_refused_again_is_told(
        self, account: SnowflakeAccount, platform: SnowflakeHandler
    ) -> None:
        platform.reached()
        account.expired_logins = account.logins + 1

        with pytest.raises(PlatformAuthError, match="login"):
            platform.reached()
