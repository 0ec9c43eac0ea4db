# Every target sets up what it needs in .venv on its first call; later calls reinstall nothing.
VENV := .venv
PYTHON ?= python3
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(RUN) -m pytest -n auto --maxprocesses 8 --dist worksteal

.PHONY: demo test test-fast test-all test-programs fuzz lint bench docs setup uncompile clean

demo: setup
	$(RUN) -m netpurify demo
	$(RUN) examples/mnist.py
	$(RUN) examples/planted.py

# Everything that runs without further programs; the last lines say what was skipped.
test: lint
	$(PYTEST)

# For the work in between: all but the types and the tests that are marked as slow.
test-fast: setup
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(PYTEST) -m 'not slow'

# Everything, with downloads; a skipped test is a failure.
test-all: $(VENV)/.all test-programs lint
	NETPURIFY_NETWORK_TESTS=1 $(PYTEST) --no-skips

test-programs:
	sh tools/test_programs.sh

# Longer than the bounded loops within the tests: hostile and broken files for every reader.
fuzz: setup
	$(RUN) tools/fuzz.py $(FUZZ)

lint: setup
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/pyright --pythonpath $(RUN)

bench: setup $(VENV)/.bench
	$(RUN) benchmarks/lad.py --quick

# The site, in build/site: tutorials are executed, and a warning or a link that leads nowhere is an error.
docs: $(VENV)/.docs
	$(RUN) tools/website/build.py

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev]'
	touch $@

# Less than `setup` brings, for who wants the site alone; nothing is installed twice.
$(VENV)/.docs: pyproject.toml constraints.txt
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.bench: $(VENV)/.ready
	$(PIP) --editable '.[dev,bench]'
	touch $@

$(VENV)/.all: $(VENV)/.ready
	$(PIP) --editable '.[dev,ray]'
	touch $@

# Compiled functions that are kept on disk; needed after a change to a function that compiled functions of other files call.
uncompile:
	find src -name '*.nb[ic]' -delete

clean:
	rm -rf $(VENV) build/site build/site-source .pytest_cache .ruff_cache .hypothesis
