# Everything that can be done with this checkout. `make` alone says what.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# workers and threads must not fight for the cores (law 3 sets its own); federations wait a lot, so there are more workers;
# hundreds of programs are started, which read what the first of them compiled, whatever the shell says about bytecode
TESTS  := PYTHONDONTWRITEBYTECODE= FEDREC_THREADS=1 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/python -m pytest
SPREAD := -n 6 --dist loadfile --no-loadscope-reorder
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-fast test-all coverage laws lint format types bench guard smoke docs clean

help: ## say what can be done
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

install: $(STAMP) ## set up .venv with the tested versions

demo: $(STAMP) ## the main job: compare methods on MovieLens-100K (made-up data where it cannot be had)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh benchmarks/demo.sh

test: $(STAMP) lint ## all that CI runs: style, types, every test
	@$(BIN)/mypy & types=$$!; $(TESTS) tests $(SPREAD); tests=$$?; wait $$types && exit $$tests

test-fast: $(STAMP) ## the tests that take seconds
	$(TESTS) tests/unit tests/cli $(SPREAD) -m "not slow"

coverage: $(STAMP) ## the tests once more, with the share of the lines that they run, those of started programs included
	rm -f .coverage .coverage.*
	$(TESTS) tests $(SPREAD) --cov --cov-report=term:skip-covered

test-all: $(STAMP) ## also the long ones: every method over Flower
	FEDREC_ALL_METHODS=1 $(BIN)/python -m pytest tests

laws: $(STAMP) ## every law for one method: make laws METHOD=fedavg
	FEDREC_LAWS_METHOD="$(METHOD)" $(BIN)/python -m pytest tests/laws

lint: $(STAMP) ## check style
	$(BIN)/ruff check --no-cache src tests benchmarks docs/site
	$(BIN)/ruff format --no-cache --check src tests benchmarks docs/site

format: $(STAMP) ## format and fix style
	$(BIN)/ruff format src tests benchmarks docs/site
	$(BIN)/ruff check --fix src tests benchmarks docs/site

types: $(STAMP) ## check types, strictly
	$(BIN)/mypy

smoke: $(STAMP) ## a clean environment with the wheel, and first steps in it: make smoke PYTHON=python3.13
	rm -rf build/smoke
	$(BIN)/python -m build --no-isolation --outdir build/smoke .
	$(PYTHON) -m venv build/smoke/venv
	build/smoke/venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build/smoke/*.whl
	cd build/smoke && venv/bin/python ../../tests/smoke.py

docs: $(STAMP) ## the documentation as a site in build/site; a broken link is an error
	$(BIN)/python docs/site/build_site.py

bench: $(STAMP) ## seconds, memory and bytes beside a naive loop, as ratios in one run
	$(BIN)/python benchmarks/bench.py

guard: $(STAMP) ## whether rounds became heavier: counts, and ratios in one run, beside what was recorded
	$(BIN)/python benchmarks/guard.py

clean: ## remove what was made here
	rm -rf $(VENV) build runs bench-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
