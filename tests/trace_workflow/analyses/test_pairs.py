import polars as pl
import pytest

from trace_workflow.analyses.study_files import read_pairs, scope
from tracecal.errors import InputError


def test_the_files_rows_follow_one_another_with_their_pair(tmp_path):
    for name, values in (("x", [1, 2]), ("y", [3])):
        pl.DataFrame({"value": values, "other": 0}).write_parquet(tmp_path / name)
    read = read_pairs([tmp_path / "x", tmp_path / "y"], [["m", "a"], ["m", "b"]], ["value"])
    assert read.rows() == [("m", "a", 1), ("m", "a", 2), ("m", "b", 3)]
    assert read.columns == ["model", "task", "value"]


def test_a_file_without_the_column_is_named(tmp_path):
    pl.DataFrame({"other": [0]}).write_parquet(tmp_path / "x")
    with pytest.raises(InputError, match=r"x.*value"):
        read_pairs([tmp_path / "x"], [["m", "a"]], ["value"])


def test_no_pair_is_an_error_and_the_scope_names_the_tasks_sorted():
    with pytest.raises(InputError, match="no \\(model, task\\) pair"):
        read_pairs([], [], ["value"])
    frame = pl.DataFrame({"x": [1]}).with_columns(**scope([["m", "b"], ["m", "a"]]))
    assert frame.rows() == [(1, "m", "a b")]
