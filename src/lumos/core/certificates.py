"""Why the certificate of a server is not accepted, in plain words.

Clients of several libraries say it in several ways, mixed with text of the server. Only the fixed
words below get out.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class CertificateProblem(NamedTuple):
    """What is wrong with a certificate, and what to do about it."""

    reason: str
    hint: str


_REASONS: Final = (
    (
        re.compile(r"certificate has expired|InvalidCertificate\(\s*Expired|certificate expired"),
        "its certificate has expired",
        "let the certificate of the server be renewed, and check the clock of this machine",
    ),
    (
        re.compile(r"certificate is not yet valid|InvalidCertificate\(\s*NotValidYet"),
        "its certificate is not valid yet",
        "check the clocks of the server and of this machine",
    ),
    (
        re.compile(r"(?:Hostname|IP address) mismatch|InvalidCertificate\(\s*NotValidForName"),
        "its certificate is for another name",
        "give the address by the name that the certificate is for",
    ),
    (
        re.compile(r"certificate (?:revoked|is revoked)|InvalidCertificate\(\s*Revoked"),
        "its certificate was revoked",
        "let the certificate of the server be replaced",
    ),
    (
        re.compile(
            r"self[- ]signed certificate|unable to get (?:local )?issuer certificate"
            r"|InvalidCertificate\(\s*(?:UnknownIssuer|Other)|CaUsedAsEndEntity"
        ),
        "its certificate is not trusted",
        "name its authority with {authority}",
    ),
    (
        re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|InvalidCertificate\("),
        "its certificate is not accepted",
        "check the certificate of the server, or name its authority with {authority}",
    ),
)


def certificate_problem(said: str, *, authority: str) -> CertificateProblem | None:
    """Return what is wrong with a certificate, where that is what an error of a client says.

    Args:
        said: the text of the error.
        authority: the setting that takes a file of authorities to trust.
    """
    for pattern, reason, hint in _REASONS:
        if pattern.search(said):
            return CertificateProblem(reason, hint.format(authority=authority))
    return None


def said_by(error: BaseException) -> str:
    """Return the texts of an error and of what led to it."""
    texts, seen = [], set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        texts.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    return "\n".join(texts)
