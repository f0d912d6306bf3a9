"""What a scan of files could and could not see, and what that says of each dataset."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from lumos.core.formats.file_names import promise_of
from lumos.core.formats.tables.marks import may_hold_log
from lumos.core.models.origin import origin_of
from lumos.feature.discovery.unseen import is_in_doubt, unseen_columns, with_unseen_parts

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset
    from lumos.core.models.origin import Origin
    from lumos.feature.ingestion.scan.sources import ScanSource


@dataclass
class FileEvidence:
    """What a scan was to look at, and what of it nobody could see."""

    sources: Mapping[str, ScanSource]
    doubted: set[str] = field(default_factory=set)
    """Sources without a single file: their disks may be missing."""
    closed: dict[str, list[str]] = field(default_factory=dict)
    """The folders that could not be listed, by source, as paths below its root."""
    unreadable: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many files nobody could read, by dataset, as source and key."""
    forgotten: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many of them may have been read by runs of which nothing is known any more."""
    unbuilt: set[tuple[str, str]] = field(default_factory=set)
    """The datasets that could not be built from their files, as source and key."""
    links: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    """The symlinks that are not followed, by source, as the parts of their paths."""
    around_links: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    """Every folder and dataset, by source, that such a symlink lies in or is a file of."""
    warnings: list[str] = field(default_factory=list)

    def whole(
        self, found: LumosDataset, present: LumosDataset | None, *, source: str
    ) -> LumosDataset | None:
        """Return a dataset with what files that cannot be read may hold of it.

        None where files of it may lie out of sight: half a look is no reason to change anything.
        """
        if present is None:
            return found
        if self.hides_part_of(found, source):
            return None
        origin = origin_of(found)
        if origin is None:
            return found
        files = self.files_in_doubt(origin, as_before=is_in_doubt(present))
        if not files:
            return found
        whole = with_unseen_parts(present, found, unreadable=files)
        if names := unseen_columns(whole):
            self.warnings.append(
                f"{found.urn}: the columns {', '.join(names)} are kept: "
                "files that may have them cannot be read"
            )
        return whole

    def is_gone(self, dataset: LumosDataset, *, source: str) -> bool:
        """Return whether a dataset that was not found is surely not there any more."""
        origin = origin_of(dataset)
        if origin is None or origin.source != source:
            return False
        if self.has_unreadable(origin) or self.is_unbuilt(origin):
            return False
        scanned = self.sources.get(source)
        if scanned is None or source in self.doubted:
            return False
        is_here = scanned.is_whole_folder and scanned.holds(dataset.urn)
        is_renamed = scanned.renames(dataset.urn, orjson.loads(origin.dataset))
        return (is_here or is_renamed) and not self.hides_part_of(dataset, source)

    def shown(self, source: str, path: bytes) -> str:
        """Return where a file lies, as reports show it."""
        scanned = self.sources[source]
        above = scanned.shown if scanned.is_whole_folder else os.path.dirname(scanned.shown)
        text = path.decode("utf-8", "backslashreplace")
        return f"{above.rstrip('/')}/{text}" if text else above

    def close(self, source: str, path: bytes) -> None:
        """Remember a part that could not be listed."""
        below = path.decode("utf-8", "backslashreplace").strip("/")
        self.closed.setdefault(source, []).append(below)

    def skip_link(self, source: str, path: bytes) -> None:
        """Remember a symlink that is not followed.

        What earlier runs found behind it is neither gone nor known to be the same. The log of a
        table counts as a folder that could not be listed: without it the files of the table would
        look like a dataset.
        """
        text = path.decode("utf-8", "backslashreplace").strip("/")
        parts = tuple(text.split("/"))
        self.links.setdefault(source, set()).add(parts)
        around = self.around_links.setdefault(source, set())
        place = self.sources[source].path_specs.place(text)
        if place is not None and promise_of(text).format is not None:
            around.add(tuple(place.dataset))
        else:  # it may be a folder, with files of any dataset that lies around it
            around.update(parts[:length] for length in range(len(parts)))
        if may_hold_log(text):
            self.close(source, path)

    def has_skipped_link(self, origin: Origin) -> bool:
        """Return whether a dataset may have files behind a symlink that is not followed."""
        links = self.links.get(origin.source)
        if not links:
            return False
        parts = tuple(map(str, orjson.loads(origin.dataset)))
        is_behind = any(parts[:length] in links for length in range(1, len(parts) + 1))
        return is_behind or parts in self.around_links[origin.source]

    def has_unreadable(self, origin: Origin) -> bool:
        """Return whether files of a dataset, or a workbook that it is a sheet of, are not read."""
        is_linked = self.has_skipped_link(origin)
        return is_linked or any(self.unreadable[each] for each in _holders(origin))

    def shown_dataset(self, source: str, dataset: str) -> str:
        """Return where the files of a dataset lie, as reports show it."""
        return self.shown(source, "/".join(orjson.loads(dataset)).encode("utf-8", "replace"))

    def is_unbuilt(self, origin: Origin) -> bool:
        """Return whether the files of a dataset are there, but it could not be built from them."""
        return origin in self.unbuilt

    def files_in_doubt(self, origin: Origin, *, as_before: bool) -> int:
        """Return how many unreadable files of a dataset may hold what no other file shows.

        Args:
            origin: where the dataset was found.
            as_before: whether its unreadable files were in doubt before.
        """
        counts = self.unreadable if as_before else self.forgotten
        linked = int(self.has_skipped_link(origin))
        return linked + sum(counts[each] for each in _holders(origin))

    def hides_part_of(self, dataset: LumosDataset, source: str) -> bool:
        """Return whether files of a dataset may lie where nobody could look."""
        whole = (dataset.location.prefix if dataset.location else None) or "/"
        prefix = whole.removeprefix(self.sources[source].root.prefix)
        closed = [f"/{folder}/" if folder else "/" for folder in self.closed.get(source, ())]
        return any(each.startswith(prefix) or prefix.startswith(each) for each in closed)


def _holders(origin: Origin) -> tuple[tuple[str, str], ...]:
    """Return the dataset and the workbook that it may be a sheet of."""
    book = f"{origin.dataset.rpartition(',')[0]}]"  # one part less of what is a JSON array
    return tuple({origin, (origin.source, book)})
