"""Object storages, listed and read in as few requests as can be: S3, Google Cloud, Azure.

A listing has the size of each object, so that one ranged read is all it takes to open one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol

from pydantic import Field
from typing_extensions import override

from lumos.core.errors import LumosError, MissingExtraError, SourceError, UnreadableItemError
from lumos.core.settings import SettingsModel
from lumos.core.storage.object_errors import (
    AUTHORITY,
    GONE,
    NOT_THERE,
    NOTHING_BELOW,
    Problem,
    RefusedError,
    problem_of,
    untrusted,
)
from lumos.core.storage.object_units import FolderLevel, ListUnit, distinct, divided, sort_key
from lumos.core.storage.port import (
    Listed,
    ListedObject,
    Storage,
    StorageSource,
    UnlistedPrefix,
    server_at,
)
from lumos.core.storage.selection import FileSelection, Folder

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

PAGE: Final = 1000
"""How many keys a storage lists with one request."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Entry(NamedTuple):
    """An object of a listing, under its whole key."""

    key: str
    size: int
    modified: datetime
    etag: str | None


class OddKeys(Protocol):
    """Reaches keys that are no paths, such as `a//b`, which the main client refuses."""

    def entries(self, prefix: str, *, after: str | None) -> Iterator[Entry]:
        """Yield the objects below a prefix in the order of their keys."""

    def read(self, key: str, *, start: int, length: int) -> bytes:
        """Return bytes of an object."""


class ObjectAccess(SettingsModel):
    """The settings that every object storage takes."""

    prefixes: tuple[str, ...] = Field(
        default=(), description="Folders of the bucket to look into; all of it where none is given."
    )
    retries: int = Field(
        default=10, ge=0, le=100, description="How often a failed request is tried again."
    )
    retry_seconds: float = Field(
        default=120, gt=0, le=280, description="For how many seconds it is tried again at most."
    )
    timeout: float = Field(default=30, gt=0, description="How many seconds one request may take.")

    def client_options(self, *, allow_http: bool) -> ClientConfig:
        return {"timeout": timedelta(seconds=self.timeout), "allow_http": allow_http}

    def retry_config(self) -> RetryConfig:
        return {
            "max_retries": self.retries,
            "retry_timeout": timedelta(seconds=self.retry_seconds),
        }


class ObjectSource(StorageSource, ObjectAccess):
    """A bucket or container, and which part of it is wanted."""

    provider: ClassVar[str]
    """Who runs the storage where the settings give no endpoint."""

    @property
    @override
    def server(self) -> str:
        endpoint = self.own_endpoint()
        return self.provider if endpoint is None else server_at(endpoint)

    @override
    def chosen_folders(self) -> tuple[str, ...]:
        return self.prefixes

    @override
    def open(self) -> ObjectStorage:
        with self._settings_errors():
            return ObjectStorage(self, self.target())

    @abstractmethod
    def target(self) -> Target:
        """Return what is to be opened; its client is ready, but nothing was asked yet."""

    def own_endpoint(self) -> str | None:
        """Return the address of a storage that is not the provider's own."""
        found = getattr(self, "endpoint_url", None)
        return found if isinstance(found, str) else None

    def authority_setting(self) -> str:
        """Return how messages call the setting of authorities to trust."""
        return AUTHORITY

    @contextmanager
    def _settings_errors(self) -> Iterator[None]:
        try:
            yield
        except LumosError:
            raise
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"source '{self.name}': the package {error.name} is not installed",
                hint=f"install it with: pip install 'lumos[{self.platform}]'",
            ) from error
        except Exception as error:
            # Whatever the client says may hold keys or tokens: it stays in the chained cause.
            raise SourceError(
                f"source '{self.name}': its settings cannot be used ({type(error).__name__})",
                hint="check the credentials and the endpoint of the source",
            ) from error


@dataclass(frozen=True)
class Target:
    """An object storage that can be asked."""

    store: ObjectStore
    shown: str
    """The bucket as reports show it, such as `s3://lake`."""
    bucket: str
    urn_parts: tuple[str, ...]
    ranges: bool = False
    """Whether a listing can begin in the middle of a prefix."""
    odd_keys: OddKeys | None = None
    problems: list[Problem] = field(default_factory=list)
    """Where credentials that cannot be fetched leave their reason."""


