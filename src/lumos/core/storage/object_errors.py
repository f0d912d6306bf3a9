"""Why an object storage refused, in plain words; what it said itself is never repeated."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from lumos.core.certificates import certificate_problem, said_by

_CODE = re.compile(r"<Code>([A-Za-z]{1,64})</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_UNREACHABLE = re.compile(
    r"HTTP error|error sending request|dns error|timed out|connection (?:refused|reset|closed)",
    re.IGNORECASE,
)
AUTHORITY: Final = "SSL_CERT_FILE"
"""What takes a file of authorities to trust, where there is no setting for it."""
_HOST = re.compile(r"https://(?:[^/@\s]*@)?([A-Za-z0-9.\-\[\]:]{1,260})")
_BUSY_STATUS: Final = 500
_TOO_MANY: Final = 429


class Problem(NamedTuple):
    """What a storage would not do, and why."""

    reason: str
    hint: str
    retryable: bool = False


class RefusedError(Exception):
    """A storage refused, and it is known why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.reason)
        self.problem = problem


_MISSING_BUCKET = Problem("the bucket does not exist", "check its name, region and endpoint_url")
_MISSING_CONTAINER = Problem("the container does not exist", "check its name and the account")
_CREDENTIALS = Problem(
    "the credentials are not accepted", "check the keys, the profile or the token of the source"
)
_EXPIRED = Problem("the credentials have expired", "renew them, for example by signing in again")
_DENIED = Problem(
    "there is no permission", "allow listing and reading for these credentials; see the docs"
)
_SKEWED = Problem(
    "the clock of this machine differs too much from the storage's",
    "set the clock of this machine, for example with NTP",
)
_REGION = Problem("the bucket lies in another region", "set region to the one of the bucket")
GONE = Problem("it is gone since it was listed", "nothing to do, if it was removed on purpose")
_SHORTER = Problem("it is shorter than when it was listed", "run again", retryable=True)
_ARCHIVED = Problem("it is archived", "restore it first, or leave it out with: exclude")
_BUSY = Problem(
    "the storage was too busy or failed, also after retries", "run again later", retryable=True
)
_UNREACHED = Problem(
    "the storage cannot be reached", "check endpoint_url and the network", retryable=True
)
NOT_THERE = Problem(
    "there is no such bucket, at least not for these credentials",
    "check the name, the endpoint and the keys",
)
NOTHING_BELOW = Problem(
    "nothing lies below it", "check the prefix; object storages have no empty folders"
)
_UNKNOWN = Problem("the storage refused for an unknown reason", "run with --debug for the trace")

_CODES: Final = {
    "NoSuchBucket": _MISSING_BUCKET,
    "InvalidBucketName": _MISSING_BUCKET,
    "ContainerNotFound": _MISSING_CONTAINER,
    "ContainerBeingDeleted": _MISSING_CONTAINER,
    "InvalidAccessKeyId": _CREDENTIALS,
    "SignatureDoesNotMatch": _CREDENTIALS,
    "InvalidToken": _CREDENTIALS,
    "InvalidSecurity": _CREDENTIALS,
    "InvalidAuthenticationInfo": _CREDENTIALS,
    "AuthenticationFailed": _CREDENTIALS,
    "AuthenticationRequired": _CREDENTIALS,
    "NoAuthenticationInformation": _CREDENTIALS,
    "ExpiredToken": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "RequestTimeTooSkewed": _SKEWED,
    "AccessDenied": _DENIED,
    "AllAccessDisabled": _DENIED,
    "AccountProblem": _DENIED,
    "AccountIsDisabled": _DENIED,
    "AuthorizationFailure": _DENIED,
    "AuthorizationPermissionMismatch": _DENIED,
    "InsufficientAccountPermissions": _DENIED,
    "PublicAccessNotPermitted": _DENIED,
    "UserProjectMissing": _DENIED,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "PermanentRedirect": _REGION,
    "TemporaryRedirect": _REGION,
    "InvalidObjectState": _ARCHIVED,
    "BlobArchived": _ARCHIVED,
    "NoSuchKey": GONE,
    "NoSuchVersion": GONE,
    "BlobNotFound": GONE,
    "ResourceNotFound": GONE,
    "InvalidRange": _SHORTER,
    "SlowDown": _BUSY,
    "ServerBusy": _BUSY,
    "ServiceUnavailable": _BUSY,
    "InternalError": _BUSY,
    "OperationTimedOut": _BUSY,
    "RequestTimeout": _BUSY,
    "TooManyRequests": _BUSY,
}
_STATUSES: Final = {
    301: _REGION,
    307: _REGION,
    401: _CREDENTIALS,
    403: _DENIED,
    404: GONE,
    416: _SHORTER,
}


def untrusted(
    error: BaseException, *, authority: str = AUTHORITY, host: str | None = None
) -> Problem | None:
    """Return what is wrong with a storage's certificate, where that is why there is no answer.

    Args:
        error: what the client raised.
        authority: the setting that takes a file of authorities to trust.
        host: who was asked, where the error does not say.
    """
    said = said_by(error)
    problem = certificate_problem(said, authority=authority)
    if problem is None:
        return None
    named = _HOST.search(said)
    server = host or (named[1] if named else "its server")
    return Problem(f"{server}: {problem.reason}", problem.hint)


def problem_of(error: BaseException) -> Problem:
    """Return why a storage refused, by the code that it gave, else by the kind of failure."""
    if isinstance(error, RefusedError):
        return error.problem
    if problem := untrusted(error):
        return problem
    said = str(error)
    code = _CODE.search(said)
    if code and code[1] in _CODES:
        return _CODES[code[1]]
    if (status := _STATUS.search(said)) and (problem := _problem_of_status(int(status[1]))):
        return problem
    if "redirect without LOCATION" in said:
        return _REGION
    if isinstance(error, FileNotFoundError):
        return GONE
    return _UNREACHED if _UNREACHABLE.search(said) else _UNKNOWN


def problem_of_code(code: str) -> Problem:
    """Return what a storage means by a code."""
    return _CODES.get(code, _UNKNOWN)


def _problem_of_status(status: int) -> Problem | None:
    if status >= _BUSY_STATUS or status == _TOO_MANY:
        return _BUSY
    return _STATUSES.get(status)
