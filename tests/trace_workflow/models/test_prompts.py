"""Prompts: what is really sent, for chat models and for base models."""

import copy
import signal

import polars as pl
import pytest

from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models import prompts
from trace_workflow.models.prompts import ask, messages, tokenised_prompts
from tracecal.capture.model import load_tokenizer
from tracecal.errors import InputError

TASK = pl.DataFrame(
    {"example_id": ["a"], "question": ["Who? {x}"], "context": ["Here is {question}."]}
)
ASKING = PromptSettings(
    system="Be brief.",
    prompt="{context} {question}",
    few_shot=[{"question": "1 + 1?", "context": "Sums.", "answer": "2"}],
)
CHAT = (
    "{{ bos_token }}{% for m in messages %}"
    "<{{ m['role'] }}>{{ m['content'] }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %}<no-think>{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + CHAT
)


@pytest.fixture
def chatty(tokenizer):
    """The tokenizer with a begin token that it adds by itself, and a chat template."""
    own = copy.deepcopy(tokenizer)
    own.add_special_tokens({"bos_token": "<begin>"})
    from tokenizers.processors import TemplateProcessing

    own.backend_tokenizer.post_processor = TemplateProcessing(
        single="<begin> $A", special_tokens=[("<begin>", own.bos_token_id)]
    )
    own.chat_template = CHAT
    return own


def test_the_conversation_holds_system_shots_and_question_and_fills_fields_once():
    assert messages(ASKING, TASK.row(0, named=True)) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Sums. 1 + 1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "Here is {question}. Who? {x}"},
    ]


def test_a_chat_template_writes_its_own_begin_token_once_and_thinking_is_off(chatty):
    (asked,) = ask(chatty, TASK, ASKING)
    assert asked["prompt"] == (
        "<begin><system>Be brief.</><user>Sums. 1 + 1?</><assistant>2</>"
        "<user>Here is {question}. Who? {x}</><assistant><no-think>"
    )
    assert asked["prompt_token_ids"].count(chatty.bos_token_id) == 1
    assert chatty.decode(asked["prompt_token_ids"]) == asked["prompt"]


def test_a_template_with_a_clock_is_told_the_same_day_always(chatty):
    chatty.chat_template = "{{ strftime_now('%d %b %Y %H:%M') }}: " + CHAT
    (asked,) = ask(chatty, TASK, ASKING)
    assert asked["prompt"].startswith("26 Jul 2024 00:00: <begin>")


def test_a_template_without_a_system_role_gets_the_text_before_the_first_question(chatty):
    chatty.chat_template = NO_SYSTEM
    (asked,) = ask(chatty, TASK, ASKING)
    assert asked["prompt"].startswith("<begin><user>Be brief.\n\nSums. 1 + 1?</><assistant>2</>")


def test_a_template_that_drops_the_system_text_gets_it_before_the_first_question(chatty):
    chatty.chat_template = CHAT.replace("in messages", "in messages if m['role'] != 'system'")
    (asked,) = ask(chatty, TASK, ASKING)
    assert asked["prompt"].startswith("<begin><user>Be brief.\n\nSums. 1 + 1?</><assistant>2</>")


def test_a_template_that_moves_the_system_text_is_taken_as_it_is(chatty):
    chatty.chat_template = (
        "{% for m in messages[1:] %}{% if loop.last %}{{ messages[0]['content'] }}{% endif %}"
        "<{{ m['role'] }}>{{ m['content'] | trim }}{% endfor %}"
    )
    (asked,) = ask(chatty, TASK, ASKING)
    assert asked["prompt"].startswith("<user>Sums. 1 + 1?<assistant>2Be brief.<user>Here is")


@pytest.mark.parametrize(
    ("shown", "lost"),
    [
        ("{% if not loop.last %}{{ m.content }}{% endif %}", "the question"),
        ("{% if m.role == 'user' %}{{ m.content }}{% endif %}", "a worked answer"),
        ("{% if loop.first %}{{ m.content }}{% endif %}", "a worked answer"),
        ("{{ m.content | upper }}", "the question"),
        ("{{ m.content | e }}", "the question"),
        ("{{ m.content | truncate(5) }}", "the question"),
    ],
)
def test_a_template_may_drop_no_message(chatty, shown, lost):
    """Not even one that another repeats: here the shot asks what the question asks."""
    chatty.chat_template = "{% for m in messages %}<" + shown + "{% endfor %}"
    same = {"question": "Who & 'what'?", "answer": "A name"}
    task = TASK.with_columns(question=pl.lit(same["question"]))
    with pytest.raises(InputError, match=f"drops {lost}: it turns "):
        ask(chatty, task, PromptSettings(few_shot=[same]))


