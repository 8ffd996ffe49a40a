"""One run, submitted to a real SLURM: interrupted, disturbed, finished, and extended.

The tests read what one story left behind; it is told by the fixtures, in their order.
"""

import subprocess
from pathlib import Path

import pytest

from slurm.submission import Submission, submitted

pytestmark = pytest.mark.slurm

ON_GPUS = {
    *("generate", "search_beams", "draw_samples", "audit_traces", "capture_hidden"),
    *("ask_p_true", "ask_verbalized", "learn_probe", "learn_lars"),
}
# The first attempt of these jobs never ends by itself, or takes more memory than it asked for.
FOREVER = "time.sleep(3600)"
DISTURBED = {
    "generate": FOREVER,  # ended by scancel
    "search_beams": FOREVER,  # ended by its time limit
    "capture_hidden": f"hog = b'x' * 2_000_000_000; {FOREVER}",  # ended by its memory
    "audit_traces": "refuse()",  # an error of the user's, as jobs report it
}
JOB = "demo-small_arithmetic"


def disturb(root: Path, rule: str, harm: str) -> None:
    """Edit a rule's script so that the first attempt of its job `JOB` comes to harm."""
    script = root / f"workflow_scripts/{rule}.py"
    first = f"""import time
from pathlib import Path

from tracecal.errors import InputError
from tracecal.job import job

def refuse():
    with job(snakemake.log[0]):
        raise InputError("the examiner refuses.")

mark = Path("{rule}.begun")
if "_".join(snakemake.wildcards) == "{JOB}" and not mark.exists():
    mark.touch()
    {harm}
"""
    script.write_text(first + script.read_text(encoding="utf-8"), encoding="utf-8")


def tables(root: Path, run: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / f"results/{run}/tables").iterdir()}


@pytest.fixture(scope="module")
def config(site):
    """The smoke run, each of whose models asks for a GPU."""
    models = [one | {"gpus": 1, "memory_gb": 1} for one in site.smoke()["models"]]
    return site.variant("smoke-gpu", models=models)


@pytest.fixture(scope="module")
def local_tables(site):
    """The tables of the same run without SLURM."""
    site.snakemake(config=site.variant("local", run="local"))
    return tables(site.root, "local")


@pytest.fixture(scope="module")
def interrupted(site, config, local_tables):
    """The jobs of a run that Ctrl-C ended while models were trained, and how it ended."""
    for rule, harm in DISTURBED.items():
        disturb(site.root, rule, harm)
    run = Submission(site, config)
    run.wait_for(lambda: any(job.rule == "train_model" for job in submitted()))
    run.interrupt()
    return run.end(), submitted()


@pytest.fixture(scope="module")
def finished(site, config, interrupted):
    """The jobs of the next run, whose `generate` is cancelled once; it ends by itself."""
    run = Submission(site, config)

    def decoding():
        return [job for job in submitted() if job.name == f"rule_generate_wildcards_{JOB}"]

    run.wait_for(lambda: (site.root / "generate.begun").exists())
    subprocess.run(["scancel", str(decoding()[0].number)], check=True)
    assert run.end() == 0, run.output()[-6000:]
    (site.root / "snakemake.log").rename(site.root / "finished.log")
    return submitted()[len(interrupted[1]) :]


def slurm_log(root, job):
    (path,) = root.glob(f".snakemake/slurm_logs/*/*/{job.number}.log")
    return path.read_text(encoding="utf-8", errors="replace")


def attempts(jobs, rule):
    return [job for job in jobs if job.name == f"rule_{rule}_wildcards_{JOB}"]


def test_ctrl_c_cancels_what_was_submitted(interrupted):
    status, jobs = interrupted
    assert status != 0
    assert {job.state for job in jobs} <= {"COMPLETED", "CANCELLED"}
    assert any(job.state == "CANCELLED" for job in jobs)


def test_a_rerun_submits_what_was_not_finished(interrupted, finished):
    done = {job.name for job in interrupted[1] if job.state == "COMPLETED"}
    assert "rule_make_world" in done
    assert done.isdisjoint(job.name for job in finished)
    cancelled = {job.name for job in interrupted[1] if job.state == "CANCELLED"}
    assert cancelled <= {job.name for job in finished}


def test_the_tables_are_those_of_the_local_run(site, local_tables, finished):
    assert len(local_tables) > 20
    assert tables(site.root, "smoke") == local_tables


def test_what_runs_a_model_asks_for_its_gpus_and_nothing_else_does(finished):
    asked = {job.rule: (job.partition, job.gpu_type, job.gpus) for job in finished}
    assert {asked.pop(rule) for rule in ON_GPUS} == {("gpu", "toy", 1)}
    # No model, or one that is trained here: CPUs are enough.
    assert asked.keys() == {
        *("train_model", "train_similarity", "fingerprint_model", "calibrate", "measure"),
        *("weigh_token_sar", "weigh_mars"),
    }
    assert {gpus for _, _, gpus in asked.values()} == {0}


# Without cgroups SLURM ends a job that outgrows its memory as one that failed; its log says why.
@pytest.mark.parametrize(
    ("rule", "state"),
    [("generate", "CANCELLED"), ("search_beams", "TIMEOUT"), ("capture_hidden", "FAILED")],
)
def test_a_job_that_was_killed_is_retried_with_twice_as_much(site, finished, rule, state):
    first, second = attempts(finished, rule)
    assert (first.state, second.state) == (state, "COMPLETED")
    assert second.memory_mb == 2 * first.memory_mb
    assert second.minutes == 2 * first.minutes
    said = "Exceeded job memory limit" in slurm_log(site.root, first)
    assert said is (rule == "capture_hidden")


def test_what_a_job_refuses_is_read_where_snakemake_runs(site, finished):
    output = (site.root / "finished.log").read_text(encoding="utf-8")
    assert "audit_traces/demo-small/arithmetic: error: the examiner refuses." in output
    assert [job.state for job in attempts(finished, "audit_traces")] == ["FAILED", "COMPLETED"]


def test_adding_a_model_submits_only_its_jobs(site, config, finished):
    value = site.smoke()
    another = value["models"][0] | {
        **{"slug": "another", "label": "Another", "gpus": 2, "memory_gb": 1},
        "device_map": "auto",
    }
    models = [one | {"gpus": 1, "memory_gb": 1} for one in value["models"]]
    cross = value["study"]["cross"]
    study = value["study"] | {"cross": cross | {"models": [*cross["models"], "another"]}}
    wider = site.variant("wider", models=[*models, another], study=study)
    scheduled = site.scheduled(wider)
    assert scheduled["train_model"] == scheduled["generate"] == scheduled["measure"] == 1
    assert not {"make_world", "train_tokenizer", "train_similarity"} & scheduled.keys()

    before = len(submitted())
    trace = "results/smoke/traces/another/arithmetic.arrow"
    run = Submission(site, wider, trace)
    assert run.end() == 0, run.output()[-6000:]
    assert [(job.rule, job.gpus) for job in submitted()[before:]] == [
        ("train_model", 0),
        ("fingerprint_model", 0),
        ("generate", 2),
    ]
    assert (site.root / trace).stat().st_size
