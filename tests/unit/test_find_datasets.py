"""Many datasets are found at once as each of them is found alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog_stations import STATIONS
from lumos.core.models import DatasetLineage, with_parts
from lumos.testing.platform_samples import MISSING, dataset, edge, rich_dataset


@pytest.mark.parametrize("catalog", STATIONS)
def test_those_that_are_there_are_found_and_no_others(tmp_path: Path, catalog: str) -> None:
    rich, plain, other = rich_dataset(), dataset("plain"), dataset("other")
    with STATIONS[catalog](tmp_path) as station, station.connect() as platform:
        assert platform.find_datasets([rich.urn]) == {}
        for each in (rich, plain, other):
            platform.emit_dataset(each)
        platform.emit_edge(edge(rich, plain))
        found = platform.find_datasets([rich.urn, MISSING, plain.urn])
        assert {urn: with_parts(each, lineage=DatasetLineage()) for urn, each in found.items()} == {
            rich.urn: rich,
            plain.urn: plain,
        }
        assert platform.find_datasets([]) == {}
