"""Differences in what people wrote about a dataset or a field."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.promises import promise_verb
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
        payload={"part": "business_context"},
    )
    yield from _service_level_findings(before.sla, after.sla)
    yield from _link_findings(before.links, after.links)


def text_findings(
    old: str | None,
    new: str | None,
    *,
    subject: str,
    path: str = "",
    key: str = "",
    payload: JsonValue = None,
) -> Iterator[Finding]:
    """Yield whether a text was added, edited or removed; `key` identifies it."""
    if old == new:
        return
    rule = f"doc.{_verb(old, new, edited='edited')}"
    yield Finding(
        rule, path, old=_under(key, old), new=_under(key, new), subject=subject, payload=payload
    )


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
        edited = promise_verb(old, new)
        yield Finding(f"sla.{_verb(old, new, edited=edited)}", old=old, new=new)


def _link_findings(old: Sequence[Link], new: Sequence[Link]) -> Iterator[Finding]:
    """Yield links that came, went or are described otherwise; a page may be linked twice."""
    lost, won = only_in_one(_keyed(old), _keyed(new))
    before, after = _by_url(lost), _by_url(won)
    for url in sorted(before.keys() | after.keys()):
        for one, other in zip_longest(before[url], after[url]):
            yield from _changed_link_findings(one, other)


def _changed_link_findings(old: Link | None, new: Link | None) -> Iterator[Finding]:
    if old is None and new is not None:
        yield Finding("doc.link.added", new=new.to_json())
    elif new is None and old is not None:
        yield Finding("doc.link.removed", old=old.to_json())
    elif old is not None and new is not None:
        yield from text_findings(
            old.description,
            new.description,
            subject="the description of a link",
            key=old.url,
            payload={"part": "links", "old": old.to_json(), "new": new.to_json()},
        )


def _by_url(links: Sequence[Link]) -> defaultdict[str, list[Link]]:
    grouped: defaultdict[str, list[Link]] = defaultdict(list)
    for link in links:
        grouped[link.url].append(link)
    return grouped


def _keyed(links: Sequence[Link]) -> list[tuple[bytes, Link]]:
    return [(canonical_json(link.to_json()), link) for link in links]
