"""Alerts as people and runs ask for them: what waits, send it, try a channel."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from lumos.core.errors import MissingExtraError, UnknownNameError
from lumos.core.settings.problems import nearest
from lumos.feature.alerting.channels import deliver
from lumos.feature.alerting.messages import trial_message
from lumos.feature.alerting.results import (
    AlertListResult,
    AlertSendResult,
    AlertTestResult,
    ChannelSending,
)
from lumos.feature.alerting.sending import AlertSender, ChannelOutcome

if TYPE_CHECKING:
    from lumos.core.models import AlertState
    from lumos.core.store.alerts import AlertRepository
    from lumos.feature.alerting.settings import AlertSettings


class AlertController:
    """What `lumos alerts` does, and what runs do when they are done."""

    def __init__(
        self,
        settings: Callable[[], AlertSettings],
        *,
        reader: Callable[[], AlertRepository],
        writer: Callable[[], AlertRepository],
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._writer = writer
        self._clock = clock

    def list(
        self, *, state: AlertState | None = None, urn: str | None = None, limit: int = 100
    ) -> AlertListResult:
        """Return alerts, newest first."""
        total, alerts = self._reader().list(state=state, urn=urn, limit=limit)
        return AlertListResult(total=total, alerts=alerts)

    def send(self, *, everything: bool = False) -> AlertSendResult:
        """Send what is due; with `everything`, all that was not sent.

        Raises:
            MissingExtraError: the library that sends is not installed.
        """
        alerts = self._settings()
        outbox = self._writer()
        sender = AlertSender(
            outbox,
            {channel.name: channel for channel in alerts.channels},
            max_attempts=alerts.max_attempts,
            clock=self._clock,
        )
        outcomes = sender.send_due(everything=everything)
        waiting, given_up = outbox.unsent().values()
        return AlertSendResult(
            sent=sum(outcome.sent for outcome in outcomes),
            failed=sum(outcome.failed for outcome in outcomes),
            channels=tuple(_sending(outcome) for outcome in outcomes),
            waiting=waiting,
            given_up=given_up,
        )

    def send_after_run(self, tell: Callable[[str], None]) -> None:
        """Send what is due at the end of a run; a channel that fails does not fail the run."""
        try:
            result = self.send()
        except MissingExtraError as error:
            tell(f"{error.message}; {error.hint}")
            return
        for channel in result.channels:
            if channel.error:
                tell(f"alerts wait for a retry: {channel.error}")
            if channel.sent:
                tell(f"alerts sent to {channel.channel}: {channel.sent:,}")

    def test(self, name: str) -> AlertTestResult:
        """Send a test message through a channel.

        Raises:
            UnknownNameError: the settings have no such channel.
            DeliveryError: the channel did not take it.
        """
        channels = {channel.name: channel for channel in self._settings().channels}
        channel = channels.get(name)
        if channel is None:
            near = nearest(name, channels)
            raise UnknownNameError(
                "the settings have no alert channel of that name",
                hint=f"did you mean {near}?" if near else f"known: {', '.join(channels) or 'none'}",
            )
        deliver(channel, trial_message(name))
        return AlertTestResult(channel=channel.name, type=channel.type)


def _sending(outcome: ChannelOutcome) -> ChannelSending:
    return ChannelSending(
        channel=outcome.channel, sent=outcome.sent, failed=outcome.failed, error=outcome.error
    )
