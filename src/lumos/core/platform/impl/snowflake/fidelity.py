"""How well Snowflake keeps each concept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lumos.core.platform.fidelity import CONCEPTS, Fidelity

_SHOWN: Final = {
    **dict.fromkeys(
        ("field", "field_description", "description", "tag_definition"), Fidelity.NATIVE
    ),
    **dict.fromkeys(
        ("dataset", "kind", "owner", "tag", "field_tag"),
        Fidelity.TRANSFORMED,
    ),
}
FIDELITY: Final[Mapping[str, Fidelity]] = {
    concept: _SHOWN.get(concept, Fidelity.STASHED) for concept in CONCEPTS
}
"""For datasets that are tables of Snowflake; of others all is in the stash. Nothing is dropped."""
