#!/bin/sh
# Lumos from nothing to a reported change, in a folder that is removed at the end.
set -eu
examples=$(cd "$(dirname "$0")" && pwd)
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cd "$project"

step() {
    printf '\n$ lumos %s\n' "$*"
    lumos "$@"
}

step init
step validate --input "$examples/shop/january.json"
step import --input "$examples/shop/january.json"
step snapshot create
step search customer
step diff --source latest --target "$examples/shop/february.json"
step import --input "$examples/shop/february.json"
step ownership assign "$examples/shop/owners.yaml"
step enrich "$examples/shop/docs.yaml"
step history orders
step compare orders 1.0.0 2.0.0
step show daily_revenue
