"""The Content Security Policy of the pages that Lumos writes.

A page holds names and texts of others. They are escaped; should one of them ever become markup, the
policy keeps it from running, loading, sending or styling anything.
"""

from __future__ import annotations

import base64
import hashlib


def page_policy(style: str) -> str:
    """Return the policy of a page without scripts and with one style sheet.

    Args:
        style: all that stands between `<style>` and `</style>`, to the last line end.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
