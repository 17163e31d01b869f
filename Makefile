# `make` lists what there is to do. A target that needs Python packages first makes .venv in this checkout,
# from pyproject.toml, and makes it anew only when that file changes. Tests, style and MPI add what they need to it.
#
#     make train ARGS="--config configs/quick.yaml train.epochs=3"
#     make train PYTHON=python3.12

PYTHON ?= python3
N ?= 2
MPIEXEC ?= .venv/bin/mpiexec
RUN := .venv/bin/python
READY := .venv/made-from-pyproject.toml
HAS := .venv/has-

.PHONY: help train quick compare demo train-mpi test coverage soak data bench lint docs pictures package lock clean
.DEFAULT_GOAL := help

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

train: $(READY)  ## train with the custom operator and the built-in one, and compare (ARGS="key=value ...")
	$(RUN) train.py $(ARGS)

quick: $(READY)  ## the same on the committed sample, in seconds
	$(RUN) train.py --config configs/quick.yaml $(ARGS)

compare: $(READY)  ## compare several operators over several seeds (ARGS="--workers 2 --with relu,my_ops.py:swish")
	$(RUN) -m opsmith compare --config configs/compare.yaml $(ARGS)

demo: $(READY)  ## open a page on which the networks of the best run classify digits that you draw (ARGS="RUN --port N")
	$(RUN) -m opsmith demo $(ARGS)

train-mpi: $(HAS)mpi  ## train on several ranks, each with its part of every batch (N=2)
	@case "$(N)" in "" | 0 | *[!0-9]*) echo 'N is a number of ranks, as in make train-mpi N=2; found N=$(N)' >&2; exit 2 ;; esac
	@command -v "$(MPIEXEC)" > /dev/null || { \
	  echo 'There is no $(MPIEXEC). The one of another MPI library: make train-mpi MPIEXEC=mpiexec' >&2; exit 2; }
	$(MPIEXEC) -n $(N) $(RUN) train.py $(if $(findstring --resume,$(ARGS)),,--config configs/mpi.yaml) $(ARGS)

test: $(HAS)dev  ## run the tests (ARGS="-m quick" for a minute of them, ARGS="-k word" for some)
	$(RUN) -m pytest --numprocesses=auto --dist=loadgroup $(ARGS)

coverage: $(HAS)dev  ## run the tests and print the branches of app/ that none of them reaches
	$(RUN) -m pytest --numprocesses=auto --dist=loadgroup --cov --cov-report=term $(ARGS)

soak: $(HAS)dev  ## run the long tests (about thirty minutes) and store the figures for docs/reliability.md
	$(RUN) -c 'import atheris' 2>/dev/null || $(RUN) -m pip install --quiet --disable-pip-version-check atheris
	$(RUN) -m pytest tests/soak $(ARGS)
	$(RUN) -m pytest -m soak --numprocesses=auto --dist=loadgroup

data: $(READY)  ## download MNIST into data/ and verify it
	$(RUN) -m opsmith data fetch

bench: $(READY)  ## benchmark against other frameworks; install them with .venv/bin/pip install -e .[bench]
	$(RUN) -m benchmarks $(ARGS)

lint: $(HAS)dev  ## check style, format and types
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

docs: $(HAS)docs  ## build the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

pictures: $(HAS)dev  ## make the pictures of the README again, with Chromium (ARGS=RUN for the report of that run)
	$(RUN) tools/pictures.py $(ARGS)

package: $(HAS)dev  ## build wheel and sdist into dist/, install them elsewhere, and run them
	$(RUN) tools/package.py

lock: $(HAS)dev  ## write the packages of development, with hashes, for every Python and system into requirements-dev.txt
	$(RUN) -m pip install --quiet --disable-pip-version-check uv
	.venv/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.10 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --upgrade --quiet --output-file requirements-dev.txt

