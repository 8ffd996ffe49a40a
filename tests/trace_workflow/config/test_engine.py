"""Which models may ask for vLLM."""

import copy
from pathlib import Path

import pytest
import yaml

from trace_workflow.config.config import load_config
from tracecal.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
SMOKE = yaml.safe_load((ROOT / "config/smoke.yaml").read_text(encoding="utf-8"))


def model(**given):
    value = copy.deepcopy(SMOKE)
    value["models"][0] |= {"source": {"path": "weights"}} | given
    return load_config(value, "c").models[0]


def test_transformers_decodes_unless_asked():
    assert model().engine == "transformers"
    served = model(engine="vllm", gpus=4, shards=3, dtype="bfloat16")
    assert served.engine == "vllm"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"threads": 2}, "'demo-small' states 2 threads.*leave out"),
        ({"quantization": "4bit"}, "'demo-small' asks for 4bit quantization.*leave out"),
        ({"source": {"answers": "a/{task}.jsonl"}}, "'demo-small' come from files.*leave out"),
        ({"engine": "sglang"}, "'transformers' or 'vllm'"),
    ],
)
def test_what_cannot_work_is_refused(given, told):
    with pytest.raises(InputError, match=told):
        model(**{"engine": "vllm"} | given)
