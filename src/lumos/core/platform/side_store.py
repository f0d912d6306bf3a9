"""Documents that belong to Lumos and that a catalog has no place for.

They are people, edges, identities in other catalogs, extensions, or what is left of an entity that
the catalog does hold. Each lies in a section, under a name; where that is in the catalog is the
matter of a small backend.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from lumos.core.errors import PlatformAnswerError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.platform.unreadable import UnreadableItems

R = TypeVar("R")


class StoredDocument(NamedTuple):
    """A document as a backend found it."""

    name: str
    load: Callable[[], JsonValue]
    """Raises `InvalidModelError` or `PlatformAnswerError` where others changed the document."""


class SideStoreBackend(Protocol):
    """Where one catalog keeps the documents."""

    def stored(
        self, section: str, names: Collection[str] | None = None, *, like: Collection[str] = ()
    ) -> Iterable[StoredDocument]:
        """Return the documents of a section: all, or those of names, or of LIKE patterns.

        Only a backend in a database is asked for patterns.
        """

    def write(self, section: str, documents: Mapping[str, JsonValue]) -> None:
        """Keep documents in place of those of the same names."""

    def delete(
        self, section: str, names: Collection[str] = (), *, like: Collection[str] = ()
    ) -> None:
        """Remove documents, if they are there."""


class SideStore:
    """Documents in sections, each under a name."""

    def __init__(self, backend: SideStoreBackend) -> None:
        self._backend = backend

    def put(self, section: str, documents: Mapping[str, JsonValue]) -> None:
        """Keep documents in place of those of the same names."""
        self._backend.write(section, documents)

    def remove(self, section: str, *names: str, like: Collection[str] = ()) -> None:
        """Remove the documents of names, or of names that are LIKE a pattern, if there are any."""
        self._backend.delete(section, names, like=like)

    def names(self, section: str) -> set[str]:
        """Return the names within a section."""
        return {each.name for each in self._backend.stored(section)}

    def find(self, section: str, name: str) -> JsonValue | None:
        """Return one document, or None where there is none.

        Raises:
            InvalidModelError: others changed it.
            PlatformAnswerError: others changed it.
        """
        for each in self._backend.stored(section, [name]):
            return each.load()
        return None

    def read(
        self,
        section: str,
        act: Callable[[JsonValue], R],
        *,
        unread: UnreadableItems,
        kind: str,
        like: Collection[str] = (),
    ) -> dict[str, R]:
        """Return what is read of documents, by their names; an unreadable one is noted.

        Args:
            section: where to look.
            act: reads one document.
            unread: where an unreadable document is noted.
            kind: what it is noted as.
            like: only documents whose names are LIKE one of these patterns.
        """

        def one(found: StoredDocument) -> tuple[str, R]:
            return found.name, act(found.load())

        return dict(
            unread.each(
                kind,
                self._backend.stored(section, like=like),
                one,
                name=lambda found: f"{section}/{found.name}",
                also=(PlatformAnswerError,),
            )
        )
