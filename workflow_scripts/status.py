"""Show the state of a run: done, running, failed, remaining, and when it may end.

python workflow_scripts/status.py [--configfile config/mine.yaml] [--parallel N]
"""

import argparse
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

from snakemake.api import SnakemakeApi
from snakemake.exceptions import WorkflowError
from snakemake.settings.enums import Quietness, RerunTrigger
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings

from tracecal.given import read_yaml
from tracecal.status import Job, overview
from tracecal.storage.records import up_to_date


def jobs_of(configfile: str) -> list[Job]:
    """Every job of the run, in the order of the workflow; nothing is locked and nothing runs."""
    root = Path(__file__).resolve().parents[1]
    triggers = read_yaml(root / "profiles/default/config.yaml")["rerun-triggers"]
    settings = DAGSettings(rerun_triggers=frozenset(map(RerunTrigger.parse_choice, triggers)))
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api, redirect_stdout(None):
        config = ConfigSettings(configfiles=[Path(configfile)])
        workflow = api.workflow(ResourceSettings(cores=1), config, snakefile=root / "Snakefile")
        workflow.dag(settings).summary()
        jobs = up_to_date(workflow._workflow.dag)
    return [_described(job, sound) for job, sound in jobs.items() if job.output]


def _described(job, up_to_date: bool) -> Job:
    name, model = "/".join(job.wildcards), job.wildcards_dict.get("model")
    outputs = tuple(map(Path, job.output))
    return Job(job.rule.name, name, model, up_to_date, outputs, Path(job.log[0]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configfile", default="config/config.yaml")
    parser.add_argument("--parallel", type=int, help="parallel jobs; default: as many as run now")
    given = parser.parse_args()
    started = max((p.stat().st_mtime for p in Path(".snakemake/locks").glob("*")), default=None)
    try:
        print(overview(jobs_of(given.configfile), started, given.parallel, time.time()))
    except (WorkflowError, OSError) as error:
        sys.exit(f"error: {error}")
