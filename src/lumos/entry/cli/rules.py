"""`lumos rules`: how changes are judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.models.change import ChangeScope
from lumos.core.requests.project import RulesRequest
from lumos.entry.cli.output import AsJson, counted, print_badge, print_json, print_line

if TYPE_CHECKING:
    from lumos.core.controllers.rules_controller import ListedRule

_SCOPES = tuple(scope.value for scope in ChangeScope)


def rules(
    context: typer.Context,
    rule: Annotated[
        str | None, typer.Argument(help="A rule, or the beginning of some: field.removed, enum.")
    ] = None,
    profile: Annotated[
        str,
        typer.Option(help="Whom changes are judged for: lumos, readers, writers, full, iceberg, …"),
    ] = "lumos",
    as_json: AsJson = False,
) -> None:
    """List the rules by which changes are judged, or explain one.

    Example: lumos rules type.widened

    Example for readers alone: lumos rules null --profile readers
    """
    dispatcher: Dispatcher = context.obj
    listing = dispatcher.dispatch(RulesRequest(rule=rule, profile=profile))
    if as_json:
        print_json(listing.as_json())
        return
    if rule is not None and [each.id for each in listing.rules] == [rule]:
        for line in _explained(listing.rules[0], profiles=listing.profiles):
            print_line(line)
        return
    scope = None
    for each in sorted(listing.rules, key=lambda each: _SCOPES.index(each.scope)):
        if each.scope != scope:
            scope = each.scope
            print_line(scope)
        marks = "".join(f", {mark}" for mark in ("caution", "widening") if getattr(each, mark))
        print_badge(each.level, f"{each.id}: {each.title} ({each.bump}{marks})", indent="  ")
    print_line(f"{counted(len(listing.rules), 'rule')} under the profile {listing.profile}")


def _explained(rule: ListedRule, *, profiles: dict[str, str]) -> Iterator[str]:
    yield f"{rule.id}: {rule.title}"
    yield f"  {rule.rationale}"
    yield f"  Example: {rule.example}"
    yield f"  {rule.scope}, {rule.direction}, {rule.change_type} in the history"
    if rule.mirrors:
        yield f"  On the way back: {', '.join(rule.mirrors)}"
    elif rule.unmirrored:
        yield f"  No way back: {rule.unmirrored}"
    yield "  Levels:"
    for name, protects in profiles.items():
        level = rule.levels[name] + (", by the case" if name in rule.depends else "")
        yield f"    {name:<10}  {level:<25}  {protects}"
