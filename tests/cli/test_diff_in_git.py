"""Snapshots of any git revision are compared and checked, read by git itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, Lumos

Git = Callable[..., str]
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


@pytest.fixture
def git(project: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A repository in the project folder, with January on `main` and February on `next`."""
    for name, value in _IDENTITY.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=project, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    run("init", "--quiet", "--initial-branch=main")
    (project / "metadata").mkdir()
    for branch, content in (("main", JANUARY), ("next", FEBRUARY)):
        if branch != "main":
            run("switch", "--quiet", "--create", branch)
        shutil.copy(content, project / "metadata" / "state.json")
        run("add", "metadata/state.json")
        run("commit", "--quiet", "--message", branch)
    return run


def difference(lumos: Lumos, source: str, target: str) -> list[str]:
    result = lumos("diff", "--source", source, "--target", target, "--json")
    assert result.exit_code == 0, result.stderr
    answer = result.json()
    assert (answer["source"], answer["target"]) == (source, target)
    return [change["rule"] for change in answer["changes"]]


def test_two_revisions_of_a_file_are_compared(lumos: Lumos, git: Git) -> None:
    expected = difference(lumos, JANUARY, FEBRUARY)
    commit = git("rev-parse", "main")
    git("tag", "january", "main")

    assert expected
    for source in ("main", commit, commit[:8], "january", "next~1", "HEAD^"):
        in_git = f"git:{source}:metadata/state.json"
        assert difference(lumos, in_git, "git:next:metadata/state.json") == expected
        assert difference(lumos, in_git, "metadata/state.json") == expected


def test_a_path_is_seen_from_the_current_folder(
    lumos: Lumos, git: Git, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = difference(lumos, JANUARY, FEBRUARY)
    monkeypatch.chdir(project / "metadata")

    assert difference(lumos, "git:main:state.json", "state.json") == expected
    assert difference(lumos, f"git:main:{project}/metadata/state.json", "state.json") == expected


def test_a_snapshot_folder_is_compared_too(lumos: Lumos, git: Git, project: Path) -> None:
    lumos("import", "git:main:metadata/state.json")
    lumos("snapshot", "create")
    (stored,) = (project / ".lumos" / "snapshots").glob("*Z-*")
    shutil.copytree(stored, project / "parts")
    (project / "parts" / "notes.txt").write_text("not of the snapshot")
    git("add", "parts")
    git("commit", "--quiet", "--message", "parts")
    shutil.rmtree(project / "parts")

    expected = difference(lumos, stored.name, FEBRUARY)
    assert difference(lumos, "git:HEAD:parts", FEBRUARY) == expected
    assert lumos("validate", "git:HEAD:parts").exit_code == 0


def test_a_revision_is_validated(lumos: Lumos, git: Git, project: Path) -> None:
    (project / "metadata" / "state.json").write_text('{"datasets": [{}]}')
    git("commit", "--quiet", "--all", "--message", "broken")

    assert lumos("validate", "git:main:metadata/state.json").exit_code == 0
    broken = lumos("validate", "git:HEAD:metadata/state.json", "--json")
    assert broken.exit_code != 0
    assert "git:HEAD:metadata/state.json" in broken.stdout


@pytest.mark.parametrize(
    ("reference", "exit_code", "told"),
    [
        ("git:nowhere:metadata/state.json", 3, "no revision nowhere"),
        ("git:main:metadata/other.json", 3, "main has no metadata/other.json"),
        ("git:main:../outside.json", 3, "main has no ../outside.json"),
        ("git:main:metadata", 3, "without a manifest.json"),
        ("git:main:", 2, "needs a revision and a path"),
        ("git::metadata/state.json", 2, "needs a revision and a path"),
        ("git:main", 2, "needs a revision and a path"),
        ("git:--output=x:metadata/state.json", 2, "is an option and no revision"),
        ("git:main^{tree}:metadata/state.json", 3, "no revision"),
    ],
)
@pytest.mark.usefixtures("git")
def test_what_git_does_not_have_is_said_in_a_line(
    lumos: Lumos, project: Path, reference: str, *, exit_code: int, told: str
) -> None:
    result = lumos("diff", "--source", reference, "--target", JANUARY)

    assert result.exit_code == exit_code
    assert told in result.error_line
    assert not (project / "x").exists()


def test_content_that_is_no_snapshot_is_named_by_its_revision(
    lumos: Lumos, git: Git, project: Path
) -> None:
    (project / "metadata" / "state.json").write_text("{")
    git("commit", "--quiet", "--all", "--message", "broken")

    result = lumos("diff", "--source", "git:HEAD:metadata/state.json", "--target", JANUARY)

    assert result.exit_code == 3
    assert "git:HEAD:metadata/state.json" in result.error_line


def test_a_pointer_of_large_file_storage_is_told_apart(
    lumos: Lumos, git: Git, project: Path
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    (project / "metadata" / "state.json").write_text(pointer)
    git("commit", "--quiet", "--all", "--message", "pointer")

    result = lumos("diff", "--source", "git:HEAD:metadata/state.json", "--target", JANUARY)

    assert result.exit_code == 3
    assert "kept in Git LFS" in result.error_line


def test_without_a_repository_it_says_so(
    lumos: Lumos, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))

    result = lumos("diff", "--source", "git:main:state.json", "--target", JANUARY)

    assert result.exit_code == 3
    assert "in no git repository" in result.error_line


def test_without_git_it_says_so(
    lumos: Lumos, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(project))

    result = lumos("diff", "--source", "git:main:state.json", "--target", JANUARY)

    assert result.exit_code == 3
    assert "needs the program git" in result.error_line


def test_the_gate_works_on_revisions(lumos: Lumos, git: Git) -> None:
    sides = ("--source", "git:main:metadata/state.json", "--target", "git:next:metadata/state.json")

    assert lumos("diff", *sides).exit_code == 0
    assert lumos("diff", *sides, "--fail-on", "breaking").exit_code == 1
    answer = json.loads(lumos("diff", *sides, "--level", "breaking", "--json").stdout)
    assert {change["level"] for change in answer["changes"]} == {"BREAKING"}
    assert answer["summary"]["changes"] > len(answer["changes"])


def test_a_snapshot_in_git_that_would_fill_the_disk_is_refused(
    lumos: Lumos, git: Git, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.feature.snapshot.git_revision.LARGEST_REVISION_BYTES", 1_000)
    result = lumos("validate", "git:main:metadata/state.json")
    assert result.exit_code not in {0, 1}
    assert "larger than 1,000 bytes" in result.error_line
