"""A catalog: a folder with one JSON file for each dataset, to be kept under version control."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from pydantic import JsonValue
from typing_extensions import override

from lumos.core.errors import ConfigurationError, DatasetNotFoundError, PlatformError
from lumos.core.models import LumosDataset, Urn
from lumos.core.platform.interface import DEFAULT_PAGE, Capability, MetadataPlatformInterface


class FolderCatalog(MetadataPlatformInterface):
    """Keeps datasets, and nothing else, as files."""

    name = "folder"
    capabilities = frozenset({Capability.DELETE, Capability.EXPORT})

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        path = config.get("path")
        if set(config) != {"path"} or not isinstance(path, str):
            raise ConfigurationError(
                "platform_config.folder takes one key, path", hint="path: ./catalog"
            )
        return cls(Path(path))

    @override
    def emit_dataset(self, dataset: LumosDataset) -> None:
        text = json.dumps(dataset.to_json(), indent=2, sort_keys=True)
        with _own_errors(dataset.urn):
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._file_of(dataset.urn)
            partial = file.with_suffix(".partial")
            partial.write_text(text + "\n", "utf-8")
            partial.replace(file)

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        known = Urn(urn)
        with _own_errors(known):
            return _read(self._file_of(known))

    @override
    def list(
        self, *, platform: str | None = None, page_size: int = DEFAULT_PAGE
    ) -> Iterator[LumosDataset]:
        with _own_errors(str(self._folder)):
            found = [_read(path) for path in self._folder.glob("*.json")]
        for dataset in sorted(found, key=lambda dataset: dataset.urn):
            if platform in (None, dataset.platform):
                yield dataset

    @override
    def delete(self, urn: str) -> None:
        known = Urn(urn)
        with _own_errors(known):
            self._file_of(known).unlink()

    def _file_of(self, urn: Urn) -> Path:
        # A name may hold anything, so it is not the name of the file.
        return self._folder / f"{hashlib.sha256(urn.encode()).hexdigest()}.json"


def _read(path: Path) -> LumosDataset:
    return LumosDataset.from_json(json.loads(path.read_text("utf-8")))


@contextmanager
def _own_errors(what: str) -> Iterator[None]:
    """Let no error of the file system or the JSON parser reach the caller as it is."""
    try:
        yield
    except FileNotFoundError:
        raise DatasetNotFoundError(what, platform=FolderCatalog.name) from None
    except (OSError, ValueError) as error:
        raise PlatformError(
            f"the folder catalog failed at {what}: {type(error).__name__}",
            hint="check that the folder can be read and written",
        ) from error
