"""Settings that a discovery writes."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lumos.core.models import LumosDataset, Urn
from lumos.core.runtime.settings import load_settings
from lumos.feature.discovery.written_config import sources_document

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@given(TEXT, TEXT.filter(bool))
def test_no_name_can_leave_its_place(name: str, path: str) -> None:
    dataset = LumosDataset(
        urn=Urn.of("local", "lake", "orders"), name="orders", platform="local", format=name or None
    )
    text = sources_document(
        path,
        {"type": "local", "name": "lake", "path": path},
        datasets=[dataset],
        unreadable=[name],
        at=NOW,
    )

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sources.yaml"
        file.write_text(text, encoding="utf-8")
        (source,) = load_settings(file, {}).sources
    assert source.settings["path"] == path
