"""What holds for every diff under every profile."""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from change_pairs import pairs
from lumos.core.changes import PROFILES, RULES_BY_ID, diff_datasets
from lumos.core.models import Change, ChangeLevel, Field, LumosDataset, Schema, with_parts
from strategies import CONTRACT, datasets, fields, same_contract_listed_differently

profiles = st.sampled_from(sorted(PROFILES))


def _by_finding(changes: tuple[Change, ...]) -> list[Change]:
    return sorted(changes, key=lambda change: (change.fingerprint, str(change.payload)))


def _worst(changes: tuple[Change, ...]) -> int:
    return max((change.level.rank for change in changes), default=-1)


@given(pairs)
def test_full_is_the_worse_of_readers_and_writers(pair: tuple[LumosDataset, LumosDataset]) -> None:
    readers, writers, full = (
        _by_finding(diff_datasets(*pair, profile=name)) for name in ("readers", "writers", "full")
    )
    for one, other, both in zip(readers, writers, full, strict=True):
        assert one.fingerprint == other.fingerprint == both.fingerprint
        assert both.level.rank == max(one.level.rank, other.level.rank)


@given(pairs, profiles)
def test_every_profile_finds_the_same_and_says_where_a_break_would_pass(
    pair: tuple[LumosDataset, LumosDataset], profile: str
) -> None:
    judged = _by_finding(diff_datasets(*pair, profile=profile))
    for change, other in zip(_by_finding(diff_datasets(*pair)), judged, strict=True):
        assert change.fingerprint == other.fingerprint
        if change.level is ChangeLevel.BREAKING:
            passes = other.level is not ChangeLevel.BREAKING
            assert (profile in change.passes_under) == passes
        else:
            assert change.passes_under == ()


@given(pairs)
def test_the_way_back_goes_in_the_mirrored_direction(
    pair: tuple[LumosDataset, LumosDataset],
) -> None:
    old, new = pair
    there = Counter(
        change.direction.mirrored
        for change in diff_datasets(old, new)
        if RULES_BY_ID[change.rule].mirrors
    )
    back = Counter(
        change.direction for change in diff_datasets(new, old) if RULES_BY_ID[change.rule].mirrors
    )
    assert there == back


ONE_PLACE = frozenset({"database", "namespace", "location"})
"""Parts of which one change tells, whichever of them changed."""


@given(datasets(), st.data(), profiles)
def test_a_change_of_another_part_never_lowers_the_level(
    old: LumosDataset, data: st.DataObject, profile: str
) -> None:
    parts = data.draw(st.lists(st.sampled_from(sorted(CONTRACT)), min_size=2, max_size=2))
    assume(parts[0] != parts[1])
    first = with_parts(old, **{parts[0]: data.draw(CONTRACT[parts[0]])})
    both = with_parts(first, **{parts[1]: data.draw(CONTRACT[parts[1]])})
    alone = diff_datasets(old, first, profile=profile)
    together = diff_datasets(old, both, profile=profile)
    assert _worst(together) == max(
        _worst(alone), _worst(diff_datasets(first, both, profile=profile))
    )
    if not ONE_PLACE.issuperset(parts):
        assert Counter(c.fingerprint for c in alone) <= Counter(c.fingerprint for c in together)


@given(fields(min_size=2), fields(max_size=2), profiles)
def test_a_change_of_another_column_never_lowers_the_level(
    columns: tuple[Field, ...], more: tuple[Field, ...], profile: str
) -> None:
    names = {column.name for column in columns}
    assume(names.isdisjoint(column.name for column in more))
    base = LumosDataset.from_json({"urn": "lumos://a/b", "name": "b", "platform": "a"})
    old = with_parts(base, schema=Schema(fields=columns))
    less = with_parts(base, schema=Schema(fields=columns[1:]))
    other = with_parts(base, schema=Schema(fields=(*columns[1:], *more)))
    alone = _worst(diff_datasets(old, less, profile=profile))
    assert _worst(diff_datasets(old, other, profile=profile)) >= alone


@settings(max_examples=50)
@given(datasets(), profiles, st.data())
def test_order_matters_where_columns_are_found_by_position_and_nowhere_else(
    dataset: LumosDataset, profile: str, data: st.DataObject
) -> None:
    columns = data.draw(fields(min_size=2))
    order = tuple(data.draw(st.permutations(columns)))
    assume(order != columns)
    for positional in (True, False):
        old, new = (
            with_parts(dataset, schema=Schema(fields=listed, positional=positional))
            for listed in (columns, order)
        )
        rules = [change.rule for change in diff_datasets(old, new, profile=profile)]
        assert rules == (["field.reordered"] if positional else [])


@given(pairs, profiles, st.data())
def test_no_order_of_a_listing_makes_a_difference_under_any_profile(
    pair: tuple[LumosDataset, LumosDataset], profile: str, data: st.DataObject
) -> None:
    relisted = st.composite(
        lambda draw: tuple(same_contract_listed_differently(one, draw) for one in pair)
    )
    old, new = data.draw(relisted())
    assert diff_datasets(old, new, profile=profile) == diff_datasets(*pair, profile=profile)
