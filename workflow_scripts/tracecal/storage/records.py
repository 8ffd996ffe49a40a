"""Which results are up to date, by Snakemake's records and by the results' own metadata.

Snakemake compares a rule's parameters with those recorded in .snakemake/metadata. Without a record
it takes a result for up to date; for that case results hold a hash of the settings and code that
made them.
"""

import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from tracecal.errors import InputError
from tracecal.provenance import settings_hash
from tracecal.storage.checksum import MADE, read_sum

LONGEST = 255  # characters of a file name; Snakemake splits longer ones


def unrecorded(results: Path, folder: Path) -> list[Path]:
    """The results below `results` without a readable record in `folder`, Snakemake's own; sorted.

    Results are what has a checksum, in it or beside it, and is no part of another result or of a
    journal. What a running or killed job left behind is not listed: it is made again.
    """
    paths = set(results.rglob("*"))
    beside = {
        path.with_name(path.name[1:].removesuffix(".sha256"))
        for path in paths
        if path.suffix == ".sha256"
    }
    sealed = {path for path in paths if path.suffix in (".arrow", ".parquet")}
    wholes = {results / "work/journals", *beside}
    return sorted(
        path
        for path in (beside | sealed) & paths
        if wholes.isdisjoint(path.parents) and not _is_recorded(path, folder)
    )


def up_to_date(dag: Any) -> dict[Any, bool]:
    """Whether each job of Snakemake's plan is up to date, in the plan's order.

    Where Snakemake has no record of a job, the hash in its results decides.
    """
    sound: dict[Any, bool] = {}
    for job in (job for level in dag.toposorted() for job in level):
        unchanged = not (dag.reason(job).no_metadata and _made_otherwise(job))
        inputs_sound = all(sound[other] for other in dag.dependencies[job])
        sound[job] = unchanged and inputs_sound and not dag.needrun(job)
    return sound


def _made_otherwise(job: Any) -> bool:
    """Whether the metadata of any `output` of a job name other settings or code than `params`."""
    made = {_made_with(Path(path)) for path in job.output} - {None, ""}
    return not made <= {settings_hash(dict(job.params.items()))}


def _made_with(path: Path) -> str | None:
    """The hash of what made a result, from its metadata; '' or None where there is none."""
    # Slow to load, and not needed where no record is missing.
    import polars as pl
    import pyarrow as pa

    try:
        if path.suffix == ".parquet":
            return pl.read_parquet_metadata(path).get(MADE)
        if path.suffix == ".arrow":
            with pa.ipc.open_file(path) as reader:
                return (reader.schema.metadata or {}).get(MADE.encode(), b"").decode() or None
        return read_sum(path)[2]
    except (OSError, InputError, pa.ArrowException, pl.exceptions.PolarsError):
        return None


def _is_recorded(path: Path, folder: Path) -> bool:
    """Whether a result has a readable record (a power cut leaves empty ones) or is marked as
    incomplete.
    """
    if record_of(path, folder / "incomplete").exists():
        return True
    try:
        return "params" in json.loads(record_of(path, folder / "metadata").read_bytes())
    except (OSError, ValueError):
        return False


def record_of(path: Path, records: Path) -> Path:
    """The file in which Snakemake records how it made `path`."""
    name = urlsafe_b64encode(str(path).encode()).decode()
    size = LONGEST - 1
    parts = [name[start : start + size] for start in range(0, len(name), size)]
    return records.joinpath(*[f"@{part}" for part in parts[:-1]], parts[-1])
