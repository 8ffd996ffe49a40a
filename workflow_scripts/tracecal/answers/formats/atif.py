"""Runs of agents: trajectories in ATIF, and results of trials of Harbor, which wrote the format.

Each step of an agent whose tokens have log-probabilities is an answer; all answers of a run are one
group, and have its reward as their verdict. A trajectory states none: put it beside it, as `reward`
or as Harbor's `verifier_result`. Steps that were copied from an earlier trajectory, and those that
sum up several calls of a model, are no answers.

The tokens of a step are those of its reasoning, message and calls of tools together, known by id.
"""

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.raw_answer import RawAnswer
from tracecal.answers.reasoning import Content, split_content
from tracecal.answers.step import Step, require_id_per_step
from tracecal.errors import WrongRow


class StepMetrics(BaseModel):
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float | None] | None = None


class AgentStep(BaseModel):
    """A step of an agent."""

    message: Content = None
    reasoning_content: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    model_name: str | None = None
    metrics: StepMetrics


class Agent(BaseModel):
    model_name: str | None = None


class Trajectory(BaseModel):
    """A trajectory with one step."""

    schema_version: Any = None
    agent: Agent = Agent()
    steps: list[AgentStep]
    reward: Any = None
    verifier_result: Any = None
    extra: Any = None
    final_metrics: Any = None
    subagent_trajectories: Any = None


TRIAL = {"trial_name", "verifier_result"}  # of the result of a trial


def recognises(row: Row) -> bool:
    """Whether a row is a trajectory, or the result of a trial."""
    version, steps = row.get("schema_version"), row.get("steps")
    is_trajectory = isinstance(version, str) and version.upper().startswith("ATIF")
    return (is_trajectory and isinstance(steps, list)) or row.keys() >= TRIAL


def split(row: Row) -> dict[str, Row]:
    """A row with one step for each step that has log-probabilities, by the step's number.

    The steps of embedded subagents follow, by the number of the subagent and the step's.
    """
    if row.keys() >= TRIAL:
        row = _as_trajectory(row)
    elif len(row["steps"]) == 1 and not row.get("subagent_trajectories"):
        return {"": row}
    steps = _steps(row)
    prompts = (step.get("message") for step in steps if step.get("source") == "user")
    question = next((text for text in prompts if isinstance(text, str)), row.get("question"))
    rows = {f"#step-{step['step_id']}": {"steps": [step]} for step in steps if _has_tokens(step)}
    agents = row.get("subagent_trajectories")
    for number, agent in enumerate(agents if isinstance(agents, list) else (), 1):
        name = {"agent": _at(agent, "agent") or {}}
        rows |= {
            f"#agent-{number}-step-{step['step_id']}": name | {"steps": [step]}
            for step in _steps(agent)
            if _has_tokens(step)
        }
    shared = row | {"question": question, "subagent_trajectories": None}
    return {
        ending: shared | part | {"timestamp": part["steps"][0].get("timestamp")}
        for ending, part in rows.items()
    } or {"": row}


def n_left_out(row: Row) -> int:
    """How many steps of an agent and of its subagents have no log-probabilities of one call."""
    agents = row.get("subagent_trajectories")
    runs = [row, *(agents if isinstance(agents, list) else [])]
    steps = [step for run in runs for step in _steps(run) if step.get("source") == "agent"]
    return sum(not _has_tokens(step) for step in steps)


def _steps(trajectory: Any) -> list[Row]:
    """The steps of a trajectory, each with its number."""
    steps = _at(trajectory, "steps")
    listed = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return [{"step_id": number} | step for number, step in enumerate(listed, 1)]


def _has_tokens(step: Row) -> bool:
    return (
        bool(_at(step, "metrics", "logprobs"))
        and step.get("is_copied_context") is not True
        and step.get("llm_call_count") in (None, 1)
    )


def _as_trajectory(trial: Row) -> Row:
    """The result of a trial as a trajectory of the turns of its main rollout."""
    trial_fields = {name: trial[name] for name in ("id", "verifier_result") if name in trial}
    return trial_fields | {
        "schema_version": "ATIF",
        "session_id": trial["trial_name"],
        "question": trial.get("task_name"),
        "agent": {"model_name": _at(trial, "agent_info", "model_info", "name")},
        "steps": [*_turns(trial)],
    }


def _turns(trial: Row) -> Iterator[Row]:
    """The turns of a trial's main rollout, as steps; their texts are not stated."""
    rollouts = _at(trial, "agent_result", "rollout_details")
    rollout = rollouts[0] if isinstance(rollouts, list) and rollouts else None
    names = ("prompt_token_ids", "completion_token_ids", "logprobs")
    lists = [_at(rollout, name) for name in names]
    turns = [values if isinstance(values, list) else [] for values in lists]
    for number, turn in enumerate(zip_longest(*turns), 1):
        metrics = dict(zip(names, turn, strict=True))
        yield {"step_id": number, "source": "agent", "metrics": metrics}


def read(row: Row) -> RawAnswer:
    """Read the first step with log-probabilities. Raises `WrongRow` where no step has any."""
    row = next(iter(split(row).values()))
    steps_of_row = _steps(row)
    if len(steps_of_row) != 1 or not _has_tokens(steps_of_row[0]):
        raise WrongRow(
            f"none of its {len(steps_of_row)} steps has the log-probabilities of its tokens "
            "(metrics.logprobs) from one call of a model"
        )
    trajectory = Trajectory.model_validate(row)
    step = trajectory.steps[0]
    text, thoughts = split_content(step.message)
    steps = [Step(None, None, logprob) for logprob in step.metrics.logprobs or ()]
    require_id_per_step(steps, step.metrics.completion_token_ids)
    calls = json.dumps(step.tool_calls, ensure_ascii=False) if step.tool_calls else ""
    return RawAnswer(
        answer="\n".join(filter(None, [text, calls])),
        steps=steps,
        token_ids=step.metrics.completion_token_ids,
        prompt_token_ids=step.metrics.prompt_token_ids,
        reasoning="within" if step.reasoning_content or thoughts else "none",
        model=step.model_name or trajectory.agent.model_name,
        verdicts=_rewards(row),
    )


def _rewards(row: Row) -> dict[str, Any]:
    """The rewards of a run, by their paths: its verifier's, else the one beside the steps."""
    rewards = _at(row, "verifier_result", "rewards")
    if isinstance(rewards, dict) and rewards:
        return {f"verifier_result.rewards.{name}": value for name, value in rewards.items()}
    paths = [("reward",), ("extra", "reward"), ("final_metrics", "extra", "reward")]
    stated = {".".join(path): _at(row, *path) for path in paths}
    return {path: value for path, value in stated.items() if value is not None}


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


FORMAT = Format(
    "atif",
    recognises,
    Trajectory,
    read,
    ("session_id", "trial_name", "agent_result", "agent_info"),
    split,
    n_left_out,
)
