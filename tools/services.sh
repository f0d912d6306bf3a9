#!/bin/sh
# What the service tests need from the system.
#
#   tools/services.sh install     install it on Debian or Ubuntu, say what to install elsewhere
#   tools/services.sh check       fail with the missing programs
#
# One line per program that a test marked `service` uses: PROGRAM DEBIAN-PACKAGE
set -eu

NEEDS="$(sed 's/#.*//' "$(dirname "$0")/services.txt")"

missing() {
    echo "$NEEDS" | while read -r program package; do
        [ -n "$program" ] || continue
        command -v "$program" >/dev/null 2>&1 || echo "$program $package"
    done
}

lacking=$(missing)
if [ -z "$lacking" ]; then
    echo "services: nothing to install"
    exit 0
fi
programs=$(echo "$lacking" | awk '{printf "%s ", $1}')
packages=$(echo "$lacking" | awk '{printf "%s ", $2}')

if [ "${1:-install}" = "check" ]; then
    echo "services: missing: $programs(run: make services)" >&2
    exit 1
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "services: install these programs with your package manager: $programs" >&2
    exit 1
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "services: run as root: apt-get install $packages" >&2
        exit 1
    fi
    as_root="sudo"
fi
export DEBIAN_FRONTEND=noninteractive
# A mirror that fails for a moment, or another installation that runs, is waited for.
apt_get() {
    $as_root apt-get -q -o Acquire::Retries=5 -o Acquire::http::Timeout=60 \
        -o DPkg::Lock::Timeout=300 "$@"
}
for pause in 10 30 0; do
    # shellcheck disable=SC2086
    if apt_get update && apt_get install -y --no-install-recommends $packages; then
        break
    fi
    [ "$pause" -gt 0 ] || exit 1
    sleep "$pause"
done
lacking=$(missing)
if [ -n "$lacking" ]; then
    echo "services: installed, but still not found: $(echo "$lacking" | awk '{printf "%s ", $1}')" >&2
    exit 1
fi
