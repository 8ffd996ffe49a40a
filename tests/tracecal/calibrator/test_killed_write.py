"""A calibrator's file when its writer is killed: it is whole, the old one or the new one."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from support.labelled_answers import answers, fitted_file
from support.running import REPOSITORY
from tracecal.calibrator.schema import CalibratorFile

# What `CalibratorFile.write` does, again and again, so that a kill falls into a write.
WRITER = """
import itertools, sys
from pathlib import Path
from tracecal.io.regular_files import write_text
texts = [Path(name).read_text(encoding="utf-8") for name in ("old.txt", "new.txt")]
for number, text in enumerate(itertools.cycle(texts)):
    write_text(text, "C.json")
    if number == 1:
        print("writing", flush=True)
"""
# `tracecal calibrate` in forks, whose numbers it prints: its modules take longer to load than it runs.
CALIBRATE = """
import os, sys
import tracecal.cli.calibrate
from tracecal.cli.main import main
for line in sys.stdin:
    if (child := os.fork()) == 0:
        os.dup2(2, 1)
        main(["calibrate", "--answers", line.strip(), "--task", "t", "--output", "C.json"])
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
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


class Calibrations:
    """Runs of `tracecal calibrate` in a folder, some of which are killed."""

    def __init__(self, folder):
        self.output = folder / "C.json"
        self.part = folder / ".C.json.part"
        self.caller = subprocess.Popen(
            [sys.executable, "-c", CALIBRATE],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, answers, kill_after=None):
        """Return its exit status and seconds; a kill comes so late, or else while it writes."""
        self.caller.stdin.write(f"{answers}\n")
        self.caller.stdin.flush()
        child, start = int(self.caller.stdout.readline()), time.monotonic()
        if kill_after is not None:
            end = start + (kill_after or 10)
            while time.monotonic() < end and (kill_after or not self.part.exists()):
                time.sleep(0.0002)
            with suppress(ProcessLookupError):  # it has ended
                os.kill(child, signal.SIGKILL)
        return int(self.caller.stdout.readline()), time.monotonic() - start

    def checksum(self):
        """Return the checksum of the file, which is accepted; None where there is no file."""
        if not self.output.exists():
            return None
        return CalibratorFile.read(self.output).fitted_on.checksum


@pytest.mark.slow
def test_calibrate_that_is_killed_leaves_no_file_the_old_one_or_a_whole_one(tmp_path):
    for number in range(2):
        answers(60, seed=number).write_ndjson(tmp_path / f"{number}.jsonl")
    calibrations, draw, whole, n_killed = Calibrations(tmp_path), random.Random(49), [], 0
    with calibrations.caller:
        for number in range(2):
            status, took = calibrations.run(f"{number}.jsonl")
            assert status == 0
            whole.append(calibrations.checksum())
        calibrations.output.unlink()
        before = None
        for kill in range(KILLS):
            after = draw.uniform(0.01, took) if kill % 3 == 0 else 0
            status, _ = calibrations.run(f"{kill % 2}.jsonl", after)
            n_killed += status == signal.SIGKILL
            found = calibrations.checksum()
            assert found in (before, whole[kill % 2])
            before = found
            if kill == KILLS // 2:
                assert calibrations.run("0.jsonl")[0] == 0, "what a kill left is in no way"
                before = whole[0]
        calibrations.caller.stdin.close()
    assert n_killed > KILLS // 2
