"""The command `init` writes a folder for a run of one's own."""

import subprocess
import sys
from pathlib import Path

from tracecal.io.input_files import read_yaml

ROOT = Path(__file__).resolve().parents[3]


def test_a_folder_begins_with_a_run_of_ones_own_that_uses_several_cores(tmp_path):
    command = [sys.executable, str(ROOT / "workflow_scripts"), "init", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    written = tmp_path / "config/config.yaml"
    assert written.read_bytes() == (ROOT / "config/example.yaml").read_bytes()
    assert [model["shards"] for model in read_yaml(written)["models"]] == [4]
    demo = read_yaml(ROOT / "config/config.yaml")
    assert [model["shards"] for model in demo["models"]] == [1, 1]
