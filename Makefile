# Needs make and Python 3.10 to 3.13 only; everything else goes into .venv. Another Python: make PYTHON=python3.12 test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# TensorFlow's notices about CPU features and missing GPUs are of no use here.
export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: help demo test test-all lint docs dist bench figures clean

# The targets, each with what stands behind its ##.
help:
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## *\(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

# Compiled once, then found in the cache; PCBATCH_CACHE= make demo does without.
demo: $(VENV)/.nuts ## sample a posterior with 64 chains: a table, pictures in out/
	PCBATCH_CACHE=$${PCBATCH_CACHE-.cache/pcbatch} $(BIN)/python examples/nuts/breast_cancer.py

# Two workers: TensorFlow starts once in each, and more of them fight over the cores of a small machine. Several runs,
# since XLA keeps what it has compiled until its process ends: gigabytes, in so many tests. Groups of tests that share
# what is dear to make come first, each in one worker.
TESTS := $(BIN)/python -m pytest -n 2 -m "not slow" --dist
CORPUS := tests/test_corpus.py
ROOMS := tests/runtime tests/api tests/adjoint tests/nuts tests/optimize
test: $(VENV)/.dev ## the tests, without the slow ones
	$(TESTS) worksteal $(CORPUS) --splits 2 --group 1
	$(TESTS) worksteal $(CORPUS) --splits 2 --group 2
	$(TESTS) loadgroup tests/runtime
	$(TESTS) loadgroup tests/api
	$(TESTS) loadgroup tests/adjoint tests/nuts tests/optimize
	$(TESTS) loadgroup $(foreach room,$(CORPUS) $(ROOMS),--ignore=$(room))

# The slow tests, room by room and in parts, for the same reason: a compiled program of the corpus takes 14 to 25 MB, and
# what forks calls takes 150 MB. Parts of one room collect its tests only.
SLOW := $(BIN)/python -m pytest -n 2 -m slow --dist
PARTS := 1 2 3 4 5 6 7 8
test-all: test $(VENV)/.gpu ## every test, the slow ones in parts
	for part in $(PARTS); do \
	  $(SLOW) worksteal $(CORPUS) --splits $(words $(PARTS)) --group $$part || exit 1; done
	for room in tests/runtime tests/api tests/adjoint "tests/nuts tests/optimize"; do for part in 1 2 3; do \
	  $(SLOW) loadgroup $$room --splits 3 --group $$part || exit 1; done; done
	for part in 1 2; do \
	  $(SLOW) loadgroup $(foreach room,$(CORPUS) $(ROOMS),--ignore=$(room)) --splits 2 --group $$part || exit 1; done

lint: $(VENV)/.dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

# The documentation as a site, out/site/index.html; a link that leads nowhere is an error.
docs: $(VENV)/.docs ## the documentation as a site, in out/site
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Wheel and sdist in dist/, checked, installed into an environment with nothing else; the README's program runs there.
dist: $(VENV)/.dev ## wheel and sdist in dist/, tried in an environment of their own
	$(BIN)/python -m tools.dist

bench: $(VENV)/.dev ## benchmarks, figures in out/
	mkdir -p out
	$(BIN)/python -m benchmarks.step_cost --json out/step_cost.json
	$(BIN)/python -m benchmarks.compaction --json out/compaction.json
	$(BIN)/python -m benchmarks.arrays --json out/arrays.json
	$(BIN)/python -m benchmarks.profile_overhead --json out/profile_overhead.json
	$(BIN)/python -m benchmarks.schedules --json out/schedules.json
	$(BIN)/python -m benchmarks.compile_time --json out/compile_time.json
	$(BIN)/python -m benchmarks.calls --json out/calls.json
	$(BIN)/python -m benchmarks.tapes --json out/tapes.json
	$(BIN)/python -m benchmarks.straight --json out/straight.json
	$(BIN)/python -m benchmarks.mixed --json out/mixed.json
	$(BIN)/python -m benchmarks.trees --repeats 3 --json out/trees.json
	$(BIN)/python -m benchmarks.training --repeats 3 --json out/training.json
	$(BIN)/python -m benchmarks.against --quick --scaling 1000 100000 --json out/against.json
	$(BIN)/python -m benchmarks.nuts --quick --json out/nuts.json

# The papers' figures into docs/figures, ten minutes to half an hour each on two cores that have nothing else to do, and
# the tables of cheap code into docs/ (an hour).
figures: $(VENV)/.dev ## the figures and tables of docs/, measured again
	$(BIN)/python -m benchmarks.against --page
	$(BIN)/python -m benchmarks.readme --draw
	$(BIN)/python -m benchmarks.cache --markdown docs/figures/cache.md
	$(BIN)/python -m tools.tables
	$(BIN)/python -m benchmarks.figures.throughput
	$(BIN)/python -m benchmarks.figures.utilization
	for paper in stacks pfor dynet fold; do $(BIN)/python -m benchmarks.figures.$$paper || exit 1; done

clean: ## remove what was built, and caches
	rm -rf build dist out .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "pcbatch needs Python 3.10 to 3.13; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.nuts: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[nuts]'
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

# XLA for CUDA, 0.4 GB, without the libraries that only a card needs. Where it cannot be had, its tests are skipped.
$(VENV)/.gpu: pyproject.toml | $(VENV)/.dev
	-$(BIN)/python -m pip install --quiet jax==0.10.2
	-$(BIN)/python -m pip install --quiet --no-deps jax-cuda13-plugin==0.10.2 jax-cuda13-pjrt==0.10.2
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[nuts,dev]'
	touch $(VENV)/.nuts $@
