"""What the explorer is told of each answer."""

import polars as pl
import pyarrow as pa
import pytest

from support.arrow_files import write_arrow
from trace_workflow.analyses.explorer_answers import (
    read_explorer_answers,
    read_parents,
)
from tracecal.errors import InputError
from tracecal.io.files import write_parquet
from tracecal.io.traces import TRACES


@pytest.fixture
def files(tmp_path):
    """A pair of three answers, one of them to a training row."""
    ids, roles = ["x", "y", "z"], ["evaluation", "training", "evaluation"]
    nothing = {"group_id": ids, "context": [None] * 3}
    task = {
        "example_id": ids,
        "role": roles,
        "language": ["en"] * 3,
        "question": ["X?", "Y?", "Z?"],
        "references": [["1"], ["2"], ["3", "three"]],
        "distractors": [[], [], ["4"]],
    }
    write_parquet(pl.DataFrame(task | nothing), tmp_path / "tasks.parquet")
    traces = [
        {
            "example_id": id,
            "prompt": f"ask {id}",
            "prompt_token_ids": [1],
            "answer": "one",
            "token_ids": [7, 2],
            "tokens": ["one", "<end>"],
            "surprisal": [0.5, 0.1],
            "entropy": [0.7, 0.2],
            "finish_reason": "eos",
        }
        for id in ids
    ]
    write_arrow(traces, TRACES, {"schema_version": "1"}, tmp_path / "traces.arrow")
    judged = {"prediction": ["one"] * 3, "correct": [True, True, False]}
    labels = {"example_id": ids, **judged, "error_kind": [None, None, "number"]}
    write_parquet(pl.DataFrame(labels), tmp_path / "labels.parquet")
    scores = {"example_id": ["x", "z"], "seq_logp": [0.6, None]}
    write_parquet(pl.DataFrame(scores), tmp_path / "scores.parquet")
    predictions = {
        "estimator": ["trace_plus", "trace_plus"],
        "split": [0, 1],
        "example_id": ["z", "z"],
        "probability": [0.3, 0.5],
    }
    write_parquet(pl.DataFrame(predictions), tmp_path / "predictions.parquet")
    kinds = ("tasks", "labels", "scores", "predictions")
    paths = {kind: str(tmp_path / f"{kind}.parquet") for kind in kinds}
    return paths | {"traces": str(tmp_path / "traces.arrow")}


def test_an_answer_is_joined_from_all_that_is_known_of_it(files):
    first, second = read_explorer_answers(files, ["seq_logp", "trace_plus"]).to_dicts()
    assert (first["example_id"], second["example_id"]) == ("x", "z")
    assert second["references"] == ["3", "three"]
    assert (second["prompt"], second["question"], second["prediction"]) == ("ask z", "Z?", "one")
    assert (second["correct"], second["error_kind"], second["peak"]) == (False, "number", 0)
    assert second["probability.trace_plus"] == pytest.approx(0.4)
    assert (first["score.seq_logp"], second["score.seq_logp"]) == (0.6, None)
    assert second["held_out.trace_plus"] == 0.3
    undefined = [
        "held_out.seq_logp",
        "held_out.trace_plus",
        "probability.seq_logp",
        "score.trace_plus",
        "probability.trace_plus",
    ]
    assert [first[name] for name in undefined] == [None] * len(undefined)


def test_labels_of_other_examples_are_refused(files):
    labels = pl.read_parquet(files["labels"]).filter(pl.col("example_id") != "z")
    write_parquet(labels, files["labels"])
    with pytest.raises(InputError, match="1 rows for 2 examples"):
        read_explorer_answers(files, ["trace_plus"])


def test_columns_stand_in_one_order_whatever_a_pair_lacks(files):
    # Probabilities of TRACE+ are there, those of the others are not.
    names = ["trace_plus", "seq_logp"]
    for order in (names, names[::-1]):
        columns = read_explorer_answers(files, order).columns
        wanted = [
            f"{kind}.{name}" for kind in ("probability", "held_out", "score") for name in order
        ]
        assert columns[-6:] == wanted


def test_parts_are_joined_with_their_places_and_their_answers(files, tmp_path):
    places = {"parent_id": pa.string(), "part": pa.string(), "start": pa.int32(), "end": pa.int32()}
    cut = [
        row | {"parent_id": f"{row['example_id']}0", "part": "town", "start": 3, "end": 5}
        for row in pl.read_ipc(files["traces"]).to_dicts()
    ]
    schema = pa.schema([*TRACES, *places.items()])
    write_arrow(cut, schema, {"schema_version": "1"}, tmp_path / "cut.arrow")
    parts = read_explorer_answers(
        files | {"traces": str(tmp_path / "cut.arrow")}, ["trace"], "asked"
    )
    whole = read_explorer_answers(files, ["trace"])
    assert parts.schema == whole.schema
    assert parts["parent_task"].to_list() == ["asked", "asked"]
    assert parts.select("parent_id", "part", "start", "end").row(1) == ("z0", "town", 3, 5)
    assert whole.select("parent_task", "parent_id", "part", "start", "end").row(1) == (None,) * 5

    shown = parts.with_columns(model=pl.lit("m"), parent_id=pl.col("example_id")).head(1)
    parents = read_parents(shown, {("m", "asked"): files["traces"]})
    assert parents.select("model", "task", "example_id", "peak").rows() == [("m", "asked", "x", 0)]
    assert read_parents(shown, {}) is None
