"""Write a finished run's metrics as records of Every Eval Ever, one file for a model and task.

python examples/every_eval_ever.py results/demo --organization NAME [--developer NAME]
    [--output data]

Files are named as in that store, `TASK/DEVELOPER/MODEL/UUID.json`, and replaced by the next call.
`every_eval_ever validate 'data/*/*/*/*.json'` checks them.
"""

import argparse
import hashlib
import json
import sys
import time
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import polars as pl
import yaml

# Whether lower is better, the smallest and the largest value; an oracle's `prr` is 1.
METRICS = {
    "accuracy": (False, 0.0, 1.0),
    "aurc": (True, 0.0, 1.0),
    "auroc": (False, 0.0, 1.0),
    "auroc_calibrated": (False, 0.0, 1.0),
    "brier": (True, 0.0, 1.0),
    "ece": (True, 0.0, 1.0),
    "ece_debiased": (True, -1.0, 1.0),
    "nll": (True, 0.0, "Infinity"),
    "prr": (False, "-Infinity", 1.0),
}


def write_records(run: Path, organization: str, output: Path, developer: str = "unknown") -> str:
    """Write the records of a run's folder, and say how many."""
    accuracy = pl.read_parquet(run / "analyses/accuracy.parquet").sort("model", "task")
    averages = pl.read_parquet(run / "analyses/averages.parquet").fill_nan(None)
    averages = averages.filter(pl.col("study").is_null())
    resolved = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    models = {model["slug"]: model for model in resolved["models"]}
    now = f"{time.time():.0f}"
    for row in accuracy.iter_rows(named=True):
        task, info = row["task"], model_info(models[row["model"]], developer)
        means = averages.filter(model=row["model"], task=task).drop_nulls("mean")
        record = {
            "schema_version": "0.3.0",
            "evaluation_id": f"{task}/{info['id']}/{now}",
            "retrieved_timestamp": now,
            "source_metadata": {
                "source_name": run.name,
                "source_type": "evaluation_run",
                "source_organization_name": organization,
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "tracecal", "version": package_version()},
            "model_info": info,
            "evaluation_results": [accuracy_result(row)]
            + [average_result(mean) for mean in means.sort("estimator", "metric").to_dicts()],
        }
        model = info["id"].rpartition("/")[2]
        # The store wants UUIDs of version 4; this one is the same at each call.
        digest = hashlib.sha256(f"{run.name}/{task}/{model}".encode()).digest()
        name = f"{uuid.UUID(bytes=digest[:16], version=4)}.json"
        path = output / task / info["developer"] / model / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, indent=1, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8", newline="\n")
    undefined = averages["mean"].null_count()
    return f"{accuracy.height} records in {output}; {undefined} undefined metrics are left out"


def package_version() -> str:
    """The installed version; the schema's word for none is "unknown"."""
    try:
        return version("tracecal")
    except PackageNotFoundError:
        return "unknown"


def model_info(model: dict[str, Any], developer: str) -> dict[str, Any]:
    """The model's name and id: its repository in the hub, or its slug."""
    source = model["source"]
    details = {"deployment_type": "self_deployed", "model_availability": "open_weights"}
    if source["answers"]:
        details = dict.fromkeys(details, "unknown")
    elif source["hub"] is None:
        details["model_availability"] = "unknown"
    if source["revision"]:
        details["revision"] = source["revision"]
    model_id = source["hub"] or model["slug"]
    return {
        "name": model["label"] or model["slug"],
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
    defined = {name: str(value) for name, value in details.items() if value is not None}
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
    parser.add_argument("run", type=Path, help="the folder of a finished run")
    parser.add_argument("--organization", required=True, help="who ran the evaluation")
    parser.add_argument(
        "--developer", default="unknown", help="who made the models that come from no hub"
    )
    parser.add_argument("--output", type=Path, default=Path("data"))
    try:
        print(write_records(**vars(parser.parse_args())))
    except OSError as error:
        sys.exit(f"error: {error}; is the run finished?")
