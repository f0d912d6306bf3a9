"""What the table of catalogs calls native or transformed is seen there beside the stash."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog_fates import SERVERS, SHOWN, shown_concepts
from lumos.core.platform.factory import EMBEDDED, PlatformFactory
from lumos.core.platform.fidelity import CONCEPTS, fidelity_of


def test_every_catalog_with_a_stash_is_looked_into() -> None:
    assert {*SERVERS} == {*PlatformFactory.names()} - {EMBEDDED}


@pytest.mark.parametrize("catalog", SERVERS)
def test_what_is_declared_as_shown_is_shown_and_nothing_else(tmp_path: Path, catalog: str) -> None:
    handler = PlatformFactory.handler(catalog)
    declared = {each for each in CONCEPTS if fidelity_of(handler, each) in SHOWN}

    with SERVERS[catalog](tmp_path) as server:
        shown = shown_concepts(server, CONCEPTS)

    assert (declared - shown, shown - declared) == (set(), set())
