# Everything a newcomer needs: `make demo`, `make test`, `make bench`, `make docs`. Each makes .venv first and installs what it uses.
PYTHON ?= python3
BIN := .venv/bin

# How long `make fuzz` spends on each target, and how many mutants `make mutants` tries: a number, or `all`.
FUZZ_SECONDS ?= 60
MUTANTS ?= 200
# How long `make sanitize` calls the kernel.
SANITIZE_SECONDS ?= 60
# How many mutants of the privacy arithmetic `make test-slow` tries.
FEW_MUTANTS := 60
# How long `make neighbours` looks for a question that charges too little.
NEIGHBOURS_SECONDS ?= 600

# `make test ROOM=ledger` runs the tests of one room: those of its folder in tests/, and its doctests.
ROOMS := $(sort $(patsubst tests/%/__init__.py,%,$(wildcard tests/*/__init__.py)))
ifdef ROOM
ifeq ($(filter $(ROOMS),$(ROOM)),)
$(error there is no room $(ROOM). The rooms are $(ROOMS))
endif
TESTED := tests/$(ROOM) $(wildcard src/dpselect/$(ROOM))
endif

.PHONY: help demo test types quick test-slow test-bare bench bench-page docs pictures notebooks test-oldest test-newest lock package fuzz sanitize mutants faults neighbours clean
help:
	@echo "make demo   answer a private question on data that it makes itself"
	@echo "make test   lint, type-check and run the tests"
	@echo "make types  check the types, as make test does"
	@echo "make quick  run the tests of make test without the checks before them"
	@echo "make test ROOM=ledger  lint, type-check and run the tests of one room; make quick takes a ROOM, too"
	@echo "make test-bare  run the tests that use Java, Chromium, PostgreSQL or a C compiler without these"
	@echo "make test-slow  run the exhaustive and long tests"
	@echo "make bench  measure dpselect beside numpy, OpenDP and diffprivlib"
	@echo "make bench-page  write what make bench has measured into docs/performance.md"
	@echo "make docs   build the documentation into site/; it opens without a network"
	@echo "make pictures  draw the pictures of the documentation again"
	@echo "make notebooks  run the notebooks of the documentation, and save what they show"
	@echo "make test-oldest  run every test with the oldest dependencies that are allowed"
	@echo "make test-newest  run the tests with the newest dependencies, without constraints/lock.txt"
	@echo "make lock   write constraints/lock.txt again; with UPGRADE=yes, from the newest versions"
	@echo "make package  build what an index takes into dist/, check it, and install it"
	@echo "make fuzz   random bytes into the readers and the command line, $(FUZZ_SECONDS) s each"
	@echo "make sanitize  test the kernel under AddressSanitizer and UBSan, and call it at random for $(SANITIZE_SECONDS) s; needs gcc"
	@echo "make mutants  change the privacy arithmetic, or a ROOM, in $(MUTANTS) ways, and see whether the tests notice"
	@echo "make faults  plant the known faults, one at a time, and see whether tests/behaviour notices"
	@echo "make neighbours  random neighbouring tables, and what their scores give away, $(NEIGHBOURS_SECONDS) s"

# Each environment has what constraints/lock.txt says, so that a release of a dependency cannot break a fresh machine.
# `make demo LOCK=no` takes the newest versions instead; so does a Python or a system that the lock does not cover.
export LOCK
INSTALL := $(BIN)/python tools/install.py

# Python keeps its bytecode, also where the environment says otherwise: the tests start many processes, and pytest rewrites
# the asserts of every file. Git ignores __pycache__.
unexport PYTHONDONTWRITEBYTECODE

# What the environments are made from. The kernel is compiled when the clone is installed; if nothing else has changed, the
# clone alone is installed again.
LOCKED := pyproject.toml constraints/lock.txt
KERNEL := $(wildcard src/dpselect/selection/_kernel.c) tools/build_kernel.py
CHANGED = $(filter $(LOCKED),$?)

.venv/installed: $(LOCKED) $(KERNEL)
	$(PYTHON) -c "import sys; sys.exit('dpselect needs Python 3.11 or newer; say make PYTHON=python3.11') if sys.version_info < (3, 11) else None"
	$(if $(CHANGED),$(PYTHON) -m venv .venv)
	$(INSTALL) $(if $(CHANGED),plot paper accounting explore databases excel,--clone)
	touch $@

.venv/installed-dev: $(LOCKED) | .venv/installed
	$(INSTALL) dev docs peers
	touch $@

.venv/installed-docs: $(LOCKED) | .venv/installed
	$(INSTALL) docs
	touch $@

.venv/installed-bench: $(LOCKED) | .venv/installed
	$(INSTALL) bench
	touch $@

demo: .venv/installed
	$(BIN)/dpselect demo

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(MAKE) --jobs=2 types quick

# The tests of what a selection does, bit by bit and by its distribution.
EXACT := $(addprefix tests/,selection mechanisms statistical contract)

# mypy works on one core, so `make test` runs it beside the tests.
types: .venv/installed-dev
	$(BIN)/mypy

quick: .venv/installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow" $(TESTED)

# Proves that a machine without these parts passes: they are hidden, and each must be the reason of a skipped test.
test-bare: .venv/installed-dev
	$(BIN)/python tools/bare.py

# Where the kernel is compiled, the tests of exactness of `make test` ran with it. Here they run without it.
test-slow: .venv/installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m slow
	DPSELECT_KERNEL=no $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow" $(EXACT)
	$(BIN)/python -m mutation $(FEW_MUTANTS)

# It takes about 25 minutes on two idle cores. The figures are kept for bench-page.
bench: .venv/installed-bench
	mkdir -p build
	$(BIN)/python -m benchmarks --save build/benchmarks.json

bench-page: .venv/installed-bench
	$(BIN)/python -m benchmarks --load build/benchmarks.json --page docs/performance.md

docs: .venv/installed-docs
	$(BIN)/python tools/build_docs.py

# What docs/pictures holds is made by this; `make test` compares.
pictures: .venv/installed-dev
	$(BIN)/python tools/draw_pictures.py

# What docs/notebooks holds is made by this; `make test-slow` compares.
notebooks: .venv/installed-docs
	$(BIN)/python tools/run_notebooks.py

.venv-oldest/installed: pyproject.toml constraints/oldest.txt $(KERNEL)
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints/oldest.txt
	touch $@

test-oldest: .venv-oldest/installed
	.venv-oldest/bin/python -m pytest -n 2 --dist loadgroup -p no:cacheprovider

# Without the lock. A warning of a dependency is not an error here: it is news for us, not a fault of the code. Our own
# warnings are no news.
.venv-newest/installed: pyproject.toml $(KERNEL)
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade -e '.[dev,docs,peers]'
	touch $@

test-newest: .venv-newest/installed
	.venv-newest/bin/python -m pytest -n 2 --dist loadgroup -p no:cacheprovider -m "not slow" \
	  -W default -W ignore::dpselect.errors.DoubtfulValue

# Renews constraints/lock.txt: pyproject.toml changed, or UPGRADE=yes was given. uv does the work; nothing else needs it.
.venv-lock/installed:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check packaging 'uv==0.13.*'
	touch $@

lock: .venv-lock/installed
	.venv-lock/bin/python tools/lock.py --uv .venv-lock/bin/uv $(if $(UPGRADE),--upgrade)

.venv/installed-package: $(LOCKED) | .venv/installed
	$(INSTALL) package
	touch $@

# Builds dist/, checks it as an index would, and installs the wheel into an environment of its own.
package: .venv/installed-package
	$(BIN)/python tools/package.py

.venv/installed-fuzz: $(LOCKED) | .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	touch $@

# A crash leaves its input in build/fuzz; `python -m fuzz TARGET FILE` repeats it.
fuzz: .venv/installed-fuzz
	mkdir -p build/fuzz
	for target in scores_file candidate_list table_lines command_line; do \
	  $(BIN)/python -m fuzz $$target -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz/ || exit 1; \
	done

# The kernel is compiled into build/sanitized. The seed is printed; `python -m fuzz.sanitize SECONDS SEED` repeats a search.
sanitize: .venv/installed-dev
	$(BIN)/python -m fuzz.sanitize $(SANITIZE_SECONDS)

mutants: .venv/installed-dev
	$(BIN)/python -m mutation $(MUTANTS) $(ROOM)

# make faults FAULTS="04 12" plants some of them.
faults: .venv/installed-dev
	$(BIN)/python -m mutation.faults $(FAULTS)

# The seed is printed first; `python -m tests.attacks.neighbouring SECONDS SEED` repeats a search.
neighbours: .venv/installed-dev
	$(BIN)/python -m tests.attacks.neighbouring $(NEIGHBOURS_SECONDS)

clean:
	rm -rf .venv .venv-oldest .venv-newest .venv-lock build dist site .cache
	rm -f src/dpselect/selection/_kernel*.so src/dpselect/selection/_kernel*.pyd
