"""What data costs: records by dataset and period, and the report made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from lumos.core.models.base import CanonicalModel, Name
from lumos.core.models.frozen import FrozenDict, frozen_mapping
from lumos.core.models.urn import Urn

_MONEY = re.compile(r"\$?\s*(-?\d[\d,_]*(?:\.\d+)?)\s*(?:\(\s*\d+(?:\.\d+)?\s*%\s*\))?\Z")


def _plain_amount(value: object) -> object:
    """Read `$4,700 (81%)` as 4700: the share is derived, the amount is what was said."""
    match = _MONEY.match(value.strip()) if isinstance(value, str) else None
    return re.sub("[,_]", "", match[1]) if match else value


Money = Annotated[Decimal, BeforeValidator(_plain_amount)]
Amounts = Annotated[Mapping[str, Money], AfterValidator(frozen_mapping)]
Period = Annotated[str, Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?|-Q[1-4])?$")]


class CostRecord(CanonicalModel):
    """What one dataset cost in one period, of one kind."""

    dataset: Urn
    period: Period
    kind: Name = Field(description="storage, compute or a kind of your own")
    amount: Money
    currency: str = "USD"
    team: str | None = None
    provider: str | None = None
    source: str | None = Field(default=None, description="Where the number comes from.")


class CostSummary(CanonicalModel):
    """The totals of a cost report."""

    total_cost: Money
    direct_cost: Money
    attributed_cost: Money


class CostBreakdown(CanonicalModel):
    """A total by kind and by team."""

    by_type: Amounts = Field(default_factory=FrozenDict)
    by_team: Amounts = Field(default_factory=FrozenDict)


class CostReport(CanonicalModel):
    """What a dataset costs with everything upstream of it."""

    dataset: Name
    period: Period
    summary: CostSummary
    breakdown: CostBreakdown = CostBreakdown()
    trends: Annotated[Mapping[str, str], AfterValidator(frozen_mapping)] = Field(
        default_factory=FrozenDict
    )
    optimization: tuple[str, ...] = ()
