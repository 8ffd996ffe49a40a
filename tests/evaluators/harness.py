"""The harness on the one task of a folder, without the index of its own thousands, which takes a
minute: `python harness.py MODEL SETTINGS FOLDER`.
"""

import sys
from pathlib import Path

from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

import tracecal.integrations.lm_eval_models  # noqa: F401 - adds its models

name, settings, folder = sys.argv[1:]
tracker = EvaluationTracker(output_path=str(Path(folder) / "out"))
results = simple_evaluate(
    model=name,
    model_args=settings,
    tasks=["questions"],
    task_manager=TaskManager(include_path=folder, include_defaults=False),
    evaluation_tracker=tracker,
    apply_chat_template="chat" in name,
    log_samples=True,
    bootstrap_iters=0,
)
for task, samples in results["samples"].items():
    tracker.save_results_aggregated(results=results, samples=results["samples"])
    tracker.save_results_samples(task_name=task, samples=samples)
