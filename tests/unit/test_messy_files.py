"""Generated messy files, of which each run of another commit tries others."""

from __future__ import annotations

import io
import random

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.reader import read_file
from messy_damage import damaged_file
from messy_files import messy_csv
from property_seed import chosen_seed

FILES = 150


def test_most_messy_csv_files_are_read_with_their_names_and_types() -> None:
    seed = chosen_seed(is_full=False)
    rng = random.Random(seed)
    wrong = []
    for number in range(FILES):
        file = messy_csv(rng, number=number)
        facts = read_file(io.BytesIO(file.content), size=len(file.content), name=file.name)
        found = tuple((field.name, field.type.value) for field in facts.schema.fields)
        if found != file.columns:
            wrong.append((file.traits, file.columns, found))
    assert len(wrong) <= 0.04 * FILES, (seed, wrong)


def test_every_damaged_file_is_refused_or_has_a_warning() -> None:
    seed = chosen_seed(is_full=False)
    rng = random.Random(seed)
    unnamed = []
    for number in range(FILES):
        file = damaged_file(rng, number=number)
        try:
            facts = read_file(io.BytesIO(file.content), size=len(file.content), name=file.name)
        except UnreadableItemError:
            continue
        if not facts.warnings:
            unnamed.append((file.name, file.damage, len(file.content)))
    assert unnamed == [], seed
