"""Which results are up to date, by Snakemake's records and by the results themselves.

Snakemake compares a rule's parameters with those recorded in .snakemake/metadata, which say nothing
of a result that was copied or restored into its place, or touched after an edit. Results hold a
hash of the settings and code that made them, which is compared too, with or without a record.
"""

from pathlib import Path
from typing import Any

from tracecal.jobs.provenance import settings_hash
from tracecal.storage.checksum import made_with


def judge_by_results(persistence: type) -> None:
    """Let Snakemake, by its class of records, make again what other settings or code have made."""
    recorded_otherwise, recorded = persistence.params_changed, persistence.has_metadata

    def params_changed(self: Any, job: Any, file: Any = None) -> Any:
        return recorded_otherwise(self, job, file) or made_otherwise(job)

    def has_metadata(self: Any, job: Any) -> bool:  # without any, Snakemake compares nothing
        return recorded(self, job) or any(made_with(Path(path)) for path in job.output)

    persistence.params_changed = params_changed
    persistence.has_metadata = has_metadata


def remember_killed(persistence: type) -> None:
    """Let Snakemake, by its class of records, make again what a killed run was making.

    It deletes a job's results before the job starts, and marks them. Of those it looks only for the
    ones that are there: what is missing it would leave out where nothing else needs it.
    """

    async def incomplete(self: Any, job: Any) -> list[Any]:
        keys = {path: self._get_key(path) for path in job.output}
        marked = self._filter_incomplete_keys(list(keys.values()))
        return [path for path, key in keys.items() if key in marked]

    persistence.incomplete = incomplete


def made_otherwise(job: Any) -> list[str]:
    """The outputs of a job that name other settings or code than its parameters."""
    made = {path: made_with(Path(path)) for path in job.output}
    if not any(made.values()):
        return []
    current = settings_hash(dict(job.params.items()))
    return [str(path) for path, hashed in made.items() if hashed not in ("", current)]


def up_to_date(dag: Any) -> dict[Any, bool]:
    """Whether each job of Snakemake's plan is up to date, in the plan's order."""
    sound: dict[Any, bool] = {}
    for job in (job for level in dag.toposorted() for job in level):
        inputs_sound = all(sound[other] for other in dag.dependencies[job])
        sound[job] = inputs_sound and not dag.needrun(job)
    return sound
