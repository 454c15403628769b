# Tertulia. `make help` lists what there is.
SHELL := /bin/sh
# The first of these that is 3.11 or newer; name another with `make PYTHON=…`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys, venv; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 9991
DATA ?= .demo
WORKERS ?= auto
# What was compiled is kept, whatever the environment says: each process would do it again.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help serve client test lint format fuzz lexers histories bench soak chaos docs release lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

CLIENT := src/tertulia/web/index.html

serve: $(VENV)/.run $(CLIENT) ## start a demonstration organization and print how to sign in
	@$(BIN)/tertulia serve --demo --data-dir $(DATA) --port $(PORT)

client: $(CLIENT) ## build the web client

DECLARED := web/src/settings/declared.json

$(DECLARED): web/declared.py src/tertulia/model/organization.py src/tertulia/model/settings.py src/tertulia/model/users.py | $(VENV)/.run
	$(BIN)/python $<

$(CLIENT): $(VENV)/.run $(DECLARED) web/package-lock.json web/index.html web/vite.config.ts $(shell find web/src web/words web/public -type f 2>/dev/null)
	$(BIN)/python web/build.py
	@touch $@

CHECKS := build/checks

# How many failed tests may run a second time, one after another. Those that pass then are listed: they
# depend on the moment, and are to be mended.
AGAIN ?= 0
FAILED := .pytest_cache/v/cache/lastfailed

test: $(VENV)/.dev $(CLIENT) ## style, types and tests; ALL=1 for all tests on both databases
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# Types and the client are checked while the tests run, which leave processor time for it. Errors
	@# are printed immediately, and mentioned again at the end.
	@# In a fresh clone, compile the tests once. Otherwise each process of pytest does it.
	@mkdir -p build; { { $(BIN)/mypy && $(BIN)/python web/build.py run --silent check \
		&& $(BIN)/python web/build.py run --silent test; } > $(CHECKS) 2>&1 || { cat $(CHECKS); false; }; } & checks=$$!; \
	test -d tests/unit/__pycache__ || $(PYTEST) -n 0 --collect-only -qq > /dev/null 2>&1; \
	$(PYTEST) $(if $(ALL),,--quick); tests=$$?; \
	if [ $$tests = 1 ] && [ "$$(grep -c '::' $(FAILED))" -le $(AGAIN) ]; then \
		echo "Failed at first:"; grep '::' $(FAILED); \
		$(BIN)/pytest -n 0 --last-failed --last-failed-no-failures none; tests=$$?; fi; \
	wait $$checks || { echo "Checks of types or of the client failed: see $(CHECKS)"; exit 1; }; exit $$tests

lint: $(VENV)/.dev ## style and strict types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@# At the same time, for each keeps one core busy.
	$(BIN)/mypy & types=$$!; $(BIN)/python web/build.py run --silent check; client=$$?; wait $$types && exit $$client

format: $(VENV)/.dev ## put the code in the project's style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python web/build.py run --silent format

FUZZ ?= 300

fuzz: $(VENV)/.dev ## thousands of made-up requests; FUZZ=1000 for more of each kind
	FUZZ=$(FUZZ) $(PYTEST) tests/fuzz

LEXERS ?= 1000

lexers: $(VENV)/.dev ## code made up to keep each grammar busy, and which it stopped; LEXERS=5000 for more
	LEXERS=$(LEXERS) $(BIN)/pytest tests/unit/test_lexers.py -rP -q

HISTORIES ?= 20

histories: $(VENV)/.dev ## many made-up histories of an organization; HISTORIES=100 for more
	HISTORIES=$(HISTORIES) $(PYTEST) tests/property tests/web/test_fold.py

bench: $(VENV)/.dev ## what things cost beside the machine's limits; QUICK=1, DATABASE=postgresql
	@QUICK="$(QUICK)" DATABASE="$(DATABASE)" $(BIN)/python -m bench

MINUTES ?= 20

soak: $(VENV)/.dev ## 2,000 clients for twenty minutes, and whether all holds then; MINUTES=2 for less
	$(BIN)/python -m bench.soak --minutes $(MINUTES)

SEED ?=

chaos: MINUTES := $(if $(filter file,$(origin MINUTES)),5,$(MINUTES))
chaos: $(VENV)/.dev ## nodes and PostgreSQL fail for MINUTES=5, and whether all holds; SEED=1 for the same faults
	$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

DOCS := build/docs

docs: $(DOCS)/.installed ## the documentation as a site, which the server then has at /help; every link is checked
	$(DOCS)/bin/python docs/site/build.py

$(DOCS)/.installed: requirements-docs.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-docs.txt
	@touch $@

RELEASE := build/release

release: $(RELEASE)/.installed $(VENV)/.dev ## everything to publish, into dist/; DRAFT=1 to try it, REPOSITORY=https://… to link it, COMPARE=SHA256SUMS
	@# What takes no time first, then whether every recorded release can be upgraded to this one.
	$(RELEASE)/bin/python packaging/release.py --check $(if $(DRAFT),--draft)
	$(PYTEST) tests/stored
	$(MAKE) docs
	RELEASE_REPOSITORY="$(REPOSITORY)" $(RELEASE)/bin/python packaging/release.py \
		$(if $(DRAFT),--draft) $(if $(COMPARE),--compare "$(COMPARE)")

$(RELEASE)/.installed: requirements-release.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-release.txt
	@touch $@

lock: ## choose the newest dependencies again (needs uv)
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml --group build -o requirements.txt
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -c requirements.txt pyproject.toml --group build --all-extras -o requirements-extras.txt
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml --group dev -o requirements-dev.txt
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group pyproject.toml:release -o requirements-release.txt
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group pyproject.toml:docs -o requirements-docs.txt
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -c requirements-dev.txt --group pyproject.toml:chart -o requirements-chart.txt

clean: ## remove the environment and the demonstration
	rm -rf $(VENV) $(DATA) build dist web/node_modules web/.svelte-check src/tertulia/web src/tertulia/manual .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Tertulia needs Python 3.11 or newer; none was found. Name one: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The package is put on the environment's path as it lies here; only what it stands on is downloaded.
# It is compiled here, so that not even the first start has to, nor one that may write nothing.
define place
	@printf '%s\n' "$(CURDIR)/src" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tertulia.pth"
	@printf '#!/bin/sh\nexec "%s" -m tertulia "$$@"\n' "$(CURDIR)/$(BIN)/python" > $(BIN)/tertulia
	@chmod +x $(BIN)/tertulia
	@$(BIN)/python -m compileall -q src/tertulia
endef

$(VENV)/.run: requirements.txt | $(BIN)/python
	@test -f $(VENV)/.dev || $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.txt
	$(place)
	@touch $@

$(VENV)/.dev: requirements-dev.txt | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(place)
	@touch $@ $(VENV)/.run

# Large, so only where the chart is tested: make .venv/.chart
$(VENV)/.chart: requirements-chart.txt | $(VENV)/.dev
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-chart.txt
	@touch $@
