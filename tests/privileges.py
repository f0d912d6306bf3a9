"""What a child process gives up before it runs, so that tests hold for root as well."""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Callable

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE = 1
_CAP_DAC_READ_SEARCH = 2
_CAP_FOWNER = 3


def obeying_permissions() -> None:
    """Let file modes bind this process even as root, from its next exec on."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH, _CAP_FOWNER):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "cannot drop a capability")


def with_files_up_to(size: int) -> Callable[[], None]:
    """Let the system refuse to make any file larger than `size`, as a full disk would."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit
