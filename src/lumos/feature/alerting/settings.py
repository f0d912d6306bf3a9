"""Who gets alerts on changes, and how: the section `alerts`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from lumos.core.changes.settings import Level, Pattern
from lumos.core.settings.base import SettingName, SettingsModel
from lumos.core.settings.problems import KeyPath, nearest

_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_HEADER = re.compile(r"[A-Za-z0-9-]+")
_HOST = re.compile(r"[A-Za-z0-9.-]+|\[?[0-9A-Fa-f:.]+\]?")


def _checked_url(url: SecretStr) -> SecretStr:
    try:
        parts = urlsplit(url.get_secret_value())
        usable = parts.scheme in {"http", "https"} and _HOST.fullmatch(parts.hostname or "")
        _ = parts.port
    except ValueError:
        usable = None
    if not usable:
        raise ValueError("must be an address that begins with https:// or http://")
    return url


def _checked_address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError("must be an e-mail address such as data@example.com")
    return text


def _checked_header(name: str) -> str:
    if not _HEADER.fullmatch(name):
        raise ValueError("must be the name of a header: letters, digits and hyphens")
    return name


def _checked_header_value(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().isprintable():
        raise ValueError("must be one line of text")
    return value


def _checked_host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise ValueError("must be the name or the number of a host")
    return text


Address = Annotated[str, Field(max_length=254), AfterValidator(_checked_address)]
Url = Annotated[SecretStr, AfterValidator(_checked_url)]
HeaderName = Annotated[str, AfterValidator(_checked_header)]
HeaderValue = Annotated[SecretStr, AfterValidator(_checked_header_value)]
Host = Annotated[str, Field(max_length=253), AfterValidator(_checked_host)]


class _Channel(SettingsModel):
    name: SettingName = Field(description="How routes and reports call this channel.")
    timeout_seconds: float = Field(
        default=10, gt=0, le=120, description="How long to wait for an answer."
    )


class WebhookChannel(_Channel):
    """A JSON document posted to an address."""

    type: Literal["webhook"]
    url: Url = Field(description="Where to post; treated as a secret.")
    headers: Mapping[HeaderName, HeaderValue] = Field(
        default_factory=dict, description="Headers to send along, such as Authorization."
    )


class SlackChannel(_Channel):
    """A message to an incoming webhook of Slack, or of what speaks like it."""

    type: Literal["slack"]
    url: Url = Field(description="The address of the incoming webhook; treated as a secret.")


class EmailChannel(_Channel):
    """A plain-text mail."""

    type: Literal["email"]
    host: Host = Field(description="The mail server.")
    port: int | None = Field(
        default=None, ge=1, le=65535, description="By default 587, 465 with tls, 25 with none."
    )
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="How the connection is kept private."
    )
    user: SettingName | None = Field(default=None, description="Who logs in.")
    password: SecretStr | None = Field(default=None, description="The password of the user.")
    sender: Address = Field(description="Whom the mail comes from.")
    to: tuple[Address, ...] = Field(min_length=1, description="Who gets it.")


Channel = Annotated[WebhookChannel | SlackChannel | EmailChannel, Field(discriminator="type")]


class AlertRoute(SettingsModel):
    """Which changes go to which channels; what is left out does not matter."""

    channels: tuple[SettingName, ...] = Field(min_length=1, description="Names of channels.")
    owners: tuple[SettingName, ...] = Field(
        default=(), description="Users or groups that own the dataset or an affected one."
    )
    pattern: Pattern = "*"
    level: Level = Field(default="breaking", description="The mildest change that is sent.")


class AlertSettings(SettingsModel):
    """Who gets alerts on breaking changes, and how."""

    channels: tuple[Channel, ...] = Field(default=(), description="Ways to reach people.")
    routes: tuple[AlertRoute, ...] = Field(
        default=(),
        description="Who gets which alerts; by default each breaking change goes to every channel.",
    )
    downstream_depth: int = Field(
        default=10, ge=0, le=100, description="So many steps of lineage downstream are affected."
    )
    max_attempts: int = Field(
        default=10, ge=1, le=100, description="After so many failures a message is given up."
    )

    def problems(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield what does not fit together: where, and what is wrong with it."""
        names = [channel.name for channel in self.channels]
        for number, name in enumerate(names):
            if name in names[:number]:
                yield ("alerts", "channels", number, "name"), "is the name of an earlier channel"
        for number, route in enumerate(self.routes):
            for place, channel in enumerate(route.channels):
                if channel not in names:
                    near = nearest(channel, names)
                    known = f"known: {', '.join(names) or 'none'}"
                    told = f"did you mean '{near}'?" if near else known
                    yield ("alerts", "routes", number, "channels", place), f"is no channel; {told}"
