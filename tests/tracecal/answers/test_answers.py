"""What calibration is fitted on: evaluated answers only, each input under its own name."""

import polars as pl
import pytest

from trace_workflow.analyses.labelled_answers import raw_scores, read_labelled_answers
from tracecal.errors import InputError
from tracecal.fits.predictions import mean_probabilities

FILES = {
    "labels": {"example_id": ["t", "b", "a"], "correct": [True, False, True], "error_kind": "x"},
    "task": {
        "example_id": ["a", "b", "t"],
        "role": ["evaluation", "evaluation", "training"],
        "group_id": ["g", "h", "t"],
    },
    "scores": {"example_id": ["b", "a"], "slope": [1.0, 2.0]},
    "features": {"example_id": ["a", "b"], "slope": [-2.0, -1.0]},
}


def written(folder, **changed):
    paths = {}
    for name, columns in (FILES | changed).items():
        paths[name] = folder / f"{name}.parquet"
        pl.DataFrame(columns).write_parquet(paths[name])
    return paths


def test_inputs_keep_their_folder_and_answers_their_order(tmp_path):
    answers = read_labelled_answers(**written(tmp_path))
    assert answers.columns == [
        *("example_id", "group_id", "correct"),
        *("scores.slope", "features.slope"),
    ]
    assert answers.rows() == [("a", "g", True, 2.0, -2.0), ("b", "h", False, 1.0, -1.0)]
    assert raw_scores(answers).to_dict(as_series=False) == {
        "example_id": ["a", "b"],
        "slope": [2.0, 1.0],
    }


def test_an_answer_without_a_label_is_refused(tmp_path):
    with pytest.raises(InputError, match="do not match the evaluated examples"):
        read_labelled_answers(**written(tmp_path, labels={"example_id": ["a"], "correct": [True]}))


def test_a_probability_is_the_mean_over_the_splits_that_held_the_answer_out():
    rows = [("a", 0, "x", 0.2), ("a", 1, "x", 0.6), ("a", 1, "y", 0.5), ("b", 0, "y", 0.1)]
    names = ["estimator", "split", "example_id", "probability"]
    predictions = pl.DataFrame(rows, schema=names, orient="row")
    means = mean_probabilities(predictions, "estimator", "example_id")
    assert means.rows() == [("a", "x", pytest.approx(0.4)), ("a", "y", 0.5), ("b", "y", 0.1)]
    mixed = mean_probabilities(predictions.reverse(), "estimator", "example_id")
    assert mixed.equals(means)