class ObjectStorage(Storage):
    """An open bucket or container."""

    def __init__(self, source: ObjectSource, target: Target) -> None:
        self._name = source.name
        self._source = source
        self._target = target
        self._store = target.store
        self._prefixes = distinct(source.prefixes)
        self._selection = FileSelection(patterns=source.patterns, exclude=source.exclude)
        self.bucket = target.bucket

    @override
    def check(self) -> None:
        self._probes()

    @override
    def units(self, wanted: int) -> Sequence[str]:
        units: list[ListUnit] = []
        probes = self._probes()
        for prefix, is_small in probes.items():
            if is_small or wanted <= len(probes):
                units.append(ListUnit((prefix,)))
            else:
                share = wanted // len(probes)
                ranges = self._target.ranges
                units += divided(prefix, wanted=share, level_of=self._level, ranges=ranges)
        return [unit.text() for unit in units]

    @override
    def list(self, unit: str) -> Iterator[Listed]:
        part = ListUnit.of_text(unit)
        for prefix in part.prefixes:
            try:
                for entry in _without_markers(self._entries(prefix, part)):
                    if self._selection.wanted(entry.key):
                        yield _listed(entry)
            except _errors() as error:
                problem = self._listing_problem(error)
                path = prefix.encode()
                yield UnlistedPrefix(self.shown(path), _unreadable(problem), path)

    @override
    def below(self, folder: bytes) -> str:
        return ListUnit((_key(folder).strip("/"),)).text()

    @override
    def children(self, folder: bytes) -> Sequence[ListedObject]:
        prefix = _key(folder).strip("/")
        try:
            found = self._store.list_with_delimiter(prefix or None)["objects"]
        except _errors() as error:
            raise _unreadable(self._problem(error)) from error
        entries = [_entry(each) for each in found]
        return [_listed(each) for each in entries if each.key != prefix]

    @override
    def read(self, path: bytes, *, start: int, length: int) -> bytes:
        if length <= 0:
            return b""
        key = _key(path)
        odd = self._target.odd_keys
        try:
            if odd is not None and not _is_path(key):
                return odd.read(key, start=start, length=length)
            return bytes(self._store.get_range(key, start=start, length=length))
        except _errors() as error:
            # Nothing was seen of the object itself, so the next run has to look again.
            raise _unreadable(self._problem(error)._replace(retryable=True)) from error

    @override
    def shown(self, path: bytes) -> str:
        return f"{self._target.shown}/{path.decode('utf-8', 'backslashreplace')}".rstrip("/")

    @override
    def urn_parts(self) -> tuple[str, ...]:
        return self._target.urn_parts

    def _probes(self) -> dict[str, bool]:
        """Return for each prefix whether one request lists it all.

        A prefix that cannot be listed stays, for the listing to report; unless none can.
        """
        self._require_trusted()
        probes: dict[str, bool] = {}
        refusals: list[tuple[str, Problem, BaseException]] = []
        for prefix in self._prefixes:
            try:
                probes[prefix] = self._is_small(prefix)
            except _errors() as error:
                refusals.append((prefix, self._listing_problem(error), error))
        if refusals and not probes:
            prefix, problem, cause = refusals[0]
            raise SourceError(
                f"source '{self._name}': {self.shown(prefix.encode())}: {problem.reason}",
                hint=problem.hint,
                retryable=problem.retryable,
            ) from cause
        return {prefix: probes.get(prefix, True) for prefix in self._prefixes}

    def _require_trusted(self) -> None:
        """Find a wrong certificate at once: the client would try again for minutes.

        Those of the providers themselves are taken to be right, which spares a request.
        """
        if not (self._source.own_endpoint() or "").startswith("https://"):
            return
        at_once = self._source.model_copy(update={"retries": 0}).target().store
        try:
            next(iter(at_once.list(self._prefixes[0] or None, chunk_size=PAGE)), None)
        except _errors() as error:
            problem = untrusted(error, authority=self._source.authority_setting())
            if problem is not None:
                raise SourceError(
                    f"source '{self._name}': {self.shown(b'')}: {problem.reason}",
                    hint=problem.hint,
                ) from error

    def _is_small(self, prefix: str) -> bool:
        try:
            chunk = next(iter(self._store.list(prefix or None, chunk_size=PAGE)), [])
        except _invalid_path():
            return False
        if not chunk and prefix:
            next(self._single(prefix))
        return len(chunk) < PAGE

    def _level(self, prefix: str) -> FolderLevel | None:
        try:
            found = self._store.list_with_delimiter(prefix or None)
        except _errors():
            return None  # the listing of the whole prefix will report what is wrong with it
        folders = [
            each.strip("/")
            for each in found["common_prefixes"]
            if self._selection.folder(each.strip("/")) is not Folder.HIDDEN
        ]
        return FolderLevel(tuple(folders), bool(found["objects"]))

    def _entries(self, prefix: str, part: ListUnit) -> Iterator[Entry]:
        if part.kind == "direct":
            for each in self._store.list_with_delimiter(prefix or None)["objects"]:
                yield _entry(each)
            return
        found = False
        for entry in self._below(prefix, after=part.after):
            found = True
            if part.kind == "all":
                yield entry
                continue
            name, slash, _ = entry.key[len(prefix) :].lstrip("/").partition("/")
            if part.until is not None and sort_key(name) > sort_key(part.until):
                return
            if slash and (part.after is None or sort_key(name) > sort_key(part.after)):
                yield entry
        if not found and prefix in self._prefixes and prefix:
            yield from self._single(prefix)

    def _below(self, prefix: str, *, after: str | None) -> Iterator[Entry]:
        """Yield all below a prefix; with the other client from the first odd key on."""
        offset = f"{prefix}/{after}".lstrip("/") if after is not None else None
        last = offset
        try:
            for chunk in self._store.list(prefix or None, offset=offset, chunk_size=PAGE):
                for each in chunk:
                    last = each["path"]
                    yield _entry(each)
        except _invalid_path():
            if self._target.odd_keys is None:
                raise
            yield from self._target.odd_keys.entries(prefix, after=last)

    def _single(self, key: str) -> Iterator[Entry]:
        """Yield the object of this very key, which is no folder."""
        try:
            yield _entry(self._store.head(key))
        except FileNotFoundError:
            # It is unknown whether all of it was removed or the prefix is wrong.
            raise RefusedError(NOTHING_BELOW) from None

    def _problem(self, error: BaseException) -> Problem:
        return self._target.problems[-1] if self._target.problems else problem_of(error)

    def _listing_problem(self, error: BaseException) -> Problem:
        problem = self._problem(error)
        return NOT_THERE if problem is GONE else problem


