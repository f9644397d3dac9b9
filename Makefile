# Every target sets up what it needs in .venv, once; nothing outside this folder is touched.
# Another interpreter: make test PYTHON=python3.13. More for pytest: make test ARGS="-k tucker -x".

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin

# One worker per core, each with single-threaded linear algebra: the arrays of the tests are small.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST := -m pytest -n auto --maxprocesses 8

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-oldest lint format bench docs dist dist-check audit fuzz soak mutants clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.stamp-plot ## a short tour on simulated data; writes demo-output/
	$(BIN)/python examples/demo.py

test: .venv/.stamp-test ## the tests and the docstring examples, except the slow ones
	$(THREADS) $(BIN)/python $(PYTEST) $(ARGS)

test-all: .venv/.stamp-test ## every test, the slow ones included
	$(THREADS) $(BIN)/python $(PYTEST) -m "" $(ARGS)

test-oldest: .venv-oldest/.stamp ## the tests with the oldest versions that pyproject.toml allows
	$(THREADS) .venv-oldest/bin/python $(PYTEST) $(ARGS)

lint: .venv/.stamp-lint ## style, types, import directions, spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

format: .venv/.stamp-lint ## rewrite the code in the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: .venv/.stamp-test ## time the library and its rivals
	$(BIN)/python benchmarks/run.py

docs: .venv/.stamp-docs ## the documentation, in docs/_build/html
	rm -rf docs/generated docs/gallery docs/_build
	$(THREADS) $(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html

dist: .venv/.stamp-dist ## wheel and sdist in dist/, each tried in a clean environment
	rm -rf dist build
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	for file in dist/*; do \
	  $(PYTHON) -m venv --clear build/clean && \
	  build/clean/bin/python -m pip install --quiet --disable-pip-version-check $$file && \
	  (cd build && clean/bin/python ../tests/smoke.py) || exit 1; \
	done

dist-check: .venv/.stamp-test ## build the wheel twice, and compare every byte
	$(BIN)/python -m pytest -q -m "" tests/test_supply_chain.py -k the_same_wheel_twice

audit: .venv/.stamp-audit ## known vulnerabilities of what is installed; needs the network
	$(BIN)/pip-audit --strict --local --skip-editable

fuzz: .venv/.stamp-test ## broken input for every parser; SECONDS=60 for each
	$(THREADS) $(BIN)/python tests/fuzz.py --seconds $(or $(SECONDS),10)

soak: .venv/.stamp-test ## random fits, saves and loads; MINUTES=60 of them
	$(THREADS) $(BIN)/python benchmarks/soak.py --minutes $(or $(MINUTES),5)

mutants: .venv/.stamp-mutants ## small changes of the core, and whether the tests notice; SEED=0
	$(THREADS) $(BIN)/python tests/mutants.py --seed $(or $(SEED),0)

clean: ## remove what the targets made, except .venv
	rm -rf build dist mutants .venv-oldest demo-output docs/_build docs/generated docs/gallery .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find src tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# .stamp-NAME: the package, editable, and its extra NAME are installed. Redone when the metadata or a C source changes.
.venv/.stamp-%: pyproject.toml $(wildcard src/tauten/*/*.[ch]) | .venv/.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[$*]"
	@touch $@

.venv-oldest/.stamp: pyproject.toml tests/oldest.py
	$(PYTHON) -m venv --clear .venv-oldest
	$(PYTHON) tests/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-oldest/constraints.txt --editable ".[test]"
	@touch $@

.venv/.stamp:
	@$(PYTHON) -c 'import sys; sys.exit("tauten needs Python 3.11 or later: make PYTHON=/path/to/python" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	@touch $@
