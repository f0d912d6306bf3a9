"""Checking every byte of a snapshot in any form, and whose it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.errors import CorruptSnapshotError, LumosError, MissingExtraError
from lumos.core.regular_files import open_regular
from lumos.core.store.snapshots.manifest import (
    MANIFEST_NAME,
    SIGNATURE_NAME,
    SIGNATURE_SUFFIX,
    VerifyReport,
)
from lumos.core.store.snapshots.signatures import (
    CONTENT_NAMESPACE,
    NAMESPACE,
    SignatureError,
    check,
    content_statement,
    namespace_of,
    sign,
)
from lumos.core.store.snapshots.snapshot_files import (
    DurableFiles,
    FilesForOthers,
    reading,
    storing,
    write_atomically,
)
from lumos.feature.snapshot.documents.document import opened_file, read_document
from lumos.feature.snapshot.scratch import Scratch
from lumos.feature.snapshot.source import opened_stored, printable_reference

if TYPE_CHECKING:
    from lumos.core.store.snapshots.snapshot_store import SnapshotStore

_BLOCK = 1 << 20
_LARGEST_SIGNATURE = 64 * 1024
_WITHOUT_CHECKSUM = (
    "it has no checksum, so it cannot be verified; lumos validate checks what it says"
)


def verify(reference: str, *, store: SnapshotStore, key: Path | None = None) -> VerifyReport:
    """Check what the user named; damage is reported, not raised.

    With a public key the snapshot has to be signed with it. Without one, a signature that is
    there has to fit the content.

    Raises:
        SnapshotNotFoundError: the store has no such snapshot.
        InputUnreadableError: there is no such file or key, or it cannot be read.
    """
    name = printable_reference(reference)
    try:
        stored = opened_stored(reference, store=store)
    except CorruptSnapshotError as error:
        return VerifyReport(id=name, problems=(error.message,))
    if stored is None:
        report, signed = _verified_document(Path(reference)), Path(reference)
    else:
        report, signed = stored.verify(), stored.folder / MANIFEST_NAME
    return _with_signature(report, signed, key=key) if report.ok else report


def sign_snapshot(reference: str, key: Path, *, store: SnapshotStore) -> VerifyReport:
    """Put a signature beside what the user named, once every byte of it has been checked.

    Of a folder the manifest is signed, which holds the checksum of each part; of a document its
    content, so that a JSON tool may rewrite it.

    Raises:
        CorruptSnapshotError: it is damaged; nothing is signed.
        InputUnreadableError: there is no such file or key, or it cannot be read.
        StateError: the signature cannot be written.
    """
    stored = opened_stored(reference, store=store)
    if stored is None:
        report, signed = _verified_document(Path(reference)), Path(reference)
    else:
        report, signed = stored.verify(), stored.folder / MANIFEST_NAME
    if not report.ok:
        raise CorruptSnapshotError(
            report.problems[0], hint="only a snapshot that is whole can be signed"
        )
    target = signature_file(signed)
    namespace = NAMESPACE if report.content_sha256 is None else CONTENT_NAMESPACE
    content = sign(_signed_content(report, signed, namespace), key, namespace=namespace)
    is_in_store = stored is not None and stored.folder.parent == store.root
    files = DurableFiles() if is_in_store else FilesForOthers()
    with storing(target):
        write_atomically(target, [content], files=files)
        files.sync_folder(target.parent)
    return _with_signature(report, signed, key=None)


def signature_file(signed: Path) -> Path:
    """Return where the signature of a manifest or document lies: beside it."""
    if signed.name == MANIFEST_NAME:
        return signed.with_name(SIGNATURE_NAME)
    return signed.with_name(f"{signed.name}{SIGNATURE_SUFFIX}")


def _verified_document(path: Path) -> VerifyReport:
    name = printable_reference(str(path))
    with opened_file(path):
        size = path.stat().st_size
    scratch = Scratch()
    try:
        read = read_document(path, scratch)
    except LumosError as error:
        return VerifyReport(id=name, bytes=size, problems=(printable_reference(error.message),))
    finally:
        scratch.close()
    if not read.has_checksum:
        return VerifyReport(
            id=name, bytes=size, problems=(f"snapshot {name}: {_WITHOUT_CHECKSUM}",)
        )
    manifest = read.stored.manifest
    return VerifyReport(
        id=name,
        lines=sum(part.count for part in manifest.parts),
        bytes=size,
        content_hash=manifest.content_hash,
        content_sha256=read.content_sha256,
    )


def _with_signature(report: VerifyReport, signed: Path, *, key: Path | None) -> VerifyReport:
    file = signature_file(signed)
    if not file.exists() and key is None:
        return report
    try:
        keys = () if key is None else (key,)
        armoured = read_signature(file)
        content = _signed_content(report, signed, namespace_of(armoured))
        signature = check(content, armoured, keys=keys)
    except SignatureError as error:
        problem = f"snapshot {report.id}: {error.message}"
        return report.model_copy(update={"problems": (*report.problems, problem)})
    except MissingExtraError:
        if key is not None:
            raise
        return report  # that there is a signature does no harm to those who do not ask for it
    return report.model_copy(update={"signed_by": signature.signer})


def _signed_content(report: VerifyReport, signed: Path, namespace: bytes) -> Iterable[bytes]:
    """Return what a signature of this namespace is made of."""
    if namespace == CONTENT_NAMESPACE and report.content_sha256 is not None:
        return [content_statement(report.content_sha256)]
    return _content(signed)


def read_signature(file: Path) -> bytes:
    """Return the content of a signature file.

    Raises:
        SignatureError: there is none.
        StateError: it cannot be read.
    """
    with reading(file):
        try:
            with open_regular(file) as stream:
                return stream.read(_LARGEST_SIGNATURE)
        except FileNotFoundError:
            raise SignatureError(
                "it is not signed", hint="sign it with: lumos snapshot sign"
            ) from None


def _content(signed: Path) -> Iterator[bytes]:
    with reading(signed), open_regular(signed) as stream:
        while block := stream.read(_BLOCK):
            yield block
