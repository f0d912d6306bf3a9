"""Keys that tests sign snapshots with."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def private_key(folder: Path, name: str = "key") -> Path:
    """Make a key pair as ssh-keygen does, and return the file of its private half."""
    key = Ed25519PrivateKey.generate()
    file = folder / name
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    public_key(file).write_bytes(public + b" test\n")
    return file


def public_key(file: Path) -> Path:
    return file.with_name(f"{file.name}.pub")
