"""When to kill a process: at random moments of its work, however fast the machine is just then."""

from __future__ import annotations

import random
import time

_STEP = 1.5
_LONGEST = 30.0


class Moments:
    """How long processes live that are killed one after the other.

    On a machine that became busier since their work was measured none of them would get anywhere,
    so the longest life grows while they do not, and shrinks again while they do.
    """

    def __init__(self, longest: float, chance: random.Random) -> None:
        self._least = self._longest = longest
        self._chance = chance

    def wait(self) -> None:
        """Let the next one live for a while."""
        time.sleep(self._chance.uniform(0.0, self._longest))

    def got_somewhere(self, it_did: bool) -> None:
        """Tell whether the last one had finished anything before it was killed."""
        wanted = self._longest / _STEP if it_did else self._longest * _STEP
        self._longest = min(max(wanted, self._least), max(_LONGEST, self._least))
