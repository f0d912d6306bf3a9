"""How the code is cut into modules: small ones, those with one importer, names defined twice.

Run: python tools/module_sizes.py [--list]

Counts, for src/lumos: modules under 60 lines, modules that one other module imports, both at once,
and public names (classes, functions and constants) that several modules define. With --list, which.
REASONS says why some modules stay by themselves, SHARED_NAMES why some names are defined twice;
tests/unit/test_words.py fails for a name that is defined twice and has no reason there.
Imports inside functions and for type checking count; names in strings, as factories have them, too.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src"
SMALL = 60
REASONS = {
    r"core\.platform\.impl\.\w+\.(fidelity|search|settings)": "all adapter folders are alike",
    r"core\.changes\.detectors\.\w+": "one module for each part of a dataset",
    r"core\.models\.\w+": "a model of the package, which exports it",
    r"core\.settings\.\w+": "a section of the settings",
    r"core\.storage\.reading": "used by Spark tasks only through a controller",
    r"feature\.ingestion\.handlers\.\w+": "one module for each source; its factory names it",
    r"spark\.stages\.\w+": "a stage of the pipeline",
}
OWN_WORDS = (
    (r"core\.platform\.impl\.\w+", "an adapter speaks the words of its catalog"),
    (r"entry|framework_cli", "commands and options have the names that users type"),
    (r"bootstrap\.operations", "an operation has the name of the command that asks for it"),
    (r"feature\.demo", "columns of the example data are named after their types"),
)
"""Areas whose names are compared within the area only, each with the reason."""
SHARED_NAMES = {
    "every format or storage has one": (
        "FORMAT", "MAGIC", "PLATFORM", "LOG_FOLDER", "column_statistics", "is_end",
    ),
    "every program has one": ("main",),
    "every group of commands has one": ("OPERATIONS", "Strict", "app", "list_", "show"),
    "the limit of a module, which its errors name": (
        "DEFAULT_BATCH", "DEFAULT_LIMITS", "LARGEST_DOCUMENT_BYTES", "MAX_DEPTH", "MAX_NODES",
        "PART_BYTES",
    ),
    "the schema of rows that a stage takes or gives": (
        "DATASETS", "DELTA", "ITEMS", "SCHEMAS", "TABLES", "UNSEEN", "units_frame",
    ),
    "Spark's side of a contract, which imports no feature": (
        "FileRow", "ListUnit", "Origin", "Run", "read_items",
    ),
    "a term of two fields": (
        "Call", "Dataset", "Dialect", "FORMATS", "Folders", "Group", "IDENTITY", "Listed",
        "Listener", "NOBODY", "Project", "Request", "Row",
        "SUFFIXES", "name_of", "statements_of",
    ),
    "the same with all sections of the product": ("load_settings", "settings_from_mapping"),
    "the inverse of a neighbour in the same module": ("packed", "unpacked"),
    "features do not import each other": ("Publish",),
    "one for each kind of document": (
        "ASPECT", "MIGRATIONS", "batches", "matches", "printable", "read_document", "read_rows",
        "stored_document", "unreadable", "MENTIONED",
    ),
}  # fmt: skip
"""Names that several modules define on purpose, by the reason."""
NOT_COUNTED = re.compile(r"\.migrations\.versions\.")
"""Alembic asks every migration for the same names."""
NAMED = re.compile(r"lumos(?:\.\w+)+")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """Yield the modules of Lumos that a module imports or names in a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in below)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from NAMED.findall(node.value)


def public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            continue
        yield from (name for name in names if not name.startswith("_") and len(name) > 1)


def defined_twice(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Return the public names that several modules of one area define, and which."""
    defined: dict[tuple[str, str], set[str]] = defaultdict(set)
    for module, tree in trees.items():
        for name in () if NOT_COUNTED.search(module) else public_names(tree):
            defined[area_of(module), name].add(module)
    return {name: sorted(where) for (_, name), where in sorted(defined.items()) if len(where) > 1}


def area_of(module: str) -> str:
    """Return the area of OWN_WORDS that a module is in, or the product as a whole."""
    for pattern, _ in OWN_WORDS:
        if match := re.match(rf"lumos\.(?:{pattern})(?=\.|$)", module):
            return "lumos.entry" if "entry" in pattern else match[0]
    return "lumos"


def parsed_modules() -> dict[str, ast.Module]:
    """Return the modules of Lumos by name."""
    return {module_name(path): ast.parse(path.read_text("utf-8")) for path in ROOT.rglob("*.py")}


def reason(name: str) -> str | None:
    """Return why a small module with one importer stays by itself, if there is a reason."""
    found = (why for pattern, why in REASONS.items() if re.fullmatch(f"lumos\\.{pattern}", name))
    return next(found, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name them, not only count")
    shown = parser.parse_args().list
    texts = {module_name(path): path.read_text() for path in ROOT.rglob("*.py")}
    packages = {module_name(path) for path in ROOT.rglob("__init__.py")}
    trees = parsed_modules()
    importers: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for each in imported(tree, set(texts)):
            importers[each].add(name)
    modules = sorted(set(texts) - packages)
    lines = {name: len(texts[name].splitlines()) for name in modules}
    small = [name for name in modules if lines[name] < SMALL]
    single = [name for name in modules if len(importers[name] - {name}) == 1]
    both = sorted({*small} & {*single})
    kept = {name: why for name in both if (why := reason(name))}
    left = [name for name in both if name not in kept]
    unused = [name for name in modules if not importers[name] - {name}]
    twice = defined_twice(trees)
    shared = {name for names in SHARED_NAMES.values() for name in names}
    print(f"{len(modules)} modules, {sum(lines.values()):,} lines")
    print(f"{len(small)} under {SMALL} lines")
    print(f"{len(single)} with one importer")
    print(f"{len(both)} both at once, {len(kept)} of them with a reason")
    print(f"{len(unused)} that no module of Lumos imports")
    print(
        f"{len(twice)} public names that several modules of one area define, "
        f"{len(shared & twice.keys())} of them with a reason"
    )
    if shown:
        print("\nunder 60 lines, with one importer and without a reason:")
        for name in left:
            (by,) = importers[name] - {name}
            print(f"  {name} ({lines[name]}) by {by} ({len(texts[by].splitlines())})")
        print("\nwith a reason:", *(f"  {name}: {why}" for name, why in kept.items()), sep="\n")
        print("\nthat no module imports:", *(f"  {name}" for name in unused), sep="\n")
        print("\npublic names that several modules define:")
        for name, where in twice.items():
            print(f"  {name}: {', '.join(where)}")


if __name__ == "__main__":
    main()
