"""Every error that Lumos raises on purpose, under one base.

An error names the thing that failed and says what to do. It carries a stable `code`, whether a
retry may help, and the exit code with which the command line ends. Entry points alone turn it
into text, JSON or an HTTP status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

if TYPE_CHECKING:
    from pathlib import Path

EXIT_DONE = 0
EXIT_GATE_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREADABLE = 3
EXIT_INTERNAL = 4


class LumosError(Exception):
    """Base of every Lumos error."""

    code: ClassVar[str] = "LUM-000"
    exit_code: ClassVar[int] = EXIT_INTERNAL
    retryable: bool = False

    def __init__(
        self, message: str, *, hint: str | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if retryable is not None:
            self.retryable = retryable

    @override
    def __str__(self) -> str:
        return self.message

    @override
    def __reduce__(self) -> tuple[object, ...]:
        # The default calls the class with `args`, which breaks subclasses whose constructors take
        # other arguments; Spark and Airflow workers pickle every error.
        return _rebuild, (type(self), self.args), self.__dict__

    def as_json(self) -> dict[str, str | bool | None]:
        """Return the error as the object that `--json` prints."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
        }


def _rebuild(kind: type[LumosError], args: tuple[object, ...]) -> LumosError:
    return kind.__new__(kind, *args)


def notes_of(error: BaseException) -> tuple[str, ...]:
    """Return what was added to an error on its way: how far the work came that it ended."""
    return tuple(getattr(error, "__notes__", ()))


class ConfigurationError(LumosError):
    """The settings are wrong: a bad key, value, file or environment variable."""

    code = "LUM-100"
    exit_code = EXIT_USAGE


class UnknownNameError(ConfigurationError):
    """A name of a source type, platform or exporter that nobody registered."""

    code = "LUM-101"


class MissingExtraError(ConfigurationError):
    """A part is known but the packages it needs are not installed."""

    code = "LUM-102"


class UsageError(LumosError):
    """The command was called with arguments that do not fit together."""

    code = "LUM-110"
    exit_code = EXIT_USAGE


class InvalidModelError(LumosError):
    """Input does not have the shape of a canonical model."""

    code = "LUM-200"
    exit_code = EXIT_UNREADABLE


class InvalidUrnError(InvalidModelError):
    """Text is not a Lumos URN."""

    code = "LUM-201"


class UnsupportedSnapshotVersionError(InvalidModelError):
    """A snapshot was written by a newer Lumos than this one."""

    code = "LUM-202"


class UnexpectedJsonError(InvalidModelError):
    """A part of a JSON document has another type than is expected there."""

    code = "LUM-203"


class InputUnreadableError(LumosError):
    """A file or folder given by the user cannot be read."""

    code = "LUM-210"
    exit_code = EXIT_UNREADABLE


class SourceError(LumosError):
    """A source could not be scanned as a whole."""

    code = "LUM-220"
    exit_code = EXIT_UNREADABLE


class UnreadableItemError(LumosError):
    """One file, table or row of a source could not be read; the others can."""

    code = "LUM-221"
    exit_code = EXIT_UNREADABLE


class NotTabularError(UnreadableItemError):
    """One file is whole and holds no table, such as a picture or a text document."""

    code = "LUM-222"

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"it holds no table: it is {kind}", hint="leave such files out with: exclude"
        )
        self.kind = kind


class StateError(LumosError):
    """The state folder or state database cannot be used."""

    code = "LUM-300"
    exit_code = EXIT_UNREADABLE


class StateLockedError(StateError):
    """Another Lumos process, on this host or another, is writing to the same state."""

    code = "LUM-301"
    retryable = True


class LeaseLostError(StateError):
    """This process lost the right to write: its lease ended before it was renewed."""

    code = "LUM-308"
    retryable = True


class StateReadOnlyError(StateError):
    """The state folder or database does not allow writing."""

    code = "LUM-302"


class StorageFullError(StateError):
    """There is no space left for what should be written; nothing was replaced."""

    code = "LUM-303"
    retryable = True


class NoCatalogError(StateError):
    """There is no state database yet."""

    code = "LUM-304"


class NotPrivateError(StateError):
    """A folder or file that must belong to this user alone is a symlink or open to others."""

    code = "LUM-305"

    def __init__(self, path: Path, reason: str, *, hint: str) -> None:
        super().__init__(f"{path} is not used: {reason}", hint=hint)
        self.path = path


class DamagedDocumentError(StateError):
    """A row of the state database is not what Lumos wrote: it does not match its checksum."""

    code = "LUM-306"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(
            f"the stored {kind} {name} does not match its checksum",
            hint="import it from a snapshot or restore a backup; lumos doctor lists all damage",
        )
        self.kind = kind
        self.name = name


class UnstorableValueError(StateError):
    """The state database cannot hold one value; all others can be written."""

    code = "LUM-307"


class SnapshotNotFoundError(StateError):
    """No snapshot of that name exists in the store."""

    code = "LUM-310"


class CorruptSnapshotError(StateError):
    """A stored snapshot is not what was written: a checksum or count differs."""

    code = "LUM-311"


class PlatformError(LumosError):
    """A catalog refused or failed a request."""

    code = "LUM-400"
    exit_code = EXIT_UNREADABLE


class PlatformUnavailableError(PlatformError):
    """A catalog did not answer."""

    code = "LUM-401"
    retryable = True


class PlatformFailureError(PlatformUnavailableError):
    """A catalog failed at a request, again and again; at others it may not."""

    code = "LUM-411"


class CapabilityError(PlatformError):
    """A catalog was asked for something that its adapter does not declare."""

    code = "LUM-402"


class DatasetNotFoundError(PlatformError):
    """The catalog holds no dataset under this URN."""

    code = "LUM-403"

    def __init__(self, urn: str, *, platform: str) -> None:
        super().__init__(
            f"{platform} has no dataset {urn}",
            hint="look for it with: lumos search NAME",
        )
        self.urn = urn
        self.platform = platform


class PlatformAuthError(PlatformError):
    """A catalog does not accept the token, or does not allow what was asked."""

    code = "LUM-405"


class PlatformForbiddenError(PlatformAuthError):
    """A catalog accepts the token and does not allow one thing; others it may allow."""

    code = "LUM-413"


class PlatformLimitError(PlatformError):
    """A catalog gives no answer as large as this one would be; parts of it it may give."""

    code = "LUM-414"


class PlatformCertificateError(PlatformError):
    """The certificate of a catalog's server is not accepted."""

    code = "LUM-412"


class PlatformConflictError(PlatformError):
    """Somebody else changed the thing in the catalog since it was read."""

    code = "LUM-406"
    retryable = True


class PlatformNotFoundError(PlatformError):
    """A catalog has no such address or thing."""

    code = "LUM-407"


class PlatformAnswerError(PlatformError):
    """A catalog's answer is not what its interface promises: a web page, a broken document."""

    code = "LUM-408"


class PlatformVersionError(PlatformError):
    """A catalog is of a version that Lumos cannot work with."""

    code = "LUM-409"


class VersionNotFoundError(LumosError):
    """A dataset has no version of that name."""

    code = "LUM-410"
    exit_code = EXIT_UNREADABLE


class GateFailedError(LumosError):
    """A run completed, but `--strict`, `--fail-on` or a gate asked for failure."""

    code = "LUM-500"
    exit_code = EXIT_GATE_FAILED
