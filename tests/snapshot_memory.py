"""One streaming operation in a process of its own, which ends with telling its peak memory.

Run: python snapshot_memory.py OPERATION DATASETS MEMORY_BYTES FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

import orjson
from pydantic import JsonValue
from typing_extensions import override

from given_work import open_work
from lumos.core.controllers.import_controller import ImportController
from lumos.core.models import LumosDataset
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.interface import Capability, MetadataPlatformInterface
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot import scratch
from lumos.feature.snapshot.contents import catalog_content, source_content
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.scratch import PassingFiles, Scratch
from lumos.feature.snapshot.source import StoredSource, open_source
from snapshot_samples import AT

FIELDS = 30
NOTE = "What this column means to people"


class EndlessCatalog(MetadataPlatformInterface):
    """A catalog that makes its datasets when they are asked for."""

    name = "endless"
    capabilities = frozenset({Capability.EXPORT})

    def __init__(self, size: int) -> None:
        self._size = size

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls(0)

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        raise NotImplementedError

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        raise NotImplementedError

    @override
    def list(self, *, platform: str | None = None, page_size: int = 500) -> Iterator[LumosDataset]:
        for number in range(self._size):
            yield LumosDataset.from_json(
                {
                    "urn": f"lumos://s3/lake/zone_{number % 7}/table_{number:07d}",
                    "name": f"table_{number:07d}",
                    "platform": "s3",
                    "schema": {
                        "fields": [
                            {
                                "name": f"column_{place:02d}",
                                "type": "STRING",
                                "description": "x" * 40,
                            }
                            for place in range(FIELDS)
                        ]
                    },
                }
            )


class Operations:
    """What is measured; each needs what the one before it has written."""

    def __init__(self, folder: Path, size: int, *, memory_bytes: int) -> None:
        self._folder = folder
        self._size = size
        self._memory_bytes = memory_bytes
        self._store = SnapshotStore(
            folder / "store", files=PassingFiles(), memory_bytes=memory_bytes
        )
        self.document = folder / "snapshot.json"
        self.unsealed = folder / "unsealed.json"

    def nothing(self) -> None:
        """Cost what every operation costs: the modules, and one dataset."""
        _ = [*EndlessCatalog(1).list()]
        ImportController(open_work(state_dir=self._folder / "state", environment={}))

    def catalog_to_document(self) -> None:
        place = Scratch()
        source = StoredSource(place.store(catalog_content(EndlessCatalog(self._size), at=AT)))
        export_document(source, self.document, memory_bytes=self._memory_bytes)

    def document_to_folder(self) -> None:
        self._to_folder(self.document)

    def unsealed_document_to_folder(self) -> None:
        with self.document.open("rb") as source, self.unsealed.open("wb") as target:
            for line in source:
                if b'"content_sha256"' in line:
                    break
                target.write(line)
            target.write(b'  "users": []\n}\n')
        self._to_folder(self.unsealed)

    def validated_document(self) -> None:
        from lumos.feature.snapshot.validation import validate

        assert validate(str(self.document), store=self._store).ok

    def rehearsed_import(self) -> None:
        with open_work(state_dir=self._folder / "state", environment={}) as work:
            result = ImportController(work).run(str(self.document), dry_run=True)
        assert len(result.created) == self._size

    def whole_in_memory(self) -> None:
        """Do what must not be done, so that the measuring is known to notice it."""
        document = orjson.loads(self.document.read_bytes())
        assert len(document["datasets"]) == self._size

    def _to_folder(self, document: Path) -> None:
        source = open_source(str(document), store=self._store)
        self._store.write_folder(source_content(source), self._folder / "folder", at=AT)


def main() -> None:
    operation, size, memory, folder = sys.argv[1:]
    scratch._MEMORY_BYTES = int(memory)
    operations = Operations(Path(folder), int(size), memory_bytes=int(memory))
    act: Callable[[], None] = getattr(operations, operation)
    act()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(status.partition("VmHWM:")[2].split()[0]) * 1024)  # noqa: T201


if __name__ == "__main__":
    main()
