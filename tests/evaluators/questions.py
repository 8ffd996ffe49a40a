"""A task of Inspect whose answers, with their log-probabilities, stand in a file."""

import json
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, ModelOutput, get_model
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate


@task
def questions(path: str, calibrator: str | None = None, two: bool = False) -> Task:
    """With `calibrator`, its scorer beside the task's own; `two`: with two scorers of its own."""
    made = json.loads(Path(path).read_text(encoding="utf-8"))
    scorers = [match(), includes()] if two else [match()]
    if calibrator:
        from tracecal.integrations.inspect_scorer import confidence

        scorers.append(confidence(calibrator=calibrator, error_rate=0.3))
    outputs = {one["input"]: one["output"] for one in made}
    model = get_model(
        "mockllm/model",
        custom_outputs=lambda input, *_: ModelOutput.model_validate(outputs[input[-1].text]),
    )
    return Task(
        dataset=[Sample(id=one["id"], input=one["input"], target="yes") for one in made],
        solver=generate(),
        scorer=scorers,
        model=model,
        config=GenerateConfig(temperature=1.0, logprobs=True, top_logprobs=3),
    )
