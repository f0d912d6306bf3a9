"""Many datasets at a time: asked for and sent together, and alone where a catalog refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from lumos.core.errors import DatasetNotFoundError
from lumos.core.platform.http import failing_at_once
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.core.platform.threads import mapped
from lumos.core.platform.unreadable import UNFORESEEN, as_lumos_error

if TYPE_CHECKING:
    from lumos.core.errors import LumosError
    from lumos.core.models import LumosDataset
    from lumos.core.platform.batch import Seen
    from lumos.core.platform.interface import MetadataPlatformInterface

T = TypeVar("T")
R = TypeVar("R")


def batches(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield items in tuples of a size, the last one of what is left."""
    rest = iter(items)
    while batch := tuple(islice(rest, size)):
        yield batch


def together(
    act: Callable[[Sequence[T]], Sequence[R]],
    items: Sequence[T],
    *,
    refused: Callable[[T, LumosError], R],
) -> list[R]:
    """Apply a function to items at once, and return the result or error of each.

    Where that is refused each is tried alone, so that the one that is to blame is known by name;
    where the catalog is lost none is.
    """
    try:
        return [*act(items)]
    except REFUSALS as error:
        if ends_run(error) or len(items) == 1:
            return [refused(item, error) for item in items]
    with failing_at_once():  # it was tried often enough with all of them
        return [each for item in items for each in together(act, [item], refused=refused)]


def dataset_or_none(platform: MetadataPlatformInterface, urn: str) -> LumosDataset | None:
    """Return the whole dataset of a URN, or None where the catalog does not hold it."""
    try:
        return platform.get_dataset(urn)
    except DatasetNotFoundError:
        return None


def looked_up(
    platform: MetadataPlatformInterface, urns: Sequence[str], *, workers: int
) -> dict[str, Seen | LumosError]:
    """Return what a catalog holds of each dataset, or why it could not be asked, by URN.

    As with `find_datasets`, their neighbours and what others attached to them may be missing.
    """
    size = max(-(-len(urns) // workers), platform.LOOK_UP)
    found: dict[str, Seen | LumosError] = {}
    ask = partial(found_together, platform)
    with closing(mapped(ask, batches(urns, size), workers=workers)) as parts:
        for part in parts:
            found.update(part)
    return found


def found_together(
    platform: MetadataPlatformInterface, urns: Sequence[str]
) -> dict[str, Seen | LumosError]:
    """Return the same, asked for by the calling thread."""

    def find(some: Sequence[str]) -> Sequence[tuple[str, Seen | LumosError]]:
        try:
            return [*platform.find_datasets(some).items()]
        except UNFORESEEN as error:
            raise as_lumos_error(error) from error

    return dict(together(find, urns, refused=lambda urn, error: (urn, error)))
