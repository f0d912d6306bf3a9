#!/bin/sh
# Print the first Python that can make the environment: 3.11 or newer, with venv and ensurepip.
#
#   tools/find_python.sh [PYTHON]      only that one is tried when it is given
set -eu

old=""
bare=""
for name in ${1:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
    python=$(command -v "$name" 2>/dev/null) || continue
    # A version manager may answer to a name for which it has no interpreter.
    version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || continue
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        old="$old $python ($version)"
    elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        bare="$python ($version)"
    else
        echo "$python"
        exit 0
    fi
done

if [ -n "$bare" ]; then
    echo "setup: $bare has no venv or ensurepip; on Debian: apt-get install python3-venv" >&2
elif [ -n "$old" ]; then
    echo "setup: Lumos needs Python 3.11 or newer; found only$old; name one with: make setup PYTHON=/path/to/python3" >&2
else
    echo "setup: no Python found${1:+ at $1}; install Python 3.11 or newer" >&2
fi
exit 1
