"""A registry imports late and tells apart what is unknown, not installed and broken."""

from __future__ import annotations

import sys
from collections import OrderedDict
from pathlib import Path

import pytest

from lumos.core.errors import ConfigurationError, MissingExtraError, UnknownNameError
from lumos.core.registry import Registry, RegistryEntry

GROUP = "lumos.test_parts"


class Part:
    """What this registry hands out."""


class OtherPart(Part):
    """Another one."""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path with modules and a distribution that has entry points."""
    modules = {
        "parts_good": "class Good:\n    class Inner: ...\nnot_a_class = 3\n",
        "parts_needy": "import package_that_nobody_has.inside\n",
        "parts_broken": "raise RuntimeError('half written')\n",
        "parts_syntax": "def :\n",
        "parts_own": "import parts_own.missing\n",
    }
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    info = tmp_path / "acme_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nacme = parts_good:Good\nordered = parts_good:Good\nsick = parts_broken:X\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in modules:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def _registry(**builtins: str) -> Registry[object]:
    return Registry(
        GROUP,
        builtins={"ordered": "collections:OrderedDict", **builtins},
        extras={"needy": "kafka"},
        aliases={"sorted": "ordered", "acme_inc": "acme"},
        noun="source type",
    )


def test_a_built_in_part_is_imported_when_it_is_asked_for(installed: Path) -> None:
    registry = _registry(good="parts_good:Good")
    assert "parts_good" not in sys.modules
    assert "good" in registry
    assert registry.names() == ("acme", "good", "ordered", "sick")
    assert "parts_good" not in sys.modules
    loaded = registry.load("good")
    assert loaded.__module__ == "parts_good"
    assert registry.load("good") is loaded


def test_an_alias_stands_for_its_name(installed: Path) -> None:
    registry = _registry()
    assert registry.load("sorted") is OrderedDict
    assert "sorted" in registry
    assert "sorted" not in registry.names()
    assert registry.load("acme_inc") is registry.load("acme")


def test_an_inner_class_can_be_named(installed: Path) -> None:
    assert _registry(inner="parts_good:Good.Inner").load("inner").__name__ == "Inner"


def test_a_part_registered_at_run_time_wins_and_can_be_replaced() -> None:
    registry: Registry[object] = Registry(GROUP, builtins={"a": "collections:OrderedDict"})
    assert registry.load("a") is OrderedDict
    registry.register("a", Part)
    assert registry.load("a") is Part
    registry.register("a", OtherPart)
    assert registry.load("a") is OtherPart
    registry.register("b", "collections:ChainMap")
    assert registry.load("b").__name__ == "ChainMap"


@pytest.mark.parametrize("text", ["no_colon", ":Class", "module:", ""])
def test_an_import_string_without_module_and_class_is_refused_at_once(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _registry().register("x", text)
    assert caught.value.hint == "write it as module:Class"


def test_an_unknown_name_is_told_with_the_nearest_ones() -> None:
    with pytest.raises(UnknownNameError) as caught:
        _registry().load("orderd")
    assert str(caught.value) == (
        "unknown source type 'orderd'; did you mean 'ordered' or 'sorted'?"
    )
    assert caught.value.hint == "known: ordered"


def test_an_unknown_name_says_how_to_list_the_known_ones() -> None:
    registry: Registry[object] = Registry(GROUP, builtins={}, list_command="lumos doctor")
    with pytest.raises(UnknownNameError) as caught:
        registry.load("x")
    assert str(caught.value) == "unknown name 'x'"
    assert caught.value.hint == "list them with: lumos doctor"


def test_a_missing_package_is_told_with_the_extra_that_brings_it(installed: Path) -> None:
    with pytest.raises(MissingExtraError) as caught:
        _registry(needy="parts_needy:Needy").load("needy")
    assert "needs the module package_that_nobody_has" in str(caught.value)
    assert caught.value.hint == "install it with: pip install 'lumos[kafka]'"


def test_a_missing_package_without_an_extra_is_named(installed: Path) -> None:
    with pytest.raises(MissingExtraError) as caught:
        _registry(other="parts_needy:Needy").load("other")
    assert caught.value.hint is not None
    assert "package_that_nobody_has" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("parts_broken:X", RuntimeError),
        ("parts_syntax:X", SyntaxError),
        ("parts_good:Absent", AttributeError),
        ("parts_own:X", ModuleNotFoundError),
        ("parts_that_are_not_there:X", ModuleNotFoundError),
        ("lumos.core.no_such_module:X", ModuleNotFoundError),
    ],
)
def test_a_broken_part_is_told_with_its_cause(
    installed: Path, text: str, cause: type[Exception]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _registry(bad=text).load("bad")
    assert not isinstance(caught.value, MissingExtraError | UnknownNameError)
    assert str(caught.value).startswith("source type 'bad' is broken: importing ")
    assert cause.__name__ in str(caught.value)
    assert isinstance(caught.value.__cause__, cause)


def test_a_part_that_is_no_class_is_refused(installed: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a class"):
        _registry(value="parts_good:not_a_class").load("value")


def test_a_part_is_found_through_the_entry_point_of_another_distribution(installed: Path) -> None:
    assert _registry().load("acme").__name__ == "Good"


def test_the_summary_tells_what_can_be_used_and_which_names_clash(installed: Path) -> None:
    registry = _registry(needy="parts_needy:Needy")
    registry.register("mine", Part)
    summary = {entry.name: entry for entry in registry.summary()}
    assert registry.load("ordered") is OrderedDict
    assert summary["ordered"] == RegistryEntry(
        "ordered",
        "built-in",
        enabled=True,
        clash="also claimed by acme-parts (parts_good:Good), not used",
    )
    assert summary["acme"] == RegistryEntry("acme", "entry point", enabled=True)
    assert summary["mine"] == RegistryEntry("mine", "registered", enabled=True)
    assert not summary["needy"].enabled
    assert "pip install 'lumos[kafka]'" in str(summary["needy"].reason)
    assert not summary["sick"].enabled
    assert "half written" in str(summary["sick"].reason)
