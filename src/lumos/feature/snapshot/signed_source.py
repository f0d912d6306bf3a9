"""Snapshots that have to be signed with a trusted key before anything is done with them.

What was checked is what is read: a document is copied while it is checked and read from the copy;
of a folder the manifest that was checked is the one in memory, and each part has to match it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.errors import LumosError
from lumos.core.store.snapshots.manifest import MANIFEST_NAME, Manifest
from lumos.core.store.snapshots.signatures import (
    CONTENT_NAMESPACE,
    SignatureError,
    check,
    content_statement,
    namespace_of,
)
from lumos.core.store.snapshots.snapshot_files import reading, storing
from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot
from lumos.feature.snapshot.documents.document import opened_file, read_document
from lumos.feature.snapshot.git_revision import GitReference
from lumos.feature.snapshot.scratch import Scratch
from lumos.feature.snapshot.source import (
    DocumentSource,
    StoredSource,
    opened_stored,
    printable_reference,
)
from lumos.feature.snapshot.verification import read_signature, signature_file

if TYPE_CHECKING:
    from lumos.core.store.snapshots.snapshot_store import SnapshotStore
    from lumos.feature.snapshot.source import SnapshotSource

_BLOCK = 1 << 20


def opened_signed(reference: str, keys: Sequence[Path], *, store: SnapshotStore) -> SnapshotSource:
    """Open a snapshot in any form, once it proved to be signed with one of the public keys.

    Raises:
        SignatureError: it is not signed, with another key, or was changed since.
        SnapshotNotFoundError: the store has no such snapshot.
        InputUnreadableError: there is no such file, revision or key, or it cannot be read.
        CorruptSnapshotError: it is damaged.
        MissingExtraError: the package for signatures is not installed.
    """
    in_git = GitReference.parse(reference)
    if in_git is None:
        return _opened(reference, keys, store=store, name=printable_reference(reference))
    scratch = Scratch()
    place = in_git.extract(scratch.folder)
    try:
        source = _opened(str(place), keys, store=store, name=printable_reference(reference))
    except LumosError as error:
        error.message = error.message.replace(str(place), reference)
        raise
    # The parts of a folder lie in the scratch folder, which goes with the source.
    return DocumentSource(source.stored, reference, scratch=scratch) if place.is_dir() else source


def _opened(
    reference: str, keys: Sequence[Path], *, store: SnapshotStore, name: str
) -> StoredSource:
    stored = opened_stored(reference, store=store)
    try:
        if stored is not None:
            return StoredSource(_signed_folder(stored.folder, keys))
        return _signed_document(Path(reference), keys, name=name)
    except SignatureError as error:
        raise SignatureError(f"snapshot {name}: {error.message}", hint=error.hint) from None


def _signed_folder(folder: Path, keys: Sequence[Path]) -> StoredSnapshot:
    manifest = folder / MANIFEST_NAME
    signature = read_signature(signature_file(manifest))
    with reading(manifest):
        content = manifest.read_bytes()
    check([content], signature, keys=keys)
    return StoredSnapshot(folder, Manifest.parse(content, where=folder.name))


def _signed_document(path: Path, keys: Sequence[Path], *, name: str) -> DocumentSource:
    scratch = Scratch()
    copy = scratch.folder / "document.json"
    with opened_file(path):
        pass  # a file that is not there is a better reason than a missing signature
    armoured = read_signature(signature_file(path))
    covers_content = namespace_of(armoured) == CONTENT_NAMESPACE
    if covers_content:
        for _ in _copied(path, copy):
            pass
    else:
        check(_copied(path, copy), armoured, keys=keys)
    try:
        read = read_document(copy, scratch)
    except LumosError as error:
        error.message = error.message.replace(str(copy), name)
        raise
    if covers_content:
        check([content_statement(read.content_sha256)], armoured, keys=keys)
    copy.unlink()
    return DocumentSource(read.stored, name, scratch=scratch)


def _copied(path: Path, copy: Path) -> Iterator[bytes]:
    """Yield the content of a file, and write it to another one."""
    with opened_file(path) as source, storing(copy), copy.open("xb") as target:
        while block := source.read(_BLOCK):
            target.write(block)
            yield block
