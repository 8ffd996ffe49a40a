"""Replayed answers have the traces that decoding gave them."""

import json

import polars as pl
import pytest

import tracecal
from trace_workflow.models.decoding import decode
from tracecal.answers.record import Record
from tracecal.answers.row import as_frame
from tracecal.capture.stop_strings import StopStrings
from tracecal.capture.teacher_forcing import replay_answers, tokenisation
from tracecal.cli.main import main
from tracecal.errors import InputError


@pytest.fixture(params=["llama", "gemma2", "qwen2_moe"])
def decoded(request, make_model, tokenizer, prompts):
    model = make_model(request.param)
    template = tokenizer("Answer the question briefly and in a full sentence, please: ")[
        "input_ids"
    ]
    asked = [template + prompt for prompt in prompts]
    answers = decode(model, asked, [1, 2], StopStrings(tokenizer, ()), 12)
    records = [
        Record(
            f"a{place}",
            answer=tokenizer.decode(answer.token_ids, skip_special_tokens=True),
            prompt_token_ids=prompt,
            token_ids=answer.token_ids,
            surprisal=answer.surprisal,
            entropy=answer.entropy,
        )
        for place, (prompt, answer) in enumerate(zip(asked, answers, strict=True))
    ]
    return model, as_frame(records)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_replay_gives_back_the_decoded_traces(decoded, tokenizer, batch_size):
    model, expected = decoded
    bare = expected.with_columns(surprisal=None, entropy=None, answer=None).cast(expected.schema)
    found = replay_answers(model, tokenizer, bare, batch_size)
    assert found["token_ids"].to_list() == expected["token_ids"].to_list()
    assert found["answer"].to_list() == expected["answer"].to_list()
    for column in ("surprisal", "entropy"):
        far = found[column].explode() - expected[column].explode()
        assert far.abs().max() < 1e-4
    assert found["entropy_lower"].null_count() == found.height
    assert set(found["processed"]) == {"no"}
    assert found["tokens"].list.len().to_list() == found["token_ids"].list.len().to_list()


def test_text_is_tokenised_apart_from_its_prompt(make_model, tokenizer):
    text = as_frame([Record("a", answer=" Paris.", prompt="Capital of France?")])
    found = replay_answers(make_model(), tokenizer, text, 4).row(0, named=True)
    assert found["token_ids"] == tokenizer(" Paris.", add_special_tokens=False)["input_ids"]
    assert found["prompt_token_ids"] == tokenizer("Capital of France?")["input_ids"]
    assert found["stop_token"] == "absent"
    ended = replay_answers(make_model(), tokenizer, text, 4, end_token=True).row(0, named=True)
    assert ended["token_ids"] == [*found["token_ids"], tokenizer.eos_token_id]
    assert ended["stop_token"] == "included"
    assert ended["surprisal"][:-1] == pytest.approx(found["surprisal"], abs=1e-5)


def test_the_tokenisation_is_told():
    both = as_frame([Record("a", token_ids=[3]), Record("b", answer="x")])
    assert tokenisation(both.filter(example_id="a"), False) == "token ids as given"
    assert tokenisation(both, True).endswith("apart from its prompt, with an end token")


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (Record("a", answer="x"), "holds neither a prompt nor prompt_token_ids"),
        (Record("a", answer="", prompt="x"), "it has no tokens"),
        (Record("a", token_ids=[10**6], prompt="x"), "made with another tokenizer"),
    ],
)
def test_what_cannot_be_replayed_is_one_sentence(make_model, tokenizer, record, sentence):
    with pytest.raises(InputError, match=sentence):
        replay_answers(make_model(), tokenizer, as_frame([record]), 4)


def test_other_columns_are_kept(make_model, tokenizer):
    given = as_frame([Record("a", answer="x", prompt="y", correct=True, group_id="g", model="m")])
    found = replay_answers(make_model(), tokenizer, given, 4)
    kept = ["example_id", "answer", "prompt", "correct", "group_id", "model"]
    assert found.select(kept).equals(given.select(kept))
    assert isinstance(found, pl.DataFrame)


def test_replay_of_the_api_gives_what_the_command_writes(
    make_model, tokenizer, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    make_model().save_pretrained("weights")
    tokenizer.save_pretrained("weights")
    row = {"id": "a", "prompt": "Capital of France?", "answer": " Paris."}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    command = ["replay", "--answers", "a.jsonl", "--weights", "weights", "--output", "a.arrow"]
    assert main([*command, "--end-token"]) == 0
    read = tracecal.read_answers("a.jsonl")
    options = {"end_token": True, "output": "own/a.arrow"}
    found = tracecal.replay(read, "weights", **options)
    assert (tmp_path / "own/a.arrow").read_bytes() == (tmp_path / "a.arrow").read_bytes()
    again = tracecal.read_answers("a.arrow")
    assert again.equals(found) and found["model"].item() == "weights"
    stated = tracecal.replay(read.with_columns(revision=pl.lit("r")), "weights", **options)
    assert tracecal.read_answers("own/a.arrow").equals(stated) and stated["revision"].item() == "r"
