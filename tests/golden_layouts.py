"""The lists of layouts in `golden`: what is found of them, and the page that tells so.

`python tests/golden_layouts.py` writes the lists into the page again.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from lumos.feature.discovery.assembling import FilePlace, dataset_names
from lumos.feature.discovery.datasets import Layout, merge_layouts
from lumos.feature.discovery.path_specs import PathSpecs

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "reference" / "layouts.md"
BEGIN = "<!-- written by tests/golden_layouts.py -->\n"
NO_SPECS = PathSpecs.of([])


class Judgement(NamedTuple):
    """What was found of one layout."""

    tool: str
    title: str
    datasets: int
    found: int
    """How many of them have the right name and exactly their files."""
    problems: tuple[str, ...]


@lru_cache(maxsize=2)
def layouts(name: str = "layouts") -> tuple[dict[str, Any], ...]:
    text = (HERE / "golden" / f"{name}.yaml").read_text("utf-8")
    return tuple(YAML(typ="safe", pure=True).load(text))


def judged(layout: dict[str, Any], specs: PathSpecs = NO_SPECS) -> Judgement:
    """Place the files of a layout and compare the datasets with those expected."""
    data = [path for path in layout.get("no_data") or () if specs.place(path) is not None]
    problems = [f"{path} is taken for data" for path in data]
    built = _built(layout, specs)
    found = 0
    for expected in layout["datasets"]:
        wanted = {
            "prefix": expected["prefix"],
            "partitioning": expected.get("partitioning"),
            "keys": expected.get("keys") or {},
            "format": expected.get("format"),
            "files": sorted(expected["files"]),
        }
        got = built.get(expected["name"], {})
        found += bool(got) and got["files"] == wanted["files"]
        problems += [
            f"{expected['name']}: {name} is {got.get(name)}, not {value}"
            for name, value in wanted.items()
            if got.get(name) != value
        ]
    return Judgement(
        layout["tool"], layout["layout"], len(layout["datasets"]), found, tuple(problems)
    )


def _built(layout: dict[str, Any], specs: PathSpecs) -> dict[str, dict[str, Any]]:
    groups: dict[tuple[tuple[str, ...], str | None], dict[str, FilePlace]] = defaultdict(dict)
    formats: dict[tuple[str, ...], set[str | None]] = defaultdict(set)
    for dataset in layout["datasets"]:
        for path in dataset["files"]:
            if place := specs.place(path):
                groups[place.dataset, place.format][path] = place
                formats[place.dataset].add(place.format)
    found = {}
    for (dataset, format_), files in groups.items():
        name = "/".join(dataset_names(dataset, formats[dataset])[format_])
        merged = merge_layouts(
            Layout(p.prefix, p.partitioning, p.partition_keys, p.partition_types)
            for p in files.values()
        )
        found[name] = {
            "prefix": merged.prefix,
            "partitioning": merged.partitioning,
            "keys": dict(zip(merged.partition_keys, merged.partition_types, strict=True)),
            "format": format_,
            "files": sorted(files),
        }
    return found


def listed() -> str:
    """Return the lists as the page shows them."""
    first, later = ([(x, judged(x)) for x in layouts(n)] for n in ("layouts", "layouts_later"))
    lines = [
        f"**First list.** {_summary(first)} Before the rules were changed for it, 109 had.",
        "",
        f"**Second list.** {_summary(later)} It was written down when the rules were done with the",
        "first one; at first sight 32 of its 51 datasets had exactly their files.",
        "",
        "These are missed:",
        "",
        "| tool | layout | why | `path_specs` that find it |",
        "|---|---|---|---|",
    ]
    for layout, judgement in (*first, *later):
        if judgement.problems:
            specs = ", ".join(f"`{spec}`" for spec in layout["path_specs"])
            cells = (layout["tool"], layout["layout"], layout["missed"], specs)
            lines.append(f"| {' | '.join(cells)} |")
    for title, found in (("The first list:", first), ("The second list:", later)):
        lines += [
            "",
            title,
            "",
            "| tool | layout | a file | its dataset | |",
            "|---|---|---|---|---|",
        ]
        lines += [_row(layout, judgement) for layout, judgement in found if layout["datasets"]]
    return "\n".join(lines) + "\n"


def _summary(every: list[tuple[dict[str, Any], Judgement]]) -> str:
    datasets = sum(judgement.datasets for _, judgement in every)
    found = sum(judgement.found for _, judgement in every)
    whole = sum(not judgement.problems for _, judgement in every)
    return (
        f"Of {len(every)} layouts {whole} are found with name, prefix, partitions and format; "
        f"of their {datasets} datasets {found} have exactly their files, {found / datasets:.1%}."
    )


def _row(layout: dict[str, Any], judgement: Judgement) -> str:
    dataset = layout["datasets"][0]
    name = f"`{dataset['name']}`" if dataset["name"] else "the source itself"
    mark = "missed" if judgement.problems else "found"
    cells = (layout["tool"], layout["layout"], f"`{dataset['files'][0]}`", name, mark)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    above, _, _ = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(above + BEGIN + listed(), encoding="utf-8")
