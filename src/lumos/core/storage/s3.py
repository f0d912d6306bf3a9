"""Amazon S3 and everything that speaks its protocol."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field, SecretStr, model_validator
from typing_extensions import override

from lumos.core.errors import SourceError
from lumos.core.regular_files import read_regular
from lumos.core.storage.object_errors import Problem, RefusedError, problem_of, problem_of_code
from lumos.core.storage.object_storage import Entry, ObjectAccess, ObjectSource, Target

if TYPE_CHECKING:
    from boto3.session import Session
    from obstore.store import ClientConfig, S3Config, S3Credential, S3Store

PLATFORM: Final = "s3"
_DEFAULT_REGION: Final = "us-east-1"
_LARGEST_BUNDLE: Final = 16 * 1024 * 1024
_OF_AWS: Final = ".amazonaws.com"
_SESSION_NAME: Final = "lumos"
_TRUST: Final = timedelta(minutes=15)
"""How long credentials are used before they are asked for again; asking is cheap."""
_NO_CREDENTIALS: Final = Problem(
    "no AWS credentials were found",
    "set keys, a profile or a role, or anonymous: true for a public bucket",
)
_ROLE_HINT: Final = "check role_arn, external_id and who may assume the role"


class S3Access(ObjectAccess):
    """How to get at buckets of S3."""

    endpoint_url: str | None = Field(
        default=None, description="Where a storage other than AWS is, such as `https://minio:9000`."
    )
    region: str | None = Field(default=None, description="The region of the bucket.")
    anonymous: bool = Field(default=False, description="Ask without credentials: public buckets.")
    profile: str | None = Field(
        default=None, description="A profile of the AWS configuration on this machine."
    )
    access_key_id: SecretStr | None = Field(default=None, description="Half of a key pair.")
    secret_access_key: SecretStr | None = Field(default=None, description="The other half.")
    session_token: SecretStr | None = Field(
        default=None, description="Goes with keys that are valid for a time."
    )
    role_arn: str | None = Field(
        default=None, description="A role to assume with the credentials found."
    )
    external_id: SecretStr | None = Field(
        default=None, description="What the owner of the role asks for."
    )
    sts_endpoint_url: str | None = Field(
        default=None, description="Where roles are assumed, if not at AWS."
    )
    requester_pays: bool = Field(
        default=False, description="Agree to pay for requests to a requester-pays bucket."
    )
    addressing_style: Literal["path", "virtual"] | None = Field(
        default=None,
        description="Whether the bucket goes into the path or the host name; `path` for endpoints.",
    )
    ca_bundle: str | None = Field(
        default=None, description="A file of certificates to trust, besides the system's."
    )

    @model_validator(mode="after")
    def _keys_go_together(self) -> Self:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise ValueError("access_key_id and secret_access_key go together")
        if self.anonymous and (self.access_key_id or self.profile or self.role_arn):
            raise ValueError("anonymous takes no keys, profile or role")
        return self


class S3Source(ObjectSource, S3Access):
    """A bucket of S3, or of a storage that speaks its protocol."""

    provider = "AWS"
    bucket: str = Field(min_length=1)

    @property
    @override
    def platform(self) -> str:
        return PLATFORM

    @override
    def target(self) -> Target:
        from obstore.store import S3Store

        problems: list[Problem] = []
        endpoint = self._endpoint()
        is_virtual = self.addressing_style == "virtual" or (
            self.addressing_style is None and endpoint is None and "." not in self.bucket
        )
        config: S3Config = {
            "region": self._region(),
            "virtual_hosted_style_request": is_virtual,
            "request_payer": self.requester_pays,
            "skip_signature": self.anonymous,
        }
        if endpoint is not None:
            config["endpoint"] = _with_bucket(endpoint, self.bucket) if is_virtual else endpoint
        store: S3Store = S3Store(
            self.bucket,
            config=config,
            client_options=self._client(endpoint),
            retry_config=self.retry_config(),
            credential_provider=self._credentials(problems),
        )
        return Target(
            store=store,
            shown=f"s3://{self.bucket}",
            bucket=self.bucket,
            urn_parts=(self.bucket,),
            ranges=True,
            odd_keys=BotoKeys(self, endpoint, problems),
            problems=problems,
        )

    @override
    def own_endpoint(self) -> str | None:
        return self._endpoint()

    @property
    @override
    def server(self) -> str:
        found = super().server
        return self.provider if found.endswith(_OF_AWS) else found  # buckets are one namespace

    @override
    def authority_setting(self) -> str:
        return "ca_bundle, or AWS_CA_BUNDLE"

    def session(self) -> Session:
        """Return the session that finds credentials the way that every AWS tool does.

        Raises:
            SourceError: there is no such profile.
        """
        import boto3.session
        from botocore.exceptions import ProfileNotFound

        try:
            return boto3.session.Session(
                aws_access_key_id=_plain(self.access_key_id),
                aws_secret_access_key=_plain(self.secret_access_key),
                aws_session_token=_plain(self.session_token),
                region_name=self.region,
                profile_name=self.profile,
            )
        except ProfileNotFound:
            raise SourceError(
                f"source '{self.name}': there is no AWS profile of that name on this machine",
                hint="look for it with: aws configure list-profiles",
            ) from None

    def _credentials(self, problems: list[Problem]) -> S3Credentials | FixedCredentials | None:
        if self.anonymous:
            return None
        if self.access_key_id is not None and self.role_arn is None:
            return FixedCredentials(self)  # spares the time that boto3 takes to load
        self.session()
        return S3Credentials(self, problems)

    def _endpoint(self) -> str | None:
        found = self.endpoint_url or os.environ.get("AWS_ENDPOINT_URL_S3")
        return found or os.environ.get("AWS_ENDPOINT_URL")

    def _region(self) -> str:
        if self.region or self.anonymous or self.access_key_id:
            return self.region or os.environ.get("AWS_REGION") or _DEFAULT_REGION
        return self.session().region_name or _DEFAULT_REGION

    def _client(self, endpoint: str | None) -> ClientConfig:
        options = self.client_options(allow_http=(endpoint or "").startswith("http://"))
        if bundle := self.ca_bundle or os.environ.get("AWS_CA_BUNDLE"):
            options["root_certificate"] = read_regular(bundle, most=_LARGEST_BUNDLE)
        return options


class FixedCredentials:
    """The keys of the settings."""

    def __init__(self, source: S3Source) -> None:
        self._source = source

    def __call__(self) -> S3Credential:
        """Return the keys; they are valid for ever, as far as anybody knows."""
        return {
            "access_key_id": _plain(self._source.access_key_id) or "",
            "secret_access_key": _plain(self._source.secret_access_key) or "",
            "token": _plain(self._source.session_token),
            "expires_at": None,
        }


class S3Credentials:
    """Fetches credentials when they are needed, and leaves a reason where there are none."""

    def __init__(self, source: S3Source, problems: list[Problem]) -> None:
        self._source = source
        self._problems = problems

    def __call__(self) -> S3Credential:
        """Return credentials for the next requests.

        Raises:
            RefusedError: there are none, or the role may not be assumed.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        role = self._source.role_arn
        try:
            fetched = self._found() if role is None else self._assumed(role)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            why = problem_of_code(code).reason
            refused = Problem(f"the role cannot be assumed: {why}", _ROLE_HINT)
            raise self._refused(refused) from error
        except BotoCoreError as error:
            refused = Problem("the role cannot be assumed", _ROLE_HINT) if role else _NO_CREDENTIALS
            raise self._refused(refused) from error
        self._problems.clear()
        return fetched

    def _found(self) -> S3Credential:
        credentials = self._source.session().get_credentials()
        if credentials is None:
            raise self._refused(_NO_CREDENTIALS)
        frozen = credentials.get_frozen_credentials()
        if not frozen.access_key or not frozen.secret_key:
            raise self._refused(_NO_CREDENTIALS)
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + _TRUST,
        }

    def _assumed(self, role: str) -> S3Credential:
        source = self._source
        extra = {"ExternalId": _plain(source.external_id)} if source.external_id else {}
        client = source.session().client("sts", endpoint_url=source.sts_endpoint_url)
        answer = client.assume_role(RoleArn=role, RoleSessionName=_SESSION_NAME, **extra)
        given = answer["Credentials"]
        return {
            "access_key_id": given["AccessKeyId"],
            "secret_access_key": given["SecretAccessKey"],
            "token": given["SessionToken"],
            "expires_at": given["Expiration"].astimezone(UTC),
        }

    def _refused(self, problem: Problem) -> RefusedError:
        self._problems.append(problem)
        return RefusedError(problem)


