"""Show how far a run has come: python workflow_scripts status [TARGET ...] [options]."""

import argparse
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

from snakemake.api import SnakemakeApi
from snakemake.exceptions import WorkflowError
from snakemake.settings.enums import Quietness, RerunTrigger
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings

from tracecal.inputs.files import read_yaml
from tracecal.jobs.status import Job, overview
from tracecal.storage.records import up_to_date

ROOT = Path(__file__).resolve().parents[2]


def jobs_of(configfile: str, targets: list[str]) -> list[Job]:
    """Every job for `targets`, in the workflow's order; nothing is locked and nothing runs."""
    profile = read_yaml(ROOT / "profiles/default/config.yaml")
    triggers = map(RerunTrigger.parse_choice, profile["rerun-triggers"])
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api, redirect_stdout(None):
        config = ConfigSettings(configfiles=[Path(configfile)])
        workflow = api.workflow(ResourceSettings(1), config, snakefile=ROOT / "Snakefile")
        workflow.dag(DAGSettings(frozenset(targets), rerun_triggers=frozenset(triggers))).summary()
        sound = up_to_date(workflow._workflow.dag)
    return [_described(job, fine) for job, fine in sound.items() if job.output]


def _described(job, sound: bool) -> Job:
    name, model = "/".join(filter(None, job.wildcards)), job.wildcards_dict.get("model")
    return Job(job.rule.name, name, model, sound, tuple(map(Path, job.output)), Path(job.log[0]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("targets", nargs="*", help="as for snakemake; default: all")
    parser.add_argument("--configfile", default="config/config.yaml")
    parser.add_argument("--parallel", type=int, help="jobs side by side; default: as many as run")
    args = parser.parse_args()
    started = max((p.stat().st_mtime for p in Path(".snakemake/locks").glob("*")), default=None)
    try:
        print(overview(jobs_of(args.configfile, args.targets), started, args.parallel, time.time()))
    except (WorkflowError, OSError) as error:
        sys.exit(f"error: {error}")
