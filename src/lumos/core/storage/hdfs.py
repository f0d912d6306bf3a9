"""HDFS through WebHDFS, the HTTP interface that every namenode and HttpFS gateway has.

It needs no Java and no native library on the machines that read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urljoin, urlsplit

import orjson
from pydantic import Field, SecretStr
from typing_extensions import override

from lumos import __version__
from lumos.core.errors import MissingExtraError, SourceError, UnreadableItemError
from lumos.core.http.bounds import AnswerLimits
from lumos.core.settings import SettingsModel
from lumos.core.storage.object_errors import Problem, RefusedError, untrusted
from lumos.core.storage.object_units import FolderLevel, ListUnit, distinct, divided
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
    from lumos.core.http.connections import Answer, Connections

PLATFORM: Final = "hdfs"
_API: Final = "/webhdfs/v1/"
_LARGEST_LISTING: Final = 64_000_000
"""In bytes; a namenode sends 1,000 entries at a time, which are some 400 KB."""
_LARGEST_REFUSAL: Final = 64_000
_MOST_REDIRECTS: Final = 5
_MOST_AT_ONCE: Final = 32
_MOST_SERVERS: Final = 64
"""To how many data nodes connections are kept."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_UNBOUNDED: Final = AnswerLimits(response_bytes=1 << 62)
"""Each request says for itself how much of its answer is read."""
_FIRST_WAIT: Final = 0.2
_LONGEST_WAIT: Final = 10.0
_GONE = Problem("it is gone since it was listed", "nothing to do, if it was removed on purpose")
_MISSING = Problem("there is no such folder", "check the paths of the source")
_DENIED = Problem("there is no permission", "allow reading for the user of the source")
_CREDENTIALS = Problem(
    "the user or the token is not accepted", "check user and delegation_token of the source"
)
_STANDBY = Problem(
    "the namenode is on standby", "give the active namenode or an HttpFS gateway", retryable=True
)
_BUSY = Problem("HDFS was too busy or failed, also after retries", "run again", retryable=True)
_UNREACHED = Problem(
    "HDFS cannot be reached", "check namenode and the network; WebHDFS has a separate port",
    retryable=True,
)  # fmt: skip
_TOO_SLOW = Problem(
    "an answer of HDFS took too long as a whole", "raise request_seconds of the source",
    retryable=True,
)  # fmt: skip
_TOO_LARGE = Problem(
    f"an answer of HDFS is larger than {_LARGEST_LISTING:,} bytes or packed",
    "check that namenode is the address of WebHDFS",
)
_NOT_WEBHDFS = Problem(
    "the answer is not one of WebHDFS", "check that namenode is the address of WebHDFS"
)
_PROXY = Problem(
    "the proxy that the environment names cannot be used",
    "set HTTPS_PROXY to an address with http://, or name the server in NO_PROXY",
)
_UNKNOWN = Problem("HDFS refused for an unknown reason", "run with --debug for the trace")
_PROBLEMS: Final = {
    "FileNotFoundException": _GONE,
    "AccessControlException": _DENIED,
    "StandbyException": _STANDBY,
    "SafeModeException": _BUSY,
    "RetriableException": _BUSY,
    "SecurityException": _CREDENTIALS,
    "InvalidToken": _CREDENTIALS,
}


class HdfsAccess(SettingsModel):
    """How to get at an HDFS."""

    namenode: str = Field(
        pattern=r"^https?://[^/]+", description="The namenode's HTTP address: `http://nn:9870`."
    )
    prefixes: tuple[str, ...] = Field(
        default=(), description="Folders to look into; all of it where none is given."
    )
    user: str | None = Field(default=None, description="Who asks, where HDFS takes their word.")
    delegation_token: SecretStr | None = Field(
        default=None, description="A token of HDFS, where Kerberos guards it."
    )
    retries: int = Field(
        default=8, ge=0, le=100, description="How often a failed request is tried again."
    )
    timeout: float = Field(
        default=30, gt=0, description="How many seconds HDFS may take to send the next bytes."
    )
    request_seconds: float = Field(
        default=300, gt=0, description="How many seconds one answer may take as a whole."
    )


class HdfsSource(StorageSource, HdfsAccess):
    """Folders of an HDFS."""

    @property
    @override
    def platform(self) -> str:
        return PLATFORM

    @property
    @override
    def server(self) -> str:
        return server_at(self.namenode)

    @override
    def chosen_folders(self) -> tuple[str, ...]:
        return self.prefixes

    @override
    def open(self) -> HdfsStorage:
        try:
            return HdfsStorage(self)
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"source '{self.name}': the package {error.name} is not installed",
                hint=f"install it with: pip install 'lumos[{PLATFORM}]'",
            ) from error


class _Status(NamedTuple):
    """A file or folder as its namenode lists it."""

    name: str
    is_folder: bool
    size: int
    mtime_us: int

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> _Status:
        is_folder = found["type"] == "DIRECTORY"
        changed = int(found["modificationTime"]) * 1000
        return cls(str(found["pathSuffix"]), is_folder, int(found["length"]), changed)


