"""TLS servers on loopback, with certificates that are wrong in one way."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
FAULTS = {
    "expired": "its certificate has expired",
    "not yet valid": "its certificate is not valid yet",
    "wrong name": "its certificate is for another name",
    "self-signed": "its certificate is not trusted",
}
"""What is wrong with a certificate, and the reason that users are told."""


@dataclass(frozen=True)
class Authority:
    """A certificate authority of a test."""

    folder: Path
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    @property
    def file(self) -> Path:
        """The file of the authority, for clients that are to trust it."""
        path = self.folder / "authority.pem"
        if not path.exists():
            made = self._signed("Authority", self.key, names=(), days=(-30, 30), is_ca=True)
            path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        return path

    def certificate(self, fault: str | None) -> Path:
        """Make a certificate for localhost and return the file with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        days = {"expired": (-20, -1), "not yet valid": (5, 20)}.get(fault or "", (-20, 20))
        names = ("elsewhere.example",) if fault == "wrong name" else ("localhost", "127.0.0.1")
        issuer = None if fault == "self-signed" else self.key
        made = self._signed("Server", key, names=names, days=days, issuer=issuer)
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path = self.folder / f"{fault or 'good'}.pem"
        path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
        return path

    def _signed(
        self,
        subject: str,
        key: ec.EllipticCurvePrivateKey,
        *,
        names: tuple[str, ...],
        days: tuple[int, int],
        issuer: ec.EllipticCurvePrivateKey | None = None,
        is_ca: bool = False,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        above = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name if issuer is None else above)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(days=days[0]))
            .not_valid_after(now + timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(each) for each in names]),
                critical=False,
            )
        return builder.sign(issuer or key, hashes.SHA256())


def _alternative(name: str) -> x509.GeneralName:
    return x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)


@dataclass
class TlsServer:
    """A server that answers every request with an empty JSON object."""

    port: int
    handshakes: int = 0
    """How many connections were begun."""


@contextmanager
def tls_server(certificate: Path) -> Iterator[TlsServer]:
    """Serve with the certificate and key of a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = TlsServer(listener.getsockname()[1])

        def accept() -> None:
            while not ended.is_set():
                if select.select([listener], [], [], 0.02)[0]:
                    server.handshakes += 1
                    _serve(listener.accept()[0], context)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server
        finally:
            ended.set()
            thread.join()


def _serve(connection: socket.socket, context: ssl.SSLContext) -> None:
    connection.settimeout(60)
    try:
        with context.wrap_socket(connection, server_side=True) as inside:
            while b"\r\n\r\n" in inside.recv(65_536):
                inside.sendall(ANSWER)
    except OSError:
        connection.close()  # the client did not like the certificate
