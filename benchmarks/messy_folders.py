"""How much of messy folders is understood: CSV files, groups of files, damaged files.

Each share is of generated files with a known truth; `--seed` repeats a run. Nothing is timed.

    python benchmarks/messy_folders.py --files 2000
"""

from __future__ import annotations

import argparse
import io
import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.reader import read_file
from messy_damage import DamagedFile, damaged_file
from messy_files import MessyFile, messy_csv
from messy_groups import MessyFolder, datasets_of, messy_folder


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--show", type=int, default=0, help="how many wrong ones to print")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    rng = random.Random(options.seed)  # noqa: S311 - files, not secrets
    _csv_files([messy_csv(rng, number=n) for n in range(options.files)], show=options.show)
    folders = [messy_folder(rng, number=n) for n in range(options.files)]
    _groups(folders, show=options.show)
    _damage([damaged_file(rng, number=n) for n in range(options.files)])


def _csv_files(files: list[MessyFile], *, show: int) -> None:
    right = 0
    wrong: Counter[str] = Counter()
    traits: Counter[str] = Counter(trait for file in files for trait in file.traits)
    for file in files:
        found = read_columns(file)
        if found == file.columns:
            right += 1
            continue
        wrong.update(file.traits)
        if show > 0:
            show -= 1
            print(f"  {file.traits}\n    is  {file.columns}\n    got {found}")
            print("   ", file.content[:160])
    print(f"CSV files with right names and types: {right / len(files):.1%} of {len(files)}")
    if wrong:
        worst = sorted(wrong, key=lambda trait: wrong[trait] / traits[trait], reverse=True)[:8]
        print("  wrong by trait:", ", ".join(f"{t!r} {wrong[t]}/{traits[t]}" for t in worst))


def _groups(folders: list[MessyFolder], *, show: int) -> None:
    kinds: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for folder in folders:
        kinds[folder.kind] += 1
        found = frozenset(datasets_of(folder.files)[0].values())
        if found != folder.truth:
            wrong[folder.kind] += 1
            if show > 0:
                show -= 1
                print(f"  {folder.kind}\n    {folder.files}\n    got {found}")
    right = 1 - wrong.total() / len(folders)
    print(f"groups of files put together right: {right:.1%} of {len(folders)}")
    for kind, count in wrong.most_common():
        print(f"  wrong: {kind} {count}/{kinds[kind]}")


def _damage(files: list[DamagedFile]) -> None:
    unnamed = [file for file in files if not is_named(file)]
    print(f"damaged files that nobody is told of: {len(unnamed)} of {len(files)}")
    for (ending, damage), count in Counter((f.name[8:], f.damage) for f in unnamed).most_common():
        print(f"  {ending}: {damage} {count}")


def is_named(file: DamagedFile) -> bool:
    """Tell whether a file is refused or has a warning."""
    try:
        facts = read_file(io.BytesIO(file.content), size=len(file.content), name=file.name)
    except UnreadableItemError:
        return True
    return bool(facts.warnings)


def read_columns(file: MessyFile) -> tuple[tuple[str, str], ...] | str:
    """Return names and types as they are read, or why nothing is."""
    try:
        facts = read_file(io.BytesIO(file.content), size=len(file.content), name=file.name)
    except UnreadableItemError as error:
        return error.message
    return tuple((each.name, each.type.value) for each in facts.schema.fields)


if __name__ == "__main__":
    main()