def test_a_template_that_refuses_everything_is_said(chatty):
    chatty.chat_template = "{{ raise_exception('never') }}"
    with pytest.raises(InputError, match="refuses the task's messages: never; .*'chat: false'"):
        ask(chatty, TASK, ASKING)


def test_a_base_model_gets_plain_text_and_the_tokenizers_begin_token(chatty):
    expected = "Be brief.\n\nSums. 1 + 1?\n2\n\nHere is {question}. Who? {x}\n"
    for chat, template in ((False, CHAT), (None, None)):
        chatty.chat_template = template
        (asked,) = ask(chatty, TASK, ASKING, chat)
        assert asked["prompt"] == expected
        assert asked["prompt_token_ids"][0] == chatty.bos_token_id
        assert chatty.decode(asked["prompt_token_ids"][1:]) == expected


def test_a_template_that_loops_without_end_is_said(chatty, monkeypatch):
    """The sandbox bounds a loop, but not a loop in a loop."""
    monkeypatch.setattr("trace_workflow.models.prompts.PATIENCE", 0.2)
    loop = "{% for i in range(99999) %}"
    chatty.chat_template = loop * 2 + "{% endfor %}" * 2 + CHAT
    before = signal.getsignal(signal.SIGVTALRM), signal.getsignal(signal.SIGALRM)
    with pytest.raises(InputError, match=r"the chat template of .* takes over 0\.2 s"):
        ask(chatty, TASK, ASKING)
    assert (signal.getsignal(signal.SIGVTALRM), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    chatty.chat_template = CHAT
    assert len(ask(chatty, TASK, ASKING)) == 1


def test_chat_without_a_template_is_said(tokenizer):
    with pytest.raises(InputError, match="has no chat template"):
        ask(tokenizer, TASK, ASKING, chat=True)


def test_a_missing_context_leaves_its_place_empty(tokenizer):
    task = TASK.with_columns(context=pl.lit(None, dtype=pl.String))
    (asked,) = ask(tokenizer, task, PromptSettings(prompt="[{context}] {question}"))
    assert asked["prompt"] == "[] Who? {x}\n"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ messages[0].content.text.more }}", "refuses the task's messages"),
        ("{{ 1 // 0 }}", "refuses the task's messages"),
        ("{{ messages + 1 }}", "refuses the task's messages"),
        ("{% for m in messages %}{{ m.content[0].text }}{% endfor %}<assistant>", "drops the ques"),
    ],
)
def test_a_template_that_fails_or_drops_the_question_is_said(chatty, template, said):
    chatty.chat_template = template
    with pytest.raises(InputError, match=rf"chat template of .*{said}.*'chat: false'"):
        ask(chatty, TASK, PromptSettings())


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (
            {"max_position_embeddings": 8},
            r"example 'a' has \d+ tokens, .* reads 8;.*max_characters",
        ),
        (
            {"max_position_embeddings": 60},
            r"example 'a' has \d+ tokens, its answer up to 64, and .* reads 60",
        ),
        ({"vocab_size": 5}, "its model has only 5: they belong to different models"),
    ],
)
def test_a_prompt_that_the_model_cannot_read_is_refused_by_name(
    tokenizer, make_model, tmp_path, limit, said
):
    model = make_model()
    tokenizer.save_pretrained(tmp_path)
    model.config.save_pretrained(tmp_path)
    own = load_tokenizer(tmp_path)
    assert ask(own, TASK, ASKING, chat=False)
    other = tmp_path / "other"
    tokenizer.save_pretrained(other)
    type(model.config)(**(model.config.to_dict() | limit)).save_pretrained(other)
    with pytest.raises(InputError, match=said):
        ask(load_tokenizer(other), TASK, ASKING, chat=False)


def test_a_model_that_lacks_a_template_is_asked_in_plain_text_and_said_so_unless_meant(
    tokenizer, monkeypatch
):
    lines = []
    monkeypatch.setattr(prompts.LOGGER, "warning", lambda text, *words: lines.append(text % words))
    conversations = [("e", [{"role": "user", "content": "What is 2 + 2?"}])]
    for chat in (False, None):
        assert tokenised_prompts(tokenizer, conversations, 5, chat)[0]["prompt"].endswith("2?\n")
        assert len(lines) == (chat is None)
    assert "has no chat template, so it is asked in plain text" in lines[0]
