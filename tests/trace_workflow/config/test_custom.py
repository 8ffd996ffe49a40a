"""Estimators of one's own: the documented example works, and wrong files are one sentence."""

import itertools
import json
from pathlib import Path

import polars as pl
import pytest
import yaml

from trace_workflow.config.custom import custom_code, require_unedited
from trace_workflow.config.run import load_run
from tracecal.errors import InputError
from tracecal.estimators.custom import custom_estimators
from tracecal.estimators.custom_scores import (
    SCORES,
    TRIAL,
    answers,
    compute_custom_scores,
    require_computable,
)
from tracecal.estimators.features import answer_features
from tracecal.estimators.scores import family_scores
from tracecal.io.files import write_parquet
from tracecal.io.traces import TRACES, write_table

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "custom_estimators.py"
SMOKE = yaml.safe_load((ROOT / "config/smoke.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def files(tmp_path):
    """A traces file of one answer, with its features and task."""
    row = {name: None for name in TRACES.names} | {
        "example_id": "a",
        "token_ids": [1, 2, 3, 4],
        "surprisal": [1.0, 2.0, 4.0, 8.0],
        "entropy": [0.5, 1.5, 2.5, 3.5],
    }
    table = pl.DataFrame([row]).to_arrow().select(TRACES.names).cast(TRACES)
    write_table(table, {"schema_version": "1"}, tmp_path / "t.arrow")
    frame = pl.DataFrame([row]).select("example_id", "surprisal", "entropy")
    write_parquet(answer_features(frame), tmp_path / "f.parquet")
    rows = pl.DataFrame({"example_id": ["a"], "role": ["evaluation"]})
    write_parquet(rows, tmp_path / "task.parquet")
    return [str(tmp_path / name) for name in ("t.arrow", "f.parquet", "task.parquet")]


def test_the_example_computes_what_it_says(files):
    names = [one.id for one in custom_estimators(str(EXAMPLE))]
    row = {}
    for name in names:
        frame = answers(*files, str(EXAMPLE), name)
        row |= family_scores(frame, SCORES, [name]).row(0, named=True)
    assert row["late_entropy"] == pytest.approx(-2.0)
    assert row["early_minus_late"] == pytest.approx(14 / 3 - 7 / 3)
    assert row["brevity"] == pytest.approx(-1.3862943611198906)


def test_they_are_chosen_and_are_no_baselines():
    run = load_run(SMOKE | {"custom_estimators": str(EXAMPLE)}, "c", ROOT)
    own = [one for one in run.selection.chosen if one.group == "own"]
    assert [(one.id, one.role, one.family) for one in own] == [
        ("late_entropy", "own", "custom_late_entropy"),
        ("early_minus_late", "own", "custom_early_minus_late"),
        ("brevity", "own", "custom_brevity"),
    ]
    assert {"brevity"}.isdisjoint(run.selection.main.baselines.ids)
    assert run.selection.custom == (*own,)
    named = SMOKE | {"custom_estimators": str(EXAMPLE), "estimators": ["trace", "brevity"]}
    assert load_run(named, "c", ROOT).selection.chosen.ids == ["trace", "brevity"]


POLARS = """import polars as pl
GOOD = {'label': 'B', 'score': pl.col('log_length')}
ESTIMATORS = """


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 / 0", "does not run .ZeroDivisionError"),
        ("ESTIMATORS = []", "expected a dict ESTIMATORS"),
        (
            "ESTIMATORS = {'trace': {'label': 'x', 'score': 1}}",
            "'trace' is the id of a built-in estimator",
        ),
        ("ESTIMATORS = {'a-b': {'label': 'x', 'score': 1}}", "'a-b' is not a valid name"),
        ("ESTIMATORS = {'a': {'lable': 'x'}}", "did you mean 'label'"),
        ("ESTIMATORS = {'a': {'label': 'A', 'score': 1}}", "'a' is not a Polars expression"),
        (
            POLARS + "{'b': GOOD, 'a': {'label': 'A', 'score': pl.col('entrpy').list.last()}}",
            "the score 'a' cannot be computed .*entrpy.*; columns are example_id, .*log_length",
        ),
        (POLARS + "{'a': {'label': 'A', 'score': pl.col('tokens') + 1}}", "'a' cannot be computed"),
        (POLARS + "{'a': {'label': 'A', 'score': pl.col('entropy')}}", "'a' is of type List"),
        (
            POLARS + "{'a': {'label': 'A', 'score': pl.col('log_length').mean()}}",
            "'a' is one number for all answers",
        ),
        (
            POLARS + "{'a': {'label': 'A', 'score': pl.col('tokens').map_elements("
            "lambda tokens: tokenise(tokens), return_dtype=pl.Float64)}}",
            "'a' cannot be computed .name 'tokenise' is not defined",
        ),
        (
            POLARS + "{'a': {'label': 'A', 'score': pl.col('tokens').map_elements("
            "lambda tokens: tokens + 1, return_dtype=pl.Float64)}}",
            "'a' cannot be computed",
        ),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "own.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        custom_estimators(str(path))


def test_a_column_that_is_not_there_is_named_with_those_that_are(files, tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "import polars as pl\nESTIMATORS = {'a': {'label': 'A', 'score': pl.col('nothing')}}",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="nothing.*columns are example_id, .*log_length"):
        answers(*files, str(path), "a")


def test_a_score_that_fails_on_some_answers_is_missing_there_and_counted(caplog):
    def half(text):
        return json.loads(text) / 2

    with pytest.warns(pl.exceptions.PolarsInefficientMapWarning):
        score = pl.col("answer").map_elements(half, return_dtype=pl.Float64)
    custom = {"number": score, "length": pl.col("tokens").list.len()}
    require_computable(custom, "mine.py")
    rows = TRIAL.with_columns(answer=pl.Series(["1", "one"]))
    scores = compute_custom_scores(rows, custom)
    assert scores["number"].to_list() == [0.5, None]
    assert scores["length"].to_list() == [3, 5]
    assert "the score 'number' fails on 1 of 2 answers" in caplog.text
    with pytest.raises(InputError, match="'number' cannot be computed .JSONDecodeError"):
        compute_custom_scores(TRIAL, custom)


def test_a_file_that_changed_during_the_run_is_refused():
    with pytest.raises(InputError, match="has changed since the run started"):
        require_unedited(str(EXAMPLE), "another")


def test_the_hash_of_a_file_is_of_its_code_and_of_what_it_imports(tmp_path):
    paths = (tmp_path / str(number) / "own.py" for number in itertools.count())

    def hashed(text):
        path = next(paths)  # a process reads a file once
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        return custom_code(str(path))

    plain = hashed("X = 1\n")
    assert hashed('"""Words."""\nX = 1  # more of them\n') == plain
    assert hashed("X = 2\n") != plain
    assert hashed("from tracecal.estimators import operators\nX = 1\n") != plain


def test_the_hash_of_a_score_is_of_what_it_uses(tmp_path):
    paths = (tmp_path / str(number) / "own.py" for number in itertools.count())
    parts = [
        "import polars as pl",
        "K = 3",
        "def late(k): return -pl.col('entropy').list.tail(k).list.mean()",
        "ESTIMATORS = {'a': {'label': 'A', 'score': late(K)}}",
    ]

    def hashed(*lines):
        path = next(paths)
        path.parent.mkdir()
        path.write_text("\n".join(lines), encoding="utf-8")
        return custom_code(str(path), "a")

    plain = hashed(*parts)
    second = parts[3].replace("}}", "}, 'b': {'label': 'B', 'score': early()}}")
    early = "def early(): return op.first_mean(pl.col('entropy'), 2)"
    imported = "from tracecal.estimators import operators as op"
    assert hashed(imported, *parts[:3], early, second) == plain, "another score"
    assert hashed(*parts[:3], parts[3].replace("'A'", "'B'")) != plain
    assert hashed(parts[0], "K = 4", *parts[2:]) != plain, "through a function and a constant"
    assert hashed(*parts, "pl.Config.set_float_precision(3)") != plain, "it may do anything"
    assert hashed(*parts[:3], "ESTIMATORS = dict(a={'label': 'A', 'score': late(K)})") != plain


def test_what_a_custom_file_reads_is_named_and_counts(tmp_path):
    path, names = tmp_path / "mine.py", tmp_path / "names.txt"
    names.write_text("one")
    path.write_text("NAMES = open('names.txt').read()\n")
    with pytest.raises(InputError, match=r"mine\.py reads a file \(open\): name all that it reads"):
        custom_code(str(path))
    path.write_text("FILES = ['names.txt']\n" + path.read_text())
    before = custom_code(str(path))
    names.write_text("two")
    assert custom_code(str(path)) != before
