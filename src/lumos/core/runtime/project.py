"""A project: one settings file, and what it says."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from lumos.core.settings import SETTINGS_FILE

if TYPE_CHECKING:
    from lumos.core.changes import ChangePolicy
    from lumos.core.log_settings import LoggingSettings
    from lumos.core.run_report import Clock
    from lumos.core.runtime.settings import LumosSettings


def utc_now() -> datetime:
    return datetime.now(UTC)


def _ignore(_value: object) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Project:
    """One project. It never changes, holds nothing open, and shares nothing with other projects.

    The settings file is read when the settings are first needed, and then kept: `lumos init` and
    `lumos doctor` work where there is none, or a wrong one.
    """

    config: Path | None = None
    """The settings file; None looks for `lumos.yaml` in the current folder."""
    given_state_dir: Path | None = None
    """In place of the state folder that the settings name."""
    environment: Mapping[str, str] = field(repr=False)
    """The variables that settings may use, as they were when the project was made."""
    clock: Clock = field(default=utc_now, repr=False)
    notice: Callable[[str], None] = field(default=_ignore, repr=False, compare=False)
    """Receives, in a line each, what people should know and is no error."""
    on_logging: Callable[[LoggingSettings], None] = field(
        default=_ignore, repr=False, compare=False
    )
    """Receives the section `logging` of the settings; only programs set up logs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "environment", MappingProxyType(dict(self.environment)))

    @cached_property
    def settings(self) -> LumosSettings:
        """What the settings file says.

        Raises:
            InvalidSettingsError: with all problems of the file.
        """
        from lumos.core.changes.settings import ChangePolicySettings
        from lumos.core.runtime.settings import load_settings

        settings = load_settings(self.config, self.environment)
        self.on_logging(settings.logging)
        if "alerts" not in settings.unset_sections and (problems := [*settings.alerts.problems()]):
            raise settings.refused(problems)
        if unread := (*settings.without_effect, *_planned_types(settings)):
            file = settings.file or "the settings"
            self.notice(f"{file}: without effect in this version: {', '.join(unread)}")
        if settings.change_policy != ChangePolicySettings():
            from lumos.core.changes.policy_settings import policy_of

            # Reported with the other problems of the file, not halfway through a run.
            policy_of(settings.change_policy, settings)
        return settings

    @cached_property
    def policy(self) -> ChangePolicy:
        """How changes are judged."""
        from lumos.core.changes.policy_settings import policy_of

        return policy_of(self.settings.change_policy, self.settings)

    @property
    def state_dir(self) -> Path:
        return self.given_state_dir or self.settings.state_dir

    @property
    def state_address(self) -> str | Path:
        """Where the state database is: a URL, or a file of the state folder."""
        from lumos.core.store.state_folder import DATABASE_FILE

        url = self.settings.database_url
        return url.get_secret_value() if url else self.state_dir / DATABASE_FILE

    @cached_property
    def author(self) -> str:
        """Who makes changes: the user of this machine."""
        try:
            return getpass.getuser()
        except (OSError, KeyError):
            return "unknown"

    def of(self, file: Path) -> Self:
        """Return the project of another settings file, with the same variables and clock.

        It has the state folder, catalogs and connections that its own settings name. A state
        folder given on the command line holds for both.
        """
        if file.absolute() == (self.config or Path(SETTINGS_FILE)).absolute():
            return self
        return replace(self, config=file)


def _planned_types(settings: LumosSettings) -> tuple[str, ...]:
    """Refuse unknown types of sources; return those that nothing reads yet."""
    if not settings.sources:
        return ()
    from lumos.feature.ingestion.source_types import planned_types, type_problems

    if problems := [*type_problems(settings.sources)]:
        raise settings.refused(problems)
    return tuple(f"sources of type {name}" for name in planned_types(settings.sources))
