from __future__ import annotations

from typing import Any

import pytest

from golden_layouts import judged, layouts
from lumos.feature.discovery.path_specs import PathSpecs

LISTED = (*layouts(), *layouts("layouts_later"))
LAYOUTS = {f"{layout['tool']}, {layout['layout']}": layout for layout in LISTED}
FOUND = {name: layout for name, layout in LAYOUTS.items() if "missed" not in layout}
MISSED = {name: layout for name, layout in LAYOUTS.items() if "missed" in layout}


@pytest.mark.parametrize("layout", FOUND.values(), ids=FOUND)
def test_the_datasets_of_a_layout_are_found(layout: dict[str, Any]) -> None:
    assert judged(layout).problems == ()


@pytest.mark.parametrize("layout", MISSED.values(), ids=MISSED)
def test_a_layout_that_is_told_as_missed_is_missed_and_has_a_remedy(layout: dict[str, Any]) -> None:
    assert judged(layout).problems, "it is found now: take the word from the list"
    assert layout["missed"]
    assert judged(layout, PathSpecs.of(layout["path_specs"])).problems == ()


def test_nearly_all_datasets_of_many_layouts_have_exactly_their_files() -> None:
    every = [judged(layout) for layout in layouts()]
    datasets = sum(judgement.datasets for judgement in every)
    assert len(LAYOUTS) == len(LISTED) >= 149 + 39
    assert sum(judgement.found for judgement in every) >= 0.95 * datasets
    assert sum(not judgement.problems for judgement in every) >= 0.95 * len(every)
