"""Splits the stored document of a dataset from what was observed of it, and joins both again.

`datasets.observed` holds the observed parts as the dataset shows them, one on each line, after the
place where it belongs in `datasets.document`. So a document that nothing else changed is not
rewritten, and the canonical JSON of the whole is found without parsing either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lumos.core.models.facets import OBSERVED_PARTS
from lumos.core.store.documents import stored_object, stored_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from lumos.core.store.engine import Row


class SplitDocument(NamedTuple):
    """The two columns of a dataset that hold what it is."""

    document: str
    observed: str | None
    """None where nothing was observed."""


def split_document(document: Mapping[str, JsonValue]) -> SplitDocument:
    """Return a dataset, given as `to_json` writes it, as the texts of both columns."""
    kept: list[str] = []
    observed: list[str] = []
    place = 1
    for name in sorted(document):
        text = f'"{name}":{stored_text(document[name])}'
        if name in OBSERVED_PARTS:
            observed.append(f"{place} {text}")
        else:
            kept.append(text)
            place += len(text) + 1
    return SplitDocument(f"{{{','.join(kept)}}}", "\n".join(observed) or None)


def whole_text(row: Row) -> str:
    """Return the canonical JSON of a row with the columns `document` and `observed`."""
    text, observed = row.text("document"), row.optional_text("observed")
    return text if observed is None else join_document(text, observed)


def whole_document(row: Row) -> dict[str, JsonValue]:
    """Return the JSON object of a row with the columns `document` and `observed`."""
    return stored_object(whole_text(row))


def join_document(text: str, observed: str) -> str:
    """Return the canonical JSON of what both columns hold."""
    pieces: list[str] = []
    done = 0
    for line in observed.split("\n"):
        number, _, part = line.partition(" ")
        place = int(number)
        # `urn`, which every dataset has, comes after all observed parts.
        pieces += (text[done:place], part, ",")
        done = place
    return "".join((*pieces, text[done:]))
