"""What models need is told from metadata, before anything large is fetched."""

import json
import math

import pytest

from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.needs import (
    ModelFiles,
    cache_bytes_per_token,
    parameter_count,
    tokens_at_most,
)

# Published: 28 layers, 4 of 28 heads hold keys, width 3584, so 56 KiB a token in bfloat16.
QWEN = {
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "hidden_size": 3584,
    "torch_dtype": "bfloat16",
}


def test_the_cache_holds_keys_and_values_of_every_layer():
    assert cache_bytes_per_token(QWEN, "bfloat16") == 2 * 28 * 4 * 128 * 2
    assert cache_bytes_per_token(QWEN | {"head_dim": 64}, "float32") == 2 * 28 * 4 * 64 * 4
    assert cache_bytes_per_token({"text_config": QWEN}, "float16") == 2 * 28 * 4 * 128 * 2
    assert cache_bytes_per_token({"model_type": "mamba"}, "float16") is None


def test_parameters_are_as_the_hub_counted_or_as_the_weights_weigh():
    sizes = {"model.safetensors": 100, "tokenizer.json": 7}
    assert parameter_count(ModelFiles(sizes, 0, {"BF16": 7, "F32": 1}, {})) == 8
    assert parameter_count(ModelFiles(sizes, 0, {}, QWEN)) == 50
    assert parameter_count(ModelFiles(sizes, 0, {}, {"dtype": "float32"})) == 25
    assert parameter_count(ModelFiles(sizes, 0, {}, {})) is None


def test_tokens_allow_for_question_context_and_answer():
    bare = PromptSettings(max_new_tokens=10)
    assert tokens_at_most(bare) == round(len("{question}") / 3) + 128 + 10
    with_context = PromptSettings(prompt="{context}{question}", max_new_tokens=10)
    assert tokens_at_most(with_context) > tokens_at_most(bare) + 2000
    shot = {"question": "q" * 300, "answer": "a"}
    assert (
        tokens_at_most(PromptSettings(few_shot=(shot,), max_new_tokens=10))
        > tokens_at_most(bare) + 99
    )


PROGRAM = """
import json, logging, sys
from tracecal.io.log import LOGGER
from trace_workflow.models.needs import needs
LOGGER.addHandler(logging.StreamHandler(sys.stderr)); LOGGER.setLevel("INFO")
print(json.dumps(needs(*json.load(sys.stdin)).to_dicts()))
"""


def test_needs_of_hub_gated_and_local_models(hub, client, tmp_path, model_files):
    hub.add("model", "tiny/gated", model_files, gated=True)
    local = tmp_path / "local"
    local.mkdir()
    for name, data in model_files.items():
        if "/" not in name and not name.startswith("consolidated"):
            (local / name).write_bytes(data)
    common = {"dtype": "bfloat16", "batch_size": 4, "tasks": ["t"]}
    models = [
        common | {"slug": "a", "hub": "tiny/model", "revision": "main", "path": None},
        common | {"slug": "b", "hub": "tiny/gated", "revision": "main", "path": None},
        common | {"slug": "c", "hub": None, "revision": None, "path": str(local)},
    ]
    asking = PromptSettings(max_new_tokens=10)
    [hub_row, gated, folder] = client.call(PROGRAM, [models, {"t": asking.model_dump_json()}])
    shards = {name for name in model_files if name.startswith("model-")}
    index = json.loads(model_files["model.safetensors.index.json"])
    parameters = index["metadata"]["total_parameters"]
    # Headers of the safetensors files count as weights too: little, but for tiny models.
    assert math.isclose(hub_row["parameters_billion"] * 1e9, parameters, rel_tol=0.1)
    per_token = 2 * 2 * 1 * 16 * 2
    assert hub_row["cache_gb"] == pytest.approx(per_token * tokens_at_most(asking) * 4 / 1e9)
    assert hub_row["memory_gb"] == pytest.approx(hub_row["weights_gb"] + hub_row["cache_gb"])
    assert hub_row["to_fetch_gb"] * 1e9 > sum(len(model_files[name]) for name in shards)
    assert gated["disk_gb"] > 0
    assert gated["memory_gb"] is None
    assert "https://huggingface.co/tiny/gated" in client.printed
    assert "all models:" in client.printed
    assert folder["to_fetch_gb"] == 0
    assert folder["memory_gb"] == pytest.approx(hub_row["memory_gb"])
    assert not any(".safetensors" in one and ".json" not in one for one in hub.asked)
