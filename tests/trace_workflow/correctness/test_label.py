"""Answers become labels, and wrong ones get their kind."""

import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.arrow_files import write_arrow
from support.scripts import run_script
from trace_workflow.config.config import load_config
from trace_workflow.config.correctness import CorrectnessSettings
from trace_workflow.config.custom import custom_code, custom_rules
from trace_workflow.config.run import load_tasks
from trace_workflow.correctness.error_kinds import abstains, is_incoherent
from trace_workflow.correctness.label import LABELS, label_answer, label_answers
from trace_workflow.correctness.rules import RULES
from trace_workflow.correctness.verdict import Example, Verdict
from tracecal.errors import InputError
from tracecal.io.files import write_parquet
from tracecal.io.traces import TRACES

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"

NAME = Example("e", "Who wrote it?", ["Mark Twain"])
COUNT = Example("e", "How many?", ["8", "8.0"])
CLAIM = Example("e", "What do seeds do?", ["Seeds pass through"], ["Seeds grow"])


def spec_for(rule: str | dict[str, str], **rest) -> CorrectnessSettings:
    return CorrectnessSettings.model_validate({"correctness": rule} | rest)


def kind(rule: str, answer: str | None, example: Example) -> str | None:
    return label_answer(answer, example, spec_for(rule))[3]


@pytest.mark.parametrize(
    ("rule", "answer", "example", "expected"),
    [
        ("numeric", "8", COUNT, None),
        ("numeric", "9 apples", COUNT, "number"),
        ("numeric", "nine", COUNT, "number"),
        ("numeric", "I don't know, perhaps 9", COUNT, "number"),
        ("numeric", "many", COUNT, "global"),
        ("numeric", "I don't know", COUNT, "global"),
        ("numeric", "", COUNT, "global"),
        ("numeric", "5 + 3 = 5 + 3 = 5 + 3 = 5 + 3 = 5 + 3 = 5 + 3", COUNT, "global"),
        ("alias", "Poe", NAME, "entity"),
        ("alias", "1884", NAME, "entity"),
        ("alias", "9", COUNT, "number"),
        ("squad", "9", COUNT, "number"),
        ("squad", "nine or ten people", COUNT, "entity"),
        ("contains", "The author is Poe.", NAME, "entity"),
        ("contains", "There are 9 of them.", COUNT, "number"),
        ("contains", "There are some.", COUNT, "entity"),
        ("contains", "I don't know.", NAME, "global"),
        ("alias", "unknown", NAME, "global"),
        ("alias", "The Unknown Soldier", NAME, "entity"),
        ("alias", "...", NAME, "global"),
        ("alias", " ", NAME, "global"),
        ("alias", None, NAME, "global"),
        (
            "squad",
            "someone who "
            + "wrote this and that " * 3
            + "long "
            + "text " * 3
            + " ".join(f"w{n}" for n in range(40)),
            NAME,
            "global",
        ),
        ("truthful", "Seeds grow", CLAIM, "claim"),
        ("truthful", "Yes", CLAIM, "claim"),
        ("truthful", "Seeds Seeds Seeds Seeds Seeds Seeds", CLAIM, "global"),
        ("truthful", "Parliament meets twice every single winter", CLAIM, "global"),
        ("truthful", "I have no comment", CLAIM, "global"),
    ],
)
def test_kinds(rule, answer, example, expected):
    assert kind(rule, answer, example) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.",
        "I don’t know who that is",
        "I do not know",
        "Sorry, but I cannot answer that",
        "I'm not sure",
        "unknown",
        "Unknown.",
        "N/A",
        "cannot be determined",
        "Not mentioned in the text",
        "There is no information on this",
        "As an AI, I can't say",
        "Ich weiß es nicht.",
        "Das weiß ich nicht",
        "keine Ahnung",
        "unbekannt",
        "nicht bekannt",
        "Ich kann diese Frage nicht beantworten",
        "No lo sé.",
        "No sé",
        "desconocido",
        "No puedo responder",
        "No hay información",
        "我不知道。",
        "不知道",
        "未知",
        "无法回答这个问题",
        "抱歉，我无法确定",
        "Tôi không biết",
        "لا أعرف",
        "मुझे नहीं पता",
    ],
)
def test_abstentions(text):
    assert abstains(text)


