"""Notifications of S3 on its objects: direct ones, and those through SNS and EventBridge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

import orjson
from pydantic import JsonValue

from lumos.core.errors import UnreadableItemError

_MOST_ENVELOPES: Final = 4
_TEST: Final = "s3:TestEvent"
_UNIMPORTANT: Final = ("ObjectTagging:", "ObjectAcl:", "Object Tags ", "Object ACL ")
"""Events that leave the bytes of an object, and whether it is there, as they were."""


class StoredObject(NamedTuple):
    """An object to which something happened."""

    bucket: str
    key: str


class UnreadableMessageError(UnreadableItemError):
    """A message of a queue is not one that S3 sends."""

    code = "LUM-223"


def changed_objects(body: str) -> tuple[StoredObject, ...]:
    """Return the objects that a message is about; none for one that is about no change.

    Raises:
        UnreadableMessageError: it is not an S3 message; nothing of it is echoed.
    """
    message: JsonValue = body
    for _ in range(_MOST_ENVELOPES):
        if isinstance(message, str):
            message = _parsed(message)
        if not isinstance(message, dict):
            break
        if "Records" in message:
            return tuple(_of_records(message["Records"]))
        if message.get("source") == "aws.s3" and "detail" in message:
            return tuple(_of_event_bridge(message))
        if message.get("Event") == _TEST:
            return ()
        if "Message" not in message:  # of SNS
            break
        message = message["Message"]
    raise _unreadable("it is not an S3 notification")


def _of_records(records: JsonValue) -> Iterator[StoredObject]:
    if not isinstance(records, list):
        raise _unreadable("its records are no list")
    for record in records:
        if not isinstance(record, dict):
            raise _unreadable("a record of it is no object")
        if _matters(record.get("eventName")):
            found = _stored(record.get("s3"))
            yield found._replace(key=unquote_plus(found.key))


def _of_event_bridge(message: Mapping[str, JsonValue]) -> Iterator[StoredObject]:
    if _matters(message.get("detail-type")):
        yield _stored(message["detail"])  # here keys are written as they are


def _stored(detail: JsonValue) -> StoredObject:
    if isinstance(detail, dict):
        bucket, stored = detail.get("bucket"), detail.get("object")
        if isinstance(bucket, dict) and isinstance(stored, dict):
            name, key = bucket.get("name"), stored.get("key")
            if isinstance(name, str) and isinstance(key, str):
                return StoredObject(name, key)
    raise _unreadable("it names no bucket and object")


def _matters(event: JsonValue) -> bool:
    return not (isinstance(event, str) and event.removeprefix("s3:").startswith(_UNIMPORTANT))


def _parsed(text: str) -> JsonValue:
    try:
        document: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise _unreadable("it is no JSON") from None
    return document


def _unreadable(reason: str) -> UnreadableMessageError:
    return UnreadableMessageError(
        reason, hint="it stays in the queue, for its redrive policy or for a look by hand"
    )