class BotoKeys:
    """Reaches keys that are no paths, with the client that takes every key but is slower."""

    def __init__(self, source: S3Source, endpoint: str | None, problems: list[Problem]) -> None:
        self._source = source
        self._endpoint = endpoint
        self._problems = problems

    def entries(self, prefix: str, *, after: str | None) -> Iterator[Entry]:
        """Yield the objects below a prefix in the order of their keys."""
        where: dict[str, str] = {"Bucket": self._source.bucket}
        if prefix:
            where["Prefix"] = f"{prefix}/"
        if after is not None:
            where["StartAfter"] = after
        with _boto_errors():
            pages = self._client.get_paginator("list_objects_v2").paginate(**where, **self._payer)
            for page in pages:
                for each in page.get("Contents", ()):
                    yield Entry(each["Key"], each["Size"], each["LastModified"], each.get("ETag"))

    def read(self, key: str, *, start: int, length: int) -> bytes:
        """Return bytes of an object."""
        range_ = f"bytes={start}-{start + length - 1}"
        with _boto_errors():
            answer = self._client.get_object(
                Bucket=self._source.bucket, Key=key, Range=range_, **self._payer
            )
            return bytes(answer["Body"].read(length))

    @property
    def _payer(self) -> dict[str, str]:
        return {"RequestPayer": "requester"} if self._source.requester_pays else {}

    @cached_property
    def _client(self) -> Any:
        from botocore import UNSIGNED
        from botocore.config import Config

        source = self._source
        style = source.addressing_style or ("path" if self._endpoint else "auto")
        options = Config(
            s3={"addressing_style": style},
            retries={"total_max_attempts": source.retries + 1, "mode": "standard"},
            read_timeout=source.timeout,
            signature_version=UNSIGNED if source.anonymous else None,
        )
        given: dict[str, str | None] = {}
        if not source.anonymous:
            found = S3Credentials(source, self._problems)()
            given = {
                "aws_access_key_id": found["access_key_id"],
                "aws_secret_access_key": found["secret_access_key"],
                "aws_session_token": found.get("token"),
            }
        session = source.session()
        return session.client(
            "s3",
            endpoint_url=self._endpoint,
            region_name=source.region or session.region_name or _DEFAULT_REGION,
            config=options,
            **given,
        )


@contextmanager
def _boto_errors() -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        raise RefusedError(problem_of_code(code)) from error
    except BotoCoreError as error:
        raise RefusedError(problem_of(OSError("error sending request"))) from error


def _plain(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None


def _with_bucket(endpoint: str, bucket: str) -> str:
    parts = urlsplit(endpoint)
    return urlunsplit(parts._replace(netloc=f"{bucket}.{parts.netloc}"))
