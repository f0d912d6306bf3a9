"""Every Lumos error can travel between processes and be told apart by its code."""

from __future__ import annotations

import importlib
import inspect
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import lumos
from lumos.core.errors import (
    EXIT_INTERNAL,
    ConfigurationError,
    DatasetNotFoundError,
    LumosError,
    StateLockedError,
)

# An error may be defined beside what raises it; every such module is imported so that it counts.
_SOURCE = Path(lumos.__file__).parent
_DEFINES_AN_ERROR = re.compile(r"^class \w+\((?:\w+, )*\w*Error\b", re.MULTILINE)
for _path in sorted(_SOURCE.rglob("*.py")):
    if re.search(
        r"^class \w+\((?:\w+, )*\w*Error\b", _path.read_text(encoding="utf-8"), re.MULTILINE
    ):
        _parts = _path.relative_to(_SOURCE.parent).with_suffix("").parts
        importlib.import_module(".".join(_parts))


def _family(kind: type[LumosError]) -> Iterator[type[LumosError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)


# Errors that tests define for themselves are no part of the family that users meet.
FAMILY = sorted(
    {kind for kind in _family(LumosError) if kind.__module__.startswith("lumos.")},
    key=lambda kind: kind.__name__,
)


def _instance(kind: type[LumosError]) -> LumosError:
    """Make an error as any constructor leaves it, without knowing its arguments."""
    error = kind.__new__(kind, "something failed")
    LumosError.__init__(error, "something failed", hint="do this", retryable=True)
    error.__dict__["detail"] = ("extra", 3)
    return error


def test_the_family_holds_more_than_its_base() -> None:
    assert len(FAMILY) > 20


@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
def test_an_error_comes_back_from_pickle_with_all_it_carried(kind: type[LumosError]) -> None:
    error = _instance(kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == "something failed"
    assert copy.args == error.args
    assert vars(copy) == vars(error)
    assert copy.as_json() == error.as_json()


@pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)
def test_an_error_class_says_what_it_means_and_how_the_command_ends(kind: type[LumosError]) -> None:
    assert kind.exit_code in {0, 1, 2, 3, 4, 130}
    assert isinstance(kind.retryable, bool)
    assert inspect.getdoc(kind)
    assert kind.__doc__, "the meaning must be its own, not inherited"


def test_no_two_errors_share_a_code() -> None:
    counted = Counter(kind.code for kind in FAMILY)
    assert [code for code, count in counted.items() if count > 1] == []


@pytest.mark.parametrize(
    "kind", [kind for kind in FAMILY if kind is not LumosError], ids=lambda kind: kind.__name__
)
def test_an_error_class_has_a_code_of_its_own(kind: type[LumosError]) -> None:
    assert "code" in vars(kind)
    assert kind.code.startswith("LUM-")


def test_an_error_with_its_own_arguments_survives_pickle() -> None:
    error = DatasetNotFoundError("lumos://s3/a", platform="embedded")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.urn, copy.platform, str(copy)) == ("lumos://s3/a", "embedded", str(error))


def test_an_error_keeps_its_cause_out_of_its_message_and_its_json() -> None:
    with pytest.raises(ConfigurationError) as caught:
        raise ConfigurationError("settings are wrong", hint="look at line 3") from OSError("inner")
    assert caught.value.as_json() == {
        "code": "LUM-100",
        "message": "settings are wrong",
        "hint": "look at line 3",
        "retryable": False,
    }


def test_one_error_can_be_retryable_while_its_class_is_not() -> None:
    assert LumosError("x", retryable=True).retryable
    assert not LumosError("x").retryable
    assert StateLockedError("x").retryable
    assert not StateLockedError("x", retryable=False).retryable
    assert LumosError.exit_code == EXIT_INTERNAL
