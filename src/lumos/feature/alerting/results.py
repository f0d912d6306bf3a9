"""What `lumos alerts` answers."""

from __future__ import annotations

from lumos.core.models.alert import Alert
from lumos.core.result_base import Result


class AlertListResult(Result):
    """Alerts, newest first."""

    total: int
    alerts: tuple[Alert, ...]


class ChannelSending(Result):
    """How many alerts of one channel were sent this time."""

    channel: str
    sent: int
    failed: int
    error: str | None


class AlertSendResult(Result):
    """What a sending did, and what is left."""

    sent: int
    failed: int
    channels: tuple[ChannelSending, ...]
    waiting: int
    given_up: int


class AlertTestResult(Result):
    """A channel that took a test message."""

    channel: str
    type: str
