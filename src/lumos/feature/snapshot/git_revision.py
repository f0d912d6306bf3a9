"""Snapshots as a git repository has them at some revision: `git:REVISION:PATH`.

The git program is asked; it gets no shell, no prompt, and nothing that looks like an option.
A repository may be hostile: its settings name programs and servers. So nothing is fetched, no
program that a repository names is run, and no other object takes the place of the one asked for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, Self

from typing_extensions import override

from lumos.core.errors import InputUnreadableError, UsageError
from lumos.core.store.snapshots.manifest import MANIFEST_NAME, SIGNATURE_NAME, SIGNATURE_SUFFIX
from lumos.core.store.snapshots.part_format import is_part_name
from lumos.core.store.snapshots.snapshot_files import storing

_PREFIX = "git:"
FORM = "git:REVISION:PATH, such as git:main:metadata/snapshot.json"
LARGEST_REVISION_BYTES = 4 * 1024**3
"""Packed by git, it may be a thousand times smaller, and the disk would fill up."""
_CHUNK = 1 << 20
_LARGE_FILE_POINTER = b"version https://git-lfs.github.com/spec/"
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",  # no transport, whatever settings allow
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "protocol.allow=never"),
)
"""Settings of the command line, which settings of a repository cannot override."""
_OWN_NAMES = frozenset({MANIFEST_NAME, SIGNATURE_NAME})
_TRUSTED = "safe.directory"
_OTHER_OWNER = "dubious ownership"


class GitReference(NamedTuple):
    """A file or folder of a git repository at a revision; the path is seen from this folder."""

    revision: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `git:REVISION:PATH`; None for what names something else.

        Raises:
            UsageError: the revision or the path is missing, or looks like an option.
        """
        if not text.startswith(_PREFIX):
            return None
        revision, colon, path = text.removeprefix(_PREFIX).partition(":")
        if not colon or not revision or not path or "\0" in text:
            raise UsageError("a snapshot in git needs a revision and a path", hint=f"give {FORM}")
        if revision.startswith("-"):
            raise UsageError(
                f"{revision} is an option and no revision", hint="give a branch, a tag or a commit"
            )
        return cls(revision, path)

    @override
    def __str__(self) -> str:
        return f"{_PREFIX}{self.revision}:{self.path}"

    def extract(self, folder: Path) -> Path:
        """Write the file, or the snapshot folder, below `folder` and return where it is.

        A signature beside it in the same revision is written beside it here, too.

        Raises:
            InputUnreadableError: there is no git, repository, revision or path of that name, or
                it cannot be read.
            StorageFullError: the disk is full.
        """
        git = _Git.found()
        commit = self._commit(git)
        kind, content = self._found(git, commit)
        target = folder / "snapshot.json" if kind == "blob" else folder / "snapshot"
        with storing(target):
            if kind == "blob":
                contents = {target: content, **self._signature(git, commit, target)}
            else:
                target.mkdir()
                contents = {target / name: part for name, part in self._parts(git, content)}
            if not git.copy(contents):
                raise self._not_here()
            if kind == "blob":
                self._refuse_pointer(target)
        return target

    def _not_here(self) -> InputUnreadableError:
        """Return the error for an object that a partial clone left on its server."""
        return InputUnreadableError(
            f"{self} is not in this clone, and Lumos fetches nothing",
            hint=f"let git fetch it: git fetch --refetch, or git show {self.revision}:{self.path}",
        )

    def _commit(self, git: _Git) -> str:
        is_repository, reason = git.asked("rev-parse", "--git-dir")
        if is_repository is None and _OTHER_OWNER in reason:
            raise InputUnreadableError(
                f"cannot read {self}: the git repository of this folder belongs to another user",
                hint=f"if you trust it: git config --global --add {_TRUSTED} {_top_folder()}",
            )
        if is_repository is None:
            raise InputUnreadableError(
                f"cannot read {self}: this folder is in no git repository",
                hint="run lumos in the checkout; git status says what git thinks of it",
            )
        commit = git.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{self.revision}^{{commit}}"
        )
        if commit is None:
            raise InputUnreadableError(
                f"this git repository has no revision {self.revision}",
                hint="a checkout in CI may lack it: git fetch origin, or fetch the whole history",
            )
        return commit

    def _object(self, git: _Git, commit: str, *, suffix: str = "") -> str | None:
        relative = Path(os.path.relpath(self.path)).as_posix() + suffix
        return git.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}:./{relative}"
        )

    def _signature(self, git: _Git, commit: str, target: Path) -> dict[Path, str]:
        content = self._object(git, commit, suffix=SIGNATURE_SUFFIX)
        if content is None or git.ask("cat-file", "-t", content) != "blob":
            return {}
        return {target.with_name(f"{target.name}{SIGNATURE_SUFFIX}"): content}

    def _found(self, git: _Git, commit: str) -> tuple[str, str]:
        content = self._object(git, commit)
        kind = git.ask("cat-file", "-t", content) if content else None
        if content is not None and kind is None:
            raise self._not_here()
        if content is None or kind not in {"blob", "tree"}:
            raise InputUnreadableError(
                f"{self.revision} has no {self.path}",
                hint=f"the path is seen from this folder; see: git ls-tree {self.revision}",
            )
        return kind, content

    def _parts(self, git: _Git, tree: str) -> Iterator[tuple[str, str]]:
        """Yield the names and contents of the files of a snapshot folder; others are left out."""
        found = {}
        for entry in (git.ask("ls-tree", "-z", tree) or "").split("\0"):
            facts, _, name = entry.partition("\t")
            if " blob " in facts and (name in _OWN_NAMES or is_part_name(name)):
                found[name] = facts.rpartition(" ")[2]
        if MANIFEST_NAME not in found:
            raise InputUnreadableError(
                f"{self} is a folder without a {MANIFEST_NAME}: no snapshot",
                hint="give a snapshot's own folder, or a file that lumos export wrote",
            )
        yield from found.items()

    def _refuse_pointer(self, file: Path) -> None:
        with file.open("rb") as stream:
            if stream.read(len(_LARGE_FILE_POINTER)) == _LARGE_FILE_POINTER:
                raise InputUnreadableError(
                    f"{self} is kept in Git LFS: the repository has only a pointer to it",
                    hint="check the revision out with git lfs and give the file",
                )