clean:  ## remove caches and site/; runs/, data/ and .venv stay
	@echo 'Removing $(CACHES), and __pycache__ in $(SOURCES)'
	@rm -rf $(CACHES)
	@for folder in $(SOURCES); do \
	  if test -d $$folder; then find $$folder -name __pycache__ -type d -prune -exec rm -rf {} +; fi; done

CACHES := .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* site
SOURCES := app benchmarks examples tests tools

# --- The set-up ---

# A .venv whose Python is gone, as after an upgrade of the system, is as good as none.
ifneq ($(shell test -x $(RUN) && echo there),there)
.PHONY: $(READY) $(HAS)dev
endif

$(READY): pyproject.toml
	$(CHECK_PYTHON)
	@$(ALONE) sh -c 'if $(IS_READY); then touch $(READY); exit; fi; \
	  $(NEW_ENVIRONMENT) && $(call INSTALL,.) && cp pyproject.toml $(READY)'

# Tests and style use exactly the packages of requirements-dev.txt, whose hashes pip verifies.
$(HAS)dev: pyproject.toml requirements-dev.txt
	$(CHECK_PYTHON)
	@$(ALONE) sh -c 'if $(IS_READY) && cat pyproject.toml requirements-dev.txt | cmp -s - $@; then touch $@; exit; fi; \
	  if $(IS_READY); then :; else $(NEW_ENVIRONMENT); fi && \
	  echo "Adding what dev needs to .venv ..." && \
	  $(PIP) --require-hashes --requirement requirements-dev.txt && $(call INSTALL,.,--no-deps --no-build-isolation) && \
	  cp pyproject.toml $(READY) && cat pyproject.toml requirements-dev.txt > $@'

define CHECK_PYTHON
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo 'The set-up needs Python 3.10 or newer, which "$(PYTHON)" is not. Name another: make PYTHON=python3.12'; \
	  exit 1; } >&2
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'The set-up needs the venv module of "$(PYTHON)". On Debian and Ubuntu: apt install python3-venv'; \
	  exit 1; } >&2
endef

# Of two makes at once the second waits for the first. (Python's lock, as macOS has no `flock`.)
ALONE = "$(PYTHON)" -c 'import fcntl, os, sys; lock = os.open("Makefile", os.O_RDONLY); \
	fcntl.flock(lock, fcntl.LOCK_EX); os.set_inheritable(lock, True); os.execvp(sys.argv[1], sys.argv[1:])'

# What documentation, or MPI, needs besides.
$(HAS)%: $(READY)
	@$(ALONE) sh -c 'if cmp -s pyproject.toml $@; then touch $@; exit; fi; \
	echo "Adding what $* needs to .venv ..."; $(call INSTALL,.[$*]) && cp pyproject.toml $@'

# Python compiles a module when it is first imported: most of those that pip would compile never are.
PIP = $(RUN) -m pip install --disable-pip-version-check --no-compile
INSTALL = $(PIP) $(2) --editable "$(1)" && \
	(cd .venv/lib/python*/site-packages && for link in *opsmith.pth; do echo ../../../.. > $$link; done)

# In a .venv that make has made, before it is ready: another one is somebody's work, and is not replaced.
OURS := .venv/made-by-make

# INSTALL makes pip's link to this checkout relative: Python 3.11 and 3.12 cannot read letters outside ASCII in it under
# LC_ALL=C, and a checkout that is moved should not go on importing from its old place. The copy of pyproject.toml
# comes last, so that a set-up which was interrupted is not taken for a whole one.
IS_READY = test -x $(RUN) && cmp -s pyproject.toml $(READY)
NEW_ENVIRONMENT = if test -e .venv && ! test -e $(READY) && ! test -e $(OURS); then \
	  echo ".venv is there, and make did not make it: it would be replaced. Move it away, or remove it" >&2; exit 1; fi; \
	echo "Setting up .venv (once; again when pyproject.toml changes) ..."; \
	"$(PYTHON)" -m venv --clear .venv && touch $(OURS)
