"""Run every benchmark; each prints its own ratio against a peer measured in the same run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


def main() -> int:
    """Return 0 when every benchmark ran."""
    scripts = sorted(BENCHMARKS.glob("*.py"))
    if not scripts:
        print("bench: benchmarks/ holds no benchmark yet")
    failed = [script.name for script in scripts if not _ran(script)]
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _ran(script: Path) -> bool:
    print(f"== {script.name}", flush=True)
    return subprocess.run([sys.executable, str(script)], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
