# Everything a newcomer needs: `make demo`, `make test`, `make bench`. Each makes .venv first and installs what it uses.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test bench clean
help:
	@echo "make demo   answer a private question on data that it makes itself"
	@echo "make test   lint, type-check and run every test"
	@echo "make bench  measure dpselect beside numpy, OpenDP and diffprivlib"

.venv/installed: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit('dpselect needs Python 3.11 or newer; say make PYTHON=python3.11') if sys.version_info < (3, 11) else None"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

.venv/installed-bench: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

demo: .venv/installed
	$(BIN)/dpselect demo

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2

bench: .venv/installed-bench
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv
