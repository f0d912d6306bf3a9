"""Finds the class behind a name when it is asked for, and not before.

Built-in parts are written as `module:Class` and imported on first use, so that a command never
pays for sources and catalogs that it does not touch. Other distributions add parts through entry
points of the registry's group.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module, metadata
from threading import RLock
from typing import Generic, Literal, NamedTuple, TypeVar, cast

from lumos.core.errors import ConfigurationError, LumosError, MissingExtraError, UnknownNameError

T = TypeVar("T")
_OWN_PACKAGE = __name__.partition(".")[0]


class RegistryEntry(NamedTuple):
    """One registered name and whether it can be used here."""

    name: str
    origin: Literal["built-in", "registered", "entry point"]
    enabled: bool
    reason: str | None = None
    """Why it cannot be used."""
    clash: str | None = None
    """Which other part claims the same name and is not used."""


class Registry(Generic[T]):
    """Names of one kind of part and the classes they stand for. Safe to share by threads.

    A name registered at run time wins over a built-in one, a built-in one over an entry point.
    """

    def __init__(
        self,
        group: str,
        *,
        builtins: Mapping[str, str],
        extras: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        noun: str = "name",
        list_command: str | None = None,
    ) -> None:
        """Create a registry.

        Args:
            group: the entry point group, such as `lumos.sources`.
            builtins: import strings `module:Class` by name.
            extras: the extra of this distribution that a name needs, where it needs one.
            aliases: other spellings of names.
            noun: what a name is called in messages, such as `source type`.
            list_command: the command that lists the names, for hints.
        """
        self._group = group
        self._builtins = dict(builtins)
        self._extras = dict(extras or {})
        self._aliases = dict(aliases or {})
        self._noun = noun
        self._list_command = list_command
        self._registered: dict[str, type[T] | str] = {}
        self._entry_points: dict[str, tuple[metadata.EntryPoint, ...]] | None = None
        self._loaded: dict[str, type[T]] = {}
        self._lock = RLock()

    def register(self, name: str, part: type[T] | str) -> None:
        """Let a name stand for a class, or for one given as `module:Class`, from now on."""
        if isinstance(part, str):
            _split(part, name)
        with self._lock:
            self._registered[name] = part
            self._loaded.pop(name, None)

    def load(self, name: str) -> type[T]:
        """Return the class of a name or alias, importing it on first use.

        Raises:
            UnknownNameError: nobody registered the name.
            MissingExtraError: the packages that the part needs are not installed.
            ConfigurationError: the part is installed but broken; the cause is chained.
        """
        with self._lock:
            resolved = self._resolved(name)
            if resolved not in self._loaded:
                self._loaded[resolved] = self._imported(resolved)
            return self._loaded[resolved]

    def names(self) -> tuple[str, ...]:
        """Return every registered name in ascending order, aliases left out."""
        with self._lock:
            return tuple(sorted({*self._builtins, *self._registered, *self._found()}))

    def aliases(self) -> Mapping[str, str]:
        """Return the other spellings and the names they stand for."""
        return dict(self._aliases)

    def __contains__(self, name: object) -> bool:
        """Return whether a name or alias is registered, without importing its part."""
        return isinstance(name, str) and self._aliases.get(name, name) in self.names()

    def summary(self) -> tuple[RegistryEntry, ...]:
        """Import every part and return which can be used, why others cannot, and clashes."""
        return tuple(self._entry(name) for name in self.names())

    def _entry(self, name: str) -> RegistryEntry:
        origin, losers = self._claims(name)
        clash = f"also claimed by {', '.join(losers)}, not used" if losers else None
        try:
            self.load(name)
        except LumosError as error:
            hint = f"; {error.hint}" if error.hint else ""
            return RegistryEntry(name, origin, False, f"{error.message}{hint}", clash)
        return RegistryEntry(name, origin, True, None, clash)

    def _claims(
        self, name: str
    ) -> tuple[Literal["built-in", "registered", "entry point"], tuple[str, ...]]:
        points = tuple(_described(point) for point in self._found().get(name, ()))
        built_in = ("the built-in part",) if name in self._builtins else ()
        if name in self._registered:
            return "registered", built_in + points
        if name in self._builtins:
            return "built-in", points
        return "entry point", points[1:]

    def _resolved(self, name: str) -> str:
        if name in self._registered or name in self._builtins:
            return name
        target = self._aliases.get(name, name)
        if target in self.names():
            return target
        raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownNameError:
        names = self.names()
        near = get_close_matches(name.lower(), sorted({*names, *self._aliases}), n=3)
        said = f"; did you mean {' or '.join(repr(each) for each in near)}?" if near else ""
        hint = f"known: {', '.join(names)}" if names else "nothing is registered"
        if self._list_command:
            hint = f"list them with: {self._list_command}"
        return UnknownNameError(f"unknown {self._noun} {name!r}{said}", hint=hint)

    def _imported(self, name: str) -> type[T]:
        part = self._registered.get(name) or self._builtins.get(name)
        if part is not None and not isinstance(part, str):
            return part
        text = part if part is not None else self._found()[name][0].value
        module, attribute = _split(text, name)
        try:
            found: object = import_module(module)
            for step in attribute.split("."):
                found = getattr(found, step)
        except ModuleNotFoundError as error:
            raise self._not_importable(name, module, error=error) from error
        except Exception as error:
            raise self._broken(name, module, error=error) from error
        if not isinstance(found, type):
            raise ConfigurationError(f"{self._noun} {name!r} is broken: {text} is not a class")
        return cast("type[T]", found)

    def _not_importable(
        self, name: str, module: str, *, error: ModuleNotFoundError
    ) -> ConfigurationError:
        missing = error.name or ""
        # A module missing from the part's own package means a broken part, not a missing extra.
        if missing.partition(".")[0] in {"", _OWN_PACKAGE, module.partition(".")[0]}:
            return self._broken(name, module, error=error)
        extra = self._extras.get(name)
        if extra is None:
            hint = f"install the package that provides the module {missing}"
        else:
            hint = f"install it with: pip install '{_OWN_PACKAGE}[{extra}]'"
        return MissingExtraError(
            f"{self._noun} {name!r} needs the module {missing}, which is not installed", hint=hint
        )

    def _broken(self, name: str, module: str, *, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"{self._noun} {name!r} is broken: importing {module} failed with "
            f"{type(error).__name__}: {error}",
            hint="run with --debug for the trace, or reinstall the distribution that provides it",
        )

    def _found(self) -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
        with self._lock:
            if self._entry_points is None:
                grouped: dict[str, list[metadata.EntryPoint]] = {}
                points = metadata.entry_points(group=self._group)
                for point in sorted(points, key=lambda point: (point.name, point.value)):
                    grouped.setdefault(point.name, []).append(point)
                self._entry_points = {name: tuple(found) for name, found in grouped.items()}
            return self._entry_points


def _split(text: str, name: str) -> tuple[str, str]:
    module, separator, attribute = text.partition(":")
    if not separator or not module or not attribute:
        raise ConfigurationError(
            f"the part {name!r} is registered as {text!r}", hint="write it as module:Class"
        )
    return module.strip(), attribute.partition("[")[0].strip()


def _described(point: metadata.EntryPoint) -> str:
    distribution = point.dist.name if point.dist is not None else "an unnamed distribution"
    return f"{distribution} ({point.value})"
