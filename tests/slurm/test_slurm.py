"""The smoke run, submitted to a real SLURM: interrupted, disturbed, finished, and extended.

The tests read what one story left behind; it is told by the fixtures, in their order.
"""

import subprocess
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from slurm.conftest import SCRIPT, STATUS
from slurm.submission import Submission, submitted
from support.checkout import copied_smoke_run

# A fixture brings a whole run to its end: ten minutes on two cores, twice that beside other work.
pytestmark = [pytest.mark.slurm, pytest.mark.timeout(2400)]

ON_GPUS = {
    *("generate", "search_beams", "draw_samples", "audit_traces", "capture_hidden"),
    *("ask_p_true", "ask_verbalized", "learn_probe", "learn_lars"),
}
# How the first attempts of these rules' jobs for one model and task end. They never end by
# themselves, or take more memory than they asked for.
PAIR = ("demo-small", "arithmetic")
FOREVER = "time.sleep(3600)"
DISTURBED = {
    "fingerprint_model": (FOREVER, FOREVER),  # by Ctrl-C, then with its node
    "generate": (FOREVER,),  # by a signal, or scancel
    "search_beams": (FOREVER,),  # by its time limit
    "capture_hidden": (f"hog = b'x' * 2_000_000_000; {FOREVER}",),  # by its memory
    "audit_traces": ("refuse()",),  # by an error of the user's, as jobs report it
}
FINISHED = "rule_fingerprint_model_wildcards_demo-medium"  # before Ctrl-C comes
# The plugin does not understand what sacct says of a cancelled job, and would wait for ever.
END = {"squeue": ["scancel"], "sacct": ["scancel", "--signal=TERM"]}[STATUS]
ENDED = {"squeue": "CANCELLED", "sacct": "FAILED"}[STATUS]
EDITED = {"seed": 1, "beams": {"width": 2}}  # other beams are other tables


def disturb(root: Path, rule: str, harms: tuple[str, ...]) -> None:
    """Edit a rule's script so that its first attempts come to harm."""
    script = next(root.glob(f"workflow_scripts/{rule}.py"))
    first = f"""import time
from pathlib import Path

from tracecal.errors import InputError
from trace_workflow.jobs.job import job

def refuse():
    with job(snakemake):
        raise InputError("the examiner refuses.")

wildcards = dict(snakemake.wildcards.items())
ours = (wildcards["model"], wildcards.get("task", "{PAIR[1]}")) == {PAIR}
for number, harm in enumerate({harms} if ours else ()):
    mark = Path(f"{rule}.begun-{{number}}")
    if not mark.exists():
        mark.touch()
        exec(harm)
"""
    script.write_text(first + script.read_text(encoding="utf-8"), encoding="utf-8")


def completed(jobs) -> set[str]:
    """The names of the jobs that ended well."""
    return {job.name for job in jobs if job.state == "COMPLETED"}


def rendered(root: Path) -> dict[str, str]:
    files = [
        *(root / "results/smoke/tables").iterdir(),
        *(root / "results/smoke/figures").iterdir(),
    ]
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in files}


def on_gpus(site) -> list[dict]:
    """The smoke run's models, each of which asks for a GPU."""
    return [one | {"gpus": 1, "memory_gb": 1} for one in site.smoke()["models"]]


@pytest.fixture(scope="module")
def config(site):
    return site.variant("gpus", models=on_gpus(site))


@pytest.fixture(scope="module")
def interrupted(site, config):
    """The jobs of a run that Ctrl-C ended while a model was fingerprinted, and how it ended."""
    for rule, harms in DISTURBED.items():
        disturb(site.root, rule, harms)
    with Submission(site, config) as run:
        run.wait_for((site.root / "fingerprint_model.begun-0").exists)
        run.wait_for(lambda: FINISHED in completed(submitted()))
        run.interrupt()
        return run.end(), submitted()


@pytest.fixture(scope="module")
def finished(site, config, interrupted):
    """The jobs of the next run, which ends by itself.

    The machine of a fingerprint is lost. While the run decodes, its configuration is edited,
    `generate` is killed and the time of `search_beams` is up.
    """

    with Submission(site, config) as run:
        run.wait_for((site.root / "fingerprint_model.begun-1").exists)
        subprocess.run([SCRIPT, "lose", latest("fingerprint_model").node], check=True)
        run.wait_for((site.root / "generate.begun-0").exists)
        run.wait_for((site.root / "search_beams.begun-0").exists)
        site.variant("gpus", models=on_gpus(site), **EDITED)
        subprocess.run([*END, f"{latest('generate').number}"], check=True)
        # SLURM looks for jobs whose time is up twice a minute.
        job = f"jobid={latest('search_beams').number}"
        subprocess.run(["scontrol", "update", job, "timelimit=0"], check=True)
        assert run.end() == 0, run.output()[-6000:]
    (site.root / "snakemake.log").rename(site.root / "finished.log")
    return submitted()[len(interrupted[1]) :]


