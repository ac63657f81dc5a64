# make help    what there is
#
# Everything is installed into .venv from the lock files in requirements/. A file .venv/.installed-NAME
# says that requirements/NAME.txt is in there, and is older than that lock when it must be done again.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest

# The lock that running needs: cu13 or cu12 by what the NVIDIA driver supports, else core. One that is
# installed already stays, because a newer driver runs it too and two CuPy wheels never share a .venv.
INSTALLED_CUDA = $(patsubst $(VENV)/.installed-%,%,$(wildcard $(VENV)/.installed-cu12 $(VENV)/.installed-cu13))
DRIVER_CUDA = $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[A-Za-z ]* Version: *\([0-9]*\).*/\1/p' | head -n 1)
RUNTIME ?= $(or $(INSTALLED_CUDA),$(if $(filter 12 13,$(DRIVER_CUDA)),cu$(DRIVER_CUDA),core))

# uv pip compile: one file for every Python from 3.11 on. LOCK_FLAGS=--upgrade takes the newest versions.
LOCK_FLAGS ?=
SCHEDULES ?= 100
KILL_SECONDS ?= 600
MUTANTS ?= 1000
SEED ?= 1

# Processes of pytest; many tests wait for processes of their own.
TEST_PROCESSES ?= 2
# Container images often forbid .pyc files; without them every process rewrites all asserts each time.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal

# What coverage is measured of: kernels compiled by Numba and CUDA do not count as run.
MEASURED = "(unit or golden) and not slow and not gpu"
CUDA_SOURCES = $(shell find kernels -name '*.cu' -o -name '*.cuh')

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url $(LOCK_FLAGS) --group pyproject.toml:build pyproject.toml

.DEFAULT_GOAL := help
.SECONDEXPANSION:
.PHONY: help demo quick test test-all lowest coverage soak check format lock reference clean

help:
	@echo "make demo     install, and run scan, cnv and dock on small generated data (RUNTIME=core|cu12|cu13 overrides the choice)"
	@echo "make quick    unit tests: a minute (ARGS='-k scan' goes to pytest, here and below)"
	@echo "make test     all tests but those marked slow or faults"
	@echo "make test-all all tests: half an hour"
	@echo "make lowest   unit tests with the lowest versions that pyproject.toml allows, in .venv-lowest: ten minutes"
	@echo "make coverage the lines that tests run, per folder"
	@echo "make soak     100 random fault schedules for each job (SCHEDULES=20 for fewer), then ten minutes of kill points"
	@echo "              (KILL_SECONDS=60, SEED=2), then 1,000 damaged files of each format (MUTANTS=100): 50 minutes"
	@echo "make check    ruff, mypy, clang-format"
	@echo "make format   let ruff and clang-format write the sources"
	@echo "make lock     write requirements/*.txt again (LOCK_FLAGS=--upgrade for newer versions)"
	@echo "make reference  write docs/options.md again, from the declarations of options"
	@echo "make clean    remove .venv and the caches"

demo: $(VENV)/.installed-$$(RUNTIME)
	@$(BIN)/python -m multigpu demo

INSTALLED = $(VENV)/.installed-dev $$(if $$(filter-out core,$$(RUNTIME)),$(VENV)/.installed-$$(RUNTIME))

quick: $(INSTALLED)
	@$(PYTEST) -m "unit and not slow and not gpu" --hypothesis-profile quick \
		$(foreach folder,bad_input faults golden program,--ignore tests/$(folder)) $(ARGS)

test: $(INSTALLED)
	@$(PYTEST) -m "not slow and not faults" $(ARGS)

test-all: $(INSTALLED)
	@$(PYTEST) $(ARGS)

# With wheels only: of a package that has none for this Python, the lowest version that has.
lowest: $(VENV)/.installed-uv
	@$(BIN)/uv pip compile --quiet --resolution lowest-direct --only-binary :all: --no-header --no-annotate \
		--python $(BIN)/python --extra dev pyproject.toml --output-file $(VENV)/lowest.txt
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	@$(BIN)/uv pip install --quiet --python $(LOWEST) --requirement $(VENV)/lowest.txt
	@$(BIN)/uv pip install --quiet --python $(LOWEST) --no-deps --no-build-isolation --editable .
	@PYTHONDONTWRITEBYTECODE= $(LOWEST)/bin/python -m pytest -n $(TEST_PROCESSES) --dist worksteal \
		-m "unit and not slow and not gpu" --hypothesis-profile quick $(ARGS)

coverage: $(INSTALLED)
	@$(PYTEST) -m $(MEASURED) --cov --cov-report= $(ARGS)
	@for folder in cluster kernels multigpu/[!_]*/; do case $$folder in multigpu/cluster/|multigpu/kernels/) continue; esac; \
		printf '%-20s %3s %%\n' $$folder "$$($(BIN)/coverage report --include="$${folder%/}/*" --format=total)"; done
	@printf '%-20s %3s %%\n' all "$$($(BIN)/coverage report --format=total)"

soak: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest tests/faults/test_soak.py --schedules $(SCHEDULES) -n 3 $(ARGS)
	@$(BIN)/python -m pytest tests/faults/test_kill_points.py --kill-seconds $(KILL_SECONDS) \
		--seed $(SEED) --timeout $(shell expr $(KILL_SECONDS) + 300) -rP $(ARGS)
	@$(BIN)/python -m pytest tests/faults/test_mutants.py --mutants $(MUTANTS) \
		--seed $(SEED) --timeout 3600 -n $(TEST_PROCESSES) $(ARGS)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CUDA_SOURCES)

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CUDA_SOURCES)

# Each lock keeps to the versions of the ones before it, so that core, dev and either CUDA lock agree.
lock: $(VENV)/.installed-uv
	$(COMPILE) --extra cu13 --output-file requirements/cu13.txt
	$(COMPILE) --constraint requirements/cu13.txt --output-file requirements/core.txt
	$(COMPILE) --extra dev --constraint requirements/cu13.txt --output-file requirements/dev.txt
	$(COMPILE) --extra cu12 --constraint requirements/dev.txt --output-file requirements/cu12.txt

clean:
	rm -rf $(VENV) $(LOWEST) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
	find multigpu cluster kernels tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { \
		echo "There is no $(PYTHON): install Python 3.11 or newer, or say which: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$$($(PYTHON) --version) is older than 3.11; say which to use: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) lacks the modules venv or ensurepip; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.installed-uv: | $(VENV)/.created
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	@touch $@

# A lock names all that it needs. Without --no-deps, pip's older versions look past the lock for what is asked
# with extras (coverage[toml]), find a newer version, and refuse it for want of a hash.
$(VENV)/.installed-%: requirements/%.txt pyproject.toml | $(VENV)/.created
	@for other in $(if $(filter cu12 cu13,$*),$(filter-out $*,$(INSTALLED_CUDA))); do \
		echo "$(VENV) holds $$other, which cannot share it with $*: make clean first" >&2; exit 1; done
	@echo "Installing requirements/$*.txt into $(VENV); this is done once."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $<
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

reference:
	$(BIN)/python -m multigpu.tools.reference > docs/options.md
