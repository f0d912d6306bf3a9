"""Reads tables whose logs were damaged at random, one line of answer for each.

It runs as a process of its own, as readers do in the sandbox: what ends it ends no test.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from pathlib import Path

from lumos.core.errors import LumosError
from lumos.core.formats.tables import TableFacts, read_table
from lumos.feature.discovery.datasets import SourceRoot
from lumos.feature.discovery.tables import table_dataset
from table_access import MemoryAccess

ROOT = SourceRoot("local", parts=("lake",))
MEMORY = 4 * 1024**3


def mutated(files: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """Damage one or two files: bytes changed, cut off, doubled, swapped, lost."""
    damaged = dict(files)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(sorted(damaged))
        content = bytearray(damaged[name])
        match rng.randrange(7):
            case 0:
                damaged.pop(name)
                if not damaged:
                    return {}
                continue
            case 1:
                content = content[: rng.randrange(len(content) + 1)]
            case 2:
                other = damaged[rng.choice(sorted(damaged))]
                content[rng.randrange(len(content) + 1) :] = other
            case 3:
                at = rng.randrange(len(content) + 1)
                content[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 4:
                content = bytearray(_with_other_numbers(bytes(content), rng))
            case _:
                for _ in range(rng.randrange(1, 8)):
                    if content:
                        content[rng.randrange(len(content))] = rng.randrange(256)
        damaged[name] = bytes(content)
    return damaged


def _with_other_numbers(content: bytes, rng: random.Random) -> bytes:
    """Change what stands where a value of JSON stands, so that the JSON stays whole."""
    values = (b"-1", b"null", b"1e400", b"99999999999999999999", b'"x"', b"[]", b"{}", b"true")
    parts = content.split(b":")
    if len(parts) > 1:
        at = rng.randrange(1, len(parts))
        rest = parts[at].partition(b",")
        parts[at] = rng.choice(values) + b"".join(rest[1:])
    return b":".join(parts)


def outcome(kind: str, files: dict[str, bytes]) -> str:
    """Return `read` or `refused`; anything else gets out and ends the process."""
    access = MemoryAccess({f"t/{name}": content for name, content in files.items()})
    try:
        facts = read_table(kind, "t", access)
    except LumosError:
        return "refused"
    assert TableFacts.from_json(json.loads(json.dumps(facts.to_json()))) == facts
    table_dataset(ROOT, ("t",), facts=facts).to_json()
    return "read"


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind, folder, first, last = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:5])
    files = {
        name: content
        for name, content in MemoryAccess.of_folder(folder).files.items()
        if name != "expected.json"
    }
    for seed in range(first, last):
        sys.stdout.write(f"{seed} {outcome(kind, mutated(files, random.Random(seed)))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
