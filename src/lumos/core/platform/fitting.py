"""The part of a document that can be read, where all of it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

T = TypeVar("T")


def fitting(document: Json, fits: Callable[[Json], bool]) -> Json:
    """Return a document without the values, as few and as small as can be, that do not fit.

    `fits` is called about once for each value that does not fit, not for every value. The
    caller stores what is left out elsewhere.

    Args:
        document: what does not fit as a whole.
        fits: returns whether a part of it fits.
    """

    def whole(items: Sequence[tuple[str, JsonValue]]) -> bool:
        return fits(dict(items))

    def less(
        item: tuple[str, JsonValue], kept: Sequence[tuple[str, JsonValue]]
    ) -> tuple[str, JsonValue] | None:
        name, value = item
        part = _less(value, lambda some: fits({**dict(kept), name: some}))
        return None if part is None else (name, part)

    return dict(_grown([], [*document.items()], whole, less=less))


def _less(value: JsonValue, fits: Callable[[JsonValue], bool]) -> JsonValue:
    """Return the part of a value that fits; None where nothing of it does."""
    if isinstance(value, dict):
        return fitting(value, cast("Callable[[Json], bool]", fits)) or None
    if isinstance(value, list):

        def less(member: JsonValue, kept: Sequence[JsonValue]) -> JsonValue:
            return _less(member, lambda some: fits([*kept, some]))

        return _grown([], value, lambda members: fits([*members]), less=less) or None
    return None


def _grown(
    kept: list[T],
    more: Sequence[T],
    fits: Callable[[Sequence[T]], bool],
    *,
    less: Callable[[T, Sequence[T]], T | None],
) -> list[T]:
    """Return what is kept with all of the others that fit beside it."""
    if not more or fits([*kept, *more]):
        return [*kept, *more]
    if len(more) == 1:
        part = less(more[0], kept)
        return kept if part is None else [*kept, part]
    middle = len(more) // 2
    kept = _grown(kept, more[:middle], fits, less=less)
    return _grown(kept, more[middle:], fits, less=less)
