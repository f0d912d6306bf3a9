"""Alerts as people and runs ask for them: what waits, send it, try a channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.errors import UnknownNameError
from lumos.core.settings.problems import nearest
from lumos.core.store.alerts import AlertRepository
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
    from lumos.core.runtime.unit_of_work import UnitOfWork


class AlertController:
    """What `lumos alerts` does."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    def list(
        self, *, state: AlertState | None = None, urn: str | None = None, limit: int = 100
    ) -> AlertListResult:
        """Return alerts, newest first."""
        total, alerts = AlertRepository(self._work.reader).list(state=state, urn=urn, limit=limit)
        return AlertListResult(total=total, alerts=alerts)

    def send(self, *, everything: bool = False) -> AlertSendResult:
        """Send what is due; with `everything`, all that was not sent.

        Raises:
            MissingExtraError: the library that sends is not installed.
        """
        outbox = AlertRepository(self._work.writer)
        sender = AlertSender.of(self._work.settings.alerts, outbox, self._work.clock)
        outcomes = sender.send_due(everything=everything)
        waiting, given_up = outbox.unsent().values()
        return AlertSendResult(
            sent=sum(outcome.sent for outcome in outcomes),
            failed=sum(outcome.failed for outcome in outcomes),
            channels=tuple(_sending(outcome) for outcome in outcomes),
            waiting=waiting,
            given_up=given_up,
        )

    def test(self, name: str) -> AlertTestResult:
        """Send a test message through a channel.

        Raises:
            UnknownNameError: the settings have no such channel.
            DeliveryError: the channel did not take it.
        """
        channels = {channel.name: channel for channel in self._work.settings.alerts.channels}
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