class HdfsStorage(Storage):
    """An open HDFS; paths are relative to its root."""

    def __init__(self, source: HdfsSource) -> None:
        self._name = source.name
        self._host = urlsplit(source.namenode).hostname or source.namenode
        self._prefixes = distinct(source.prefixes)
        self._selection = FileSelection(patterns=source.patterns, exclude=source.exclude)
        self._web = _WebHdfs(source)

    @override
    def check(self) -> None:
        problems = []
        for prefix in self._prefixes:
            try:
                self._web.status(prefix)
            except RefusedError as error:
                problems.append((prefix, _MISSING if error.problem is _GONE else error.problem))
            else:
                return
        prefix, problem = problems[0]
        raise SourceError(
            f"source '{self._name}': {self.shown(prefix.encode())}: {problem.reason}",
            hint=problem.hint,
            retryable=problem.retryable,
        )

    @override
    def units(self, wanted: int) -> Sequence[str]:
        self.check()
        share = max(1, wanted // len(self._prefixes))
        units = [
            unit
            for prefix in self._prefixes
            for unit in divided(prefix, wanted=share, level_of=self._level, ranges=False)
        ]
        return [unit.text() for unit in units]

    @override
    def list(self, unit: str) -> Iterator[Listed]:
        part = ListUnit.of_text(unit)
        for prefix in part.prefixes:
            yield from self._below(prefix, deep=part.kind == "all")

    @override
    def below(self, folder: bytes) -> str:
        return ListUnit((folder.decode("utf-8", "surrogateescape").strip("/"),)).text()

    @override
    def children(self, folder: bytes) -> Sequence[ListedObject]:
        path = folder.decode("utf-8", "surrogateescape").strip("/")
        try:
            found = self._web.statuses(path)
        except RefusedError as error:
            if error.problem is _GONE:
                return []
            raise _unreadable(error) from error
        return [_listed(path, each) for each in found if not each.is_folder]

    @override
    def read(self, path: bytes, *, start: int, length: int) -> bytes:
        if length <= 0:
            return b""
        try:
            return self._web.read(path.decode("utf-8", "surrogateescape"), start, length)
        except RefusedError as error:
            # Nothing was seen of the file itself, so the next run has to look again.
            raise _unreadable(RefusedError(error.problem._replace(retryable=True))) from error

    @override
    def shown(self, path: bytes) -> str:
        return f"hdfs://{self._host}/{path.decode('utf-8', 'backslashreplace')}".rstrip("/")

    @override
    def urn_parts(self) -> tuple[str, ...]:
        return (self._host,)

    def _below(self, top: str, *, deep: bool) -> Iterator[Listed]:
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                found = self._web.statuses(folder)
            except RefusedError as error:
                if error.problem is _GONE and not (folder == top and top in self._prefixes):
                    continue  # gone since somebody saw it; the source's own folders must be there
                unseen = folder.encode()
                yield UnlistedPrefix(self.shown(unseen), _unreadable(error), unseen)
                continue
            for each in found:
                path = _joined(folder, each.name) if each.name else folder
                if not each.is_folder and self._selection.wanted(path):
                    yield _listed(folder, each)
            if deep:
                waiting.extend(self._folders(folder, found)[::-1])

    def _level(self, prefix: str) -> FolderLevel | None:
        try:
            found = self._web.statuses(prefix)
        except RefusedError:
            return None  # the listing of the whole folder will report what is wrong with it
        return FolderLevel(
            tuple(self._folders(prefix, found)), any(not each.is_folder for each in found)
        )

    def _folders(self, above: str, found: Sequence[_Status]) -> Sequence[str]:
        paths = [_joined(above, each.name) for each in found if each.is_folder]
        return [path for path in paths if self._selection.folder(path) is not Folder.HIDDEN]


class _WebHdfs:
    """The few calls of WebHDFS that reading takes."""

    def __init__(self, source: HdfsSource) -> None:
        import stamina

        from lumos.core.http import connections as wire

        self._wire = wire
        self._stamina = stamina
        self._retries = source.retries
        self._timeout = source.timeout
        self._seconds = source.request_seconds
        self._base = f"{source.namenode.rstrip('/')}{_API}"
        self._who: dict[str, str] = {}
        if source.delegation_token is not None:
            self._who["delegation"] = source.delegation_token.get_secret_value()
        elif source.user is not None:
            self._who["user.name"] = source.user
        self._servers: dict[str, Connections] = {}

    def status(self, path: str) -> _Status:
        """Return the status of a file or folder."""
        with _answered():
            return _Status.of(orjson.loads(self._asked(path, "GETFILESTATUS"))["FileStatus"])

    def statuses(self, path: str) -> list[_Status]:
        """Return what a folder holds, by name; for a file, that file without a name."""
        found: list[_Status] = []
        after: dict[str, str] = {}
        while True:
            content = self._asked(path, "LISTSTATUS_BATCH", **after)
            with _answered():
                page = orjson.loads(content)["DirectoryListing"]
                part = page["partialListing"]["FileStatuses"]["FileStatus"]
                found.extend(_Status.of(each) for each in part)
                if not page["remainingEntries"] or not part:
                    return sorted(found)
            if after == (following := {"startAfter": found[-1].name}):
                raise RefusedError(_NOT_WEBHDFS)
            after = following

    def read(self, path: str, start: int, length: int) -> bytes:
        """Return bytes of a file; fewer where it ends before."""
        try:
            return self._asked(path, "OPEN", offset=str(start), length=str(length))
        except _OutOfRangeError:
            return b""

    def _asked(self, path: str, operation: str, **more: str) -> bytes:
        url = self._base + quote(path, safe="/", errors="surrogateescape")
        query = {"op": operation, **more, **self._who}
        try:
            for attempt in self._stamina.retry_context(
                on=_RetryError,
                attempts=self._retries + 1,
                timeout=self._timeout * 4,
                wait_initial=_FIRST_WAIT,
                wait_max=_LONGEST_WAIT,
            ):
                with attempt:
                    return self._once(url, query)
        except _RetryError as error:
            raise RefusedError(error.problem) from error
        raise RefusedError(_UNKNOWN)

    def _once(self, url: str, query: Mapping[str, str]) -> bytes:
        wanted = int(query["length"]) if "length" in query else _LARGEST_LISTING
        answer = self._answered(
            f"{url}?{urlencode(query)}", most_bytes=max(wanted, _LARGEST_REFUSAL)
        )
        content = answer.content
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise RefusedError(_TOO_LARGE)
        if answer.status == HTTPStatus.OK:
            if "length" not in query and len(content) > wanted:
                raise RefusedError(_TOO_LARGE)
            return content[:wanted]
        name = _exception_name(content)
        if "offset" in query and name in {"EOFException", "IllegalArgumentException"}:
            raise _OutOfRangeError
        problem = _PROBLEMS.get(name) or _problem_of_status(answer.status)
        raise _RetryError(problem) if problem.retryable else RefusedError(problem)

    def _answered(self, address: str, *, most_bytes: int) -> Answer:
        """Return the answer of the server that the namenode leads to, if it leads to another."""
        end = time.monotonic() + self._seconds
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._sent(address, seconds=end - time.monotonic(), most_bytes=most_bytes)
            if answer.status not in _REDIRECTS:
                return answer
            address = urljoin(address, answer.headers.get("Location", ""))
        raise RefusedError(_NOT_WEBHDFS)

    def _sent(self, address: str, *, seconds: float, most_bytes: int) -> Answer:
        wire, place = self._wire, urlsplit(address)
        if place.scheme not in {"http", "https"} or not place.hostname:
            raise RefusedError(_NOT_WEBHDFS)
        target = f"{place.path}?{place.query}"
        request = wire.Request("GET", target, None, {}, self._timeout, seconds, most_bytes)
        try:
            return self._server(f"{place.scheme}://{place.netloc}").send(request)
        except wire.LimitError as error:
            too_slow = error.setting == "request_seconds"
            raise RefusedError(_TOO_SLOW if too_slow else _TOO_LARGE) from None
        except wire.TransportError as error:
            if problem := untrusted(error, host=place.hostname):
                raise RefusedError(problem) from error
            raise _RetryError(_UNREACHED) from error

    def _server(self, address: str) -> Connections:
        known = self._servers.get(address)
        if known is not None:
            return known
        while len(self._servers) >= _MOST_SERVERS:
            self._servers.pop(next(iter(self._servers))).close()
        headers = {"Accept-Encoding": "identity", "User-Agent": f"lumos/{__version__}"}
        try:
            opened = self._wire.Connections(
                address, headers=headers, verify=True, most=_MOST_AT_ONCE, limits=_UNBOUNDED
            )
        except (OSError, ValueError):
            raise RefusedError(_PROXY) from None
        return self._servers.setdefault(address, opened)


class _RetryError(Exception):
    """A call that may succeed when it is tried again."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.reason)
        self.problem = problem


class _OutOfRangeError(Exception):
    """The file ends before the range."""


@contextmanager
def _answered() -> Iterator[None]:
    """Turn an answer that is none of WebHDFS into one refusal."""
    try:
        yield
    except (ValueError, KeyError, TypeError):
        raise RefusedError(_NOT_WEBHDFS) from None


def _exception_name(content: bytes) -> str:
    try:
        return str(orjson.loads(content)["RemoteException"]["exception"])
    except (ValueError, KeyError, TypeError):
        return ""


def _problem_of_status(status: int) -> Problem:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        return _BUSY
    return {401: _CREDENTIALS, 403: _DENIED, 404: _GONE}.get(status, _UNKNOWN)


def _unreadable(error: RefusedError) -> UnreadableItemError:
    problem = error.problem
    return UnreadableItemError(problem.reason, hint=problem.hint, retryable=problem.retryable)


def _listed(folder: str, status: _Status) -> ListedObject:
    path = _joined(folder, status.name) if status.name else folder
    return ListedObject(path.encode("utf-8", "surrogateescape"), status.size, status.mtime_us)


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
