# Everything here sets itself up: the first target that needs it makes .venv and installs into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
FIXTURES ?= eval/tool_broker/fixtures
DATASET ?= data/contextual_final.s0.jsonl
PYTEST := $(BIN)/python -m pytest -q

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-real test-slow lint format bench ci-broker-smoke build clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(READY) ## make .venv and install toolmark with its tools for development

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("toolmark needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 venv" if sys.version_info < (3, 11) else 0)'
	@echo "Setting up $(VENV) (once, about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY) ## evaluate the bundled dataset with the bundled recorded answers
	@$(BIN)/toolmark demo

test: $(READY) ## run the tests (with the real material if TOOLMARK_REAL_DATA is set)
	@$(PYTEST) -n 2 -m "not slow"

test-real: $(READY) ## run only the tests on real material; insists on TOOLMARK_REAL_DATA
	@test -d "$(TOOLMARK_REAL_DATA)" || { echo "make test-real: set TOOLMARK_REAL_DATA to the folder that holds the real material" >&2; exit 2; }
	@$(PYTEST) -n 2 -m "real"

test-slow: $(READY) ## run the tests that take more than a few seconds
	@$(PYTEST) -n 2 -m "slow"

lint: $(READY) ## ruff (rules and format) and mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY) ## let ruff format and mend what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY) ## measure, as ratios: start-up and scoring
	@$(BIN)/python -m bench

ci-broker-smoke: $(READY) ## >= 95 % of the calls are answered, however spelt (FIXTURES=... DATASET=...)
	@$(BIN)/toolmark fixtures check "$(FIXTURES)" $(if $(DATASET),--in "$(DATASET)")

build: $(READY) ## build the wheel into dist/
	@$(BIN)/python -m hatchling build -t wheel

clean: ## remove what the targets above made
	rm -rf $(VENV) build dist demo-run .mypy_cache .ruff_cache .pytest_cache .hypothesis