def attempts(jobs, rule):
    """A rule's jobs for the disturbed model and task."""
    # Where several jobs may share a pair, the wildcard that counts them is empty, and comes first.
    pairs = (PAIR[0], "_".join(PAIR), "_".join(["", *PAIR]))
    names = {f"rule_{rule}_wildcards_{pair}" for pair in pairs}
    return [job for job in jobs if job.name in names]


def latest(rule):
    return attempts(submitted(), rule)[-1]


def slurm_log(root, job):
    (path,) = root.glob(f".snakemake/slurm_logs/*/*/{job.number}.log")
    return path.read_text(encoding="utf-8", errors="replace")


def test_ctrl_c_cancels_what_was_submitted(interrupted):
    status, jobs = interrupted
    assert status != 0
    assert {job.state for job in jobs} <= {"COMPLETED", "CANCELLED"}
    assert [job.state for job in attempts(jobs, "fingerprint_model")] == ["CANCELLED"]


def test_a_rerun_submits_what_was_not_finished(interrupted, finished):
    done = completed(interrupted[1])
    assert FINISHED in done
    assert done.isdisjoint(job.name for job in finished)
    cancelled = {job.name for job in interrupted[1] if job.state == "CANCELLED"}
    assert cancelled <= {job.name for job in finished}


def test_tables_and_figures_are_those_of_the_local_run(site, finished, pytestconfig, tmp_path):
    local = rendered(copied_smoke_run(pytestconfig, tmp_path / "local").root)
    assert len(local) > 100
    assert rendered(site.root) == local


def test_an_edit_while_jobs_run_is_for_the_next_run(site, config, finished):
    for kind in ("traces", "beams"):  # jobs that were submitted after the edit
        with pa.ipc.open_file(
            site.root / f"results/smoke/{kind}/demo-small/arithmetic.arrow"
        ) as file:
            assert file.schema.metadata[b"seed"] == b"2026"
    assert site.scheduled(config)["draw_splits"] == 2


def test_what_runs_a_model_asks_for_its_gpus_and_nothing_else_does(interrupted, finished):
    # What was finished before Ctrl-C came is not among the jobs of the second run.
    jobs = [*interrupted[1], *finished]
    asked = {job.rule: (job.partition, job.gpu_type, job.gpus) for job in jobs}
    assert {asked.pop(rule) for rule in ON_GPUS} == {("gpu", "toy", 1)}
    # No model, or an encoder that asks for no GPU.
    assert asked.keys() == {
        *("fingerprint_model", "weigh_token_sar", "weigh_mars", "compare_samples"),
        *("vary_operators",),
        *("calibrate", "measure", "resample", "analyse", "make_explorer"),
    }
    assert {gpus for _, _, gpus in asked.values()} == {0}


# Without cgroups SLURM ends a job that outgrows its memory as one that failed; its log says why.
@pytest.mark.parametrize(
    ("rule", "state", "minutes"),
    [
        ("generate", ENDED, 60),
        ("search_beams", "TIMEOUT", 120),
        ("capture_hidden", "FAILED", 30),
    ],
)
def test_a_job_that_was_killed_is_retried_with_twice_as_much(site, finished, rule, state, minutes):
    first, second = attempts(finished, rule)
    assert (first.state, second.state) == (state, "COMPLETED")
    assert second.memory_mb == 2 * first.memory_mb
    assert second.minutes == 2 * minutes
    said = "Exceeded job memory limit" in slurm_log(site.root, first)
    assert said is (rule == "capture_hidden")


def test_a_job_whose_machine_is_lost_is_submitted_again_and_runs_once(finished):
    states = [job.state for job in attempts(finished, "fingerprint_model")]
    assert states == ["NODE_FAIL", "COMPLETED"]


def test_what_a_job_refuses_is_read_where_snakemake_runs(site, finished):
    output = (site.root / "finished.log").read_text(encoding="utf-8")
    assert "audit_traces/demo-small/arithmetic: error: the examiner refuses." in output
    assert [job.state for job in attempts(finished, "audit_traces")] == ["FAILED", "COMPLETED"]


def test_adding_a_model_submits_only_its_jobs(site, finished):
    first, *others = on_gpus(site)
    another = first | {"slug": "another", "label": "Another", "gpus": 2, "shards": 2}
    study = site.smoke()["study"]
    study["cross"]["models"].append("another")
    wider = site.variant("wider", models=[first, *others, another], study=study)
    scheduled = site.scheduled(wider)
    assert scheduled["fingerprint_model"] == scheduled["measure"] == 1
    assert scheduled["generate"] == 2
    assert not {"prepare_task", "link_encoder"} & scheduled.keys()

    before = len(submitted())
    trace = "results/smoke/traces/another/arithmetic.arrow"
    with Submission(site, wider, trace) as run:
        assert run.end() == 0, run.output()[-6000:]
    assert [(job.rule, job.gpus) for job in submitted()[before:]] == [
        ("fingerprint_model", 0),
        ("generate", 2),
        ("generate", 2),
    ]
    assert (site.root / trace).stat().st_size
