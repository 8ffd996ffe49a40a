"""Traces of parts: cut from those of the answers, and every part accounted for."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

from support.scripts import run_script
from trace_workflow.models.part_traces import LACKING, NO_ANSWER, cut_traces
from tracecal.answers.parts.cutter import UNPARSED
from tracecal.answers.parts.parts import Parts
from tracecal.errors import InputError
from tracecal.estimators.families import FAMILIES
from tracecal.estimators.features import answer_features
from tracecal.io.files import read_parquet, write_parquet
from tracecal.io.traces import TRACES, arrow_metadata, read_traces, write_table

ANSWERS = {
    "a": ["Capital:", " Lima", "\nCurrency:", " Sol", "\n\n", "Capital: Rome"],
    "b": ["Capital:", " Rio"],
    "c": ["no", " idea"],
}
NAMES = ("capital", "currency")
PARTS = Parts(lines=NAMES)


def traces():
    rows = [
        {
            "example_id": name,
            "prompt": "p",
            "prompt_token_ids": [7],
            "answer": "".join(tokens),
            "token_ids": list(range(len(tokens))),
            "tokens": tokens,
            "surprisal": [t / 8 for t in range(len(tokens))],
            "entropy": [t / 4 for t in range(len(tokens))],
            "finish_reason": "stop",
        }
        for name, tokens in ANSWERS.items()
    ]
    return pa.Table.from_pylist(rows, schema=TRACES)


def rows():
    """The rows of the task of parts; the fourth question has no answer."""
    return pl.DataFrame(
        [(f"{one}/{part}", one, part, "evaluation") for one in "abcd" for part in NAMES],
        schema=["example_id", "parent_id", "part", "role"],
        orient="row",
    )


def test_each_part_has_its_tokens_and_each_row_without_any_a_reason(tmp_path):
    write_table(traces(), {"schema_version": "1", "model": "m"}, tmp_path / "traces.arrow")
    write_parquet(rows(), tmp_path / "task.parquet")
    lacks = pl.DataFrame({"example_id": ["a", "b"], "role": "evaluation", "lacks": [None, "top-k"]})
    write_parquet(lacks, tmp_path / "questions.parquet")
    run_script(
        "cut_parts.py",
        tmp_path,
        input={name: tmp_path / f"{name}.parquet" for name in ("task", "questions")}
        | {"traces": tmp_path / "traces.arrow"},
        output={"traces": tmp_path / "cut.arrow", "questions": tmp_path / "rows.parquet"},
        params={"parts": PARTS.model_dump_json(by_alias=True), "stop": ["\n\n"]},
    )
    cut = read_traces(tmp_path / "cut.arrow")
    found = cut.select("example_id", "answer", "tokens", "surprisal", "entropy", "start", "end")
    assert found.rows() == [
        ("a/capital", "Lima", [" Lima"], [0.125], [0.25], 1, 2),
        ("a/currency", "Sol", [" Sol"], [0.375], [0.75], 3, 4),
        ("b/capital", "Rio", [" Rio"], [0.125], [0.25], 1, 2),
    ]
    assert arrow_metadata(tmp_path / "cut.arrow")["model"] == "m"
    told = read_parquet(tmp_path / "rows.parquet")
    assert told["role"].to_list() == ["evaluation"] * 3 + ["unanswered"] * 5
    assert told["without"].to_list() == [None] * 3 + [LACKING, *[UNPARSED] * 2, *[NO_ANSWER] * 2]
    assert told["lacks"].to_list()[2] == "top-k"
    assert not told["counts_as_wrong"].any()


def test_a_part_that_an_answer_lacks_counts_as_wrong_where_the_task_says_so():
    wrong = Parts(lines=NAMES, missing="wrong")
    _, told = cut_traces(pl.from_arrow(traces()), rows(), rows(), wrong, [])
    # Of a question without an answer nothing is known.
    assert told["counts_as_wrong"].to_list() == [False] * 3 + [True] * 3 + [False] * 2


def test_a_conclusion_is_judged_by_the_reasoning_where_only_that_tells_right_from_wrong():
    # Reasoning of doubtful steps ends in a wrong number, which is as certain as a right one.
    correct = np.arange(40) % 3 > 0
    doubt = [0.2 + 0.01 * row if fine else 1 + 0.01 * row for row, fine in enumerate(correct)]
    answers = pl.DataFrame(
        {
            "example_id": [f"q{row}" for row in range(40)],
            "answer": ["5 or 7? #### 7"] * 40,
            "tokens": [["5 or", " 7?", " ####", " 7"]] * 40,
            **{
                name: [[one, one / 2, 0.1, 0.3] for one in doubt]
                for name in ("surprisal", "entropy")
            },
        }
    )
    questions = answers.select("example_id", role=pl.lit("evaluation"))
    rows = questions.select(
        pl.concat_str("example_id", pl.lit("/final")).alias("example_id"),
        "role",
        parent_id="example_id",
        part=pl.lit("final"),
    )
    areas = {}
    for kept in ("apart", "alone", "within"):
        parts = Parts(final="####", reasoning=kept)
        cut, told = cut_traces(answers, questions, rows, parts, [])
        assert told["role"].to_list() == ["evaluation"] * 40
        assert cut["answer"].to_list() == ["7"] * 40
        trace = (
            answer_features(cut).select(FAMILIES["trace"].SCORES["trace"])["trace_risk"].to_numpy()
        )
        areas[kept] = roc_auc_score(correct, trace)
    assert areas == {"apart": 0.5, "alone": 1.0, "within": 1.0}


def test_where_no_answer_has_a_part_the_first_one_says_why():
    none = pl.from_arrow(traces()).filter(example_id="c")
    with pytest.raises(InputError, match="none of 1 answers has a part: 'c': it does not hold"):
        cut_traces(none, rows(), rows(), PARTS, [])
