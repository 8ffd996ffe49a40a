"""Write a finished run's metrics as records of Every Eval Ever, one file for a model and task.

python workflow_scripts every_eval_ever --organization NAME [--configfile config/mine.yaml]
    [--developer NAME] [--output data]

Files are named as in that store, `TASK/DEVELOPER/MODEL/UUID.json`, and replaced by the next call.
`every_eval_ever validate 'data/*/*/*/*.json'` checks them.
"""

import argparse
import hashlib
import json
import math
import sys
import time
import uuid
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl

from trace_workflow.analyses.averages import AVERAGES
from trace_workflow.config.config import Config, load_config
from trace_workflow.config.models import Model
from tracecal.calibration.metrics import ACCURACY
from tracecal.errors import InputError
from tracecal.io.files import read_parquet, write_text
from tracecal.io.input_files import read_yaml

SCHEMA_VERSION = "0.3.0"
UNBOUNDED = "-Infinity", "Infinity"
# Whether lower is better, the smallest and the largest value; an oracle's `prr` is 1.
METRICS: dict[str, tuple[bool, float | str, float | str]] = {
    "accuracy": (False, 0.0, 1.0),
    "aurc": (True, 0.0, 1.0),
    "auroc": (False, 0.0, 1.0),
    "auroc_calibrated": (False, 0.0, 1.0),
    "brier": (True, 0.0, 1.0),
    "ece": (True, 0.0, 1.0),
    "ece_debiased": (True, -1.0, 1.0),
    "nll": (True, 0.0, UNBOUNDED[1]),
    "prr": (False, UNBOUNDED[0], 1.0),
}


def write_records(
    configfile: str, organization: str, output: Path, developer: str = "unknown"
) -> str:
    """Write the records of a run, and say how many. Raises `InputError`."""
    config = load_config(read_yaml(configfile), configfile)
    folder = Path("results") / config.run / "analyses"
    if missing := [n for n in ("accuracy", "averages") if not (folder / f"{n}.parquet").exists()]:
        raise InputError(
            f"{folder / missing[0]}.parquet is not there yet; first run: snakemake --cores all "
            f"--configfile {configfile}"
        )
    accuracy = read_parquet(folder / "accuracy.parquet", [*ACCURACY])
    averages = read_parquet(folder / "averages.parquet", [*AVERAGES])
    count = 0
    for record in records(config, accuracy, averages, organization, developer):
        name = record["evaluation_results"][0]["evaluation_name"]
        model = record["model_info"]["id"].rpartition("/")[2]
        file = f"{uuid_of(f'{config.run}/{name}/{model}')}.json"
        path = output / name / record["model_info"]["developer"] / model / file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", path)
        count += 1
    undefined = averages.filter(pl.col("study").is_null())["mean"].null_count()
    return f"{count} records in {output}; {undefined} undefined metrics are left out"


def uuid_of(text: str) -> uuid.UUID:
    """The same UUID for the same text, in version 4, which the store requires of its files' names.

    >>> uuid_of("demo") == uuid_of("demo"), uuid_of("demo").version
    (True, 4)
    """
    return uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4)


def package_version() -> str:
    """The installed version; the schema's word for none is "unknown"."""
    try:
        return version("tracecal")
    except PackageNotFoundError:
        return "unknown"


def records(
    config: Config,
    accuracy: pl.DataFrame,
    averages: pl.DataFrame,
    organization: str,
    developer: str,
) -> Iterator[dict[str, Any]]:
    """A record for each model and task, with the accuracy first, then the averages over splits."""
    models, now = {model.slug: model for model in config.models}, time.time()
    for row in accuracy.sort("model", "task").iter_rows(named=True):
        model, task = row["model"], row["task"]
        means = averages.filter(pl.col("study").is_null(), model=model, task=task)
        means = means.drop_nulls("mean").sort("estimator", "metric")
        info = model_info(models[model], developer)
        yield {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": f"{task}/{info['id']}/{now:.0f}",
            "retrieved_timestamp": f"{now:.0f}",
            "source_metadata": {
                "source_name": config.run,
                "source_type": "evaluation_run",
                "source_organization_name": organization,
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "tracecal", "version": package_version()},
            "model_info": info,
            "evaluation_results": [
                accuracy_result(row),
                *(average_result(mean) for mean in means.iter_rows(named=True)),
            ],
        }


def model_info(model: Model, developer: str) -> dict[str, Any]:
    """The model's name and id: its repository in the hub, or its slug."""
    details = {"deployment_type": "self_deployed", "model_availability": "open_weights"}
    if model.source.answers:
        details = dict.fromkeys(details, "unknown")
    elif model.source.hub is None:
        details["model_availability"] = "unknown"
    if model.source.revision:
        details["revision"] = model.source.revision
    model_id = model.source.hub or model.slug
    return {
        "name": model.label or model.slug,
        "id": model_id,
        "developer": model_id.rpartition("/")[0] or developer,
        "additional_details": details,
    }


def accuracy_result(row: dict[str, Any]) -> dict[str, Any]:
    """How often the model is right; answers that are missing count where the run counts them."""
    score = {
        "score": row["accuracy"],
        "details": {"correct": str(row["correct"]), "unanswered": str(row["unanswered"])},
        "uncertainty": {"num_samples": row["n"]},
    }
    return result(row["task"], "accuracy", score, {})


def average_result(mean: dict[str, Any]) -> dict[str, Any]:
    """An estimator's metric, the mean over random splits of the task."""
    details = {
        "splits": mean["splits"],
        "undefined_splits": mean["undefined"],
        "sd_over_splits": mean["sd"],
        "mean_answers_in_a_split": mean["n"],
    }
    defined = {name: str(x) for name, x in details.items() if x is not None and math.isfinite(x)}
    score = {"score": mean["mean"], "details": defined}
    return result(mean["task"], mean["metric"], score, {"estimator": mean["estimator"]})


def result(
    task: str, metric: str, score: dict[str, Any], parameters: dict[str, str]
) -> dict[str, Any]:
    """A result of a task by a metric of `METRICS`."""
    lower_is_better, least, largest = METRICS[metric]
    return {
        "evaluation_result_id": "/".join([task, metric, *parameters.values()]),
        "evaluation_name": task,
        "source_data": {"dataset_name": task, "source_type": "other"},
        "metric_config": {
            "metric_id": metric if metric == "accuracy" else f"tracecal.{metric}",
            "metric_name": metric,
            "metric_parameters": parameters,
            "lower_is_better": lower_is_better,
            "score_type": "continuous",
            "min_score": least,
            "max_score": largest,
        },
        "score_details": score,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configfile", default="config/config.yaml")
    parser.add_argument("--organization", required=True, help="who ran the evaluation")
    parser.add_argument(
        "--developer", default="unknown", help="who made the models that come from no hub"
    )
    parser.add_argument("--output", type=Path, default=Path("data"))
    arguments = parser.parse_args()
    try:
        print(write_records(**vars(arguments)))
    except InputError as error:
        sys.exit(f"error: {error}")
