"""What servers say of their version, held against what Lumos needs."""

from __future__ import annotations

import re
from typing import Final

from lumos.core.errors import PlatformVersionError

_NUMBERS: Final = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?")


def shown_version(told: object) -> str:
    """Return the numbers of what a server says of its version, or `of an unknown version`."""
    found = _NUMBERS.match(told) if isinstance(told, str) else None
    return ".".join(part for part in found.groups() if part) if found else "of an unknown version"


def usable_version(place: str, told: object, *, least: tuple[int, int]) -> str:
    """Return a version for people to read; text that is no version is taken as it is.

    Args:
        place: the name of the catalog, and where it is.
        told: the version as the server states it.
        least: the first version that Lumos can work with.

    Raises:
        PlatformVersionError: it is older than what Lumos can work with.
    """
    found = _NUMBERS.match(told) if isinstance(told, str) else None
    if found and (int(found[1]), int(found[2])) < least:
        needed, name = ".".join(map(str, least)), place.partition(" ")[0]
        raise PlatformVersionError(
            f"{place}: the server is version {shown_version(told)}, Lumos needs {needed} or newer",
            hint=f"upgrade the server, or set another URL in platform_config.{name}",
        )
    return shown_version(told)
