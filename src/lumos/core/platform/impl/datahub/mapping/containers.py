"""The databases, schemas and buckets of datasets as containers of DataHub.

They have the names that DataHub's own connectors give them, so that what both write is one thing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import InvalidUrnError
from lumos.core.platform.impl.datahub.mapping.stash import KEY
from lumos.core.platform.impl.datahub.mapping.urns import is_shortened, parts_of

if TYPE_CHECKING:
    from lumos.core.json_reading import Json


ASPECT: Final = "container"
_BY_LUMOS: Final = "made by Lumos"
_RELATIONAL: Final = (("database", "Database"), ("schema", "Schema"))
_LEVELS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    **dict.fromkeys(
        (
            "athena", "clickhouse", "db2", "glue", "hive", "mariadb", "mssql", "mysql", "oracle",
            "postgres", "presto", "redshift", "snowflake", "teradata", "trino", "vertica",
        ),
        _RELATIONAL,
    ),
    "bigquery": (("project_id", "Project"), ("dataset_id", "Dataset")),
    "s3": (("bucket_name", "S3 bucket"),),
    "gcs": (("bucket_name", "GCS bucket"),),
    "abs": (("bucket_name", "ABS container"),),
}  # fmt: skip
"""What the first parts of a name are, and what people call them, by platform."""


class Container(NamedTuple):
    """A container and what DataHub shows of it."""

    urn: str
    aspects: Json


@lru_cache(maxsize=4096)
def containers_of(there: str) -> tuple[Container, ...]:
    """Return the containers of a dataset of DataHub, the outermost first."""
    if is_shortened(there):
        return ()
    try:
        platform, parts, environment = parts_of(there)
    except InvalidUrnError:  # an environment that is none of DataHub's
        return ()
    made: list[Container] = []
    key = {"platform": platform, "instance": environment}
    for (level, title), name in zip(_LEVELS.get(platform, ()), parts[:-1], strict=False):
        key[level] = name
        aspects: Json = {
            "containerProperties": {
                "name": _shown(name),
                "env": environment,
                "customProperties": {
                    **{part: _shown(value) for part, value in key.items() if part != "instance"},
                    "env": environment,
                    KEY: _BY_LUMOS,
                },
            },
            "subTypes": {"typeNames": [title]},
            "dataPlatformInstance": {"platform": f"urn:li:dataPlatform:{platform}"},
            "status": {"removed": False},
        }
        if made:
            aspects[ASPECT] = {"container": made[-1].urn}
        made.append(Container(_urn(key), aspects))
    return tuple(made)


def innermost(there: str) -> str | None:
    """Return the container that a dataset of DataHub stands in."""
    made = containers_of(there)
    return made[-1].urn if made else None


def _shown(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _urn(key: Mapping[str, str]) -> str:
    text = json.dumps(key, separators=(",", ":"), sort_keys=True)  # as the connectors spell it
    return f"urn:li:container:{hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}"
