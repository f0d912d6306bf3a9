"""Differences in what people wrote about a dataset or a field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.sets import only_in_one
from lumos.core.changes.finding import Finding
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import Link, LumosDataset


def documentation_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield changes of description, business context, service level and links."""
    before, after = old.documentation, new.documentation
    yield from text_findings(before.description, after.description, subject="the description")
    yield from text_findings(
        before.business_context,
        after.business_context,
        subject="the business context",
        key="business_context",
    )
    yield from _service_level_findings(before.sla, after.sla)
    yield from _link_findings(before.links, after.links)


def text_findings(
    old: str | None, new: str | None, *, subject: str, path: str = "", key: str = ""
) -> Iterator[Finding]:
    """Yield whether a text was added, edited or removed; `key` tells it from its neighbours."""
    if old == new:
        return
    rule = f"doc.{_verb(old, new, edited='edited')}"
    yield Finding(rule, path, old=_under(key, old), new=_under(key, new), subject=subject)


def _verb(old: str | None, new: str | None, *, edited: str) -> str:
    """Blank text says as little as none, so that filling it in is an addition."""
    was, is_now = bool(old and old.strip()), bool(new and new.strip())
    if was == is_now:
        return edited
    return "added" if is_now else "removed"


def _under(key: str, text: str | None) -> JsonValue:
    return text if not key or text is None else {key: text}


def _service_level_findings(old: str | None, new: str | None) -> Iterator[Finding]:
    if old != new:
        yield Finding(f"sla.{_verb(old, new, edited='changed')}", old=old, new=new)


def _link_findings(old: Sequence[Link], new: Sequence[Link]) -> Iterator[Finding]:
    lost, won = only_in_one(_keyed(old), _keyed(new))
    before, after = ({link.url: link for link in links} for links in (lost, won))
    for url in sorted(before.keys() & after.keys()):
        yield from text_findings(
            before[url].description,
            after[url].description,
            subject="the description of a link",
            key=url,
        )
    for link in lost:
        if link.url not in after:
            yield Finding("doc.link.removed", old=link.to_json())
    for link in won:
        if link.url not in before:
            yield Finding("doc.link.added", new=link.to_json())


def _keyed(links: Sequence[Link]) -> list[tuple[bytes, Link]]:
    return [(canonical_json(link.to_json()), link) for link in links]
