"""What supervised estimators need of a run is asked for when it starts."""

from pathlib import Path

import pytest
import yaml

from trace_workflow.config.config import load_config
from trace_workflow.config.run import load_run
from tracecal.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
SMOKE = yaml.safe_load((ROOT / "config/smoke.yaml").read_text(encoding="utf-8"))
STUDY = {
    "main": {"models": ["demo-small"], "tasks": ["arithmetic", "extractive"]},
    "cross": {"models": ["demo-medium"], "tasks": ["extractive"]},
    "broader": {"models": ["demo-medium"]},
}


def require(limits, chosen=("trace", "trace_plus", "lars", "internal_probe"), **changes):
    tasks = [{"slug": slug, "training_limit": limit} for slug, limit in limits.items()]
    own = {"tasks": tasks, "study": STUDY, "estimators": [*chosen]}
    load_run(SMOKE | own | changes, "c", ROOT)


def test_one_task_with_training_rows_serves_a_models_others():
    require({"arithmetic": 0, "extractive": 5})


def test_a_model_without_any_is_named_with_what_wants_them():
    with pytest.raises(
        InputError,
        match=r"config: lars and internal_probe must .* of model 'demo-medium' \(extractive\) has any",
    ):
        require({"arithmetic": 5, "extractive": 0})


def test_what_is_not_chosen_or_is_trained_already_wants_none():
    none = {"arithmetic": 0, "extractive": 0}
    require(none, chosen=["trace", "trace_plus", "seq_logp"])
    published = {"encoder": {"source": {"path": "/models/lars"}, "trained": True}}
    require(none, chosen=["lars"], lars=published)
    with pytest.raises(InputError, match="config: internal_probe must"):
        require(none, lars=published)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probe": {"depth": 2}}, r"c: probe\.depth: .*less than or equal to 1, not 2"),
        (
            {"lars": {"encoder": {"trained": True}}},
            r"c: lars\.encoder: 'trained' needs a source with",
        ),
        (
            {"lars": {"encoder": {"source": {"train": {"width": 40}}}}},
            r"c: lars\.encoder\.source\.train\.width: 40 must be a multiple of 16",
        ),
        (
            {"lars": {"encoder": {"source": {"hub": "FacebookAI/roberta-base"}}}},
            r"c: lars\.encoder\.source: 'hub' and 'revision' must be given together",
        ),
        ({"lars": {"fitting": {"epoch": 3}}}, r"c: lars\.fitting: unknown key 'epoch'.*epochs"),
    ],
)
def test_wrong_settings_are_said_in_a_sentence(changes, message):
    with pytest.raises(InputError, match=message):
        load_config(SMOKE | changes, "c")


def test_part_of_the_settings_leaves_each_estimators_own_defaults():
    config = load_config(SMOKE | {"lars": {"fitting": {"epochs": 3}}}, "c")
    assert config.lars.fitting.learning_rate == 1e-3
    assert config.probe.fitting.learning_rate == 1e-4
