"""The sentence on a run's first labels."""

import polars as pl
import pytest

from trace_workflow.analyses.first_labels import describe_first_labels


@pytest.fixture
def labelled(tmp_path):
    def labelled(correct, cut=0):
        traces = pl.DataFrame(
            {
                "example_id": ["a", "b", "c", "d"],
                "finish_reason": ["length"] * cut + ["eos"] * (4 - cut),
            }
        )
        labels = pl.DataFrame({"example_id": ["d", "c", "b", "a"], "correct": correct})
        for path, frame in (("labels/m/t.parquet", labels), ("traces/m/t.arrow", traces)):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            write = frame.write_parquet if path.endswith("parquet") else frame.write_ipc
            write(tmp_path / path)
        return tmp_path / "labels/m/t.parquet"

    return labelled


def test_it_counts_correct_answers(labelled):
    sentence = describe_first_labels(labelled([True, True, False, False]))
    assert sentence == "First labels: 2 of 4 answers of m to t are correct."


def test_it_says_where_most_answers_did_not_end(labelled):
    assert "may be undeclared" not in describe_first_labels(labelled([True, False] * 2, cut=2))
    said = describe_first_labels(labelled([False] * 4, cut=3))
    assert "3 of all ran to the limit of tokens: the token that ends the model's turns may" in said
