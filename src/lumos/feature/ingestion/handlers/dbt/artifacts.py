"""Reading dbt's artifacts: one JSON file each, within limits, of a version that is known."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from lumos.core.errors import SourceError, UnexpectedJsonError, UnreadableItemError
from lumos.core.json_reading import object_at, text_at
from lumos.core.models.base import as_utc
from lumos.core.regular_files import read_regular
from lumos.core.strict_json import require_few_values, unique_pairs
from lumos.feature.ingestion.handlers.dbt.shapes import printable_dbt_name

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

    from lumos.core.json_reading import Json

LARGEST_ARTIFACT: Final = 1024**3
MOST_VALUES: Final = 30_000_000
"""How many values an artifact may have; commas in SQL text count too."""
_NOT_KEPT: Final = frozenset(
    {
        *("raw_code", "compiled_code", "raw_sql", "compiled_sql", "macro_sql", "block_contents"),
        *("unrendered_config", "extra_ctes", "doc_blocks", "compiled_path", "child_map"),
    }
)
"""Not even kept in memory: SQL is most of a manifest, and may hold literals; the rest is unused."""
_SCHEMA_VERSION: Final = re.compile(r"/(?P<kind>[a-z-]+)/v(?P<number>\d{1,4})(?:\.json)?\Z")
V = TypeVar("V")


@dataclass(frozen=True)
class ArtifactKind:
    """One of the files that dbt writes, and the versions of it that are read."""

    name: str
    mark: str
    oldest: int
    newest: int
    made_by: str
    """The dbt command that writes it."""


MANIFEST: Final = ArtifactKind("manifest", "manifest", 9, 12, "dbt docs generate")
CATALOG: Final = ArtifactKind("catalog", "catalog", 1, 1, "dbt docs generate")
RUN_RESULTS: Final = ArtifactKind("run-results", "run_results", 4, 6, "dbt build")


@dataclass(frozen=True)
class Artifact:
    """A dbt artifact, parsed."""

    kind: ArtifactKind
    file_name: str
    version: int
    metadata: Json
    document: Json
    sha256: str

    @property
    def is_newer_than_known(self) -> bool:
        return self.version > self.kind.newest

    @property
    def generated_at(self) -> datetime | None:
        """When dbt wrote it; None where it does not say so."""
        return moment_at(self.metadata, "generated_at")

    @property
    def invocation(self) -> str | None:
        return text_at(self.metadata, "invocation_id")

    def section(self, name: str) -> Json:
        """Return one of the objects that the document consists of.

        Raises:
            SourceError: it is not an object.
        """
        try:
            return object_at(self.document, name)
        except UnexpectedJsonError as error:
            hint = "write the artifact again with: dbt docs generate"
            raise SourceError(f"{self.file_name}: {error}", hint=hint) from None


def day_at(node: Json, key: str) -> date | None:
    """Return the day of a time where it was written, or None where none can be read."""
    value = node.get(key)
    try:
        return datetime.fromisoformat(value).date() if isinstance(value, str) else None
    except ValueError:
        return None


def moment_at(node: Json, key: str) -> datetime | None:
    """Return a time in UTC, or None where there is none that can be read."""
    value = node.get(key)
    if not isinstance(value, str):
        return None
    try:
        return as_utc(datetime.fromisoformat(value))
    except ValueError:
        return None


def read_artifact(path: Path, kind: ArtifactKind, *, source: str) -> Artifact:
    """Read one artifact.

    Raises:
        SourceError: it is not there, not such an artifact, or of a version that is too old.
    """
    what = f"{printable_dbt_name(path.name)} of source '{source}'"
    try:
        content = read_regular(path, most=LARGEST_ARTIFACT)
        digest = hashlib.sha256(content).hexdigest()
        require_few_values(content, most=MOST_VALUES)
        text = content.decode("utf-8-sig")
        del content  # 100 MB are common
        document = _parsed(text)
    except OSError as error:
        raise unreachable(path, kind, source=source, error=error) from None
    except UnicodeDecodeError:
        raise _refused(what, "it is not UTF-8", kind) from None
    except ValueError as error:
        raise _refused(what, _reason(error), kind) from None
    try:
        metadata = object_at(document, "metadata")
        version = _version(text_at(metadata, "dbt_schema_version"), kind)
        text_at(metadata, "invocation_id")
    except (UnreadableItemError, UnexpectedJsonError) as error:
        raise _refused(what, error.message, kind) from None
    if version < kind.oldest:
        raise SourceError(
            f"{what} is of version v{version}; Lumos reads v{kind.oldest} and newer",
            hint="write it again with dbt 1.5 or newer",
        )
    return Artifact(kind, printable_dbt_name(path.name), version, metadata, document, digest)


def unreachable(path: Path, kind: ArtifactKind, *, source: str, error: OSError) -> SourceError:
    """Return the error for a file that cannot be opened."""
    reason = (error.strerror or type(error).__name__).lower()
    return SourceError(
        f"source '{source}': cannot read {printable_dbt_name(str(path))}: {reason}",
        hint=f"dbt writes it to its target folder: run {kind.made_by}",
    )


def _parsed(text: str) -> Json:
    try:
        value: object = json.loads(text, object_pairs_hook=_kept, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - one of the bad contents
    return value


def _kept(pairs: list[tuple[str, JsonValue]]) -> Json:
    found = unique_pairs(pairs)
    for key in _NOT_KEPT & found.keys():
        del found[key]
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):  # its text may quote the content
        return f"it is not JSON at line {error.lineno}, column {error.colno}"
    return printable_dbt_name(str(error))


def _version(text: str | None, kind: ArtifactKind) -> int:
    match = _SCHEMA_VERSION.search(text or "")
    if match is None or match["kind"] != kind.name:
        raise UnreadableItemError(f"it is not a {kind.mark} of dbt")
    return int(match["number"])


def _refused(what: str, reason: str, kind: ArtifactKind) -> SourceError:
    return SourceError(
        f"{what} cannot be read: {reason}", hint=f"write it again with: {kind.made_by}"
    )
