"""Inputs as people report them, several of each kind: what each is read as at every door."""

import json

import pytest

import tracecal
from tracecal.answers.labels import read_labels
from tracecal.answers.reading import Reading
from tracecal.answers.verdict import parse_verdict
from tracecal.errors import InputError, WrongVerdict

ANSWER = {"answer": "Oslo", "logprobs": [-0.25]}
VERDICTS = [
    *[(word, {}, True) for word in ("👍🏿", "✔︎", "🟩 pass", "Correct!", "**Correct.**", '"yes"')],
    *[(word, {}, True) for word in ("thumbs_up", "factual", "1 (correct)", "100,0 %", "\ufeffyes")],
    *[
        (word, {}, False)
        for word in ("👎🏻", "✕", "No.", "not_correct", "NOT-SUPPORTED", "0 (wrong)")
    ],
    *[(word, {}, None) for word in ("#N/A", "<NA>", "n.a.", "—")],
    *[(word, {"right_from": 4}, True) for word in ("5️⃣", "★★★★☆", "Strongly agree (5)", "4,5")],
    *[(word, {"right_from": 4}, False) for word in ("★★★☆☆", "rating: 3", "Partly - 2", "-1")],
    ("gut gemacht", {"right": ["Gut gemacht!"]}, True),
    ("partially-correct", {"wrong": ["partially correct"]}, False),
    ("2 - unusable", {"right": ["3"], "wrong": ["2 - unusable"]}, False),
]


@pytest.mark.parametrize("value, options, verdict", VERDICTS)
def test_words_of_verdicts(value, options, verdict):
    assert parse_verdict(value, Reading(**options)) is verdict
    row = {"id": "a", **ANSWER}
    for stated in ({"correct": value}, {"label": [value]}):
        frame = tracecal.read_answers([row | stated], reading=Reading(**options))
        assert frame["correct"].to_list() == [verdict]


@pytest.mark.parametrize(
    "value", ["1 - perfect", "grade: 1", "Correct, but late", "!", ["yes", "no"]]
)
def test_other_words_are_refused_as_they_are(value):
    with pytest.raises(WrongVerdict, match="neither right"):
        parse_verdict(value)


def task(kind, value, **annotation):
    result = {"type": kind, "from_name": "v", "value": {kind.lower(): value}}
    annotation = {"completed_by": 1, "result": [result], **annotation}
    return {"data": {"example_id": "q1"}, "annotations": [annotation]}


def argilla(value):
    response = {"value": value, "user_id": "u", "status": "submitted"}
    return {"metadata": {"example_id": "q1"}, "responses": {"v": [response]}}


RIGHT, WRONG = {"q1": True}, {"q1": False}
PEOPLE = "id,who,verdict,{}\nq1,A,no,{}\nq1,B,no,{}\nq1,C,yes,{}\n"
LABELS = {  # what a file holds, options, verdicts by id
    "majority": ("id,verdict\nq1,yes\nq1,no\nq1,Yes.\n", {}, RIGHT),
    "tie of four": ("id,verdict\nq1,1\nq1,0\nq1,1\nq1,0\n", {}, WRONG),
    "people beside one who is unsure": ("id,verdict\nq1,yes\nq1,?\nq1,no\n", {}, WRONG),
    "adjudicated: yes": (PEOPLE.format("adjudicated", "no", "no", "yes"), {}, RIGHT),
    "ground truth: 1.0": (PEOPLE.format("Ground truth", "0.0", "0.0", "1.0"), {}, RIGHT),
    "is final: x": (PEOPLE.format("is_final", "", "", "✓"), {}, RIGHT),
    "decimal commas": ("id;score\nq1;0,8\nq2;0,2\n", {"right_from": 0.5}, RIGHT | {"q2": False}),
    "bars": ("id|verdict|note\nq1|yes|a, b\n", {}, RIGHT),
    "title with commas": (
        "Review, May\n\nid,verdict,note\nq1,yes,x\nq2,no,y\n",
        {},
        {**RIGHT, "q2": False},
    ),
    "one-element lists": (
        [{"id": "q1", "verdict": [["yes"]]}, {"id": "q2", "verdict": []}],
        {},
        RIGHT,
    ),
    "label studio, numbers": ([task("number", 4)], {"right_from": 4}, RIGHT),
    "label studio, taxonomy": ([task("taxonomy", [["Correct"]])], {}, RIGHT),
    "label studio, capitals": ([task("Choices", ["✅ Correct"])], {}, RIGHT),
    "argilla, several labels": ([argilla(["yes"])], {}, RIGHT),
    "scale": ([{"id": "q1", "verdict": [["no"]]}], {}, WRONG),
    "doccano": ([{"id": "q1", "text": "x", "label": ["Correct"]}], {}, RIGHT),
}


def written(path, content):
    text = content if isinstance(content, str) else json.dumps(content)
    path = path.with_suffix(".csv" if isinstance(content, str) else ".json")
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", LABELS)
def test_labels(tmp_path, name):
    content, options, expected = LABELS[name]
    assert read_labels(written(tmp_path / "labels", content), Reading(**options)).by_id == expected


@pytest.mark.parametrize(
    "listed, own",
    [
        ("1.0", "1"),
        ("123", "00123"),
        ("abc_1", "ABC-1"),
        ("\u200bq1", "q1"),
        ("{3F2504E0-4F89-11D3}", "3f2504e04f8911d3"),
    ],
)
def test_ids_as_tables_change_them(tmp_path, listed, own):
    path = written(tmp_path / "labels", f"id,verdict\n{listed},yes\n")
    frame = tracecal.read_answers([{"id": own, **ANSWER}], reading=Reading(labels=path))
    assert frame["correct"].to_list() == [True]


CHOICES = {"choices": [{"text": "x", "index": 0}, {"text": "y", "index": 1}]}
SAMPLE = {"epoch": 1, "input": "q", "output": {"choices": [{"message": {"content": "x"}}]}}
SCORES = {"scores": {"judge": {"value": "C"}, "match": {"value": "I"}}}


@pytest.mark.parametrize(
    "row",
    [
        {**ANSWER, "correct": ["yes", "no"]},
        {**ANSWER, "correct": {"choices": "yes"}, "label": "maybe"},
        {**ANSWER, "wrong_spans": [[5, 2]]},
        {**CHOICES, "correct": True},
        {**SAMPLE, **SCORES},
    ],
)
def test_rows_whose_verdict_is_wrong_are_never_skipped(row):
    rows = [{"id": "a", **ANSWER, "correct": True}, {"id": "b", **row}]
    with pytest.raises(InputError, match=r"row 2: .* Correct them[.]$"):
        tracecal.read_answers(rows, reading=Reading(wrong_rows="skip"))


@pytest.mark.parametrize(
    "content, options",
    [
        ("id,verdict\nq1,yes\nq2,perhaps\n", {}),
        ("id,verdict,who\nq1,yes,A\nq2,no,\n", {"who": "who"}),
        (
            [
                task("choices", ["yes"]),
                {
                    "data": {"example_id": "q2"},
                    "annotations": [
                        {
                            "result": [
                                {
                                    **task("choices", ["yes"])["annotations"][0]["result"][0],
                                    "from_name": name,
                                }
                                for name in "vw"
                            ]
                        }
                    ],
                },
            ],
            {},
        ),
    ],
)
def test_labels_that_are_wrong_are_never_skipped(tmp_path, content, options):
    path = written(tmp_path / "labels", content)
    with pytest.raises(InputError, match=r"2: .* Correct them[.]$"):
        read_labels(path, Reading(wrong_rows="skip", **options))
