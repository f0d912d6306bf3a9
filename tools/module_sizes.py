"""How the code is cut into modules: small ones, those with one importer, names defined twice.

Run: python tools/module_sizes.py [--list]

Counts, for src/lumos: modules under 60 lines, modules that one other module imports, both at once,
and public names (classes, functions and constants) that several modules define. With --list, which.
REASONS says why some of these stay by themselves; they are counted apart.
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
    trees = {name: ast.parse(text) for name, text in texts.items()}
    importers: dict[str, set[str]] = defaultdict(set)
    defined: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for each in imported(tree, set(texts)):
            importers[each].add(name)
        for each in () if NOT_COUNTED.search(name) else public_names(tree):
            defined[each].add(name)
    modules = sorted(set(texts) - packages)
    lines = {name: len(texts[name].splitlines()) for name in modules}
    small = [name for name in modules if lines[name] < SMALL]
    single = [name for name in modules if len(importers[name] - {name}) == 1]
    both = sorted({*small} & {*single})
    kept = {name: why for name in both if (why := reason(name))}
    left = [name for name in both if name not in kept]
    unused = [name for name in modules if not importers[name] - {name}]
    twice = {name: sorted(where) for name, where in sorted(defined.items()) if len(where) > 1}
    print(f"{len(modules)} modules, {sum(lines.values()):,} lines")
    print(f"{len(small)} under {SMALL} lines")
    print(f"{len(single)} with one importer")
    print(f"{len(both)} both at once, {len(kept)} of them with a reason")
    print(f"{len(unused)} that no module of Lumos imports")
    print(f"{len(twice)} public names that several modules define")
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
