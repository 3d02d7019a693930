# make demo   makes the environment and runs the main job
# make test   lint, types and tests; what .ci/run calls
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Keeps matplotlib's font cache inside the checkout.
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib

.PHONY: demo test test-slow lint types format clean

demo: $(VENV)/installed
	$(BIN)/gatedrnn demo --out demo

test: lint types
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(VENV)/installed
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed
	$(BIN)/mypy

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# torch comes first and pinned: an unpinned torch may bring gigabytes of GPU libraries.
$(VENV)/installed: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[lab,dev]"
	touch $@

clean:
	rm -rf $(VENV) demo .mypy_cache .pytest_cache .ruff_cache .hypothesis
