"""Jobs: errors that read as one sentence, logs that hold what the terminal shows."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest

from trace_workflow.jobs.code_hash import code_version

SCRIPTS = Path(__file__).resolve().parents[3] / "workflow_scripts"
# As Snakemake hands itself to a script, which imports what the run can see.
SCRIPT = """
from types import SimpleNamespace
from tracecal.errors import InputError
from trace_workflow.jobs.job import job
from tracecal.io.progress import progress_bar
import os, sys
class Params(dict):
    __getattr__ = dict.__getitem__
loading = {{"threads": int(os.environ.get("THREADS", 1))}}
params = Params(code=sys.argv[2], made_with="0123456789abcdef", loading=loading)
attempt = int(sys.argv[3])
snakemake = SimpleNamespace(
    log=[sys.argv[1]],
    threads=2,
    params=params,
    resources={{"attempt": attempt}},
    wildcards=SimpleNamespace(model="m"),
)
with job(snakemake, online={online}):
    {body}
"""


def run(
    tmp_path, body, online=False, edit=lambda script: None, scripts=SCRIPTS, attempts=1, **variables
):
    # A new folder each time: files are cached by path within one process.
    tmp_path = Path(mkdtemp(dir=tmp_path))
    log = tmp_path / "logs" / "generate" / "model" / "task.log"
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(online=online, body=body))
    code = code_version(script, root=scripts)
    edit(script)
    for attempt in range(1, attempts + 1):
        process = subprocess.run(
            [sys.executable, script, log, code, str(attempt)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(scripts), **variables},
        )
    return process, log.read_text()


def test_an_input_error_is_its_sentence_without_a_traceback(tmp_path):
    process, log = run(tmp_path, "raise InputError('the file x is empty.')")
    assert process.returncode == 1
    assert process.stderr == log
    assert log.endswith("generate/model/task: error: the file x is empty.\n")
    assert log.count("\n") == 1


def test_a_model_with_more_threads_than_the_run_has_cores_is_refused(tmp_path):
    enough, _ = run(tmp_path, "pass", THREADS="2")
    assert enough.returncode == 0
    process, _ = run(tmp_path, "pass", THREADS="3")
    assert process.returncode == 1
    assert "error: model 'm' states 3 threads, and its job gets 2: type --cores 3" in (
        process.stderr
    )


def test_an_unexpected_error_keeps_its_traceback_in_the_log(tmp_path):
    process, log = run(tmp_path, "1 / 0")
    assert process.returncode == 1
    assert "ZeroDivisionError" in log
    assert "Traceback" in log


def test_a_full_disk_is_said(tmp_path):
    process, log = run(tmp_path, "raise OSError(28, 'No space left on device', 'x.parquet')")
    assert process.returncode == 1
    assert "error: No space left on device (x.parquet)" in log
    assert "Traceback" not in log


def test_a_log_on_a_full_disk_does_not_hide_the_error(tmp_path):
    body = (
        "LOGGER.handlers[-1].setStream(open('/dev/full', 'w'))\n    raise InputError('x is wrong.')"
    )
    process, _ = run(tmp_path, f"from trace_workflow.jobs.job import LOGGER\n    {body}")
    assert process.returncode == 1
    assert process.stderr.count("\n") == 1, process.stderr
    assert "error: x is wrong." in process.stderr


def test_what_follows_a_job_is_not_made_by_it(tmp_path):
    body = (
        "assert MADE_WITH.get()\n    LOGGER.info('within')\n"
        "assert MADE_WITH.get() == ''\nLOGGER.info('after')\nassert logging.raiseExceptions"
    )
    body = f"import logging\n    from trace_workflow.jobs.job import LOGGER, MADE_WITH\n    {body}"
    process, log = run(tmp_path, body)
    assert process.returncode == 0, process.stderr
    assert "within\n" in log
    assert "after" not in log


def test_progress_is_whole_lines_with_the_time_left(tmp_path):
    process, log = run(
        tmp_path,
        "import time\n    with progress_bar(4, 'decoding', 'answers', every=0.01) as bar:\n"
        "        for _ in range(4):\n            time.sleep(0.05)\n            bar.update()",
    )
    assert process.returncode == 0
    assert "\r" not in log
    assert any("2/4" in line and "<00:00" in line for line in log.split("\n"))
    assert "4/4" in log


ASK = """
    import huggingface_hub, os
    from huggingface_hub import HfApi
    print(os.environ.get("HF_DATASETS_OFFLINE"), end=" ")
    try:
        HfApi().model_info("a/b")
    except Exception as error:
        print(type(error).__name__)
