# `make demo` sets up and runs the embedded default; `make test` passes the tests.

PYTHON ?= python3
CORES ?= $(shell nproc)
BIN := .venv/bin
SNAKEMAKE := $(BIN)/snakemake --cores $(CORES)

.PHONY: demo report status test test-slurm lint format clean

demo: .venv/installed
	$(SNAKEMAKE) all costs
	@echo "Done. Look at results/demo/tables and results/demo/figures; 'make report' gathers them in report.zip."

report: demo
	$(BIN)/snakemake all costs --report report.zip

# Which jobs are done, running, failed and remaining: make status CONFIG=config/mine.yaml
CONFIG ?= config/config.yaml
status: .venv/installed
	@$(BIN)/python workflow_scripts/status.py --configfile $(CONFIG)

# A file's tests stay together in one of two processes.
test: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Starts a SLURM of one node on this machine, as root with Debian's packages; skips elsewhere.
test-slurm: .venv-slurm/installed
	.venv-slurm/bin/python -m pytest -m slurm tests/slurm

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile rules

.venv/installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed; name it: make PYTHON=python3.11 ...")'
	@echo "Installing the pinned requirements into .venv; about two minutes, most of it downloads."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	@touch $@

# An environment of its own over the first: with the plugin, and a SLURM client whose cluster is
# down, every start of Snakemake would wait for it.
.venv-slurm/installed: .venv/installed requirements-slurm.txt
	$(BIN)/python -m venv .venv-slurm
	$(BIN)/python -c 'import site; print(*site.getsitepackages())' > .venv-slurm/base.pth
	mv .venv-slurm/base.pth .venv-slurm/lib/python3*/site-packages/
	.venv-slurm/bin/python -m pip install --disable-pip-version-check --no-deps -r requirements-slurm.txt
	@touch $@

clean:
	rm -rf .venv .venv-slurm results .snakemake
