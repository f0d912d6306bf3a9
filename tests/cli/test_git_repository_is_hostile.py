"""Reading a snapshot from a git repository runs nothing and fetches nothing, whatever it says."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import JANUARY, Lumos

Git = Callable[..., str]
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
STATE = "metadata/state.json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without any settings of git."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in {**_IDENTITY, "HOME": str(home), "XDG_CONFIG_HOME": str(home)}.items():
        monkeypatch.setenv(name, value)
    return home


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def git(project: Path, home: Path) -> Git:
    """A repository in the project folder with January on `main`."""
    run(project, "init", "--quiet", "--initial-branch=main")
    (project / "metadata").mkdir()
    shutil.copy(JANUARY, project / STATE)
    run(project, "add", STATE)
    run(project, "commit", "--quiet", "--message", "january")
    return lambda *arguments: run(project, *arguments)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that every planted command would write."""
    return tmp_path / "canary"


@pytest.fixture
def planted(tmp_path: Path, canary: Path) -> str:
    """A program that leaves the canary behind, whatever it is called with."""
    program = tmp_path / "planted"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {canary}\nexit 1\n')
    program.chmod(0o755)
    return str(program)


def plant_programs(git: Git, project: Path, planted: str) -> None:
    """Name the program in every setting of a repository that lets git run one."""
    for setting in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.askPass",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.smudge",
        "filter.evil.process",
        "pager.cat-file",
        "pager.rev-parse",
        "pager.ls-tree",
        "interactive.diffFilter",
        "gpg.program",
        "uploadpack.packObjectsHook",
    ):
        git("config", setting, planted)
    for alias in ("cat-file", "rev-parse", "ls-tree", "main"):
        git("config", f"alias.{alias}", f"!{planted}")
    git("config", "credential.helper", f"!{planted}")
    git("config", "filter.evil.required", "true")
    (project / ".gitattributes").write_text("* filter=evil diff=evil\n")
    hooks = project / "hooks"
    hooks.mkdir()
    for hook in (
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
    ):
        shutil.copy(planted, hooks / hook)
    git("config", "core.hooksPath", str(hooks))


def test_a_repository_cannot_run_anything(
    lumos: Lumos, git: Git, project: Path, canary: Path, planted: str
) -> None:
    plant_programs(git, project, planted)
    canary.unlink(missing_ok=True)

    result = lumos("diff", "--source", f"git:main:{STATE}", "--target", f"git:HEAD:{STATE}")

    assert result.exit_code == 0, result.stderr
    assert not canary.exists(), canary.read_text()


