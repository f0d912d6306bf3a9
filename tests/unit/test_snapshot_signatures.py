"""A signed snapshot tells who it comes from, to Lumos and to OpenSSH."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lumos.core.errors import CorruptSnapshotError, InputUnreadableError
from lumos.core.store.snapshots.signatures import SignatureError, sign
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.signed_source import opened_signed
from lumos.feature.snapshot.source import LoadedSource
from lumos.feature.snapshot.verification import sign_snapshot, verify
from snapshot_keys import private_key, public_key
from snapshot_samples import AT, sample_snapshot


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "store")


@pytest.fixture(params=["id", "folder", "file"])
def reference(request: pytest.FixtureRequest, tmp_path: Path, store: SnapshotStore) -> str:
    """A snapshot, called as users may call it."""
    info = store.write(sample_snapshot(3), at=AT)
    if request.param == "id":
        return info.id
    if request.param == "folder":
        return str(store.root / info.id)
    export_document(LoadedSource(sample_snapshot(3), "memory"), tmp_path / "snapshot.json")
    return str(tmp_path / "snapshot.json")


def test_a_signature_is_that_of_its_key_and_of_no_other(
    tmp_path: Path, store: SnapshotStore, reference: str
) -> None:
    key, other = private_key(tmp_path), private_key(tmp_path, "other")

    signed = sign_snapshot(reference, key, store=store)

    report = verify(reference, store=store, key=public_key(key))
    assert report.ok
    assert report.signed_by == signed.signed_by
    assert verify(reference, store=store).signed_by == signed.signed_by
    (problem,) = verify(reference, store=store, key=public_key(other)).problems
    assert "signed with another key" in problem


def test_what_is_not_signed_is_no_problem_until_it_is_asked_for(
    tmp_path: Path, store: SnapshotStore, reference: str
) -> None:
    assert verify(reference, store=store).ok

    (problem,) = verify(reference, store=store, key=public_key(private_key(tmp_path))).problems

    assert problem.endswith("it is not signed")


def test_a_signature_of_another_snapshot_does_not_fit(tmp_path: Path, store: SnapshotStore) -> None:
    key = private_key(tmp_path)
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    for size, path in enumerate((first, second), start=1):
        export_document(LoadedSource(sample_snapshot(size), "memory"), path)
    sign_snapshot(str(first), key, store=store)
    shutil.copy(tmp_path / "first.json.sig", tmp_path / "second.json.sig")

    (problem,) = verify(str(second), store=store, key=public_key(key)).problems

    assert "does not fit its content" in problem


def test_a_damaged_snapshot_is_not_signed(tmp_path: Path, store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(3), at=AT)
    part = next((store.root / info.id).glob("datasets-*"))
    part.write_bytes(part.read_bytes()[:-1])

    with pytest.raises(CorruptSnapshotError, match="its checksum does not match"):
        sign_snapshot(info.id, private_key(tmp_path), store=store)

    assert not list((store.root / info.id).glob("*.sig"))


def test_keys_in_pem_are_read_too(tmp_path: Path, store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(1), at=AT)
    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "key.pem", tmp_path / "public.pem"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )

    sign_snapshot(info.id, private, store=store)

    assert verify(info.id, store=store, key=public).ok


def test_what_is_no_key_is_refused_and_not_shown(tmp_path: Path, store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(1), at=AT)
    other_kind = generate_private_key(SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    for content in (b"my secret phrase", other_kind, b""):
        (tmp_path / "key").write_bytes(content)
        with pytest.raises(InputUnreadableError, match="no private Ed25519 key") as refused:
            sign_snapshot(info.id, tmp_path / "key", store=store)
        assert "secret" not in str(refused.value) + str(refused.value.hint)
    with pytest.raises(InputUnreadableError, match="cannot read the key"):
        sign_snapshot(info.id, tmp_path / "nowhere", store=store)


def test_a_signed_document_may_be_rewritten_but_not_edited(
    tmp_path: Path, store: SnapshotStore
) -> None:
    key, document = private_key(tmp_path), tmp_path / "snapshot.json"
    export_document(LoadedSource(sample_snapshot(2), "memory"), document)
    sign_snapshot(str(document), key, store=store)
    content = orjson.loads(document.read_bytes())

    document.write_bytes(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))
    assert verify(str(document), store=store, key=public_key(key)).ok
    assert opened_signed(str(document), [public_key(key)], store=store).load()

    forged = sample_snapshot(3)
    export_document(LoadedSource(forged, "memory"), document)
    stated = re.sub(
        rb'"content_sha256": "[0-9a-f]{64}"',
        f'"content_sha256": "{content["content_sha256"]}"'.encode(),
        document.read_bytes(),
    )
    covered = stated.rpartition(b'"document_sha256": "')[0] + b'"document_sha256": "'
    document.write_bytes(covered + hashlib.sha256(covered).hexdigest().encode() + b'"\n}\n')
    assert not verify(str(document), store=store, key=public_key(key)).ok
    with pytest.raises(SignatureError, match="does not fit"):
        opened_signed(str(document), [public_key(key)], store=store)


def test_a_signature_over_the_bytes_of_a_document_still_verifies(
    tmp_path: Path, store: SnapshotStore
) -> None:
    key, document = private_key(tmp_path), tmp_path / "snapshot.json"
    export_document(LoadedSource(sample_snapshot(2), "memory"), document)
    signature = tmp_path / "snapshot.json.sig"
    signature.write_bytes(sign([document.read_bytes()], key))

    assert verify(str(document), store=store, key=public_key(key)).ok
    assert opened_signed(str(document), [public_key(key)], store=store).load()
    document.write_bytes(orjson.dumps(orjson.loads(document.read_bytes())))
    assert not verify(str(document), store=store, key=public_key(key)).ok


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")
@pytest.mark.parametrize("form", ["folder", "document"])
def test_openssh_checks_what_lumos_signs_and_lumos_what_openssh_signs(
    tmp_path: Path, store: SnapshotStore, form: str
) -> None:
    key = private_key(tmp_path)
    key.chmod(0o600)
    if form == "document":
        snapshot = tmp_path / "snapshot.json"
        export_document(LoadedSource(sample_snapshot(2), "memory"), snapshot)
        signature = tmp_path / "snapshot.json.sig"
        namespace = ["-n", "lumos-snapshot-content"]
        content_sha256 = verify(str(snapshot), store=store).content_sha256
        signed = tmp_path / "statement"
        signed.write_text(f"content_sha256 {content_sha256}\n")
    else:
        snapshot = store.root / store.write(sample_snapshot(2), at=AT).id
        signed = snapshot / "manifest.json"
        signature = snapshot / "manifest.json.sig"
        namespace = ["-n", "lumos-snapshot"]
    signers = tmp_path / "signers"
    signers.write_text(f"release {public_key(key).read_text()}")
    keygen = ["ssh-keygen", "-Y"]

    sign_snapshot(str(snapshot), key, store=store)
    command = ["verify", *namespace, "-f", str(signers), "-I", "release", "-s", str(signature)]
    checked = subprocess.run(
        [*keygen, *command], input=signed.read_bytes(), capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr

    ours = signature.read_bytes()
    signature.unlink()
    command = ["sign", *namespace, "-f", str(key), str(signed)]
    subprocess.run([*keygen, *command], check=True, capture_output=True)
    made = signed.with_name(f"{signed.name}.sig")
    assert made.read_bytes() == ours
    made.replace(signature)
    assert verify(str(snapshot), store=store, key=public_key(key)).ok
