"""Inputs made after public reports, which are never committed: what each is read as."""

from pathlib import Path

import pytest

import tracecal
from tracecal.answers.labels import read_labels
from tracecal.answers.reading import Reading

CASES = Path(__file__).parents[4] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason=f"no inputs at {CASES}")
OWN = {"right": ["supported"], "wrong": ["hallucinated"]}
LABELS = {
    "21-contested-labels/votes.csv": ({}, {"q1", "q3", "q5"}),
    "24-words-of-verdicts/check.csv": ({}, {"q1"}),
    "24-words-of-verdicts/form.csv": ({}, {"q1"}),
    "24-words-of-verdicts/own-words.csv": (OWN, {"q1"}),
    "24-words-of-verdicts/prodigy.csv": ({}, {"q1"}),
    "29-spreadsheets-of-labels/ansi.csv": ({}, {"q1"}),
    "29-spreadsheets-of-labels/old-mac.csv": ({}, {"q1"}),
    "29-spreadsheets-of-labels/sep-line.csv": ({}, {"q1"}),
    "29-spreadsheets-of-labels/title-lines.csv": ({}, {"q1"}),
    "30-labels-by-path/labels.jsonl:meta.example_id:verdict": ({}, {"q1"}),
    "30-labels-by-path/form.csv:Answer ID:Verdict: right?": ({}, {"q1"}),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels(name):
    options, right = LABELS[name]
    by_id = read_labels(f"{CASES}/{name}", Reading(**options)).by_id
    assert {example_id for example_id, correct in by_id.items() if correct} == right


def test_a_workbook():
    pytest.importorskip("python_calamine", reason="the extra 'excel' is not installed")
    path = CASES / "29-spreadsheets-of-labels" / "labels.xlsx"
    assert read_labels(path).by_id == {"q1": True, "q2": False}


OSLO = {"answer": "Oslo.", "reasoning": "apart"}
RESULTS = {"answer": "response.results.0.generated_text"}
RESULTS |= {"logprobs": "response.results.0.generated_tokens"}
FLAT = {"answer": "attributes.answer", "logprobs": "attributes.logprobs"}
HELM = {"answer": "result.completions.0.text", "logprobs": "result.completions.0.tokens"}
OTHER = {"lacks": "the tokens spell another text", "surprisal": None}
ANSWERS = {
    "22-tokens-of-another-text/another-text.jsonl": ({}, 1, OTHER),
    "22-tokens-of-another-text/tokens-lost.jsonl": ({}, 1, OTHER),
    "22-tokens-of-another-text/reasoning-dropped.jsonl": ({}, 1, OSLO),
    "23-reasoning-of-gpt-oss/channels.jsonl": ({}, 1, OSLO | {"stop_token": "included"}),
    "23-reasoning-of-gpt-oss/marks-lost.jsonl": ({}, 1, OSLO),
    "25-rows-two-keys-down/output.json": ({}, 3, {"answer": "Oslo."}),
    "26-names-with-dots/answers.jsonl": (
        {"id": "context.span_id", "columns": FLAT},
        2,
        {"example_id": "s1"},
    ),
    "27-json-as-text/answers.jsonl": (
        {"id": "span_id", "columns": {"response": "output_value", "request": "input_value"}},
        1,
        {"answer": "Oslo.", "processed": "no"},
    ),
    "31-tokens-called-text/helm.jsonl": ({"columns": HELM}, 1, {"answer": "Oslo."}),
    "31-tokens-called-text/watsonx.jsonl": ({"columns": RESULTS}, 1, {"answer": "Oslo."}),
    "32-tokens-as-numbers/answers.jsonl": ({}, 1, {"token_ids": [71, 8]}),
    "34-completion-in-output/call.jsonl": (
        {},
        1,
        {"finish_reason": "length", "stop_token": "none", "processed": "no"},
    ),
    "40-own-tokens-and-the-end/columns.jsonl": ({}, 2, {"stop_token": "included"}),
    "41-hidden-thoughts-of-gemini/answers.jsonl": ({}, 1, OSLO),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name):
    options, n_answers, expected = ANSWERS[name]
    rows = tracecal.read_answers(CASES / name, reading=Reading(**options)).to_dicts()
    assert len(rows) == n_answers
    assert {column: rows[0][column] for column in expected} == expected
