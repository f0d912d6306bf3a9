"""The rules by which changes are judged, as commands list them."""

from __future__ import annotations

from difflib import get_close_matches

from pydantic import Field

from lumos.core.changes import PROFILES, RULES, RULES_BY_ID, Rule, resolve_profile
from lumos.core.errors import UnknownNameError
from lumos.core.result_base import Result


class ListedRule(Result):
    """One rule, with its verdict under every profile."""

    id: str
    scope: str
    direction: str = Field(description="TIGHTENS, LOOSENS, BOTH or NEITHER.")
    level: str = Field(description="Under the profile that was asked for.")
    caution: bool = Field(description="It passes, and is worth a second look.")
    bump: str = Field(description="NONE, PATCH, MINOR or MAJOR, under that profile.")
    widening: bool
    levels: dict[str, str] = Field(
        description="The level under each profile; `!` behind it is caution."
    )
    depends: tuple[str, ...] = Field(
        description="Profiles whose level depends on more than the rule, such as on the types."
    )
    change_type: str = Field(description="The name of the change in a version history.")
    title: str
    rationale: str
    example: str
    mirrors: tuple[str, ...] = Field(description="What the change may be on the way back.")
    unmirrored: str | None = Field(description="Why there is no mirror, where there is none.")


class RuleListing(Result):
    """The rules, what each profile protects, and the profile whose levels stand first."""

    profile: str
    profiles: dict[str, str]
    rules: tuple[ListedRule, ...]


def list_rules(wanted: str | None, *, profile: str) -> RuleListing:
    """Return all rules, one by its id, or those whose id begins with some parts.

    Raises:
        UnknownNameError: there is no such rule or profile.
    """
    name = resolve_profile(profile).name
    found = RULES if wanted is None else _matching(wanted)
    return RuleListing(
        profile=name,
        profiles=dict(PROFILES),
        rules=tuple(_listed(rule, profile=name) for rule in found),
    )


def _matching(wanted: str) -> tuple[Rule, ...]:
    beginning = wanted.rstrip(".*") + "."
    exact = RULES_BY_ID.get(wanted)
    found = (exact,) if exact else tuple(rule for rule in RULES if rule.id.startswith(beginning))
    if not found:
        known = {name for rule in RULES_BY_ID for name in (rule, rule.partition(".")[0])}
        near = get_close_matches(wanted, sorted(known), n=1)
        raise UnknownNameError(
            "there is no such change rule",
            hint=f"did you mean {near[0]}?" if near else "list them with: lumos rules",
        )
    return found


def _listed(rule: Rule, *, profile: str) -> ListedRule:
    return ListedRule(
        id=rule.id,
        scope=rule.scope.value,
        direction=rule.direction.value,
        level=rule.level_in(profile).value,
        caution=rule.verdict_in(profile).caution,
        bump=rule.bump_in(profile).value,
        widening=rule.widening,
        levels={name: str(rule.verdict_in(name)) for name in PROFILES},
        depends=rule.by_case,
        change_type=rule.change_type,
        title=rule.title,
        rationale=rule.rationale,
        example=rule.example,
        mirrors=rule.mirrors,
        unmirrored=rule.unmirrored,
    )
