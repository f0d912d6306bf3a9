"""A command group that imports a command only when it is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command as typer_command
from typing_extensions import override

if TYPE_CHECKING:
    from typer._click.core import Command, Context
    from typer._click.formatting import HelpFormatter


_THINGS: Final = frozenset({"output", "platform", "source", "target", "snapshot", "input_"})
"""Options that say which thing is meant; of others the last one counts, as is usual."""

_VALUES: Final = {
    "Path": "PATH",
    "float": "NUMBER",
    "int": "NUMBER",
    "list[str]": "TEXT",
    "str": "TEXT",
}
"""What the help calls a value of each type; choices are listed as they are."""


class LazyCommand(NamedTuple):
    """Where a command is found, and what the list of commands says of it."""

    name: str
    panel: str
    summary: str
    target: str
    """`module:function`, or `module:app` for a group of commands."""


class LazyGroup(TyperGroup):
    """A group over a table of `LazyCommand`s."""

    table: Sequence[LazyCommand] = ()

    @override
    def list_commands(self, ctx: Context) -> list[str]:
        return [entry.name for entry in self.table]

    @override
    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        entry = next((entry for entry in self.table if entry.name == cmd_name), None)
        return _load(entry) if entry else None

    @override
    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        # The base class suggests names from `commands`, which a lazy group does not fill.
        self.commands = dict.fromkeys(self.list_commands(ctx), cast("Command", None))
        return super().resolve_command(ctx, args)

    @override
    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        # `lumos help diff` is what people type who do not know `lumos diff --help` yet.
        if args and args[0] == "help":
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    @override
    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        width = max(len(entry.name) for entry in self.table)
        for panel in dict.fromkeys(entry.panel for entry in self.table):
            with formatter.section(panel):
                formatter.write_dl(
                    [
                        (entry.name.ljust(width), entry.summary)
                        for entry in self.table
                        if entry.panel == panel
                    ]
                )


class PlainCommand(TyperCommand):
    """A command that refuses a second catalog or file where it would only heed the last one."""

    @override
    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        given = [*args]
        rest = super().parse_args(ctx, args)
        _, _, order = self.make_parser(ctx).parse_args(args=given)
        for option, times in Counter(order).items():
            if times > 1 and isinstance(option, TyperOption) and _takes_one(option):
                ctx.fail(
                    f"{option.opts[0]} was given {times} times; give one, and run once for each"
                )
        return rest


def _takes_one(option: TyperOption) -> bool:
    return option.name in _THINGS and not option.multiple


def _load(entry: LazyCommand) -> Command:
    module, _, attribute = entry.target.partition(":")
    target = getattr(import_module(module), attribute)
    if isinstance(target, typer.Typer):
        command = typer_command(target)
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(entry.name, cls=PlainCommand)(target)
        command = typer_command(app)
    command.name = entry.name
    _name_values(command)
    return command


def _name_values(command: Command) -> None:
    """Let the help call values what people call them, such as NUMBER, not `<int range>`."""
    for inner in (command.commands if isinstance(command, TyperGroup) else {}).values():
        _name_values(inner)
    for param in command.params:
        if isinstance(param, TyperArgument):
            setattr(param, "display_type_rich", _without_type)  # noqa: B010 - a method of typer's
        elif isinstance(param, TyperOption) and param.metavar is None and not param.is_flag:
            param.metavar = _VALUES.get(param.bare_type())


def _without_type(ctx: Context) -> str:
    """Show an argument by its name alone."""
    return ""
