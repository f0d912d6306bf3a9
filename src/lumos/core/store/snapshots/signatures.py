"""Signatures over snapshots: those of OpenSSH, so that `ssh-keygen -Y verify` reads them too."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.errors import InputUnreadableError, LumosError, MissingExtraError
from lumos.core.regular_files import read_regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

NAMESPACE = b"lumos-snapshot"
"""Of signatures over the bytes of a file."""
CONTENT_NAMESPACE = b"lumos-snapshot-content"
"""Of signatures over what `content_statement` returns, however the JSON is laid out."""
_MAGIC = b"SSHSIG"
_VERSION = 1
_KEY_TYPE = b"ssh-ed25519"
_DIGEST = b"sha512"
_BEGIN = b"-----BEGIN SSH SIGNATURE-----\n"
_END = b"-----END SSH SIGNATURE-----\n"
_WIDTH = 70
_LARGEST_KEY_FILE = 64 * 1024


class SignatureError(LumosError):
    """A snapshot is not signed by whom it should be signed by."""

    code = "LUM-313"
    exit_code = 3


class Signature(NamedTuple):
    """A signature, and the public key that it says it was made with."""

    public_key: bytes
    value: bytes
    namespace: bytes = NAMESPACE

    @property
    def signer(self) -> str:
        """The fingerprint of the key, as OpenSSH spells it."""
        return fingerprint(self.public_key)


def content_statement(content_sha256: str) -> bytes:
    """Return what is signed of a document."""
    return f"content_sha256 {content_sha256}\n".encode()


def namespace_of(armoured: bytes) -> bytes:
    """Return what a signature was made for.

    Raises:
        SignatureError: it is not one that Lumos makes.
    """
    return _parsed(armoured).namespace


def sign(content: Iterable[bytes], key_file: Path, *, namespace: bytes = NAMESPACE) -> bytes:
    """Return the armoured signature of what the pieces hold together.

    Raises:
        InputUnreadableError: the file cannot be read, or holds no private Ed25519 key.
        MissingExtraError: the package for it is not installed.
    """
    key = _private_key(key_file)
    value = key.sign(_signed(content, namespace))
    blob = _MAGIC + struct.pack(">I", _VERSION)
    for part in (_public_blob(key.public_key()), namespace, b"", _DIGEST, _pair(value)):
        blob += _string(part)
    return _armoured(blob)


def check(content: Iterable[bytes], armoured: bytes, *, keys: Sequence[Path] = ()) -> Signature:
    """Return whose signature it is, once it fits the content and one of the keys.

    Args:
        content: the pieces of what was signed; read only where the key is a right one.
        armoured: the signature.
        keys: files of public keys; where none is given, any key will do.

    Raises:
        SignatureError: it does not.
        InputUnreadableError: the file cannot be read, or holds no public Ed25519 key.
        MissingExtraError: the package for it is not installed.
    """
    signature = _parsed(armoured)
    wanted = [_public_blob(_public_key(file)) for file in keys]
    if wanted and signature.public_key not in wanted:
        given = ", ".join(map(fingerprint, wanted))
        raise SignatureError(
            f"it is signed with another key, {signature.signer}",
            hint=f"the key given is {given}" if len(wanted) == 1 else f"trusted keys are {given}",
        )
    _require(signature, content)
    return signature


def _armoured(blob: bytes) -> bytes:
    text = base64.b64encode(blob)
    lines = [text[start : start + _WIDTH] + b"\n" for start in range(0, len(text), _WIDTH)]
    return _BEGIN + b"".join(lines) + _END


def fingerprint(public_blob: bytes) -> str:
    digest = base64.b64encode(hashlib.sha256(public_blob).digest()).rstrip(b"=")
    return f"SHA256:{digest.decode()}"


def _require(signature: Signature, content: Iterable[bytes]) -> None:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise _missing() from None
    _, raw = _strings(signature.public_key, 2)
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(
            signature.value, _signed(content, signature.namespace)
        )
    except (InvalidSignature, ValueError):
        raise SignatureError(
            "its signature does not fit its content", hint="sign it again, if you trust it"
        ) from None


def _signed(content: Iterable[bytes], namespace: bytes) -> bytes:
    digest = hashlib.sha512()
    for piece in content:
        digest.update(piece)
    parts = (namespace, b"", _DIGEST, digest.digest())
    return _MAGIC + b"".join(map(_string, parts))


def _parsed(armoured: bytes) -> Signature:
    try:
        signature = _unpacked(armoured)
    except (ValueError, struct.error, binascii.Error):
        signature = None
    if signature is None:
        raise SignatureError(
            "its signature is not one that lumos snapshot sign makes",
            hint="sign it again, if you trust it",
        )
    return signature


def _unpacked(armoured: bytes) -> Signature | None:
    """Return the signature, or None where it is of another kind or set otherwise."""
    lines = armoured.removeprefix(_BEGIN).removesuffix(_END)
    blob = base64.b64decode(lines.replace(b"\n", b""), validate=True)
    head = _MAGIC + struct.pack(">I", _VERSION)
    public, namespace, reserved, digest, pair = _strings(blob[len(head) :], 5)
    (kind, value), (key_kind, _) = _strings(pair, 2), _strings(public, 2)
    usual = (
        blob.startswith(head),
        _armoured(blob) == armoured,
        namespace in (NAMESPACE, CONTENT_NAMESPACE),
        (reserved, digest) == (b"", _DIGEST),
        kind == key_kind == _KEY_TYPE,
    )
    return Signature(public, value, namespace) if all(usual) else None


def _string(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _strings(blob: bytes, count: int) -> list[bytes]:
    found, place = [], 0
    for _ in range(count):
        (length,) = struct.unpack_from(">I", blob, place)
        place += 4
        if place + length > len(blob):
            raise ValueError("cut off")
        found.append(blob[place : place + length])
        place += length
    if place != len(blob):
        raise ValueError("too long")
    return found


def _pair(value: bytes) -> bytes:
    return _string(_KEY_TYPE) + _string(value)


def _public_blob(key: Ed25519PublicKey) -> bytes:
    return _pair(key.public_bytes_raw())


def _private_key(file: Path) -> Ed25519PrivateKey:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise _missing() from None
    content = _key_file(file)
    for load in (serialization.load_ssh_private_key, serialization.load_pem_private_key):
        try:
            key = load(content, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
        if isinstance(key, Ed25519PrivateKey):
            return key
    raise InputUnreadableError(
        f"{file} holds no private Ed25519 key without a passphrase",
        hint="make one with: ssh-keygen -t ed25519 -N '' -f FILE",
    )


def _public_key(file: Path) -> Ed25519PublicKey:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise _missing() from None
    content = _key_file(file)
    for load in (serialization.load_ssh_public_key, serialization.load_pem_public_key):
        try:
            key = load(content)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
        if isinstance(key, Ed25519PublicKey):
            return key
    raise InputUnreadableError(
        f"{file} holds no public Ed25519 key", hint="give the file that ends with .pub"
    )


def _key_file(file: Path) -> bytes:
    try:
        return read_regular(file, most=_LARGEST_KEY_FILE)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no file name"
        raise InputUnreadableError(
            f"cannot read the key {file}: {reason}", hint="check that you may read it"
        ) from error


def _missing() -> MissingExtraError:
    return MissingExtraError(
        "signatures of snapshots need the package cryptography",
        hint="install it with: pip install 'lumos[sign]'",
    )
