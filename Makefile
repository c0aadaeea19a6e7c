# Needs python3.11 or newer and make; everything else goes into .venv. Another interpreter: make test PYTHON=/path/to/python
VENV ?= .venv
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,\
  $(shell $(p) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $(p))))
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-all lint types bench clean

demo: $(INSTALLED)
	$(RUN) examples/demo.py

test: $(INSTALLED)
	$(RUN) -m pytest -n 2

test-all: $(INSTALLED)
	$(RUN) -m pytest -n 2 --thorough

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(INSTALLED)
	$(RUN) -m mypy --strict

bench: $(INSTALLED)
	$(RUN) -m pip install -q -c constraints.txt --group bench
	$(RUN) benchmarks/bench_import.py
	$(RUN) benchmarks/bench_full.py
	$(RUN) benchmarks/bench_check.py
	$(RUN) benchmarks/bench_numpy.py
	$(RUN) benchmarks/bench_suite.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Touched last, so that a broken installation is tried again. Always with the constraints: see there.
$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "no python3.11 or newer with ensurepip found; name one: make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install -q -c constraints.txt --upgrade pip
	$(RUN) -m pip install -q -c constraints.txt -e '.[torch]' --group dev
	touch $@