def _unreadable(problem: Problem) -> UnreadableItemError:
    return UnreadableItemError(problem.reason, hint=problem.hint, retryable=problem.retryable)


def _listed(entry: Entry) -> ListedObject:
    changed = (entry.modified - _EPOCH) // _MICROSECOND
    return ListedObject(entry.key.encode(), entry.size, changed, entry.etag)


def _entry(found: ObjectMeta) -> Entry:
    return Entry(found["path"], found["size"], found["last_modified"], found["e_tag"])


def _without_markers(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Leave out the empty objects that stand for folders; what lies in one comes right after."""
    held: Entry | None = None
    for entry in entries:
        if held is not None and not entry.key.startswith(f"{held.key.rstrip('/')}/"):
            yield held
        held = None
        if entry.size == 0:
            held = None if entry.key.endswith("/") else entry
        else:
            yield entry
    if held is not None:
        yield held


def _key(path: bytes) -> str:
    return path.decode("utf-8")


def _is_path(key: str) -> bool:
    """Return whether the main client takes a key: it must look like a clean path."""
    return key.isprintable() and not {"", ".", ".."}.intersection(key.split("/"))


def _errors() -> tuple[type[BaseException], ...]:
    from obstore.exceptions import BaseError

    return (BaseError, OSError, ValueError, RefusedError)


def _invalid_path() -> type[BaseException]:
    from obstore.exceptions import InvalidPathError

    return InvalidPathError
