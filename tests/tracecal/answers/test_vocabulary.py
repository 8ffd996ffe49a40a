"""The vocabulary where it is not stated: of the model's name or folder, or assumed and said."""

import json
import math

import polars as pl
import pytest

from support.labelled_answers import answers
from tracecal.answers.answers import answers_in
from tracecal.answers.reading import Reading
from tracecal.answers.trace import ASSUMED, vocabulary_of, vocabulary_used
from tracecal.calibrator.fitting import describe_answers
from tracecal.calibrator.training_set import make_training_set
from tracecal.fits.fit_settings import FitSettings


def listed(model=None, k=2, **more):
    top = [math.log(0.5 / k)] * (k - 1)
    row = {"id": "a", "answer": "x", "logprobs": [math.log(0.5)], "model": model}
    return row | {"top_logprobs": [[math.log(0.5), *top]]} | more


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("gpt-4o-mini-2024-07-18", 200_019),
        ("openai/gpt-4.1", 200_019),
        ("gpt-4-turbo", 100_277),
        ("meta-llama/Llama-3.1-8B-Instruct", 128_256),
        ("Qwen/Qwen2.5-0.5B-Instruct", 151_936),
        ("qwen2.5-72b-instruct", 152_064),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 152_064),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 49_152),
        ("qwen3.5-9b", None),  # another tokenizer
        ("o3x", None),
        ("my-gpt-4o-finetune", None),
        (None, None),
    ],
)
def test_a_models_name_tells_its_vocabulary(model, size):
    assert vocabulary_of(model) == size


@pytest.mark.parametrize(
    ("config", "size"),
    [({"vocab_size": 777}, 777), ({"text_config": {"vocab_size": 778}}, 778), ([1], None)],
)
def test_a_models_folder_tells_it_better(tmp_path, config, size):
    folder = tmp_path / "gpt-4o"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    assert vocabulary_of(str(folder)) == (size or 200_019)


def test_what_is_assumed_is_said_once_and_nothing_else(caplog):
    rows = [listed(id=str(number)) for number in range(3)]
    assumed = answers_in(rows, Reading()).frame
    assert caplog.text.count("200,000 tokens, which is assumed") == 1
    assert vocabulary_used(assumed, None) == (ASSUMED, "assumed")
    caplog.clear()
    known = answers_in([listed("gpt-4o")], Reading()).frame
    assert vocabulary_used(known, None) == (200_019, "model")
    assert vocabulary_used(answers_in([listed()], Reading(vocabulary=9)).frame, None)[1] == "stated"
    without = answers_in([{"id": "a", "logprobs": [-0.1]}], Reading()).frame
    assert vocabulary_used(without, None)[0] is None
    assert not caplog.text


def test_more_tokens_than_assumed_may_be_listed():
    """GPT-2's whole distribution and more: nobody stated that there are fewer."""
    record = answers_in([listed("gpt2", k=50_300)], Reading()).frame
    assert record["vocabulary"].to_list() == [50_300]


@pytest.mark.parametrize(
    ("vocabulary", "model", "expected"),
    [(ASSUMED, "m", "assumed"), (200_019, "gpt-4o", "model"), (1000, "m", "stated")],
)
def test_the_calibrator_keeps_whence_the_vocabulary_is(vocabulary, model, expected):
    frame = answers(20, model=model).with_columns(vocabulary=pl.lit(vocabulary, pl.Int32))
    data = describe_answers(make_training_set(frame, "t", FitSettings()), "t")
    assert (data.vocabulary, data.vocabulary_from) == (vocabulary, expected)
    assert ("vocabulary_from" in data.model_dump()) == (expected != "stated")
