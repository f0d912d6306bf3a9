"""A reader whose process ends as soon as it is forked."""

from __future__ import annotations

import os

from lumos.core.formats.reader import read_file

os.register_at_fork(after_in_child=lambda: os._exit(9))
read = read_file
