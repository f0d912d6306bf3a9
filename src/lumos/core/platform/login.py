"""The words for a refused login, which name the setting that was used."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit


class Login(NamedTuple):
    """How the settings say who asks, in the words of error messages."""

    refused: str
    forbidden: str
    hint: str


TOKEN: Final = Login(
    "the token is not accepted",
    "the token does not allow it",
    "it may be wrong or expired; set a new one for the platform",
)
PASSWORD: Final = Login(
    "the username and the password are not accepted",
    "the user is not allowed this",
    "check username and password of the platform",
)
NOBODY: Final = Login(
    "a request without a login is not accepted",
    "a request without a login is not allowed this",
    "set the token, or the username and the password, of the platform",
)


def server_of(url: str) -> str:
    """Return the server of a URL for messages: no user, no password, no path and no query."""
    parts = urlsplit(url)
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        return "its server"  # a password with a slash in it: what looks like a host is none
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else str(parts.hostname)
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
