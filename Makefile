# Every target sets up what it needs in .venv on its first call; later calls reinstall nothing.
VENV := .venv
PYTHON ?= python3
RUN := $(VENV)/bin/python

.PHONY: demo test lint bench setup clean

demo: setup
	$(RUN) -m netpurify demo
	$(RUN) examples/mnist.py
	$(RUN) examples/planted.py

test: lint
	$(RUN) -m pytest -n 2

lint: setup
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/pyright --pythonpath $(RUN)

bench: setup $(VENV)/.bench
	$(RUN) benchmarks/lad.py --quick

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/.bench: $(VENV)/.ready
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
