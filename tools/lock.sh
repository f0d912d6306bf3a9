#!/bin/sh
# Write the lock of the project and of every extra and group, and the part of it that installs uv.
#
#   tools/lock.sh [--check | --upgrade]
#
# The lock is a requirements file with hashes. It names no index, so it installs through any mirror.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Starting from the committed pins keeps them unless pyproject.toml or --upgrade asks for others.
[ "${1:-}" = "--upgrade" ] || cp requirements.lock "$work/requirements.lock" 2>/dev/null || true

.venv/bin/uv pip compile pyproject.toml --quiet --universal --generate-hashes \
    --python-version 3.11 --all-extras --group dev --group docs \
    --no-header --no-emit-index-url --no-emit-find-links \
    --output-file "$work/requirements.lock" >/dev/null

{
    echo "# The pinned dependencies of Lumos, all extras and groups. Written by: make lock"
    grep -v '^#' "$work/requirements.lock"
} >"$work/lock"
{
    echo "# The installer that make setup starts with, copied from requirements.lock by: make lock"
    awk '/^[^ #]/ { keep = /^uv==/ } keep && !/^    #/' "$work/lock"
} >"$work/bootstrap"

if [ "${1:-}" = "--check" ]; then
    if cmp -s "$work/lock" requirements.lock && cmp -s "$work/bootstrap" tools/bootstrap.lock; then
        exit 0
    fi
    echo "requirements.lock does not match pyproject.toml; write it with: make lock" >&2
    exit 1
fi
mv "$work/lock" requirements.lock
mv "$work/bootstrap" tools/bootstrap.lock