"""


def test_only_an_online_job_may_reach_the_hub(tmp_path):
    hub = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0"}
    offline, _ = run(tmp_path, f"import huggingface_hub{ASK}", **hub)
    online, _ = run(tmp_path, f"import huggingface_hub{ASK}", online=True, **hub)
    assert offline.stdout.split() == ["1", "OfflineModeIsEnabled"]
    assert online.stdout.split()[0] == "0"
    assert "Connect" in online.stdout, online.stdout + online.stderr


def test_a_token_is_blotted_out_even_of_tracebacks(tmp_path):
    process, log = run(tmp_path, "raise KeyError('Bearer hf_abcdefgh')", HF_TOKEN="hf_abcdefgh\n")
    assert "KeyError: 'Bearer ***'" in log
    assert "hf_abcdefgh" not in log + process.stderr


def test_code_edited_after_the_run_began_is_not_run(tmp_path):
    def edit(script):
        script.write_text(script.read_text().replace("print(1)", "print(2)"))

    process, log = run(tmp_path, "print(1)", edit=edit)
    assert process.returncode == 1
    assert process.stdout == ""
    assert "error: the code of script.py was edited after this run had started" in log


def test_code_edited_while_it_runs_is_of_no_effect_and_the_next_job_is_refused(tmp_path):
    edit = "open(__file__, 'a').write({!r}); print('worked')"
    process, _ = run(tmp_path, edit.format("x = 1\n"))
    assert (process.returncode, process.stdout) == (0, "worked\n"), process.stderr
    (script,) = tmp_path.rglob("script.py")
    process, log = run(
        tmp_path, edit.format(""), edit=lambda new: new.write_bytes(script.read_bytes())
    )
    assert (process.returncode, process.stdout) == (1, "")
    assert "was edited after this run had started" in log


def test_a_package_module_edited_after_the_run_began_is_not_run(tmp_path):
    """Also one that nothing has imported yet, or that the script imports by name."""
    root = tmp_path / "scripts"
    for package in ("tracecal", "trace_workflow"):
        ignored = shutil.ignore_patterns("*.pyc")
        shutil.copytree(SCRIPTS / package, root / package, ignore=ignored)
    late = root / "tracecal/estimators/features.py"
    body = "import tracecal.estimators.features\n    print('worked')"
    for edit in (lambda _: None, lambda _: late.write_text(late.read_text() + "\nX = 1\n")):
        process, log = run(tmp_path, body, edit=edit, scripts=root)
    assert (process.returncode, process.stdout) == (1, "")
    assert "error: the code of script.py was edited after this run had started" in log


ATTEMPT = "from pathlib import Path; made = Path(sys.argv[1]).with_suffix('.n'); "
ATTEMPT += "made.write_text(made.read_text() + '1' if made.exists() else '1'); "


@pytest.mark.parametrize(
    ("end", "works"),
    [
        ("raise InputError('x is wrong.')", "1"),
        ("1 / 0", "11"),
        ("sys.stdout.flush() or __import__('os').kill(__import__('os').getpid(), 9)", "11"),
    ],
)
def test_only_a_job_that_did_not_end_with_a_sentence_works_again(tmp_path, end, works):
    process, log = run(tmp_path, ATTEMPT + end, attempts=2)
    assert process.returncode != 0
    assert next(tmp_path.rglob("task.n")).read_text() == works
    assert ("error: x is wrong." in log) == (works == "1")
    on_another_node = tmp_path / "node"
    on_another_node.mkdir()
    run(on_another_node, ATTEMPT + end, attempts=2, SLURM_JOB_ID="7")
    assert next(on_another_node.rglob("task.n")).read_text() == "11"
