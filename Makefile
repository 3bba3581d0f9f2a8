# `make demo` and `make test` set up everything they need in .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt

SHELL  := bash

.PHONY: help demo test test-cluster test-reliability test-report test-recipes lint format attack benchmarks benchmarks-gpu reproduction docs docs-test clean dist

help:
	@echo "make demo          first experiment: set up, run snell/fig3 --quick, draw its figure"
	@echo "make test          the whole test suite"
	@echo "make test-reliability  killed runs, damaged inputs, edited results, full disks: three minutes"
	@echo "make test-cluster  sweeps by workers, Slurm and Ray on this machine (ATTNSCOPE_LONG=1: more)"
	@echo "make test-report   the report of results/ in a browser: its size, and how soon it opens"
	@echo "make test-recipes  every recipe with --quick"
	@echo "make dist          wheel and source distribution, tried in an empty environment"
	@echo "make lint          linting, formatting and types, checked"
	@echo "make format        formatting and simple linting, repaired"
	@echo "make attack        damaged inputs, edited results and kills, many of each; docs/reliability.md"
	@echo "make benchmarks    every ratio under benchmarks/"
	@echo "make benchmarks-gpu  what is promised of one GPU, in some minutes; needs one"
	@echo "make reproduction  docs/reproduction.md, docs/papers and tables of numbers, made from results/"
	@echo "make docs          the documentation site, without a network, in build/site"
	@echo "make docs-test     the site's links, its code, and that every name has its place"
	@echo "make clean         remove the environment, caches and builds (never runs/)"

# One thread per process: the tests and the recipes spread over processes instead.
test test-cluster test-reliability test-recipes docs docs-test: export OMP_NUM_THREADS := 1
test test-cluster test-reliability test-recipes docs docs-test: export OPENBLAS_NUM_THREADS := 1
# Bytecode is kept: the processes that tests start would each compile the package anew.
test test-cluster test-reliability test-recipes docs docs-test: export PYTHONDONTWRITEBYTECODE :=

demo: $(VENV)/.installed
	$(BIN)/attnscope run snell/fig3 --quick

# A file goes to one process: what its tests share, such as a run of every recipe, is made once.
test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q \
	  --ignore=tests/browser/test_reference.py --ignore=tests/reliability \
	  --ignore=tests/cluster --ignore=tests/docs

test-cluster: $(VENV)/.installed-cluster
	$(BIN)/python -m pytest -q tests/cluster

test-reliability: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -q tests/reliability

test-report: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -s tests/browser/test_reference.py

test-recipes: $(VENV)/.installed-dev
	@set -euo pipefail; \
	out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; \
	names=$$($(BIN)/attnscope list --json | $(BIN)/python -c \
	  'import json, sys; print(*(recipe["name"] for recipe in json.load(sys.stdin)))'); \
	test -n "$$names" || { echo "attnscope list names no recipe."; exit 1; }; \
	for name in $$names; do \
	  echo "attnscope run $$name --quick"; \
	  $(BIN)/attnscope run "$$name" --quick --out "$$out"; \
	done

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

attack: $(VENV)/.installed-dev
	$(BIN)/python tests/reliability/attack.py --draws 10 --results 50000 --figures 500 --kills 1000 \
	  --jobs $$(nproc) --table .attack.json --page
	@rm .attack.*json

benchmarks: $(VENV)/.installed-dev
	@set -e; for script in $(filter-out benchmarks/gpu.py,$(wildcard benchmarks/*.py)); do \
	  echo "$$script"; $(BIN)/python "$$script"; done

benchmarks-gpu: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/gpu.py

# The wheel and the source distribution, tried in an empty environment.
dist: $(VENV)/.installed-dev
	$(PIP) -e '.[dev,release]'
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/try_wheel.py dist/*.whl

reproduction: $(VENV)/.installed
	$(BIN)/python -m attnscope.report.reproduction results

# A warning, such as a link to nowhere, is an error. All pages are written, since each has the contents of
# the site; notebooks run again only if they have changed.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -q -a -W --keep-going -b html -d build/doctrees docs build/site

docs-test: docs
	$(BIN)/python -m pytest -n 2 -q tests/docs

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is touched only when the whole installation has succeeded.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[figures,bleu]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-cluster: $(VENV)/.installed-dev
	$(PIP) -e '.[dev,slurm,ray]'
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed-dev
	$(PIP) -e '.[dev,docs]'
	@touch $@

# An environment whose making was interrupted has a python and no pip: it is made again.
ifneq ($(wildcard $(BIN)/python),)
ifneq ($(shell $(BIN)/python -m pip --version >/dev/null 2>&1 && echo sound),sound)
.PHONY: $(BIN)/python
endif
endif

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "attnscope needs Python 3.11 or newer; choose one with: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
