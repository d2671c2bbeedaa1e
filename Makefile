# Two commands for everyone: `make demo` and `make test`. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test test-all lint format docs bench wheel clean

help: ## Show the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## Make the virtual environment with everything inside

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "salmc needs Python 3.11 or newer; name one with make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY) ## Learn to sample the six modes of Mog6 and show what came of it
	$(BIN)/salmc run mog6 --out runs/demo --overwrite

test: $(READY) ## Run the tests
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow"

test-all: $(READY) ## Run the tests, long statistical ones too, compiled as users compile
	XLA_FLAGS="$$XLA_FLAGS" $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

lint: $(READY) ## Linters, formatter, type checker, stage order
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## Build the site into build/site: runs the code of every page, fails at a warning
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	rm -rf build/site
	$(BIN)/python -m sphinx -W --keep-going -q -d build/site-doctrees -b html docs build/site
	$(BIN)/python docs/_site/check.py build/site

wheel: $(READY) ## Build what PyPI gets, into dist
	rm -rf dist
	$(BIN)/python -m hatchling build

bench: $(READY) ## Run the benchmarks that have no result yet, peers included; QUICK=1: minutes
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	$(BIN)/python -m benchmarks $(if $(QUICK),peers --quick)
	$(if $(QUICK),,$(BIN)/python -m benchmarks.peers.page)

clean: ## Remove the virtual environment, what was built, and caches
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
