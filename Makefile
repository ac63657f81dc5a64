# make help    what there is
#
# Everything is installed into .venv from the lock files in requirements/. A file .venv/.installed-NAME
# says that requirements/NAME.txt is in there, and is older than that lock when it must be done again.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The lock that running needs: cu13 or cu12 by what the NVIDIA driver supports, else core. One that is
# installed already stays, because a newer driver runs it too and two CuPy wheels never share a .venv.
INSTALLED_CUDA = $(patsubst $(VENV)/.installed-%,%,$(wildcard $(VENV)/.installed-cu12 $(VENV)/.installed-cu13))
DRIVER_CUDA = $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[A-Za-z ]* Version: *\([0-9]*\).*/\1/p' | head -n 1)
RUNTIME ?= $(or $(INSTALLED_CUDA),$(if $(filter 12 13,$(DRIVER_CUDA)),cu$(DRIVER_CUDA),core))

# uv pip compile: one file for Python 3.11 to 3.13. LOCK_FLAGS=--upgrade takes the newest versions.
LOCK_FLAGS ?=
SCHEDULES ?= 100
KILL_SECONDS ?= 600
MUTANT_SECONDS ?= 600
SEED ?= 1

# Tests run in so many processes; many of them wait for others.
TEST_PROCESSES ?= 2
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url $(LOCK_FLAGS) --group pyproject.toml:build pyproject.toml

.DEFAULT_GOAL := help
.SECONDEXPANSION:
.PHONY: help demo test soak check lock clean

help:
	@echo "make demo    install, and run scan, cnv and dock on small generated data (RUNTIME=core|cu12|cu13 overrides the choice)"
	@echo "make test    install and run the tests (ARGS='-k scan' goes to pytest)"
	@echo "make soak    100 random fault schedules for each job (SCHEDULES=20 for fewer), then ten minutes of kill points"
	@echo "             (KILL_SECONDS=60, SEED=2) and ten of damaged files (MUTANT_SECONDS=60): 50 minutes"
	@echo "make check   ruff and mypy"
	@echo "make lock    write requirements/*.txt anew (LOCK_FLAGS=--upgrade for newer versions)"
	@echo "make clean   remove .venv and the caches"

demo: $(VENV)/.installed-$$(RUNTIME)
	@$(BIN)/python -m multigpu demo

test: $(VENV)/.installed-dev $$(if $$(filter-out core,$$(RUNTIME)),$(VENV)/.installed-$$(RUNTIME))
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal $(ARGS)

soak: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest tests/faults/test_soak.py --schedules $(SCHEDULES) -n 3 $(ARGS)
	@$(BIN)/python -m pytest tests/faults/test_kill_points.py --kill-seconds $(KILL_SECONDS) \
		--seed $(SEED) --timeout $(shell expr $(KILL_SECONDS) + 300) -rP $(ARGS)
	@$(BIN)/python -m pytest tests/faults/test_mutants.py --mutant-seconds $(MUTANT_SECONDS) \
		--seed $(SEED) --timeout $(shell expr $(MUTANT_SECONDS) + 600) -rP $(ARGS)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Each lock keeps to the versions of the ones before it, so that core, dev and either CUDA lock agree.
lock: $(VENV)/.installed-uv
	$(COMPILE) --extra cu13 --output-file requirements/cu13.txt
	$(COMPILE) --constraint requirements/cu13.txt --output-file requirements/core.txt
	$(COMPILE) --extra dev --constraint requirements/cu13.txt --output-file requirements/dev.txt
	$(COMPILE) --extra cu12 --constraint requirements/dev.txt --output-file requirements/cu12.txt

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find multigpu cluster kernels tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { \
		echo "There is no $(PYTHON): install Python 3.11, 3.12 or 3.13, or say which: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
		echo "$$($(PYTHON) --version) is not 3.11, 3.12 or 3.13; say which to use: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) lacks the modules venv or ensurepip; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.installed-uv: | $(VENV)/.created
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	@touch $@

$(VENV)/.installed-%: requirements/%.txt pyproject.toml | $(VENV)/.created
	@for other in $(if $(filter cu12 cu13,$*),$(filter-out $*,$(INSTALLED_CUDA))); do \
		echo "$(VENV) holds $$other, which cannot share it with $*: make clean first" >&2; exit 1; done
	@echo "Installing requirements/$*.txt into $(VENV); this is done once."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
