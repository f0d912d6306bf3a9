"""What all answers of commands share."""

from __future__ import annotations

from pydantic import BaseModel, JsonValue

from lumos.core.models.base import CanonicalModel


class Result(BaseModel):
    """An answer of a command: frozen, closed, and printed with every key."""

    model_config = CanonicalModel.model_config

    def as_json(self) -> dict[str, JsonValue]:
        """Return the object that `--json` prints, with every key."""
        return self.model_dump(mode="json")
