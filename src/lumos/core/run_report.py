"""What a run did: done, skipped and failed, item by item, with reasons and without secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from lumos.core.errors import LumosError
from lumos.core.events import Event, current_run, tell
from lumos.core.redaction import PROCESS_SECRETS, SecretRegistry

Clock = Callable[[], datetime]
Status = Literal["done", "skipped", "failed"]
SHOWN_PER_REASON = 5
FOUND_TWICE = "found twice in one source"
"""Why a dataset is skipped that its source found before."""


class _ReportModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ItemOutcome(_ReportModel):
    """The outcome of one item."""

    item: str = Field(description="A URN, path, table or source.")
    status: Status = Field(description="Whether it was handled, left out or failed.")
    reason: str | None = Field(default=None, description="Why it was skipped or failed.")
    code: str | None = Field(default=None, description="The stable code of the error.")
    hint: str | None = Field(default=None, description="What to do about it.")
    retryable: bool = Field(default=False, description="Whether another try may help.")


class RunCounts(_ReportModel):
    """How many items ended in which way."""

    done: int = Field(default=0, ge=0, description="Items handled.")
    skipped: int = Field(default=0, ge=0, description="Items left out on purpose.")
    failed: int = Field(default=0, ge=0, description="Items that failed.")

    @property
    def total(self) -> int:
        """All items seen."""
        return self.done + self.skipped + self.failed


class RunReport(_ReportModel):
    """The account of one finished run."""

    operation: str = Field(description="What ran, such as ingest.")
    started_at: AwareDatetime = Field(description="When it began.")
    finished_at: AwareDatetime = Field(description="When it ended.")
    complete: bool = Field(
        description="Whether the whole scope was seen; if not, what is missing was not removed."
    )
    counts: RunCounts = Field(description="How many items ended in which way.")
    items: tuple[ItemOutcome, ...] = Field(
        description="Every skipped and failed item, and done ones where they were kept."
    )
    warnings: tuple[str, ...] = Field(default=(), description="What people should know besides.")

    @property
    def failed(self) -> tuple[ItemOutcome, ...]:
        """The items that failed, in order."""
        return tuple(item for item in self.items if item.status == "failed")

    @property
    def skipped(self) -> tuple[ItemOutcome, ...]:
        """The items left out, in order."""
        return tuple(item for item in self.items if item.status == "skipped")

    def as_json(self) -> dict[str, JsonValue]:
        """Return the whole report as the object that `--json` prints."""
        dumped: dict[str, JsonValue] = self.model_dump(mode="json")
        return dumped

    def as_text(self, *, shown_per_reason: int = SHOWN_PER_REASON) -> str:
        """Return a summary for people: counts, then failed and skipped items by reason."""
        return "\n".join(map(_in_one_line, self._lines(shown_per_reason)))

    def _lines(self, shown: int) -> Iterator[str]:
        counts = self.counts
        seconds = (self.finished_at - self.started_at).total_seconds()
        yield (
            f"{self.operation}: {counts.done} done, {counts.skipped} skipped, "
            f"{counts.failed} failed in {seconds:.1f} s"
        )
        if not self.complete:
            yield (
                "incomplete: part of the scope was not seen; "
                "what may lie there is not taken as removed"
            )
        yield from (f"warning: {warning}" for warning in _gathered(self.warnings))
        for outcomes in (self.failed, self.skipped):
            for (reason, code), items in _by_reason(outcomes).items():
                tag = f" [{code}]" if code else ""
                yield f"{outcomes[0].status}: {reason}{tag}"
                if hint := items[0].hint:
                    yield f"  hint: {hint}"
                yield from (f"  {outcome.item}" for outcome in items[:shown])
                if len(items) > shown:
                    yield f"  ... and {len(items) - shown} more"


def _gathered(warnings: Iterable[str]) -> Iterator[str]:
    """Yield warnings for people: those that say the same of many files name the first of them."""
    files: dict[str, list[str]] = {}
    for warning in warnings:
        item, separator, text = warning.partition(": ")
        is_of_file = separator and "/" in item and " " not in item.strip("/")
        files.setdefault(text if is_of_file else warning, []).append(item if is_of_file else "")
    for text, items in files.items():
        if items == [""]:
            yield text
            continue
        more = f" and {len(items) - 1:,} more" if len(items) > 1 else ""
        yield f"{items[0]}{more}: {text}"


def _in_one_line(text: str) -> str:
    r"""Return text in which a name cannot begin a new line: its line ends become `\n`."""
    return "\\n".join(text.splitlines())


def _by_reason(
    outcomes: tuple[ItemOutcome, ...],
) -> dict[tuple[str, str | None], list[ItemOutcome]]:
    groups: dict[tuple[str, str | None], list[ItemOutcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.reason or "no reason given", outcome.code), []).append(outcome)
    return groups


class RunRecorder:
    """Emits the outcomes of items as events, and gathers them into the report.

    Used by one thread, the one that drives the run.
    """

    def __init__(
        self,
        operation: str,
        *,
        started_at: datetime,
        keep_done: bool = False,
        secrets: SecretRegistry = PROCESS_SECRETS,
    ) -> None:
        """Begin a report.

        Args:
            operation: what runs, such as `ingest`.
            started_at: now, with a time zone.
            keep_done: whether done items are listed too; without, they are only counted.
            secrets: what to mask.
        """
        self._operation = secrets.redact(operation)
        self._started_at = started_at
        self._keep_done = keep_done
        self._secrets = secrets
        self._counts: Counter[Status] = Counter()
        self._items: list[ItemOutcome] = []
        self._warnings: dict[str, None] = {}
        self._complete = True

    def done(self, item: str) -> None:
        """Record that an item was handled."""
        self._counts["done"] += 1
        if self._keep_done:
            self._items.append(ItemOutcome(item=self._secrets.redact(item), status="done"))

    def done_many(self, count: int) -> None:
        """Record that many items were handled elsewhere, such as on Spark executors."""
        self._counts["done"] += count

    def skipped(self, item: str, *, reason: str) -> None:
        """Record that an item was left out on purpose."""
        self._add(item, "skipped", reason=reason)

    def failed(self, item: str, error: Exception | str, *, scope_seen: bool = False) -> ItemOutcome:
        """Record that an item failed, which makes the report incomplete.

        Args:
            item: what failed.
            error: the error or the reason.
            scope_seen: say True where the item is known to exist and only reading it failed, so
                that nothing else can be missing because of it.
        """
        self._complete = self._complete and scope_seen
        if isinstance(error, str):
            return self._add(item, "failed", reason=error)
        if isinstance(error, LumosError):
            return self._add(
                item,
                "failed",
                reason=error.message,
                code=error.code,
                hint=error.hint,
                retryable=error.retryable,
            )
        return self._add(item, "failed", reason=f"{type(error).__name__}: {error}")

    def failed_elsewhere(
        self,
        item: str,
        *,
        reason: str,
        code: str | None,
        hint: str | None,
        retryable: bool,
        scope_seen: bool = False,
    ) -> ItemOutcome:
        """Record that an item failed where only the parts of its error came back from.

        Such as a task of Spark; `failed` takes an error of this process.
        """
        self._complete = self._complete and scope_seen
        return self._add(item, "failed", reason=reason, code=code, hint=hint, retryable=retryable)

    def incomplete(self, *, reason: str) -> None:
        """Record that part of the scope was not seen."""
        self._complete = False
        self.warning(reason)

    def warning(self, text: str) -> None:
        """Record what people should know; the same text counts once."""
        tell(self._keep_warning, "run.warning", secrets=self._secrets, text=text)

    def warnings(self, texts: Iterable[str]) -> None:
        """Record several of them."""
        for text in texts:
            self.warning(text)

    def finish(self, *, at: datetime) -> RunReport:
        """Return the report of everything recorded so far."""
        counts = RunCounts(
            done=self._counts["done"],
            skipped=self._counts["skipped"],
            failed=self._counts["failed"],
        )
        if (run := current_run()) is not None:
            run.counts = counts.model_dump()
        return RunReport(
            operation=self._operation,
            started_at=self._started_at,
            finished_at=at,
            complete=self._complete,
            counts=counts,
            items=tuple(self._items),
            warnings=tuple(self._warnings),
        )

    def _add(
        self,
        item: str,
        status: Literal["skipped", "failed"],
        *,
        reason: str,
        code: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
    ) -> ItemOutcome:
        if status == "skipped":
            tell(self._keep, "item.skipped", secrets=self._secrets, item=item, reason=reason)
        else:
            tell(
                self._keep,
                "item.failed",
                secrets=self._secrets,
                item=item,
                reason=reason,
                code=code,
                hint=hint,
                retryable=retryable,
            )
        return self._items[-1]

    def _keep(self, event: Event) -> None:
        """Put an item into the report."""
        outcome = ItemOutcome.model_validate(
            {**event.fields, "status": event.name.removeprefix("item.")}
        )
        self._counts[outcome.status] += 1
        self._items.append(outcome)

    def _keep_warning(self, event: Event) -> None:
        self._warnings[str(event.fields["text"])] = None
