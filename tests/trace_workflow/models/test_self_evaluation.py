"""What models are asked about their answers, against independent restatements."""

import copy

import numpy as np
import polars as pl
import pytest
import torch

from support.arrow_files import write_arrow
from trace_workflow.config.estimator_settings import SelfEvaluation
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.p_true import P_TRUE, judge_answers, judging_prompts, option_tokens
from trace_workflow.models.self_evaluation import decoded_answers
from trace_workflow.models.verbalized import VERBALIZED, confidence_replies, second_turns
from tracecal.errors import InputError
from tracecal.estimators.families import FAMILIES
from tracecal.estimators.scores import family_scores
from tracecal.io.traces import TRACES, arrow_metadata, provenance, read_arrow

TEXTS = SelfEvaluation()
ASKING = PromptSettings(
    system="Be brief.",
    prompt="{context} {question}",
    few_shot=[{"question": "1 + 1?", "context": "Sums.", "answer": "2"}],
    stop=["\n"],
)
CHAT = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
ANSWERED = pl.DataFrame(
    {
        "example_id": ["ar", "empty", "hi", "plain", "zh"],
        "question": ["ما عاصمة فرنسا؟", "What?", "भारत की राजधानी?", "Who {x}?", "首都是哪里？"],
        "context": [None, None, "पाठ", "A text.", None],
        "answer": ["باريس", "", "नई दिल्ली", "{answer} 100%", "北京"],
    }
)


@pytest.fixture
def chatty(tokenizer):
    own = copy.deepcopy(tokenizer)
    own.chat_template = CHAT
    return own


def prompts_of(tokenizer, chat=None):
    return judging_prompts(tokenizer, ANSWERED, TEXTS.p_true_prompt, TEXTS.p_true_start, chat)


def test_a_chat_model_judges_in_its_own_turn(chatty):
    prompts = {row["example_id"]: row for row in prompts_of(chatty)}
    assert prompts["plain"]["prompt"] == (
        "<user>A text.\n\nQuestion: Who {x}?\nProposed answer: {answer} 100%\n\n"
        "Is the proposed answer (A) true or (B) false?</><assistant>The proposed answer is ("
    )
    assert prompts["zh"]["prompt"].startswith(
        "<user>Question: 首都是哪里？\nProposed answer: 北京\n"
    )
    for row in prompts.values():
        assert chatty.decode(row["prompt_token_ids"]) == row["prompt"]


def test_a_base_model_judges_on_a_line_of_its_own(tokenizer):
    prompts = {row["example_id"]: row["prompt"] for row in prompts_of(tokenizer)}
    assert prompts["empty"] == (
        "Question: What?\nProposed answer: \n\nIs the proposed answer (A) true or (B) false?\n"
        "The proposed answer is ("
    )
    assert "باريس" in prompts["ar"]
    assert "नई दिल्ली" in prompts["hi"]


def restated(model, tokenizer, text):
    """p_a and p_b by a teacher-forced pass over one text, in NumPy."""
    ids = tokenizer(text)["input_ids"]
    with torch.no_grad():
        logits = model(torch.tensor([[*ids, 3]])).logits[0, -2].double().numpy()
    p = np.exp(logits - logits.max())
    p /= p.sum()
    spellings = {name: index for name, index in tokenizer.get_vocab().items()}
    return [sum(p[spellings[s]] for s in (o, f"Ġ{o}") if s in spellings) for o in "AB"]


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gemma2"])
@pytest.mark.parametrize("template", [None, CHAT])
def test_the_options_probabilities_are_the_teacher_forced_ones(
    make_model, tokenizer, architecture, template
):
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.chat_template = template
    model, prompts = make_model(architecture), prompts_of(tokenizer)
    rows = {row["example_id"]: row for row in judge_answers(model, prompts, tokenizer, 64)}
    assert rows.keys() == set(ANSWERED["example_id"])
    for prompt in prompts:
        row = rows[prompt["example_id"]]
        expected = restated(model, tokenizer, prompt["prompt"])
        np.testing.assert_allclose([row["p_a"], row["p_b"]], expected, rtol=1e-3, atol=1e-7)
        assert 0 < row["p_a"] < 1


