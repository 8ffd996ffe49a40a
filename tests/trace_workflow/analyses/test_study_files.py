"""The reader of the files of a study's pairs."""

import polars as pl
import pytest

from trace_workflow.analyses.study_files import StudyFiles
from tracecal.errors import InputError


def test_the_files_rows_follow_one_another_with_their_pair(tmp_path):
    for name, values in (("x", [1, 2]), ("y", [3])):
        pl.DataFrame({"value": values, "other": 0}).write_parquet(tmp_path / name)
    files = StudyFiles({"kind": [tmp_path / "x", tmp_path / "y"]}, [["m", "a"], ["m", "b"]])
    frame = files.read("kind", ["value"])
    assert frame.rows() == [("m", "a", 1), ("m", "a", 2), ("m", "b", 3)]
    assert frame.columns == ["model", "task", "value"]


def test_a_file_without_the_column_is_named(tmp_path):
    pl.DataFrame({"other": [0]}).write_parquet(tmp_path / "x")
    with pytest.raises(InputError, match=r"x.*value"):
        StudyFiles({"kind": [tmp_path / "x"]}, [["m", "a"]]).read("kind", ["value"])


def test_no_pair_is_an_error_and_the_scope_names_the_tasks_sorted():
    with pytest.raises(InputError, match="no \\(model, task\\) pair"):
        StudyFiles({"kind": []}).read("kind", ["value"])
    scope = StudyFiles({}, [["m", "b"], ["m", "a"]]).scope
    assert pl.DataFrame({"x": [1]}).with_columns(**scope).rows() == [(1, "m", "a b")]