def partial_clone(project: Path, planted: str, *, url: str) -> None:
    """Make the repository one whose file has to be fetched from a server that it promises."""

    def git(*arguments: str) -> str:
        return run(project, *arguments)

    blob = git("rev-parse", f"main:{STATE}")
    (project / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    git("config", "core.repositoryFormatVersion", "1")
    git("config", "extensions.partialClone", "origin")
    git("config", "remote.origin.url", url)
    git("config", "remote.origin.promisor", "true")
    git("config", "remote.origin.partialCloneFilter", "blob:none")
    git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    git("config", "remote.origin.uploadpack", planted)
    git("config", "core.sshCommand", planted)
    git("config", "protocol.allow", "always")
    git("config", "protocol.ext.allow", "always")
    git("config", "protocol.file.allow", "always")


@pytest.mark.parametrize("kind", ["ext", "ssh", "path", "file", "helper"])
@pytest.mark.usefixtures("git")
def test_a_partial_clone_is_not_completed_from_its_remote(
    lumos: Lumos, project: Path, *, canary: Path, planted: str, kind: str
) -> None:
    other = canary.with_name("other")
    shutil.copytree(project, other)
    url = {
        "ext": f"ext::{planted} %S",
        "ssh": "ssh://nobody@127.0.0.1/x",
        "path": str(other),
        "file": f"file://{other}",
        "helper": f"planted::{other}",
    }[kind]
    partial_clone(project, planted, url=url)

    result = lumos("diff", "--source", f"git:main:{STATE}", "--target", JANUARY)

    assert not canary.exists(), canary.read_text()
    assert result.exit_code == 3, result.stderr
    assert "is not in this clone" in result.stderr
    assert "git fetch" in result.stderr


def test_the_blob_of_a_partial_clone_stays_missing(
    lumos: Lumos, git: Git, project: Path, tmp_path: Path, planted: str
) -> None:
    """Without a command in the way the fetch would succeed, and would be seen by its object."""
    other = tmp_path / "other"
    shutil.copytree(project, other)
    run(other, "config", "uploadpack.allowAnySHA1InWant", "true")
    run(other, "config", "uploadpack.allowFilter", "true")
    partial_clone(project, planted, url=str(other))
    git("config", "--unset", "remote.origin.uploadpack")
    before = sorted((project / ".git" / "objects").rglob("*"))

    result = lumos("diff", "--source", f"git:main:{STATE}", "--target", JANUARY)

    assert result.exit_code == 3
    assert sorted((project / ".git" / "objects").rglob("*")) == before
    git("cat-file", "blob", f"main:{STATE}")  # git itself does fetch it


@pytest.mark.parametrize("revision", ["--output=x", "-h", "--batch", "-"])
def test_a_revision_that_looks_like_an_option_is_refused(
    lumos: Lumos, git: Git, project: Path, revision: str
) -> None:
    result = lumos("diff", "--source", f"git:{revision}:{STATE}", "--target", JANUARY)

    assert result.exit_code == 2
    assert "is an option and no revision" in result.stderr
    assert not (project / "x").exists()


def test_a_replaced_object_is_not_read(lumos: Lumos, git: Git, project: Path) -> None:
    blob = git("rev-parse", f"main:{STATE}")
    (project / "other.json").write_text("{}")
    git("replace", blob, git("hash-object", "-w", "other.json"))

    result = lumos("diff", "--source", f"git:main:{STATE}", "--target", JANUARY)

    assert result.exit_code == 0, result.stderr


def test_a_link_in_a_repository_is_text_and_leads_nowhere(
    lumos: Lumos, git: Git, project: Path
) -> None:
    (project / "metadata" / "link.json").symlink_to(JANUARY)
    git("add", "metadata/link.json")
    git("commit", "--quiet", "--message", "link")

    result = lumos("diff", "--source", "git:main:metadata/link.json", "--target", JANUARY)

    assert result.exit_code == 3


class TestOwnedByAnotherUser:
    """A repository of another user, which git refuses unless the settings of this user allow it."""

    @pytest.fixture(autouse=True)
    def owned_by_another_user(self, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")

    def test_it_is_refused_with_the_reason(self, lumos: Lumos, project: Path) -> None:
        result = lumos("diff", "--source", f"git:main:{STATE}", "--target", JANUARY)

        assert result.exit_code == 3
        assert "belongs to another user" in result.stderr
        assert f"git config --global --add safe.directory {project}" in result.stderr

    @pytest.mark.parametrize("allowed", ["{project}", "*"])
    def test_it_is_read_where_this_user_said_so(
        self, lumos: Lumos, project: Path, allowed: str
    ) -> None:
        value = allowed.format(project=project)
        run(project.parent, "config", "--global", "--add", "safe.directory", value)

        result = lumos("diff", "--source", f"git:main:{STATE}", "--target", JANUARY)

        assert result.exit_code == 0, result.stderr

    def test_the_repository_cannot_allow_itself(self, lumos: Lumos, project: Path) -> None:
        config = project / ".git" / "config"
        config.write_text(config.read_text() + "[safe]\n\tdirectory = *\n")

        result = lumos("diff", "--source", f"git:main:{STATE}", "--target", JANUARY)

        assert result.exit_code == 3
