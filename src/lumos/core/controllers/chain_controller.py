"""Chains of operations, each written `operation:argument`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.errors import UsageError

if TYPE_CHECKING:
    from lumos.core.run_report import RunReport


class Operation(NamedTuple):
    """One thing that a chain can do."""

    argument: str | None
    """What its argument is, such as FILE; None where it takes none."""
    run: Callable[[str], RunReport]


class ChainController:
    """What `lumos run` does."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._operations = operations

    def run(self, steps: Sequence[str]) -> Iterator[RunReport]:
        """Yield the report of each step as it ends; an error ends the chain, a failed item not.

        Raises:
            UsageError: a step is unknown or lacks its argument; nothing has run then.
        """
        planned = [self._planned(step) for step in steps]
        return (operation.run(argument) for operation, argument in planned)

    def _planned(self, step: str) -> tuple[Operation, str]:
        name, _, argument = step.partition(":")
        operation = self._operations.get(name)
        if operation is None:
            close = get_close_matches(name, self._operations, n=1)
            known = (
                f"did you mean {close[0]}?" if close else f"known: {', '.join(self._operations)}"
            )
            raise UsageError(f"there is no operation {name}", hint=known)
        if operation.argument and not argument:
            raise UsageError(f"{name} needs an argument", hint=f"{name}:{operation.argument}")
        if argument and not operation.argument:
            raise UsageError(f"{name} takes no argument", hint=f"write just {name}")
        return operation, argument
