"""What a run cost: sums and rates that can be redone by hand."""

import polars as pl
import pytest

from trace_workflow.jobs.resource_usage import ResourceUsage
from trace_workflow.tables.costs import costs_table, count_tokens, read_job_costs, sum_costs
from trace_workflow.tables.csv_file import render_csv
from tracecal.errors import InputError


def write_log(path, *spent):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"10:00:00 a/b: decoding: 100%\n10:00:01 a/b: {ResourceUsage(*spent)}\n")


@pytest.fixture
def results(tmp_path):
    logs = tmp_path / "logs"
    write_log(logs / "resolve_config.log", 1.5, 0.5, 60.0)
    write_log(logs / "generate/a/one.log", 4.0, 3.0, 100.0)
    write_log(logs / "generate/a/two.shard-0.log", 6.0, 5.0, 300.0)
    write_log(logs / "generate/b/one.log", 2.0, 1.5, 80.0)
    (logs / "generate/b/two.log").write_text("10:00:00 generate/b/two: decoding: 40%\n")
    for model, lengths in (("a", [3, 0, 17]), ("b", [5])):
        path = tmp_path / f"traces/{model}/one.arrow"
        path.parent.mkdir(parents=True)
        pl.DataFrame({"token_ids": [[1] * n for n in lengths]}).write_ipc(path)
    path = tmp_path / "beams/a/one.arrow"
    path.parent.mkdir(parents=True)
    pl.DataFrame({"beam_length": [[2, 3], [4, 5]]}).write_ipc(path)
    return tmp_path


def test_a_step_sums_its_jobs_and_takes_the_largest_memory(results):
    tokens = count_tokens(results, [("a", "one"), ("a", "two"), ("b", "one"), ("c", "one")])
    assert set(tokens.rows()) == {
        ("generate", "a", 20),
        ("generate", "b", 5),
        ("search_beams", "a", 14),
    }
    frame = sum_costs(read_job_costs(results / "logs", ["a", "b"]), tokens)
    assert frame.rows() == [
        ("generate", "a", 2, 10.0, 8.0, 300.0, 20, 2.0),
        ("generate", "b", 1, 2.0, 1.5, 80.0, 5, 2.5),
        ("resolve_config", None, 1, 1.5, 0.5, 60.0, None, None),
    ]


def test_steps_that_cost_next_to_nothing_are_one_row():
    spent = pl.DataFrame(
        [("b", "m", 9.0, 9.0, 50.0), ("a", "m", 1.0, 0.05, 70.0), ("c", None, 2.0, 0.04, 60.0)],
        schema=["step", "model", "wall", "cpu", "memory"],
        orient="row",
    )
    tokens = pl.DataFrame(schema={"step": pl.String, "model": pl.String, "tokens": pl.Int64})
    rows = (
        sum_costs(spent, tokens)
        .select("step", "model", "jobs", "cpu_seconds", "max_rss_mib")
        .rows()
    )
    assert rows == [("b", "m", 1, 9.0, 50.0), ("all else", None, 2, 0.09, 70.0)]


def test_the_table_names_models_and_leaves_out_what_there_is_not(results):
    tokens = count_tokens(results, [("a", "one")])
    frame = sum_costs(read_job_costs(results / "logs", ["a", "b"]), tokens)
    text = render_csv(costs_table(frame, {"a": "Model A", "b": "Model B"}, "Title", "Caption."))
    assert text.splitlines()[0].startswith("step,model,label,jobs,wall_seconds,cpu_seconds")
    assert "generate,a,Model A,2,10.0,8.0,300.0,20,2.0" in text
    assert "resolve_config,,,1,1.5,0.5,60.0,," in text


def test_a_run_of_steps_without_a_model_has_costs(tmp_path):
    write_log(tmp_path / "resolve_config.log", 1.5, 0.5, 60.0)
    frame = sum_costs(read_job_costs(tmp_path, ["a"]), count_tokens(tmp_path, []))
    assert frame["step"].to_list() == ["resolve_config"]


def test_no_log_of_a_finished_job_is_an_error(tmp_path):
    with pytest.raises(InputError, match="holds no log of a finished job"):
        read_job_costs(tmp_path, ["a"])
