"""Small reports of a catalog."""

from __future__ import annotations

from datetime import UTC, datetime

from lumos.core.models import LumosDataset, Urn
from lumos.feature.extraction.catalog_report import CatalogReport, LimitedList, UnreadableEntry
from lumos.feature.extraction.inventory import inventory_of

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def dataset(name: str, **parts: object) -> LumosDataset:
    base = {"urn": Urn.of("s3", "lake", name), "name": name, "platform": "s3"}
    return LumosDataset.model_validate({**base, **parts})


def report_on(*datasets: LumosDataset, reason: str = "cut off", item: str = "a") -> CatalogReport:
    unreadable = UnreadableEntry(
        item=item, reason=reason, code=None, hint=reason, operation="ingest", at=NOW
    )
    return CatalogReport(
        generated_at=NOW,
        lumos_version="1.2.3",
        catalog="embedded",
        inventory=inventory_of(datasets),
        changes=None,
        versions_since=None,
        versions=LimitedList(total=0, items=()),
        unreadable=LimitedList(total=1, items=(unreadable,)),
        warnings=LimitedList(total=1, items=(reason,)),
    )


def hostile_report(text: str) -> CatalogReport:
    named = dataset(text, platform=text, format=text, ownership=[{"user": text}], version=text)
    return report_on(named, reason=text, item=text)
