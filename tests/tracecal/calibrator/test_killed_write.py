"""A calibrator's file when its writer is killed: it is whole, the old one or the new one."""

import os
import signal
import subprocess
import sys
import time

import pytest

from support.labelled_answers import answers, fitted_file
from support.running import REPOSITORY
from tracecal.calibrator.schema import CalibratorFile

# What `CalibratorFile.write` does, again and again, so that a kill falls into a write.
WRITER = """
import itertools, sys
from pathlib import Path
from tracecal.io.files import write_text
texts = [Path(name).read_text(encoding="utf-8") for name in ("old.txt", "new.txt")]
for number, text in enumerate(itertools.cycle(texts)):
    write_text(text, "C.json")
    if number == 1:
        print("writing", flush=True)
"""
KILLS = 12


@pytest.fixture(scope="module")
def texts():
    return [fitted_file(answers(n)).text() for n in (40, 60)]


def test_a_file_whose_writer_is_killed_is_whole_and_has_its_checksum(texts, tmp_path):
    for name, text in zip(("old.txt", "new.txt"), texts, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")}
    for kill in range(KILLS):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER], cwd=tmp_path, env=environment, stdout=subprocess.PIPE
        )
        with writer:
            assert writer.stdout.readline() == b"writing\n"
            time.sleep(0.0007 * kill)
            writer.send_signal(signal.SIGKILL)
        assert writer.returncode == -signal.SIGKILL
        assert (tmp_path / "C.json").read_text(encoding="utf-8") in texts
        assert CalibratorFile.read(tmp_path / "C.json").fitted_on.checksum is not None
