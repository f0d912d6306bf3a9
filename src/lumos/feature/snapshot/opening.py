"""Opening a snapshot by any name that a user may give it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.errors import LumosError
from lumos.core.progress import SILENT, Progress
from lumos.core.store.database import is_url
from lumos.core.store.snapshots.manifest import MANIFEST_NAME, is_snapshot_id
from lumos.core.store.snapshots.snapshot_store import LATEST
from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot
from lumos.feature.snapshot.contents import catalog_content
from lumos.feature.snapshot.documents.document import stored_document
from lumos.feature.snapshot.git_revision import GitReference
from lumos.feature.snapshot.scratch import Scratch, scratch_folder
from lumos.feature.snapshot.selection import WHOLE_SNAPSHOT, Selection, selected
from lumos.feature.snapshot.source import (
    DocumentSource,
    SnapshotSource,
    open_source,
)

if TYPE_CHECKING:
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.run_report import Clock
    from lumos.core.store.snapshots.snapshot_store import SnapshotStore

PlatformOf = Callable[[str | None], "MetadataPlatformInterface"]


class SnapshotOpener:
    """Finds what a name means: a catalog, a stored snapshot, a folder, a file, a git revision."""

    def __init__(
        self,
        store: SnapshotStore,
        *,
        platform_of: PlatformOf,
        platform_names: tuple[str, ...],
        clock: Clock,
        edited: bool = False,
    ) -> None:
        """Take the store and a way to the catalogs, the default one under the name None.

        With `edited`, documents are accepted whose content does not match its checksum.
        """
        self._edited = edited
        self._store = store
        self._platform_of = platform_of
        self._platform_names = platform_names
        self._clock = clock

    def opened(self, reference: str, *, progress: Progress = SILENT) -> SnapshotSource:
        """Open a catalog by its name, or a snapshot.

        Raises:
            SnapshotNotFoundError: the store has no such snapshot.
            InputUnreadableError: there is no such file or revision, or it cannot be read.
            InvalidModelError: the file is no snapshot.
            CorruptSnapshotError: a checksum does not match.
        """
        if self.is_catalog(reference):
            return self.exported(reference, progress=progress)
        if (in_git := GitReference.parse(reference)) is not None:
            return _opened_in_git(in_git, edited=self._edited)
        return open_source(reference, store=self._store, edited=self._edited)

    def opened_signed(self, reference: str, keys: Sequence[Path]) -> SnapshotSource:
        """Open a snapshot that has to be signed with one of the public keys.

        Raises:
            SignatureError: it is not, or it is a catalog.
            SnapshotNotFoundError: the store has no such snapshot.
            InputUnreadableError: there is no such file, revision or key, or it cannot be read.
            CorruptSnapshotError: a checksum does not match.
        """
        from lumos.core.store.snapshots.signatures import SignatureError
        from lumos.feature.snapshot.signed_source import opened_signed

        if self.is_catalog(reference):
            raise SignatureError(
                f"{reference} is a catalog, and a catalog has no signature",
                hint="leave --key out, or give a snapshot",
            )
        return opened_signed(reference, keys, store=self._store)

    def opened_trusted(self, reference: str, keys: Sequence[Path]) -> SnapshotSource:
        """Open what is to be written to a catalog, where the settings name trusted keys.

        A catalog of the settings, and what this project stored itself, need no signature.

        Raises:
            SignatureError: it needs one of the keys and is not signed with any.
        """
        is_own = reference == LATEST or is_snapshot_id(reference) or self.is_catalog(reference)
        if is_own or not keys:
            return self.opened(reference)
        return self.opened_signed(reference, keys)

    def is_catalog(self, reference: str) -> bool:
        """Return whether a name means a catalog; a file of that name comes first."""
        if is_url(reference):
            return True
        return reference in self._platform_names and not Path(reference).exists()

    def opened_pair(
        self, old: str, new: str, progress: Progress = SILENT
    ) -> tuple[SnapshotSource, SnapshotSource]:
        """Open two snapshots that are to be compared.

        Raises:
            SnapshotNotFoundError: the store has no such snapshot.
            InputUnreadableError: there is no such file or revision, or it cannot be read.
            InvalidModelError: a file is no snapshot.
            CorruptSnapshotError: a checksum does not match.
        """
        if _is_document(old) and _is_document(new):
            from lumos.feature.snapshot.documents.document_pair import loaded_pair

            if pair := loaded_pair(Path(old), Path(new)):
                return pair
        return self.opened(old, progress=progress), self.opened(new, progress=progress)

    def exported(
        self,
        platform: str | None,
        selection: Selection = WHOLE_SNAPSHOT,
        *,
        progress: Progress = SILENT,
    ) -> DocumentSource:
        """Read what a catalog holds into parts that last as long as what is returned."""
        adapter = self._platform_of(platform)
        scratch = Scratch()
        content = catalog_content(adapter, at=self._clock(), progress=progress)
        stored = scratch.store(selected(content, selection))
        unreadable = adapter.unreadable()
        return DocumentSource(stored, adapter.name, scratch=scratch, unreadable=unreadable)


def _is_document(reference: str) -> bool:
    if reference == LATEST or is_snapshot_id(reference):
        return False
    try:
        return Path(reference).name != MANIFEST_NAME and Path(reference).is_file()
    except (OSError, ValueError):  # reported when it is opened
        return False


def _opened_in_git(reference: GitReference, *, edited: bool) -> SnapshotSource:
    scratch = Scratch()
    place = reference.extract(scratch.folder)
    try:
        if place.is_dir():
            stored = StoredSnapshot.open(place)
        else:
            stored = stored_document(place, scratch, edited=edited)
    except LumosError as error:
        error.message = error.message.replace(str(place), str(reference))
        raise
    return DocumentSource(stored, str(reference), scratch=scratch)


@contextmanager
def located(reference: str) -> Iterator[str]:
    """Yield a name of the same snapshot that means no git revision, for as long as it is needed.

    Raises:
        InputUnreadableError: there is no such revision or path.
    """
    in_git = GitReference.parse(reference)
    if in_git is None:
        yield reference
        return
    with scratch_folder() as folder:
        yield str(in_git.extract(folder))
