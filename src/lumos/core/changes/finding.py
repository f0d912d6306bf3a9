"""What a detector finds: which rule applies where, before the rule's row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.models import LumosDataset

if TYPE_CHECKING:
    from pydantic import JsonValue


class Finding(NamedTuple):
    """One difference, by the id of the rule that classifies it.

    Where the level depends on more than the rule, such as on a pair of types, `passes_in` names
    profiles in which this very change is not breaking, and `breaks_in` those in which it is. What
    goes away after its `sunset` is judged by `<rule>.after_sunset`.
    """

    rule: str
    path: str = ""
    old: JsonValue = None
    new: JsonValue = None
    subject: str = ""
    passes_in: tuple[str, ...] = ()
    breaks_in: tuple[str, ...] = ()
    payload: JsonValue = None
    possible_rename_of: str | None = None
    rename_confidence: float | None = None
    sunset: date | None = None


Detector = Callable[[LumosDataset, LumosDataset], Iterator[Finding]]
