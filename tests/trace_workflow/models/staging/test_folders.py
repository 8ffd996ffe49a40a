"""Model folders: what counts as their content, and what is refused before anything loads it."""

import json

import pytest

from trace_workflow.models.folders import check_model_folder, fingerprint, link_model
from tracecal.errors import InputError


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
