"""An import takes only what is signed with a trusted key, where somebody asked for that."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import JANUARY, Lumos, Result
from lumos.core.store.snapshots.signatures import check
from snapshot_keys import private_key, public_key

FORMS = ("file", "folder", "git file", "git folder")


class Signed:
    """A snapshot in one form, signed or not."""

    def __init__(self, lumos: Lumos, project: Path, form: str) -> None:
        self.lumos = lumos
        self.project = project
        self.form = form
        self.place = project / ("given" if form.endswith("folder") else "given.json")
        output = f"{self.place}/" if form.endswith("folder") else str(self.place)
        assert lumos("export", "--snapshot", JANUARY, "--output", output).exit_code == 0

    def sign(self, key: Path) -> None:
        assert self.lumos("snapshot", "sign", str(self.place), "--key", str(key)).exit_code == 0

    def change(self) -> None:
        """Replace the content by another one that is whole in itself; the signature stays."""
        changed = json.loads(Path(JANUARY).read_text())
        changed["datasets"] = changed["datasets"][:1]
        changed.pop("document_sha256", None)
        changed.pop("lineage_edges", None)
        other = self.project / "other.json"
        other.write_text(json.dumps(changed))
        if not self.place.is_dir():
            self.lumos("export", "--snapshot", str(other), "--output", str(self.place))
            return
        signature = (self.place / "manifest.json.sig").read_bytes()
        shutil.rmtree(self.place)
        self.lumos("export", "--snapshot", str(other), "--output", f"{self.place}/")
        (self.place / "manifest.json.sig").write_bytes(signature)

    def reference(self) -> str:
        if not self.form.startswith("git"):
            return str(self.place)
        for command in (
            ("init", "--quiet", "--initial-branch=main"),
            ("add", "--force", f"{self.place.name}*"),
            ("commit", "--quiet", "--message", "given"),
        ):
            subprocess.run(["git", *command], cwd=self.project, check=True, capture_output=True)
        return f"git:main:{self.place.name}"


@pytest.fixture(params=FORMS)
def signed(
    request: pytest.FixtureRequest, lumos: Lumos, project: Path, monkeypatch: pytest.MonkeyPatch
) -> Signed:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ada@example.org")
    return Signed(lumos, project, request.param)


@pytest.fixture
def key(project: Path) -> Path:
    return private_key(project, "release")


def assert_refused(result: Result, project: Path, reason: str) -> None:
    assert result.exit_code == 3, result.stderr
    assert reason in result.error_line
    assert not list((project / ".lumos").glob("lumos.db*"))


def trust(project: Path, *names: str) -> None:
    (project / "lumos.yaml").write_text(f"trusted_keys: [{', '.join(names)}]\n")


def test_what_is_signed_with_the_key_is_imported(signed: Signed, key: Path, lumos: Lumos) -> None:
    signed.sign(key)

    result = lumos("import", signed.reference(), "--key", str(public_key(key)))

    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    "more", [(), ("--dry-run",), ("--skip-existing",), ("--overwrite",), ("--restart",)]
)
def test_what_is_not_signed_is_refused(
    signed: Signed, project: Path, key: Path, *, lumos: Lumos, more: tuple[str, ...]
) -> None:
    result = lumos("import", signed.reference(), "--key", str(public_key(key)), *more)

    assert_refused(result, project, "it is not signed")


def test_what_is_signed_with_another_key_is_refused(
    signed: Signed, project: Path, key: Path, *, lumos: Lumos
) -> None:
    signed.sign(private_key(project, "other"))

    result = lumos("import", signed.reference(), "--key", str(public_key(key)))

    assert_refused(result, project, "it is signed with another key")


def test_what_was_changed_after_it_was_signed_is_refused(
    signed: Signed, project: Path, key: Path, *, lumos: Lumos
) -> None:
    signed.sign(key)
    signed.change()

    result = lumos("import", signed.reference(), "--key", str(public_key(key)))

    assert_refused(result, project, "its signature does not fit its content")


def test_a_signature_that_is_none_is_refused(
    signed: Signed, project: Path, key: Path, *, lumos: Lumos
) -> None:
    signed.sign(key)
    (signature,) = [each for each in project.rglob("*.sig") if ".lumos" not in each.parts]
    signature.write_bytes(b"nonsense")

    result = lumos("import", signed.reference(), "--key", str(public_key(key)))

    assert_refused(result, project, "its signature is not one that lumos snapshot sign makes")


def test_standard_input_and_catalogs_have_no_signature(
    lumos: Lumos, project: Path, key: Path, *, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = io.TextIOWrapper(io.BytesIO(Path(JANUARY).read_bytes()))
    monkeypatch.setattr("sys.stdin", given)
    result = lumos("import", "-", "--key", str(public_key(key)))
    assert_refused(result, project, "it is not signed")

    result = lumos("import", "embedded", "--key", str(public_key(key)))
    assert result.exit_code == 3
    assert "a catalog has no signature" in result.error_line


def test_settings_name_the_keys_from_the_folder_of_their_file(
    signed: Signed, project: Path, key: Path, *, lumos: Lumos, monkeypatch: pytest.MonkeyPatch
) -> None:
    private_key(project, "second")
    trust(project, "second.pub", "release.pub")
    assert_refused(lumos("import", signed.reference()), project, "it is not signed")
    signed.sign(key)
    reference = str(signed.place)

    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / "elsewhere")
    result = lumos("--config", str(project / "lumos.yaml"), "import", reference)

    assert result.exit_code == 0, result.stderr


def test_settings_refuse_a_key_that_they_do_not_name(
    signed: Signed, project: Path, key: Path, *, lumos: Lumos
) -> None:
    trust(project, "release.pub")
    signed.sign(private_key(project, "other"))

    assert_refused(lumos("import", signed.reference()), project, "it is signed with another key")
    result = lumos("version", "apply", "--to", str(signed.place))
    assert result.exit_code == 3
    assert "it is signed with another key" in result.error_line


def test_a_key_of_the_command_counts_instead_of_those_of_the_settings(
    signed: Signed, project: Path, key: Path, *, lumos: Lumos
) -> None:
    trust(project, "release.pub")
    signed.sign(key)
    other = private_key(project, "other")

    result = lumos("import", signed.reference(), "--key", str(public_key(other)))

    assert_refused(result, project, "it is signed with another key")


def test_reading_and_the_own_store_need_no_signature(
    lumos: Lumos, project: Path, key: Path
) -> None:
    lumos("import", JANUARY)
    lumos("snapshot", "create")
    trust(project, "release.pub")

    assert lumos("diff", "--source", JANUARY, "--target", JANUARY).exit_code == 0
    assert lumos("validate", JANUARY).exit_code == 0
    assert lumos("import", "latest").exit_code == 0
    (stored,) = (project / ".lumos" / "snapshots").glob("[0-9]*")
    assert lumos("import", stored.name).exit_code == 0
    assert lumos("import", "latest", "--key", str(public_key(key))).exit_code == 3
    assert lumos("import", JANUARY).exit_code == 3


def test_a_migration_imports_what_it_exported_itself(
    lumos: Lumos, project: Path, key: Path
) -> None:
    lumos("import", JANUARY)
    trust(project, "release.pub")

    result = lumos("migrate", "--from", "embedded", "--to", f"sqlite:///{project}/new.db")

    assert result.exit_code == 0, result.stderr


def test_a_key_that_is_not_there_is_named(signed: Signed, key: Path, lumos: Lumos) -> None:
    signed.sign(key)
    trust(signed.project, "release.pub", "missing.pub")

    assert_refused(lumos("import", signed.reference()), signed.project, "cannot read the key")


@pytest.mark.parametrize("form", ["file", "folder"])
def test_what_is_replaced_after_the_check_is_not_imported(
    lumos: Lumos, project: Path, key: Path, *, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes that were checked are the bytes that are imported."""
    signed = Signed(lumos, project, form)
    signed.sign(key)

    def checked_then_replaced(content: Iterator[bytes], *rest: object, **more: object) -> object:
        found = check(content, *rest, **more)  # type: ignore[arg-type]
        signed.change()
        return found

    monkeypatch.setattr("lumos.feature.snapshot.signed_source.check", checked_then_replaced)

    result = lumos("import", signed.reference(), "--key", str(public_key(key)), "--json")

    datasets = len(json.loads(Path(JANUARY).read_text())["datasets"])
    if form == "file":
        assert len(result.json()["created"]) == datasets
    else:  # parts that are gone or do not fit the manifest that was checked
        assert result.exit_code != 0
        assert "the file is missing" in result.stderr


def test_the_sdk_takes_a_key(project: Path, key: Path) -> None:
    from lumos.core.store.snapshots.signatures import SignatureError
    from lumos.entry.sdk import Lumos as Project

    assert os.getcwd() == str(project)
    with pytest.raises(SignatureError, match="not signed"):
        Project().import_(JANUARY, key=public_key(key))
