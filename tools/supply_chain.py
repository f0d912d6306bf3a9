"""What Lumos is made of: the bill of materials, the licences and known vulnerabilities.

python tools/supply_chain.py licences       # exit 1 where a package has a licence not allowed
python tools/supply_chain.py sbom FILE      # CycloneDX JSON of Lumos with all its extras
python tools/supply_chain.py audit          # exit 1 where a pinned package has an advisory,
# exit 3 where the package index gave no answer
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, Licensing
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
POLICY = ROOT / "tools" / "licences.toml"
LOCK = ROOT / "requirements.lock"
NOT_CHECKED = 3

Component = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name, and return its exit code."""
    match arguments:
        case ["licences"]:
            return _report_licences()
        case ["sbom", file]:
            bill = shipped_only(bill_of_materials(), shipped_packages())
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", "utf-8")
            print(f"written: {file}: {len(bill['components'])} packages")
            return 0
        case ["audit"]:
            return _audit()
        case _:
            print(__doc__, file=sys.stderr)
            return 2


def bill_of_materials() -> dict[str, Any]:
    """Return the packages of this environment as CycloneDX lists them."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", sys.executable]
    options = ["--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
    # Checking it against its own schema takes twenty times as long as making it.
    done = subprocess.run(
        [*command, *options, "--no-validate", "--of", "JSON"], check=True, capture_output=True
    )
    bill: dict[str, Any] = json.loads(done.stdout)
    return bill


def shipped_packages() -> set[str]:
    """Return the names of all packages that Lumos with all its extras brings along here."""
    found: set[tuple[str, str]] = set()
    extras = distribution("lumos").metadata.get_all("Provides-Extra") or []
    waiting = [("lumos", extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in found:
            continue
        try:
            requirements = distribution(name).requires or []
        except PackageNotFoundError:  # of another platform
            continue
        found.add((name, extra))
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                wanted = canonicalize_name(requirement.name)
                waiting += [(wanted, each) for each in ("", *requirement.extras)]
    return {name for name, _ in found} - {"lumos"}


def shipped_only(bill: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """Return a bill of materials without the packages that only development needs."""
    components = [each for each in bill["components"] if canonicalize_name(each["name"]) in names]
    known = {each["bom-ref"] for each in components} | {bill["metadata"]["component"]["bom-ref"]}
    dependencies = [
        {**each, "dependsOn": [ref for ref in each.get("dependsOn", []) if ref in known]}
        for each in bill["dependencies"]
        if each["ref"] in known
    ]
    return {**bill, "components": components, "dependencies": dependencies}


def refused_licences(components: Iterable[Component], policy: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each package whose licence the policy does not allow."""
    allowed, ignored = set(policy["allowed"]), set(policy["ignored"])
    exceptions = {canonicalize_name(name) for name in policy["exceptions"]}
    for component in sorted(components, key=lambda each: str(each["name"]).lower()):
        if canonicalize_name(component["name"]) in exceptions:
            continue
        named = [name for name in _licences(component) if name not in ignored]
        if not named:
            yield f"{component['name']} names no licence"
        elif refused := [name for name in named if not _is_allowed(name, allowed)]:
            yield f"{component['name']}: {', '.join(refused)}"


def _licences(component: Component) -> Iterator[str]:
    for entry in component.get("licenses", []):
        licence = entry.get("license", {})
        yield entry.get("expression") or licence.get("id") or licence.get("name") or "unknown"


def _is_allowed(licence: str, allowed: set[str]) -> bool:
    if licence in allowed:
        return True
    try:
        expression = Licensing().parse(licence)
    except ExpressionError:
        return False
    if expression is None or not expression.args:
        return False
    # An expression is true where the licences allowed make it true.
    licensing = Licensing()
    truth = {
        symbol: licensing.TRUE if symbol.key in allowed else licensing.FALSE
        for symbol in expression.symbols
    }
    return bool(expression.subs(truth, simplify=True) == licensing.TRUE)


def _report_licences() -> int:
    policy = tomllib.loads(POLICY.read_text("utf-8"))
    components = bill_of_materials()["components"]
    installed = {canonicalize_name(each["name"]) for each in components}
    refused = [*refused_licences(components, policy)]
    for line in refused:
        print(f"licence not allowed: {line} (see {POLICY.relative_to(ROOT)})", file=sys.stderr)
    if unused := [
        name for name in policy["exceptions"] if canonicalize_name(name) not in installed
    ]:
        print(f"exceptions for packages that are not installed: {', '.join(unused)}")
    if not refused:
        print(f"Licences of {len(components)} packages are allowed.")
    return 1 if refused else 0


def _audit() -> int:
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(LOCK), "--disable-pip"]
    options = ["--require-hashes", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run([*command, *options], check=False, capture_output=True, text=True)
    try:
        answer = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reason = done.stderr.strip().splitlines()[-1:] or ["it gave no answer"]
        print(f"not checked: {reason[0]}", file=sys.stderr)
        return NOT_CHECKED
    lines, code = audit_result(answer)
    for line in lines:
        print(line, file=sys.stderr if code else sys.stdout)
    return code


def audit_result(packages: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
    """Return what to print of an answer of pip-audit, and the exit code."""
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    found = [
        f"{each['name']} {each['version']}: {advisory['id']}"
        + (f", fixed in {', '.join(fixes)}" if (fixes := advisory.get("fix_versions")) else "")
        for each in packages
        for advisory in each.get("vulns", [])
    ]
    checked = len(packages) - len(skipped)
    lines = [*found]
    if skipped:
        shown = ", ".join(skipped[:5]) + (", …" if len(skipped) > 5 else "")  # noqa: PLR2004
        lines.append(
            f"not checked: the package index has no advisories for {len(skipped)} of"
            f" {len(packages)} packages ({shown})"
        )
    lines.append(f"advisories: {len(found)} in {checked} packages checked")
    if found:
        return lines, 1
    return lines, NOT_CHECKED if skipped or not packages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
