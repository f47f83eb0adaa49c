# Every target sets up what it needs: `make test` works on a fresh clone. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup check test demo bench format clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
EXTRAS := torch,online,grpc,otel,notebook,ray,spark,weights,dev

# Passed through: `make test ARGS="-m 'not slow' -k schema"`.
ARGS ?=

# The interpreter that builds the environment: PYTHON=... chooses one; otherwise the first of these that is 3.11 or newer
# and can make an environment (Debian's python3 cannot without python3-venv).
PYTHON ?=
CANDIDATES := python3.11 python3.12 python3.13 python3.14 python3 python

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv and install everything into it (repeats only when pyproject.toml changes)

# torch goes first and by its exact release. Asked for by a range, or pulled in by another package, pip takes the newest
# build for CUDA, several gigabytes of it; the exact release is served as a CPU build where one is laid out for pip.
$(STAMP): pyproject.toml
	@python=""; \
	for candidate in $(if $(PYTHON),$(PYTHON),$(CANDIDATES)); do \
	  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    python="$$candidate"; break; \
	  fi; \
	done; \
	if [ ! -x $(BIN)/python ]; then \
	  if [ -z "$$python" ]; then \
	    echo "make: found no Python 3.11 or newer with the venv module among: $(if $(PYTHON),$(PYTHON),$(CANDIDATES));" >&2; \
	    echo "      install one (Debian: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3" >&2; \
	    exit 2; \
	  fi; \
	  echo "creating $(VENV) with $$python"; \
	  "$$python" -m venv $(VENV); \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$(EXTRAS)]"
	@touch $@

check: $(STAMP) ## formatting, lint, types, layers, spelling, docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tools/check_docs.py
	$(BIN)/pyright

test: $(STAMP) ## run the tests, in two processes; ARGS= runs one pytest with them
	$(BIN)/python tools/run_tests.py $(ARGS)

demo: $(STAMP) ## score, serve and compare real data with all runners
	$(BIN)/python demo/run.py $(ARGS)

bench: $(STAMP) ## measure speed as ratios within one run
	$(BIN)/python -m benchmarks $(ARGS)

format: $(STAMP) ## rewrite the code as ruff would have it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

clean: ## remove the environment, caches and what runs left behind
	rm -rf $(VENV) build dist out demo/out benchmarks/out .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
