"""Empties the outbox of alerts: one message for what waits for a channel, and retries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from lumos.core.errors import MissingExtraError
from lumos.feature.alerting.channels import ChannelSettings, DeliveryError, deliver
from lumos.feature.alerting.messages import Message, message_of

if TYPE_CHECKING:
    from lumos.core.models.alert import Alert
    from lumos.feature.alerting.settings import AlertSettings

MOST_IN_ONE = 500
"""How many findings one message may carry; its text names the first few."""

_LEASE = timedelta(minutes=15)
_FIRST_WAIT = timedelta(minutes=1)
_LONGEST_WAIT = timedelta(hours=6)


class OutboxPort(Protocol):
    """Where alerts wait."""

    def channels(self, at: datetime, *, everything: bool = False) -> tuple[str, ...]:
        """Return the channels for which something is due."""

    def claim(
        self, channel: str, *, at: datetime, until: datetime, limit: int, everything: bool = False
    ) -> tuple[Alert, ...]:
        """Take the next alerts of a channel for oneself."""

    def record_sent(self, ids: Sequence[str], *, at: datetime) -> None:
        """Keep that alerts reached their channel."""

    def record_failure(
        self, ids: Sequence[str], *, error: str, next_attempt_at: datetime, given_up: bool
    ) -> None:
        """Keep that an attempt failed."""


class ChannelOutcome(NamedTuple):
    """How many alerts of one channel were sent."""

    channel: str
    sent: int = 0
    failed: int = 0
    error: str | None = None


class AlertSender:
    """Sends the alerts that are due and records the outcome of each.

    A message is recorded right after it was taken: a sender that is killed in between sends it once
    more, and nothing is lost.
    """

    def __init__(
        self,
        outbox: OutboxPort,
        channels: Mapping[str, ChannelSettings],
        *,
        max_attempts: int,
        clock: Callable[[], datetime],
        deliver_to: Callable[[ChannelSettings, Message], None] = deliver,
    ) -> None:
        self._outbox = outbox
        self._channels = channels
        self._max_attempts = max_attempts
        self._clock = clock
        self._deliver = deliver_to

    @classmethod
    def of(cls, settings: AlertSettings, outbox: OutboxPort, clock: Callable[[], datetime]) -> Self:
        """Send to the channels of the settings."""
        channels = {channel.name: channel for channel in settings.channels}
        return cls(outbox, channels, max_attempts=settings.max_attempts, clock=clock)

    def send_after_run(self, tell: Callable[[str], None]) -> None:
        """Send what is due at the end of a run; a channel that fails does not fail the run."""
        try:
            outcomes = self.send_due()
        except MissingExtraError as error:
            tell(f"{error.message}; {error.hint}")
            return
        for channel in outcomes:
            if channel.error:
                tell(f"alerts wait for a retry: {channel.error}")
            if channel.sent:
                tell(f"alerts sent to {channel.channel}: {channel.sent:,}")

    def send_due(self, *, everything: bool = False) -> tuple[ChannelOutcome, ...]:
        """Send what is due; with `everything`, also what waits for a retry or was given up.

        A channel that fails is left alone until its next time, and the others go on.

        Raises:
            MissingExtraError: the library that sends is not installed.
        """
        waiting = self._outbox.channels(self._clock(), everything=everything)
        return tuple(self._emptied(channel, everything=everything) for channel in waiting)

    def _emptied(self, name: str, *, everything: bool) -> ChannelOutcome:
        sent = 0
        begun = self._clock()
        while alerts := self._outbox.claim(
            name, at=begun, until=self._clock() + _LEASE, limit=MOST_IN_ONE, everything=everything
        ):
            error = self._tried(name, alerts)
            if error is not None:
                return ChannelOutcome(name, sent, len(alerts), error)
            sent += len(alerts)
        return ChannelOutcome(name, sent)

    def _tried(self, name: str, alerts: Sequence[Alert]) -> str | None:
        ids = [alert.id for alert in alerts]
        channel = self._channels.get(name)
        if channel is None:
            error = "the settings have no such channel"
            self._outbox.record_failure(
                ids, error=error, next_attempt_at=self._clock(), given_up=True
            )
            return error
        try:
            self._deliver(channel, message_of(alerts))
        except DeliveryError as failure:
            self._failed(alerts, error=failure.message)
            return failure.message
        self._outbox.record_sent(ids, at=self._clock())
        return None

    def _failed(self, alerts: Sequence[Alert], *, error: str) -> None:
        for alert in alerts:
            attempts = alert.attempts + 1
            self._outbox.record_failure(
                [alert.id],
                error=error,
                next_attempt_at=self._clock() + wait_after(attempts),
                given_up=attempts >= self._max_attempts,
            )


def wait_after(attempts: int) -> timedelta:
    """Return how long to wait after so many failures: a minute, doubled each time, to six hours."""
    return min(_FIRST_WAIT * (1 << min(attempts - 1, 20)), _LONGEST_WAIT)
