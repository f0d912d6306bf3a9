# Every command of the project. Needs make and Python 3.11+; `make setup` brings the rest.
.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:

BIN := .venv/bin
STAMP := .venv/.lumos-setup
# Test processes at the same time: auto is one for each core, 0 runs all tests in one process.
WORKERS ?= auto
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)
SIDE_BY_SIDE := $(BIN)/python tools/side_by_side.py
# Another interpreter: make setup PYTHON=/path/to/python3.13
PYTHON ?=

.PHONY: help setup demo test tests test-fast services test-services service-tests test-servers test-full ci all-tests spark-archive lint sbom audit format generate docs bench lock lock-check clean

help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv with the locked dependencies (done by every other target when needed)

$(STAMP): requirements.lock tools/bootstrap.lock pyproject.toml tools/setup.py tools/find_python.sh
	@python=$$(tools/find_python.sh $(PYTHON)) && "$$python" tools/setup.py

demo: $(STAMP) ## See Lumos work on a small lake, from nothing to a reported change
	@$(BIN)/lumos demo

test: $(STAMP) ## Lint, docs and every test that wheels can carry: Spark, PostgreSQL; no root
	@$(SIDE_BY_SIDE) lint docs spark-archive+tests

tests: $(STAMP) ## The tests of `make test` without lint and docs (in one process: WORKERS=0)
	$(PYTEST) -m "not service and not servers and not full"

test-fast: $(STAMP) ## Unit, contract and golden tests: no JVM, no server, seconds
	$(PYTEST) -m "not spark and not postgres and not storage and not service and not servers and not full"

services: ## Install the system packages of the service tests (Debian; elsewhere it says what to install)
	@tools/services.sh install

test-services: $(STAMP) services service-tests ## Tests against system packages and larger servers

service-tests: $(STAMP) ## The tests of `make test-services`, where the packages are installed
	$(PYTEST) -m service

test-servers: $(STAMP) ## Tests against servers that take minutes to build or start; before a release
	$(PYTEST) -m servers

test-full: $(STAMP) spark-archive ## Every test of `make test`, with fault, fuzz and scale tests at full size
	LUMOS_TEST_FULL=1 $(PYTEST) -m "not service and not servers"

ci: $(STAMP) ## What must pass before a merge: `make test` and `make test-services` at the same time
	@$(SIDE_BY_SIDE) lint docs services+spark-archive+all-tests

all-tests: $(STAMP) ## The tests of `make ci`, where the packages are installed
	$(PYTEST) -m "not full and not servers"

spark-archive: $(STAMP) ## Let Spark start in half the time, as Lumos does by itself after its first start
	@$(BIN)/python tools/spark_archive.py

lint: $(STAMP) ## Formatting, lint rules, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/supply_chain.py licences

sbom: $(STAMP) ## List every package that Lumos brings along, as CycloneDX, in build/sbom.cdx.json
	@$(BIN)/python tools/supply_chain.py sbom build/sbom.cdx.json

audit: $(STAMP) ## Ask the package index for advisories on the locked packages; exit 3 where it has none
	@$(BIN)/python tools/supply_chain.py audit

format: $(STAMP) ## Rewrite the code to the house format and apply safe fixes
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

generate: $(STAMP) ## Write the JSON Schemas and reference pages that come from the code
	@$(BIN)/python tools/generate.py

docs: $(STAMP) ## Build the documentation into docs/_build/html; a warning is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky -b html docs docs/_build/html

bench: $(STAMP) ## Run every benchmark in benchmarks/
	@$(BIN)/python tools/bench.py

lock: $(STAMP) ## Write requirements.lock anew from pyproject.toml (newest versions: UPGRADE=1)
	@tools/lock.sh $(if $(UPGRADE),--upgrade)

lock-check: $(STAMP) ## Fail when requirements.lock does not match pyproject.toml
	@tools/lock.sh --check

clean: ## Remove the environment, caches and build results
	rm -rf .venv docs/_build build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
