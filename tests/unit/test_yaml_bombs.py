"""Small documents that stand for more than memory holds are refused before they are expanded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lumos.core.settings import InvalidSettingsError
from lumos.core.settings import yaml_document as documents
from lumos.core.settings.yaml_document import ITEMS, SETTINGS, DocumentKind, SettingsDocument

_LIMITED = """
import resource, sys
from pathlib import Path
from lumos.core.errors import LumosError
from lumos.core.settings.yaml_document import ITEMS, SETTINGS, read_document
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for kind in (SETTINGS, ITEMS):
    try:
        read_document(Path(sys.argv[1]), kind=kind)
    except LumosError as error:
        print(error.message)
"""


def lists(levels: int, width: int = 10) -> str:
    first = f"a0: &a0 [{', '.join(['lol'] * width)}]"
    others = (
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]"
        for level in range(1, levels)
    )
    return "\n".join([first, *others])


def maps(levels: int, width: int = 10) -> str:
    lines = [f"a0: &a0 {{{', '.join(f'k{each}: 1' for each in range(width))}}}"]
    for level in range(1, levels):
        pairs = ", ".join(f"k{each}: *a{level - 1}" for each in range(width))
        lines.append(f"a{level}: &a{level} {{{pairs}}}")
    return "\n".join(lines)


def merges(levels: int) -> str:
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels):
        above = f"*a{level - 1}"
        lines.append(f"a{level}: &a{level} {{<<: [{above}, {above}], k{level}: 1}}")
    return "\n".join(lines)


EXPANDING = "aliases expand"
DEEP = "nested deeper than 50 levels"
BOMBS = {
    "lists": (lists(9), EXPANDING),
    "lists below the limit of values": (lists(6), EXPANDING),
    "maps": (maps(9), EXPANDING),
    "merge keys": (merges(60), EXPANDING),
    "text": (f"a: &a {'x' * 50_000}\nb: [{', '.join(['*a'] * 1_000)}]", EXPANDING),
    "a list of itself": ("a: &a [*a, *a]", DEEP),
    "a map of itself": ("a: &a {<<: *a, b: *a}", DEEP),
    "brackets": ("[" * 500_000, DEEP),
    "braces": ("{" * 500_000, DEEP),
    "brackets with room": ("a: [ \n" + "  [ \n" * 1_000, DEEP),
    "dashes": ("- " * 300_000, DEEP),
    "questions": ("? " * 300_000, DEEP),
    "indentation": ("\n".join(" " * depth + "a:" for depth in range(1_000)), DEEP),
}


def refusal(text: str, kind: DocumentKind) -> str:
    with pytest.raises(InvalidSettingsError) as refused:
        SettingsDocument(text, file="f.yaml", kind=kind)
    return refused.value.message.replace("aliases expanded", EXPANDING)


@pytest.mark.parametrize("kind", [SETTINGS, ITEMS], ids=["settings", "items"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_before_anything_of_it_is_built(
    bomb: str, kind: DocumentKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a refused document was built")

    monkeypatch.setattr(documents._Builder, "build", never)
    text, reason = BOMBS[bomb]

    assert reason in refusal(text, kind)


def test_every_node_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    count = documents._Expansion._counted

    def counting(self: documents._Expansion, node: object) -> object:
        counted.append(node)
        return count(self, node)  # type: ignore[arg-type]

    monkeypatch.setattr(documents._Expansion, "_counted", counting)

    refusal(lists(40), ITEMS)

    assert len(counted) == 1 + 2 * 40 + 10  # the map, its keys and lists, and the texts


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_needs_neither_memory_nor_time(bomb: str, tmp_path: Path) -> None:
    """The limits are far above what is needed; expanding any of the bombs would exceed them."""
    file = tmp_path / "bomb.yaml"
    file.write_text(BOMBS[bomb][0])

    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(file)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    refusals = done.stdout.splitlines()
    assert len(refusals) == 2
    assert all(str(file) in refusal for refusal in refusals)


def test_aliases_that_spare_typing_are_read() -> None:
    owners = "\n".join(f"- {{<<: *common, name: d{number}}}" for number in range(1_000))
    text = f"common: &common {{team: shop, tags: [a, b, c]}}\nitems:\n{owners}\n"

    value = SettingsDocument(text, file="f.yaml", kind=ITEMS).value

    assert isinstance(value, dict)
    items = value["items"]
    assert isinstance(items, list)
    assert items[999] == {"team": "shop", "tags": ["a", "b", "c"], "name": "d999"}


def test_brackets_in_text_are_no_nesting() -> None:
    banner = "[" * 80
    text = f'# {banner}\na: "{banner}"\nb: 1\n'

    assert SettingsDocument(text, file="f.yaml").value == {"a": banner, "b": 1}


def test_the_first_of_many_merged_maps_wins() -> None:
    many = ", ".join(f"{{k{number}: {number}, same: {number}}}" for number in range(2_000))

    value = SettingsDocument(f"a: {{<<: [{many}]}}", file="f.yaml").value

    assert isinstance(value, dict)
    merged = value["a"]
    assert isinstance(merged, dict)
    assert (merged["same"], merged["k1999"], len(merged)) == (0, 1999, 2_001)