def test_the_batch_changes_no_judgement(make_model, tokenizer):
    model, prompts = make_model(), prompts_of(tokenizer)
    runs = [
        {row["example_id"]: (row["p_a"], row["p_b"]) for row in done}
        for done in (
            judge_answers(model, prompts, tokenizer, 64),
            judge_answers(model, prompts[::-1], tokenizer, 1),
            judge_answers(model, prompts, tokenizer, 2),
        )
    ]
    for other in runs[1:]:
        for example, values in runs[0].items():
            np.testing.assert_allclose(values, other[example], atol=1e-6)


class Vocabulary:
    """A tokenizer's vocabulary and nothing else."""

    name_or_path = "some/tokenizer"

    def __init__(self, *tokens):
        self.tokens = tokens

    def get_vocab(self):
        return {token: index for index, token in enumerate(self.tokens)}


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        (("a", "A", "B"), [1]),
        (("A", "ĠA", "AB", "A)"), [0, 1]),
        (("▁A", "x", "A"), [0, 2]),
        (("▁A",), [0]),
        ((" A", "B"), [0]),
    ],
)
def test_an_option_is_written_with_or_without_a_space(tokens, found):
    assert option_tokens(Vocabulary(*tokens), "A") == found


def test_a_vocabulary_without_the_option_is_said():
    with pytest.raises(InputError, match=r"some/tokenizer has no token 'B'.*leave .*'p_true' out"):
        option_tokens(Vocabulary("A", "BB"), "B")


def test_the_tiny_tokenizer_sums_what_it_has(make_model, tokenizer):
    model, own = make_model(), copy.deepcopy(tokenizer)
    before = judge_answers(model, prompts_of(own), own, 64)[0]
    own.get_vocab = lambda: tokenizer.get_vocab() | {"ĠA": tokenizer.get_vocab()["B"]}
    after = judge_answers(model, prompts_of(own), own, 64)[0]
    assert after["p_a"] == pytest.approx(before["p_a"] + before["p_b"])


def test_nan_logits_stop_the_run(make_model, tokenizer):
    model = make_model()
    torch.nn.init.constant_(model.lm_head.weight, float("nan"))
    with pytest.raises(InputError, match="NaN or infinite"):
        judge_answers(model, prompts_of(tokenizer), tokenizer, 64)


def test_the_score_is_the_share_of_a_and_null_without_either():
    asked = pl.DataFrame(
        {"example_id": ["a", "b", "c"], "p_a": [0.3, 0.0, 0.0], "p_b": [0.1, 0.5, 0.0]}
    )
    scores = family_scores(asked, FAMILIES["p_true"].SCORES, ["p_true"])
    assert scores["p_true"].to_list() == [pytest.approx(0.75), 0.0, None]


def test_a_stated_confidence_is_the_score():
    asked = pl.DataFrame({"example_id": ["a", "b"], "confidence": [0.7, None]})
    assert family_scores(asked, FAMILIES["verbalized"].SCORES, ["verbalized"])[
        "verbalized"
    ].to_list() == [
        0.7,
        None,
    ]


def test_the_conversation_goes_on_after_the_answer(chatty):
    text = "How sure are you of {answer}?"
    prompts = second_turns(chatty, ANSWERED, ASKING, text, None)
    prompt = next(row["prompt"] for row in prompts if row["example_id"] == "hi")
    assert prompt == (
        "<system>Be brief.</><user>Sums. 1 + 1?</><assistant>2</><user>पाठ भारत की राजधानी?</>"
        "<assistant>नई दिल्ली</><user>How sure are you of नई दिल्ली?</><assistant>"
    )


def test_the_conversation_of_a_base_model_is_plain_text(tokenizer):
    prompts = second_turns(tokenizer, ANSWERED, ASKING, "Sure?", None)
    by_id = {row["example_id"]: row["prompt"] for row in prompts}
    assert by_id["plain"] == (
        "Be brief.\n\nSums. 1 + 1?\n2\n\nA text. Who {x}?\n{answer} 100%\n\nSure?\n"
    )
    assert by_id["empty"].endswith("What?\n\n\nSure?\n")