@pytest.mark.parametrize(
    "text",
    [
        "The Unknown",
        "No",
        "Nothing",
        "None but the Brave",
        "Notre Dame",
        "Iron",
        "Sorry Not Sorry",
        "Nicht ohne meine Tochter",
        "No Country for Old Men",
        "未来",
        "Clear",
        "I do",
        "Canada",
        "It is impossible to drive there",
    ],
)
def test_answers_that_are_no_abstentions(text):
    assert not abstains(text)


@pytest.mark.parametrize(
    "text",
    [
        "no no no no no",
        "a b a b a b a b",
        "haaaaaaaaaaaaaaaa",
        "好的好的好的好的",
        "well, " + "I see. " * 30,
    ],
)
def test_loops(text):
    assert is_incoherent(text, "zh" if "好" in text else "en")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "New York, New York",
        "1000000000000000",
        "ha ha ha",
        "the cat and the dog and the cow and the hen",
    ],
)
def test_no_loops(text):
    assert not is_incoherent(text)


@given(st.text(max_size=80), st.sampled_from(sorted(RULES)))
def test_every_answer_has_a_label(answer, rule):
    _, prediction, correct, found = label_answer(answer, COUNT, spec_for(rule))
    assert (found is None) == correct
    assert found in (None, "number", "entity", "claim", "global")
    assert isinstance(prediction, str)


def test_a_very_long_answer_is_judged_in_time():
    for rule in RULES:
        label_answer("It is said that 7 of them. " * 4000, COUNT, spec_for(rule))


def test_frame():
    task = pl.DataFrame(
        {
            "example_id": ["a", "b", "c"],
            "role": ["evaluation", "training", "evaluation"],
            "question": ["?"] * 3,
            "references": [["8"], ["9"], ["x"]],
            "distractors": [[], [], []],
            "language": ["en"] * 3,
        },
        schema_overrides={"distractors": pl.List(pl.String)},
    )
    traces = pl.DataFrame({"example_id": ["b", "a"], "answer": ["so 9\nQ", "so 9"]})
    labels = label_answers(
        traces, task, spec_for("numeric", stop=["\n"], answer_pattern=r"so (.*)")
    )
    assert labels.schema == LABELS
    assert labels.rows() == [("a", "9", False, "number"), ("b", "9", True, None)]
    with pytest.raises(InputError, match="'z'"):
        label_answers(
            pl.DataFrame({"example_id": ["z"], "answer": ["9"]}), task, spec_for("numeric")
        )


def test_a_given_verdict_stands():
    traces = pl.DataFrame(
        {"example_id": ["a", "b"], "answer": ["Paris", "Paris"], "correct": [False, None]}
    )
    task = pl.DataFrame(
        {
            "example_id": ["a", "b"],
            "question": "Where?",
            "references": [["Paris"]] * 2,
            "distractors": [[]] * 2,
            "language": "en",
        },
        schema_overrides={"distractors": pl.List(pl.String)},
    )
    labels = label_answers(traces, task, spec_for("alias"))
    assert labels["correct"].to_list() == [False, True]
    assert labels["error_kind"].is_null().to_list() == [False, True]


OWN = custom_rules(str(EXAMPLES / "custom_rules.py"))


@pytest.mark.parametrize(
    ("rule", "answer", "example", "correct", "error"),
    [
        ("custom.within_one", "nine", COUNT, True, None),
        ("custom.within_one", "10", COUNT, False, "number"),
        ("custom.within_one", "many", COUNT, False, "entity"),
        ("custom.begins_alike", "mark twain, of course", NAME, True, None),
        ("custom.begins_alike", "Poe", NAME, False, "entity"),
        ("custom.begins_alike", "I don't know", NAME, False, "global"),
    ],
)
def test_the_documented_rules_of_ones_own_judge(rule, answer, example, correct, error):
    found = label_answer(answer, example, spec_for(rule), custom=OWN)
    assert found == ("e", answer, correct, error)


