"""Catalogs that whoever runs the service tests names, in place of those that tests start.

DataHub and OpenMetadata keep what others have (`named_datahub.py`, `named_openmetadata.py`); the
others are emptied before each test. See docs/how-to/real-catalogs.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

VARIABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "amundsen": {"database_url": "LUMOS_AMUNDSEN_DATABASE_URL", "url": "LUMOS_AMUNDSEN_URL"},
    "atlas": {
        "url": "LUMOS_ATLAS_URL",
        "username": "LUMOS_ATLAS_USERNAME",
        "password": "LUMOS_ATLAS_PASSWORD",
    },
    "datahub": {"gms_server": "LUMOS_DATAHUB_URL", "token": "LUMOS_DATAHUB_TOKEN"},
    "openmetadata": {"server": "LUMOS_OPENMETADATA_URL", "auth_token": "LUMOS_OPENMETADATA_TOKEN"},
}
"""The variable of each setting, by catalog; the first one says that there is such a catalog."""


def named(catalog: str) -> dict[str, str] | None:
    """Return the settings of the catalog that was named, or None where none was."""
    variables = VARIABLES[catalog]
    given = {name: os.environ.get(variable, "") for name, variable in variables.items()}
    if not given[next(iter(variables))]:
        return None
    return {name: value for name, value in given.items() if value}