@pytest.mark.parametrize("template", [None, CHAT])
def test_replies_are_greedy_read_and_independent_of_the_batch(make_model, tokenizer, template):
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.chat_template = template
    model = make_model()
    prompts = second_turns(tokenizer, ANSWERED, ASKING, "How sure are you?", None)
    together = confidence_replies(model, prompts, tokenizer, ["\n"], 64)
    alone = confidence_replies(model, prompts, tokenizer, ["\n"], 1)
    assert together == alone
    ids = {row["example_id"]: row["prompt_token_ids"] for row in prompts}
    for row in together:
        prompt = torch.tensor([ids[row["example_id"]]])
        out = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=16
        )[0, prompt.shape[1] :]
        text = tokenizer.decode(out, skip_special_tokens=True)
        assert row["reply"] == text.split("\n")[0].strip()
        assert row.keys() == set(VERBALIZED.names)


def test_a_model_that_states_a_number_is_read(make_model, tokenizer):
    model = make_model()
    nine = tokenizer("9")["input_ids"][0]
    # Whatever is asked, the next token is "9"; sixteen of them are no confidence.
    torch.nn.init.zeros_(model.lm_head.weight)
    model.lm_head.bias = torch.nn.Parameter(torch.zeros(len(tokenizer)))
    with torch.no_grad():
        model.lm_head.bias[nine] = 9.0
    prompts = second_turns(tokenizer, ANSWERED, ASKING, "Sure?", None)
    rows = confidence_replies(model, prompts, tokenizer, [], 64)
    assert {row["reply"] for row in rows} == {"9" * 16}
    assert {row["confidence"] for row in rows} == {None}
    model.generation_config.eos_token_id = [nine]
    rows = confidence_replies(model, prompts, tokenizer, [], 64)
    assert {row["confidence"] for row in rows} == {0.09}


def test_evaluated_answers_are_asked_about_up_to_their_stop_string(tmp_path):
    task = pl.DataFrame(
        {
            "example_id": ["b", "a", "t"],
            "role": ["evaluation", "evaluation", "training"],
            "question": ["Q b", "Q a", "Q t"],
            "context": [None, "C", None],
        }
    )
    task.write_parquet(tmp_path / "task.parquet")
    blank = {
        "prompt": "",
        "prompt_token_ids": [1],
        "token_ids": [1],
        "tokens": ["x"],
        "surprisal": [0.0],
        "entropy": [0.0],
        "finish_reason": "eos",
    }
    texts = {"a": " 北京\nQ: next", "b": "\nnothing", "t": "never asked"}
    rows = [blank | {"example_id": example, "answer": text} for example, text in texts.items()]
    metadata = provenance("m", "r", "float32", "greedy", 1)
    write_arrow(rows, TRACES, metadata, tmp_path / "traces.arrow")
    found = decoded_answers(tmp_path / "traces.arrow", tmp_path / "task.parquet", ["\n"])
    assert found.rows() == [("a", "Q a", "C", "北京"), ("b", "Q b", None, "")]


def test_the_files_keep_their_columns_and_what_was_asked(tmp_path):
    metadata = provenance("m", "r", "float32", "greedy", 1) | {"without_confidence": "1"}
    rows = [
        {"example_id": "b", "reply": "90%", "confidence": 0.9},
        {"example_id": "a", "reply": "?", "confidence": None},
    ]
    write_arrow(rows, VERBALIZED, metadata, tmp_path / "v.arrow")
    assert read_arrow(tmp_path / "v.arrow").rows() == [("a", "?", None), ("b", "90%", 0.9)]
    assert arrow_metadata(tmp_path / "v.arrow")["without_confidence"] == "1"
    judged = [{"example_id": "a", "p_a": 0.25, "p_b": 0.5}]
    write_arrow(judged, P_TRUE, metadata, tmp_path / "p.arrow")
    assert read_arrow(tmp_path / "p.arrow").schema == {
        "example_id": pl.String,
        "p_a": pl.Float64,
        "p_b": pl.Float64,
    }
