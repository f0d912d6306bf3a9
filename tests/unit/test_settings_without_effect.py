"""Which sections of the settings nothing reads: the list that users are told is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lumos
from lumos.core.runtime.settings import LumosSettings

PACKAGE = Path(lumos.__file__).parent
CODE = "\n".join(
    file.read_text("utf-8")
    for file in PACKAGE.rglob("*.py")
    if file.parent != PACKAGE / "core" / "settings"
)
READ_AS = {"trusted_keys": "trusted_key_files"}
SECTIONS = LumosSettings.model_fields.keys() - {"environment"}  # adapters have one of that name


def is_read(section: str) -> bool:
    """Tell whether code outside of the settings reads a section of the project's settings."""
    pattern = rf"\b(?:(?:self\.|project\.)_?settings(?:\(\))?|settings)\.{re.escape(section)}\b"
    return re.search(pattern, CODE) is not None


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_a_section_is_read_or_told_to_be_without_effect(section: str) -> None:
    assert is_read(READ_AS.get(section, section)) != (section in LumosSettings.not_read_yet)
