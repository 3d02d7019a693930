# make demo   makes the environment and runs the main job
# make test   lint, types and tests; what .ci/run calls
# make report     the report, its figures and the numbers of docs/reproduction, from the records in results/
# make sanitize   the tests of the native kernels under AddressSanitizer and UndefinedBehaviorSanitizer, and its threads
#                 under ThreadSanitizer
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Keeps matplotlib's font cache inside the checkout.
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib
# The files are UTF-8, whatever the locale says.
export PYTHONUTF8 := 1

.PHONY: demo report test test-slow sanitize lint types format clean

demo: $(VENV)/installed
	$(BIN)/gatedrnn demo --out demo

report: $(VENV)/installed
	$(BIN)/gatedrnn report results --out report
	$(BIN)/python docs/reproduction.py

test: lint types
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(VENV)/launchers
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
NATIVE := CMakeLists.txt $(wildcard src/gatedrnn/engines/cpu/*.cpp src/gatedrnn/engines/cpu/*.h)
$(VENV)/installed: pyproject.toml constraints.txt $(NATIVE)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[lab,export,dev]"
	touch $@

# What only the tests of Ray and SLURM need.
$(VENV)/launchers: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[ray,slurm]"
	touch $@

# Leaks are not checked: Python itself leaves some at exit. The sanitizer must be loaded before Python is.
sanitize: $(VENV)/installed
	cmake -S . -B build/sanitize -DCMAKE_BUILD_TYPE=Release -DGATEDRNN_SANITIZE=ON -DGATEDRNN_POISON=ON
	cmake --build build/sanitize --parallel 2
	GATEDRNN_CPU_LIBRARY=$(CURDIR)/build/sanitize/libgatedrnn_cpu.so ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libubsan.so)" \
	$(BIN)/python -m pytest -q -n 2 tests/engines/cpu -m "not slow" -k "not memory and not compile and not export and not opcheck and not 31"

	cmake -S . -B build/threads -DCMAKE_BUILD_TYPE=Release -DGATEDRNN_SANITIZE_THREADS=ON
	cmake --build build/threads --parallel 2
	build/threads/gatedrnn_threads

clean:
	rm -rf $(VENV) build demo .mypy_cache .pytest_cache .ruff_cache .hypothesis