class _Git:
    """The git program, asked from the current folder."""

    def __init__(self, program: str) -> None:
        self._program = program
        trusted = (f"{_TRUSTED}={folder}" for folder in self._trusted_folders())
        self._command = [program, *_OPTIONS, *(part for each in trusted for part in ("-c", each))]

    def _trusted_folders(self) -> list[str]:
        """Return the repositories of others that the user and the machine trust.

        Nothing else of their settings is used.
        """
        found = []
        for scope in ("--system", "--global"):
            try:
                done = subprocess.run(
                    [self._program, "config", scope, "--includes", "-z", "--get-all", _TRUSTED],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                )
            except OSError as error:
                raise _unusable(error) from error
            found += os.fsdecode(done.stdout).split("\0")[:-1]
        return found

    @classmethod
    def found(cls) -> _Git:
        program = shutil.which("git")
        if program is None:
            raise InputUnreadableError(
                "a snapshot in git needs the program git, which is not here",
                hint="install git, or check the revision out and give the file",
            )
        return cls(program)

    def ask(self, *arguments: str) -> str | None:
        """Return what git answers, or None where it refuses."""
        return self.asked(*arguments)[0]

    def asked(self, *arguments: str) -> tuple[str | None, str]:
        """Return what git answers, or None where it refuses, and what it says about that."""
        try:
            done = subprocess.run(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                env=_environment(),
            )
        except OSError as error:
            raise _unusable(error) from error
        answer = os.fsdecode(done.stdout).rstrip("\n") if done.returncode == 0 else None
        return answer, os.fsdecode(done.stderr)

    def copy(self, contents: Mapping[Path, str]) -> bool:
        """Write each content, named by its hash, to a file; none is held in memory.

        Returns:
            whether the repository has all of them.

        Raises:
            InputUnreadableError: all of them are larger than `LARGEST_BYTES`.
        """
        left = LARGEST_REVISION_BYTES
        with self._batch() as (questions, answers):
            for target, content in contents.items():
                questions.write(content.encode() + b"\n")
                questions.flush()
                size = answers.readline().rpartition(b" ")[2]
                if size.strip() == b"missing":
                    return False
                if not size.strip().isdigit():
                    raise _unusable(None)
                left -= int(size)
                if left < 0:
                    raise InputUnreadableError(
                        f"a snapshot in git is larger than {LARGEST_REVISION_BYTES:,} bytes",
                        hint="check the revision out and give the file or folder",
                    )
                with target.open("xb") as file:
                    _copy(answers, file, size=int(size))
                answers.read(1)
        return True

    @contextmanager
    def _batch(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        try:
            process = subprocess.Popen(
                [*self._command, "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        except OSError as error:
            raise _unusable(error) from error
        with process:
            if process.stdin is None or process.stdout is None:
                raise _unusable(None)
            try:
                yield process.stdin, process.stdout
            except BrokenPipeError:
                raise _unusable(None) from None
            finally:
                process.terminate()


def _copy(source: IO[bytes], target: IO[bytes], *, size: int) -> None:
    while size:
        chunk = source.read(min(size, _CHUNK))
        if not chunk:
            raise _unusable(None)
        target.write(chunk)
        size -= len(chunk)


def _environment() -> dict[str, str]:
    return {**os.environ, **_ENVIRONMENT}


def _top_folder() -> str:
    """Return the folder of the repository as git looks for it: the next one with a `.git`."""
    here = Path.cwd()
    return str(next((each for each in (here, *here.parents) if (each / ".git").exists()), here))


def _unusable(error: OSError | None) -> InputUnreadableError:
    reason = (error.strerror if error else None) or "it ended early"
    return InputUnreadableError(
        f"git cannot be asked: {reason}", hint="check that git works here: git status"
    )
