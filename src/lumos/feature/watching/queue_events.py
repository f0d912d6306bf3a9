"""Events of S3 buckets, from the queue into which S3 puts them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from lumos.core.errors import LumosError, MissingExtraError, SourceError
from lumos.core.storage.object_errors import RefusedError
from lumos.core.storage.s3 import S3Credentials, S3Source
from lumos.core.storage.selection import FileSelection
from lumos.feature.watching.folders import folder_of_file
from lumos.feature.watching.s3_messages import (
    StoredObject,
    UnreadableMessageError,
    changed_objects,
)

if TYPE_CHECKING:
    from lumos.feature.watching.inbox import Inbox

LONG_POLL_SECONDS: Final = 20
_AT_ONCE: Final = 10
"""SQS hands out and takes back no more messages with one request."""
_HIDDEN_SECONDS: Final = 900
"""For so long others do not see a message that is being dealt with; then it comes again."""
_LAST_WAIT_SECONDS: Final = 1
"""An empty answer to a poll of this length means that the queue is empty."""
_CLIENT_SECONDS: Final = 600.0
"""Credentials that are valid for a time are asked for again after this."""
_PAUSES: Final = (1.0, 5.0, 15.0, 60.0)
_MOST_KNOWN: Final = 10_000
_DEFAULT_REGION: Final = "us-east-1"
_REGION_PLACE: Final = 2
_CODE = re.compile(r"[A-Za-z.]{1,80}")
_REASONS: Final = {
    "AWS.SimpleQueueService.NonExistentQueue": "there is no such queue",
    "QueueDoesNotExist": "there is no such queue",
    "AccessDenied": "there is no permission",
    "AccessDeniedException": "there is no permission",
    "InvalidClientTokenId": "the credentials are not accepted",
    "SignatureDoesNotMatch": "the credentials are not accepted",
    "ExpiredToken": "the credentials have expired",
}

MakeClient = Callable[[], Any]


class QueueEvents:
    """Reads one queue for all the sources that name it.

    A message is deleted once its change is in the catalog, and not before: what is lost on the
    way comes again. One that nobody understands is reported and stays in the queue.
    """

    def __init__(
        self,
        queue_url: str,
        sources: Sequence[S3Source],
        inbox: Inbox,
        *,
        make_client: MakeClient | None = None,
    ) -> None:
        self._url = queue_url
        self._buckets = _Buckets(sources)
        self._inbox = inbox
        self._make_client = make_client or partial(sqs_client, sources[0], queue_url)
        self._stop = threading.Event()
        self._reported: dict[str, None] = {}
        self._failures = 0

    @property
    def name(self) -> str:
        """How people call the queue: the last part of its address."""
        return urlsplit(self._url).path.rpartition("/")[2]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Poll in a separate thread for the length of a `with` block."""
        thread = threading.Thread(target=self._run, name=f"queue {self.name}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()  # the thread ends with its poll; what it gets by then comes again

    def drain(self) -> None:
        """Put all that is waiting in the queue into the inbox.

        Raises:
            LumosError: the queue does not answer.
        """
        client = self._make_client()
        with _queue_errors(self.name):
            while self._poll(client, seconds=_LAST_WAIT_SECONDS):
                pass

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._poll_for_a_while()
            except LumosError as error:
                self._report(f"failure {error.message}", error.message)
                pause = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
                self._failures += 1
                self._stop.wait(pause)

    def _poll_for_a_while(self) -> None:
        client = self._make_client()
        expired = threading.Event()
        timer = threading.Timer(_CLIENT_SECONDS, expired.set)
        timer.daemon = True
        timer.start()
        try:
            with _queue_errors(self.name):
                while not (expired.is_set() or self._stop.is_set()):
                    if self._inbox.is_full:
                        self._stop.wait(1)
                        continue
                    self._poll(client, seconds=LONG_POLL_SECONDS)
                    self._failures = 0
        finally:
            timer.cancel()
            client.close()

    def _poll(self, client: Any, *, seconds: int) -> int:
        """Ask once; return how many messages there were."""
        answer = client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=_AT_ONCE,
            WaitTimeSeconds=seconds,
            VisibilityTimeout=_HIDDEN_SECONDS,
        )
        messages = answer.get("Messages", [])
        folders: dict[str, set[bytes]] = {}
        understood: list[str] = []
        for message in messages:
            try:
                objects = changed_objects(message["Body"])
            except UnreadableMessageError as error:
                name = message["MessageId"]
                told = f"message {name} of queue {self.name} cannot be used: {error.message}"
                self._report(name, f"{told}; {error.hint}")
                continue
            understood.append(message["ReceiptHandle"])
            for source, found in self._buckets.folders_of(objects).items():
                folders.setdefault(source, set()).update(found)
        if understood:
            delete = partial(self._delete, client, understood)
            self._inbox.put(folders, events=len(understood), acknowledge=delete)
        return len(messages)

    def _delete(self, client: Any, receipts: Sequence[str]) -> None:
        """Delete messages; one that cannot be deleted comes again, which does no harm."""
        entries = [
            {"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(receipts)
        ]
        try:
            with _queue_errors(self.name):
                client.delete_message_batch(QueueUrl=self._url, Entries=entries)
        except LumosError as error:
            self._report(f"failure {error.message}", error.message)

    def _report(self, key: str, text: str) -> None:
        """Report each thing once: a message that stays in the queue is seen again and again."""
        if key not in self._reported:
            if len(self._reported) >= _MOST_KNOWN:
                self._reported.clear()
            self._reported[key] = None
            self._inbox.report(text)


class QueueError(SourceError):
    """A queue of events cannot be read."""

    code = "LUM-224"
    retryable = True

    def __init__(self, queue: str, reason: str) -> None:
        super().__init__(
            f"queue {queue} cannot be read: {reason}",
            hint="check events.queue_url and that receiving and deleting messages is allowed",
        )


class _Buckets:
    """Which source an object belongs to, and which folder of it."""

    def __init__(self, sources: Sequence[S3Source]) -> None:
        self._sources = [
            (source, FileSelection(patterns=source.patterns, exclude=source.exclude))
            for source in sources
        ]

    def folders_of(self, objects: Sequence[StoredObject]) -> Mapping[str, set[bytes]]:
        found: dict[str, set[bytes]] = {}
        for bucket, key in objects:
            for source, selection in self._sources:
                if source.bucket == bucket and is_below(key, source.prefixes):
                    folder = folder_of_file(key, selection)
                    if folder is not None:
                        found.setdefault(source.name, set()).add(folder)
        return found


def sqs_client(source: S3Source, queue_url: str) -> Any:
    """Return a client for a queue, with the credentials of a source.

    Raises:
        LumosError: there are no credentials, or they cannot be had.
    """
    try:
        from botocore.config import Config
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "reading a queue needs the package boto3",
            hint="install it with: pip install 'lumos[s3]'",
        ) from error
    parts = urlsplit(queue_url)
    with _queue_errors(parts.path.rpartition("/")[2]):
        found = S3Credentials(source, [])()
        return source.session().client(
            "sqs",
            endpoint_url=f"{parts.scheme}://{parts.netloc}",
            region_name=source.region or _region_of(parts.hostname or ""),
            config=Config(read_timeout=LONG_POLL_SECONDS + source.timeout),
            aws_access_key_id=found["access_key_id"],
            aws_secret_access_key=found["secret_access_key"],
            aws_session_token=found.get("token"),
        )


@contextmanager
def _queue_errors(name: str) -> Iterator[None]:
    """Turn what the client raises into one line; its own words may hold keys."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        shown = code if _CODE.fullmatch(code) else "it was refused"
        raise QueueError(name, _REASONS.get(code, shown)) from error
    except RefusedError as error:
        raise QueueError(name, error.problem.reason) from error
    except BotoCoreError as error:
        raise QueueError(name, f"nobody answers ({type(error).__name__})") from error


def _region_of(host: str) -> str:
    """Return the region in a host such as `sqs.eu-central-1.amazonaws.com`."""
    parts = host.split(".")
    return parts[1] if len(parts) > _REGION_PLACE and parts[0] == "sqs" else _DEFAULT_REGION


def is_below(key: str, prefixes: Sequence[str]) -> bool:
    """Return whether an object lies below one of the prefixes; without any, all do."""
    folders = [prefix.strip("/") for prefix in prefixes]
    return not folders or any(not folder or key.startswith(f"{folder}/") for folder in folders)
