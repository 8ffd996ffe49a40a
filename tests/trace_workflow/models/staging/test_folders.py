"""Model folders: what counts as their content, and what is refused before anything loads it."""

import json
import shutil
from pathlib import Path

import pytest

from trace_workflow.models.folders import (
    check_model_folder,
    fingerprint,
    has_chat_template,
    link_model,
)
from tracecal.errors import InputError

MODELS = Path(__file__).resolve().parents[4] / "demo/models"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text('{"num_hidden_layers": 2}')
    (made / "model.safetensors").touch()
    return made


@pytest.mark.parametrize("name", ["additional_chat_templates/tools.jinja", "2_Dense/config.json"])
def test_files_of_subfolders_are_the_models(folder, tmp_path, name):
    before = fingerprint(folder)
    (folder / name).parent.mkdir()
    (folder / name).write_text("one")
    first = fingerprint(folder)
    (folder / name).write_text("two")
    assert len({before, first, fingerprint(folder)}) == 3
    link_model(folder, tmp_path / "linked")
    assert (tmp_path / "linked" / name).read_text() == "two"


@pytest.mark.parametrize("config", [{"num_hidden_layers": 10**5}, {"text_config": {"num_hidden_layers": 10**5}}])  # fmt: skip
def test_a_config_with_layers_beyond_any_model_is_refused(folder, config):
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"100,000 layers .*at most 1,000 are allowed"):
        check_model_folder(folder)


@pytest.mark.parametrize(
    "shard", ["model-2.safetensors", "../model-1.safetensors", "/m.safetensors"]
)
def test_weights_of_several_files_are_all_in_the_folder(tmp_path, shard):
    folder = tmp_path / "m"
    folder.mkdir()
    for name in ("config.json", "model-1.safetensors", "../model-1.safetensors"):
        (folder / name).write_text("{}")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": shard}}))
    with pytest.raises(InputError, match=f"names weights that are not in its folder: {shard}"):
        check_model_folder(folder)
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    check_model_folder(folder)


@pytest.fixture
def whole(tmp_path):
    """A copy of a model's folder."""
    return Path(shutil.copytree(MODELS / "smoke-small", tmp_path / "model"))


def refused(folder):
    with pytest.raises(InputError) as error:
        check_model_folder(folder)
    sentence = str(error.value)
    assert "\n" not in sentence and sentence.endswith("."), sentence
    return sentence


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_pointer_in_place_of_a_file_is_named_with_the_remedy(whole, name):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 577248\n"
    (whole / name).write_bytes(pointer)
    sentence = refused(whole)
    assert f"{name} is a Git LFS pointer ({len(pointer)} bytes)" in sentence
    assert f"git lfs pull in {whole}" in sentence


def test_a_gguf_file_alone_is_no_model_folder(whole):
    for path in whole.glob("*.safetensors"):
        path.rename(path.with_suffix(".gguf"))
    assert "holds a GGUF file, model.gguf, and no model as Transformers saves it" in refused(whole)
    (whole / "config.json").unlink()
    assert "holds a GGUF file, model.gguf" in refused(whole)


def test_an_adapter_without_its_base_is_named_with_the_base(whole):
    settings = {"base_model_name_or_path": "some/base", "peft_type": "LORA"}
    (whole / "adapter_config.json").write_text(json.dumps(settings))
    check_model_folder(whole)
    (whole / "model.safetensors").rename(whole / "adapter_model.safetensors")
    assert "holds an adapter without its base, some/base" in refused(whole)
    (whole / "config.json").unlink()
    assert "merge_and_unload" in refused(whole)


def test_code_that_came_with_a_model_is_refused_where_transformers_does_not_know_the_model(whole):
    config = json.loads((whole / "config.json").read_text())
    mapped = config | {"auto_map": {"AutoModelForCausalLM": "modeling_new.New"}}
    (whole / "config.json").write_text(json.dumps(mapped))
    check_model_folder(whole)
    (whole / "config.json").write_text(json.dumps(mapped | {"model_type": "new_and_own"}))
    assert "does not know the model type 'new_and_own'" in refused(whole)


def test_whether_a_folder_has_a_chat_template_is_read_without_loading_its_tokenizer(whole):
    assert has_chat_template(whole)
    template = (whole / "chat_template.jinja").read_text()
    (whole / "chat_template.jinja").unlink()
    assert not has_chat_template(whole)
    settings = json.loads((whole / "tokenizer_config.json").read_text())
    (whole / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))
    assert has_chat_template(whole)
