"""How many labels fits need, on all answers of a finished run: the table of docs/background/which_fit.md.

    PYTHONPATH=workflow_scripts:tests python -m benchmarks.few_labels CONFIGFILE...

Without arguments it is the evening's run, config/config.yaml and config/evening.yaml. Prints TRACE+
minus each other fit and baseline at 20, 50, 100 and 200 labels, in AUROC and Brier score, as the
analysis `few_labels` finds them, here as means over all models and tasks of the run but parts of
answers; * where the interval excludes zero. Draws results/<run>/labels_needed.svg. Minutes.
"""

import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
from snakemake.utils import update_config

from trace_workflow.analyses import few_labels
from trace_workflow.analyses.study_files import StudyFiles
from trace_workflow.config.run import Run, load_run
from trace_workflow.figures import figure_style, labels_needed
from trace_workflow.plan.plan import plan
from trace_workflow.tables.few_labels import LABELS
from tracecal.estimators.estimator import Entry
from tracecal.io.input_files import read_yaml

ROOT = Path(__file__).resolve().parents[1]
ALL = "all models"


def measured(run: Run) -> tuple[pl.DataFrame, list[Entry]]:
    """The rows of `few_labels` of all pairs of a run, as if they were the tasks of one model, and
    the estimators that are shown.
    """
    made, folder = plan(run), f"results/{run.config.run}"
    found = made.analyses["few_labels"]
    everywhere = {name: replace(paths, study="whole") for name, paths in found.inputs.items()}
    whole = replace(found, inputs=everywhere)
    pairs = made.pairs_of_study("whole", run.config.study.pairs())
    files = {
        name: [path.replace("<results>", folder) for path in paths]
        for name, paths in made.inputs(whole, pairs).items()
    }
    as_tasks = [(ALL, f"{model} {task}") for model, task in pairs]
    shown = [Entry(**one) for one in made.figures["labels_needed"].settings["entries"]]
    return few_labels.analysis(StudyFiles(files, as_tasks), **found.settings), shown


def printed(found: pl.DataFrame, labels: dict[str, str]) -> list[str]:
    """Lines of Markdown: a row for each number of labels, a column for each but TRACE+."""
    mean = found.filter(pl.col("task").is_null())
    others = [
        name for name in mean["estimator"].unique(maintain_order=True) if name != "trace_plus"
    ]
    lines = [
        f"| labels | {' | '.join(labels[name] for name in others)} |",
        "|---" * (len(others) + 1) + "|",
    ]
    for (size,), rows in mean.group_by("labels", maintain_order=True):
        cells = {(r["estimator"], r["metric"]): cell(r) for r in rows.iter_rows(named=True)}
        tasks = rows["tasks"].first()
        own = [
            ", ".join(cells[name, metric] for metric in reversed(few_labels.METRICS))
            for name in others
        ]
        lines.append(f"| {size} ({tasks} tasks) | {' | '.join(own)} |")
    return lines


def cell(row: dict) -> str:
    """TRACE+ minus the estimator of a row of `few_labels`."""
    # `difference` says how much better TRACE+ is; a Brier score that is better is lower.
    signed = row["difference"] * (-1 if row["metric"] == "brier" else 1)
    apart = row["low"] is not None and (row["low"] > 0 or row["high"] < 0)
    return f"{signed:+.3f}".replace("0.", ".").replace("-", "−") + "*" * apart


def main(configfiles: list[str]) -> int:
    value: dict = {}
    for path in configfiles:
        update_config(value, read_yaml(path))
    run = load_run(value, " and ".join(configfiles), ROOT)
    found, shown = measured(run)
    labels = {entry.id: entry.label for entry in shown} | LABELS
    print("TRACE+ minus the others: AUROC, Brier score")
    print("\n".join(printed(found, labels)))
    paths = [f"results/{run.config.run}/labels_needed.{kind}" for kind in ("pdf", "svg")]
    figure_style.save(labels_needed.draw(found, shown), *paths, "Labels needed", ALL)
    print(f"drawn in {paths[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["config/config.yaml", "config/evening.yaml"]))