def test_a_rule_of_ones_own_may_state_what_it_judged():
    own = {"last": lambda text, example: Verdict(text.split()[-1], text.endswith("8"))}
    found = label_answer("I say 8", COUNT, spec_for("custom.last"), custom=own)
    assert found == ("e", "8", True, None)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (lambda text, example: 1 / 0, "'custom.r' fails on the answer '8' .*ZeroDivisionError"),
        (lambda text, example: 0.5, "'custom.r' returns 0.5; expected True, False or a Verdict"),
    ],
)
def test_a_rule_of_ones_own_that_fails_is_named(rule, sentence):
    with pytest.raises(InputError, match=sentence):
        label_answer("8", COUNT, spec_for("custom.r"), custom={"r": rule})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 / 0", "does not run .ZeroDivisionError"),
        ("RULES = {}", "expected a dict RULES"),
        ("RULES = {'a b': print}", "'a b' is not a valid name"),
        ("RULES = {'a': 3}", "the rule 'a' is not a function"),
    ],
)
def test_a_wrong_file_of_rules_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "custom.py").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        custom_rules(str(tmp_path / "custom.py"))


def test_a_pipe_in_place_of_a_file_of_rules_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "custom.py")
    for read in (custom_rules, custom_code):
        with pytest.raises(InputError, match="is not a file"):
            read(str(tmp_path / "custom.py"))


def test_a_task_names_a_rule_of_the_configured_file(tmp_path):
    task = tmp_path / "near.yaml"
    task.write_text(
        "label: A\nsource: {path: x.csv}\nfields: {question: q, references: a}\n"
        "correctness: custom.within_one\n"
    )
    value = {
        "run": "r",
        "models": [{"slug": "m", "source": {"path": "m"}}],
        "tasks": [{"slug": "near", "file": str(task)}],
        "study": {"main": {"models": ["m"], "tasks": ["near"]}},
    }
    file = str(EXAMPLES / "custom_rules.py")
    named = load_config(value | {"custom_rules": file}, "c")
    assert load_tasks(named, ROOT)["near"].custom_rules == ["within_one"]
    with pytest.raises(InputError, match="'custom.within_one' needs the key 'custom_rules'"):
        load_tasks(load_config(value, "c"), ROOT)


def test_the_rule_runs_it_unless_it_was_edited(tmp_path, capsys):
    file = str(EXAMPLES / "custom_rules.py")
    rows = {name: [value] for name, value in vars(COUNT).items()} | {"language": ["en"]}
    write_parquet(pl.DataFrame(rows), tmp_path / "task.parquet")
    answers = [{name: None for name in TRACES.names} | {"example_id": "e", "answer": "9"}]
    write_arrow(answers, TRACES, {"schema_version": "1"}, tmp_path / "t.arrow")

    def run(held):
        run_script(
            "label_answers.py",
            tmp_path,
            input={"traces": tmp_path / "t.arrow", "task": tmp_path / "task.parquet"},
            output={"labels": tmp_path / "l.parquet"},
            params={
                "spec": spec_for("custom.within_one").model_dump_json(),
                "custom": [file, held],
            },
        )

    run(custom_code(file))
    assert pl.read_parquet(tmp_path / "l.parquet")["correct"].to_list() == [True]
    with pytest.raises(SystemExit):
        run("another")
    assert "has changed since the run started" in capsys.readouterr().err


def test_each_part_is_judged_by_a_rule_of_its_own():
    """'About 51' is the number 51, and not the name '51'."""
    names = [f"{one}/{part}" for part in ("code", "name") for one in "ab"]
    task = pl.DataFrame(
        {"example_id": names, "part": [name[2:] for name in names], "question": "q"}
    ).with_columns(
        references=pl.lit(["51"]), distractors=pl.lit([], pl.List(pl.String)), language=pl.lit("en")
    )
    traces = pl.DataFrame({"example_id": names[1:], "answer": "About 51"})
    labels = label_answers(traces, task, spec_for({"code": "numeric", "name": "alias"}))
    assert labels.schema == LABELS
    assert labels.select("example_id", "correct").rows() == [
        ("a/name", False),
        ("b/code", True),
        ("b/name", False),
    ]
