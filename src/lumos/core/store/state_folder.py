"""The state folder: only its user can read it, whatever the umask."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from lumos.core.private_files import FOLDER_MODE, is_open_to_others, make_private_folder, tighten

DATABASE_FILE: Final = "lumos.db"
SNAPSHOTS: Final = "snapshots"
FILE_INDEX: Final = "file_index"
MIGRATIONS: Final = "migrations"
WORK_PREFIX: Final = "work-"
RUN_PREFIX: Final = "lumos-run-"
_OF_EARLIER_LUMOS: Final = ("writer.lock", "writer.json")

SETTINGS_SCHEMA: Final = "settings.schema.json"
"""The JSON Schema of the settings, which `lumos init` puts here for editors."""
_NAMES = frozenset({SNAPSHOTS, FILE_INDEX, MIGRATIONS, SETTINGS_SCHEMA, *_OF_EARLIER_LUMOS})
_PREFIXES = (DATABASE_FILE, WORK_PREFIX, RUN_PREFIX)


def prepare_state_folder(folder: Path) -> None:
    """Make the state folder, or make what an earlier Lumos left in it private.

    A folder that holds other things too, or that all users share as they do /tmp, keeps its mode:
    then only the files and folders of Lumos in it become private. Nothing is changed of another
    user, nor on a file system without modes.

    Raises:
        OSError: it cannot be made.
    """
    make_private_folder(folder)
    if not is_open_to_others(folder):
        return
    own, other = [], False
    with suppress(OSError):  # one that cannot be listed is left as it is
        for entry in folder.iterdir():
            if entry.name in _NAMES or entry.name.startswith(_PREFIXES):
                own.append(entry)
            else:
                other = True
        for entry in own:
            tighten(entry)
        mode = folder.stat().st_mode
        if not other and not mode & stat.S_ISVTX:
            folder.chmod(mode & FOLDER_MODE)  # one for reading only stays so
