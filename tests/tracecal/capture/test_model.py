"""Loading: safetensors only, no foreign code, clear refusals; folders linked and fingerprinted."""

import json
import os
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from trace_workflow.models.folders import fingerprint, link_model
from trace_workflow.models.parallel import on_model
from tracecal.capture.model import load_model, load_tokenizer
from tracecal.capture.tokens import end_tokens
from tracecal.errors import InputError
from tracecal.io.checksums import write_sum


@pytest.fixture
def folder(make_model, tokenizer, tmp_path):
    path = tmp_path / "tiny"
    make_model().save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def test_a_saved_model_loads_in_its_dtype(folder, tokenizer):
    assert load_model(folder, "float32").dtype == torch.float32
    assert load_model(folder, "bfloat16", attention="eager").dtype == torch.bfloat16
    assert load_tokenizer(folder)("Paris.")["input_ids"] == tokenizer("Paris.")["input_ids"]


def test_a_model_computes_with_the_threads_that_are_stated(folder):
    before = torch.get_num_threads()
    try:
        load_model(folder, "float32", threads=before + 1)
        assert torch.get_num_threads() == before + 1
        load_model(folder, "float32")
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_a_linked_folder_loads_alike_and_has_the_same_fingerprint(folder, tmp_path):
    link_model(folder, tmp_path / "linked")
    (tmp_path / "linked" / ".snakemake_timestamp").touch()
    assert fingerprint(tmp_path / "linked") == fingerprint(folder)
    assert load_model(tmp_path / "linked", "float32").num_parameters() > 0


def test_other_weights_have_another_fingerprint(folder, make_model):
    before = fingerprint(folder)
    make_model(seed=1).save_pretrained(folder)
    assert fingerprint(folder) != before


class Escape:
    """Creates a file when unpickled."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (open, (str(self.target), "w"))


def test_a_pickle_in_place_of_safetensors_is_refused_unread(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Escape(tmp_path / "escaped")))
    with pytest.raises(InputError, match=r"holds no \*\.safetensors weights"):
        link_model(folder, tmp_path / "linked")
    with pytest.raises(InputError, match="is not a loadable Transformers model"):
        load_model(folder, "float32")
    assert not (tmp_path / "escaped").exists()


def test_code_that_comes_with_a_model_is_not_run(folder, tmp_path):
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "mine",
        "auto_map": {"AutoConfig": "mine.C", "AutoModelForCausalLM": "mine.M"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'escaped')!r}, 'w')\n")
    with pytest.raises(InputError, match="is not a loadable Transformers model"):
        load_model(folder, "float32")
    assert not (tmp_path / "escaped").exists()


def test_a_truncated_weights_file_is_said(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    with pytest.raises(InputError, match="is not a loadable Transformers model"):
        load_model(folder, "float32")


def test_a_folder_without_a_model_is_said(tmp_path):
    with pytest.raises(InputError, match=r"config\.json is missing"):
        link_model(tmp_path, tmp_path / "linked")


def test_rows_of_a_model_whose_files_change_while_it_works_are_not_kept(folder):
    write_sum(folder)
    weights, kept = folder / "model.safetensors", []
    content = weights.read_bytes()

    def work(model, keep):
        keep(1)
        os.utime(weights)
        keep(2)
        weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        keep(3)

    with pytest.raises(InputError, match="does not match its checksum"):
        on_model(work, folder, {"dtype": "float32"}, 0, keep=kept.append)
    assert kept == [1, 2]


def test_a_generation_config_that_cannot_be_read_or_names_no_token_is_said(folder):
    (folder / "generation_config.json").write_text('{"eos_token_id": "<end>"}')
    model = load_model(folder, "float32")
    with pytest.raises(InputError, match="its eos_token_id '<end>' is not a token id"):
        end_tokens(model, load_tokenizer(folder))
    (folder / "generation_config.json").write_text('{"eos_token_id": ')
    with pytest.raises(InputError, match="not a loadable Transformers model .*generation_config"):
        load_model(folder, "float32")


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to("/dev/zero"),
        os.mkfifo,
    ],
)
def test_a_file_that_cannot_be_read_is_not_left_out_without_a_word(folder, tmp_path, make):
    make(folder / "chat_template.jinja")
    with pytest.raises(
        InputError, match=r"chat_template\.jinja is not a file, or is a broken link"
    ):
        link_model(folder, tmp_path / "linked")


def test_quantisation_without_its_extra_says_what_to_install(folder):
    with pytest.raises(InputError, match=r"pip install -r envs/requirements-quantization\.txt"):
        load_model(folder, "float32", quantization="4bit")


def rewritten(folder, change):
    """The folder's weights with `change` made to their mapping from name to tensor."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w.pop("model.layers.0.mlp.up_proj.weight"), r"lacks the weights .*up_proj"),
        (lambda w: w.update({"model.extra.weight": torch.ones(2)}), r"does not have: model\.extra"),
        (
            lambda w: w.update({"model.norm.weight": torch.ones(3)}),
            r"is not a loadable Transformers model|of another shape",
        ),
    ],
)
def test_weights_that_are_missing_left_over_or_of_another_shape_are_refused(folder, change, said):
    rewritten(folder, change)
    with pytest.raises(InputError, match=said):
        load_model(folder, "float32")


def test_a_model_whose_head_is_its_embedding_is_whole_without_it(folder, make_model):
    model = make_model()
    model.config.tie_word_embeddings = True
    type(model)(model.config).save_pretrained(folder)
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    assert load_model(folder, "float32").num_parameters() > 0


def test_weights_changed_after_linking_are_refused_on_loading(folder, tmp_path):
    linked = tmp_path / "linked"
    link_model(folder, linked, content=fingerprint(folder))
    load_model(linked, "float32")
    load_tokenizer(linked)
    rewritten(folder, lambda w: w.update({k: 0.9 * v for k, v in w.items()}))
    for load in (lambda: load_model(linked, "float32"), lambda: load_tokenizer(linked)):
        with pytest.raises(InputError, match="linked cannot be read .*does not match its checksum"):
            load()


def test_a_folder_that_changed_since_the_run_began_is_not_linked(folder, tmp_path):
    began = fingerprint(folder)
    (folder / "added_tokens.json").write_text("{}")
    with pytest.raises(InputError, match="were changed after this run had started"):
        link_model(folder, tmp_path / "linked", content=began)
    assert not (tmp_path / "linked").exists()
