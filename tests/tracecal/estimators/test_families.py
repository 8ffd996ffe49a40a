"""From the files of a (model, task) to a family's scores, by the family's name."""

import polars as pl
import pyarrow as pa
import pytest

from support.arrow_files import write_arrow
from support.scripts import run_script
from tracecal.errors import InputError
from tracecal.estimators import selfcheckgpt, semantic_entropy
from tracecal.estimators.families import FAMILIES
from tracecal.io.traces import provenance

FLOATS = pa.list_(pa.float32())
TRACES = pa.schema(
    {"example_id": pa.string(), "answer": pa.string(), "surprisal": FLOATS, "entropy": FLOATS}
)
SAMPLES = pa.schema(
    {"example_id": pa.string(), "sample": pa.int32(), "text": pa.string(), "surprisal": FLOATS}
)
ROWS = [
    {"example_id": one, "answer": "yes", "surprisal": [0.5, 1.0], "entropy": [entropy, 0.0]}
    for one, entropy in (("a", 1.0), ("b", 3.0), ("trained on", 9.0))
]


@pytest.fixture
def files(tmp_path):
    """Traces, samples and task of two evaluated examples and one of role 'training'."""
    made = provenance("m", "r", "float32", "greedy", 1)
    drawn = [
        {"example_id": one, "sample": i, "text": text, "surprisal": [0.0]}
        for one, texts in (("a", ("Yes.", "yes")), ("b", ("yes", "no")))
        for i, text in enumerate(texts)
    ]
    write_arrow(ROWS, TRACES, made, tmp_path / "traces.arrow")
    write_arrow(drawn, SAMPLES, made, tmp_path / "samples.arrow")
    roles = ["evaluation", "evaluation", "training"]
    pl.DataFrame({"example_id": [row["example_id"] for row in ROWS], "role": roles}).write_parquet(
        tmp_path / "task.parquet"
    )
    return tmp_path


def test_the_script_scores_evaluated_answers_by_the_module_of_the_family(files):
    run_script(
        "estimate_family.py",
        files,
        input={"traces": files / "traces.arrow", "task": files / "task.parquet"},
        output={"scores": files / "scores.parquet"},
        params={
            "module": "tracecal.estimators.trace_scores",
            "chosen": ["max_token_entropy"],
            "settings": {},
            "custom_code": "",
        },
        modules=("tracecal.estimators.trace_scores",),
        family="entropy",
    )
    scores = pl.read_parquet(files / "scores.parquet")
    assert scores.to_dict(as_series=False) == {
        "example_id": ["a", "b"],
        "max_token_entropy": [-1.0, -3.0],
    }


def test_a_learned_probability_is_that_of_the_tasks_own_example(files):
    learned = pl.DataFrame(
        {
            "task": ["other", "mine", "mine"],
            "example_id": ["a", "b", "a"],
            "probability": [0.9, 0.2, 0.1],
        }
    )
    learned.write_parquet(files / "learned.parquet")
    given = {"learned": files / "learned.parquet", "task": files / "task.parquet"}
    assert FAMILIES["lars"].answers(**given, slug="mine")["probability"].to_list() == [0.1, 0.2]
    with pytest.raises(InputError, match="do not match the evaluated examples"):
        FAMILIES["lars"].answers(**given, slug="other")


def test_without_comparisons_samples_agree_by_their_texts(files):
    samples, traces = files / "samples.arrow", files / "traces.arrow"
    found = selfcheckgpt.answers(samples, traces, "exact").sort("example_id")
    assert found["inconsistency"].to_list() == [0.0, 0.5]
    # All samples have probability 1: a meaning of two has ln 2 in all, one of one has 0.
    nats = semantic_entropy.answers(samples, "exact").sort("example_id")["nats"]
    assert nats.to_list() == pytest.approx([-0.6931471805599453, 0.0])
