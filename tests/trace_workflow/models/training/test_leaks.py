"""From the files to the scores: labels of evaluated answers change nothing, leaks stop the job."""

import polars as pl
import pytest

from support.supervised_frames import FITTING, answers, states
from trace_workflow.models.lars import lars_probabilities, train_lars
from trace_workflow.models.probe import probe_probabilities, train_probe
from trace_workflow.models.training import all_rows, labelled
from tracecal.errors import InputError

TASKS = ("one", "two")
ENCODER = {"path": None, "trained": False, "layers": 1, "width": 32}


@pytest.fixture
def files(tokenizer, tmp_path):
    """Two tasks of 60 answers, every third of them evaluated, as the rules find them on disk."""
    found = {kind: [] for kind in ("tasks", "labels", "artefacts")}
    for number, task in enumerate(TASKS):
        rows = answers(tokenizer, 60, seed=number)
        rows = rows.drop("task").join(
            states(60, seed=number).select("example_id", "layer", "hidden"), on="example_id"
        )
        role = pl.when(pl.int_range(60) % 3 == 0).then(pl.lit("evaluation"))
        frames = {
            "tasks": rows.select(
                "example_id",
                "group_id",
                role=role.otherwise(pl.lit("training")),
                # Numbered, as the four questions of the toy would be one example each.
                question=pl.format("{} {} {}", "question", "example_id", pl.lit(task)),
                context=pl.lit(None, pl.String),
            ),
            "labels": rows.select("example_id", "correct"),
            "artefacts": rows.drop("question", "correct", "group_id"),
        }
        for kind, frame in frames.items():
            path = tmp_path / kind / f"{task}.parquet"
            path.parent.mkdir(exist_ok=True)
            frame.write_parquet(path)
            found[kind].append(str(path))
    return found


def scored(files, family, folder, language_model, tokenizer):
    rows = all_rows(files["tasks"], files["artefacts"], pl.read_parquet)
    training = labelled(rows, files["tasks"], files["labels"])
    if family == "internal_probe":
        train_probe(training, 2.0, FITTING, folder)
        scores = probe_probabilities(folder, rows)
    else:
        train_lars(training, tokenizer, language_model, ENCODER, 8, FITTING, folder)
        scores = lars_probabilities(folder, rows, tokenizer, 16)
    scores.write_parquet(f"{folder}.parquet")
    written = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    return training, scores, written | {"scores": folder.with_suffix(".parquet").read_bytes()}


def flip(files, role):
    for task, judged in zip(files["tasks"], files["labels"], strict=True):
        roles = pl.read_parquet(task).select("example_id", "role")
        frame = pl.read_parquet(judged).join(roles, on="example_id")
        changed = pl.col("correct") ^ (pl.col("role") == role)
        frame.select("example_id", correct=changed).write_parquet(judged)


@pytest.mark.parametrize("family", ["internal_probe", "lars"])
def test_flipping_every_evaluation_label_leaves_every_byte(
    files, family, make_model, tokenizer, tmp_path
):
    language_model = tmp_path / "language_model"
    make_model().save_pretrained(language_model)
    runs = {}
    for name, role in (("before", None), ("evaluation", "evaluation"), ("training", "training")):
        if role:
            flip(files, role)
        training, scores, runs[name] = scored(
            files, family, tmp_path / name, language_model, tokenizer
        )
        assert training.height == 80
        assert scores.height == 120, "answers of both roles are scored"
    assert runs["evaluation"] == runs["before"]
    assert runs["training"]["scores"] != runs["before"]["scores"], "training labels do matter"


def test_a_leak_in_the_files_stops_the_job(files):
    path = files["tasks"][1]
    other = pl.read_parquet(files["tasks"][0]).filter(role="evaluation")["question"][0]
    first_training = (pl.col("role") == "training") & (pl.col("example_id") == "0001")
    question = pl.when(first_training).then(pl.lit(other)).otherwise("question")
    pl.read_parquet(path).with_columns(question=question).write_parquet(path)
    rows = all_rows(files["tasks"], files["artefacts"], pl.read_parquet)
    with pytest.raises(InputError, match=r"'0001' of two, share question and context"):
        labelled(rows, files["tasks"], files["labels"])


def test_an_unanswered_training_example_is_said(files):
    path = files["artefacts"][0]
    pl.read_parquet(path).filter(pl.col("example_id") != "0001").write_parquet(path)
    rows = all_rows(files["tasks"], files["artefacts"], pl.read_parquet)
    with pytest.raises(InputError, match="1 of 80 training examples .* were not answered"):
        labelled(rows, files["tasks"], files["labels"])
