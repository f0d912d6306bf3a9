"""What `lumos sync` answers."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from lumos.core.platform.fidelity import FidelityReport
from lumos.core.result_base import Result
from lumos.core.run_report import RunReport


class SyncedKind(Result):
    """How many items of one kind were sent, unchanged, removed or failed."""

    new: int = Field(description="Never sent before.")
    changed: int = Field(description="Sent before, in another state.")
    unchanged: int = Field(description="In the state that was sent last: nothing was sent.")
    failed: int = Field(description="Refused by the catalog.")
    removed: int = Field(description="Gone from Lumos, and now from the catalog.")


class SyncResult(Result):
    """What a sync did, or would do."""

    target: str = Field(description="The catalog that was brought up to date.")
    dry_run: bool
    writes: int = Field(description="How many things were written to the catalog.")
    same_there: int = Field(description="Sent nothing: the catalog had the same already.")
    kinds: Mapping[str, SyncedKind] = Field(description="By kind: dataset, user, …")
    conflicts: tuple[str, ...] = Field(
        description="What changed on both sides since the last sync; the catalog's state was kept."
    )
    fidelity: FidelityReport = Field(description="What the catalog keeps of each concept.")
    report: RunReport
