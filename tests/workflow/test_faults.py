"""What happens to a run when disks, clocks, machines and people misbehave."""

import hashlib
import os
import shutil
import subprocess
import time

import numpy as np
import polars as pl
import pytest

from support.checkout import command, killed, wait_for
from tracecal.io.traces import read_arrow

pytestmark = pytest.mark.runs


def digests(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_shards_agree_with_one_job_and_another_number_of_them_decodes_nothing(broken):
    run = broken.root / "results/smoke"
    names = ["traces", "beams", "weights/token_sar", "comparisons"]
    targets = [f"results/smoke/{name}/demo-small/extractive.arrow" for name in names]
    whole = {name: read_arrow(run / name / "demo-small/extractive.arrow") for name in names}
    shutil.rmtree(run / "work/journals")
    for count in (3, 2):
        models = [one | {"shards": count} for one in broken.smoke()["models"]]
        config = broken.variant("sharded", models=models)
        broken.snakemake(*targets, "--force", config=config)
        made = {name: read_arrow(run / name / "demo-small/extractive.arrow") for name in names}
        traces, beams = made["traces"], made["beams"]
        for name in ("weights/token_sar", "comparisons"):
            assert made[name]["example_id"].to_list() == whole[name]["example_id"].to_list()
        assert traces["token_ids"].to_list() == whole["traces"]["token_ids"].to_list()
        assert beams["beam_token_ids"].to_list() == whole["beams"]["beam_token_ids"].to_list()
        for name in ("surprisal", "entropy"):
            np.testing.assert_allclose(
                traces[name].explode().to_numpy(),
                whole["traces"][name].explode().to_numpy(),
                atol=1e-4,
            )
        logs = list(
            (run / "logs/generate/demo-small").glob(f"work/shards/*-of-{count}/extractive.log")
        )
        assert len(logs) == count
        decoded = ["decoding" in log.read_text() for log in logs]
        assert decoded == [count == 3] * count


def test_a_run_killed_outright_goes_on_and_ends_in_the_same_bytes(finished):
    """What another run of the same configuration and seed ends in, killed or not.

    All of a model's steps on a task; that a whole second run draws and tabulates the same, the
    run through SLURM shows.
    """
    config = finished.variant("again", run="again")
    run = finished.root / "results/again"
    target = "results/again/calibrators/demo-small/extractive.json"
    process = finished.begin(target, config=config)
    wait_for(lambda: [*(run / "work/journals").glob("traces/*/*/*/*.arrow")])
    killed(process)
    finished.snakemake("--unlock", config=config)
    said = finished.snakemake(target, "--forcerun", "generate", config=config).stdout
    assert "are finished already" in said
    for folder in (
        *("models", "tasks", "traces", "beams", "samples", "asked", "weights", "hidden"),
        *("work/learned", "features", "estimates", "scores", "calibrators", "predictions"),
    ):
        made = digests(run / folder)
        assert made
        first = digests(finished.root / "results/smoke" / folder)
        assert made == {name: first[name] for name in made}


def test_what_a_killed_run_was_making_is_found_though_nothing_else_needs_it(broken):
    averages = broken.root / "results/smoke/analyses/averages.parquet"
    before = averages.read_bytes()
    run = broken.begin("--force", str(averages.relative_to(broken.root)))
    marks = broken.root / ".snakemake/incomplete"
    while not any(path.is_file() for path in marks.rglob("*")):
        assert run.poll() is None
        time.sleep(0.001)
    killed(run)
    assert not averages.exists(), "Snakemake deletes it before its job starts"
    # What follows from it is as it was, so that nothing asks for it: docs/background/failures.md reports it.
    assert "averages" not in broken.scheduled()
    assert broken.doubted("--nolock") == {"analyses/averages.parquet"}
    broken.run("--verify", "all", "--nolock")
    assert averages.read_bytes() == before
    assert not broken.scheduled()


def test_a_second_run_in_the_same_folder_says_so(broken):
    first, locks = broken.begin("--forcerun", "generate"), broken.root / ".snakemake/locks"
    try:
        wait_for(lambda: [*locks.glob("*")])
        second = broken.snakemake(check=False)
        assert second.returncode == 1
        assert "Directory cannot be locked" in second.stdout
    finally:
        killed(first)


def test_results_from_the_future_rerun_nothing_and_take_additions(broken):
    """The clock was set back by a day: every result is younger than now."""
    day = 86400 * 10**9
    for path in (broken.root / "results").rglob("*"):
        if not path.is_symlink():
            stat = path.stat()
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + day))
    table = broken.root / "results/smoke/tables/main_comparison.csv"
    before = table.read_bytes()
    broken.snakemake()
    assert table.read_bytes() == before


def test_a_read_only_results_folder_is_said(broken):
    results = broken.root / "results"
    if os.geteuid() == 0:
        mounted = subprocess.run(
            ["mount", "--bind", "-o", "ro", results, results], capture_output=True, text=True
        )
        if mounted.returncode:
            pytest.skip(f"root writes anywhere and may not mount: {mounted.stderr.strip()}")
    else:
        for path in [results, *results.rglob("*")]:
            if path.is_dir():
                path.chmod(0o555)
    try:
        process = broken.snakemake("--force", "results/smoke/metrics.parquet", check=False)
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", results], check=True)
        else:
            for path in [results, *results.rglob("*")]:
                if path.is_dir():
                    path.chmod(0o755)
    assert process.returncode == 1
    # Snakemake looks before it starts a job, and names the files.
    assert "Write-protected output files" in process.stdout
    assert "results/smoke/metrics.parquet" in process.stdout
    assert pl.read_parquet(results / "smoke/metrics.parquet").height


def test_without_a_network_everything_but_staging_works(broken):
    """In a network namespace of its own there is not even a loopback."""
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("this user may not take the network away from a process")
    shutil.rmtree(broken.root / "results/smoke/hidden")
    shutil.rmtree(broken.root / "results/smoke/work/journals/hidden")
    target = "results/smoke/hidden/demo-small/arithmetic.arrow"
    subprocess.run(["unshare", "--net", *command(target)], cwd=broken.root, check=True)
    assert (broken.root / target).exists()
