"""`lumos alerts list`, `send` and `test`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.core.models import AlertState
from lumos.core.requests.versions import (
    AlertsListRequest,
    AlertsSendRequest,
    AlertsTestRequest,
)
from lumos.entry.cli.output import AsJson, counted, print_json, print_line

if TYPE_CHECKING:
    from lumos.core.models.alert import Alert

app = typer.Typer(
    help="Alerts on breaking changes: who gets them, and what was sent.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command(name="list")
def list_alerts(
    context: typer.Context,
    dataset: Annotated[
        str | None, typer.Argument(help="Only this dataset: a URN, or a name only it has.")
    ] = None,
    state: Annotated[
        AlertState | None, typer.Option(case_sensitive=False, help="Only alerts in this state.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many to show.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List alerts, newest first.

    Example: lumos alerts list --state pending
    """
    dispatcher: Dispatcher = context.obj
    result = dispatcher.dispatch(AlertsListRequest(state=state, dataset=dataset, limit=limit))
    if as_json:
        print_json(result.as_json())
        return
    print_line(counted(result.total, "alert"))
    for alert in result.alerts:
        print_line(_line(alert))


@app.command()
def send(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what waits for a retry or was given up.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send the alerts that are due. Ends with 1 if a channel did not take them.

    Example: lumos alerts send
    """
    dispatcher: Dispatcher = context.obj
    result = dispatcher.dispatch(AlertsSendRequest(everything=everything))
    if as_json:
        print_json(result.as_json())
    else:
        for channel in result.channels:
            said = f"; {channel.error}" if channel.error else ""
            print_line(f"{channel.channel}: {channel.sent:,} sent, {channel.failed:,} failed{said}")
        print_line(f"{result.waiting:,} waiting, {result.given_up:,} given up")
    if result.failed:
        raise typer.Exit(EXIT_GATE_FAILED)


@app.command(name="test")
def try_channel(
    context: typer.Context,
    channel: Annotated[str, typer.Argument(help="The name of a channel.")],
    as_json: AsJson = False,
) -> None:
    """Send a test message through a channel.

    Example: lumos alerts test team-chat
    """
    dispatcher: Dispatcher = context.obj
    result = dispatcher.dispatch(AlertsTestRequest(channel=channel))
    if as_json:
        print_json(result.as_json())
    else:
        print_line(f"{result.channel}: took a test message")


def _line(alert: Alert) -> str:
    finding = alert.finding
    tried = f", {counted(alert.attempts, 'attempt')}" if alert.attempts and alert.error else ""
    error = f": {alert.error}" if alert.error else ""
    where = f" {finding.path}" if finding.path else ""
    return (
        f"{alert.state:<7}  {alert.created_at:%Y-%m-%d %H:%M}  {alert.channel}  "
        f"{finding.dataset} {finding.version}  {finding.rule}{where}{tried}{error}"
    )
