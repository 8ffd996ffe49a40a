"""What a run cost: sums and rates that can be redone by hand."""

import polars as pl
import pytest

from trace_workflow.tables.costs import (
    costs_table,
    count_tokens,
    read_benchmarks,
    sum_costs,
)
from trace_workflow.tables.csv_file import render_csv
from tracecal.errors import InputError

# As Snakemake writes it.
COLUMNS = "s h:m:s max_rss max_vms max_uss max_pss io_in io_out mean_load cpu_time".split()


def write_benchmark(path, wall, cpu, memory):
    path.parent.mkdir(parents=True, exist_ok=True)
    values = [wall, "0:00:01", memory, "9.00", "9.00", "9.00", "-", "0.00", "99.00", cpu]
    path.write_text("\t".join(COLUMNS) + "\n" + "\t".join(map(str, values)) + "\n")


@pytest.fixture
def results(tmp_path):
    benchmarks = tmp_path / "benchmarks"
    write_benchmark(benchmarks / "cross_task_transfer.tsv", 1.5, 0.5, 60.0)
    write_benchmark(benchmarks / "generate/a/one.tsv", 4.0, 3.0, 100.0)
    write_benchmark(benchmarks / "generate/a/work/shards/1-of-2/two.tsv", 6.0, 5.0, 300.0)
    write_benchmark(benchmarks / "generate/b/one.tsv", 2.0, 1.5, 80.0)
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
    frame = sum_costs(read_benchmarks(results / "benchmarks", ["a", "b"]), tokens)
    assert frame.rows() == [
        ("cross_task_transfer", None, 1, 1.5, 0.5, 60.0, None, None),
        ("generate", "a", 2, 10.0, 8.0, 300.0, 20, 2.0),
        ("generate", "b", 1, 2.0, 1.5, 80.0, 5, 2.5),
    ]


def test_steps_that_cost_next_to_nothing_are_one_row():
    spent = pl.DataFrame(
        [("b", "m", 9.0, 9.0, 50.0), ("a", "m", 0.05, 0.05, 70.0), ("c", None, 0.06, 0.04, 60.0)],
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
    frame = sum_costs(read_benchmarks(results / "benchmarks", ["a", "b"]), tokens)
    text = render_csv(costs_table(frame, {"a": "Model A", "b": "Model B"}, "Title", "Caption."))
    assert text.splitlines()[0].startswith("step,model,label,jobs,wall_seconds,cpu_seconds")
    assert "generate,a,Model A,2,10.0,8.0,300.0,20,2.0" in text
    assert "cross_task_transfer,,,1,1.5,0.5,60.0,," in text


def test_a_run_of_steps_without_a_model_has_costs(tmp_path):
    write_benchmark(tmp_path / "cross_task_transfer.tsv", 1.5, 0.5, 60.0)
    frame = sum_costs(read_benchmarks(tmp_path, ["a"]), count_tokens(tmp_path, []))
    assert frame["step"].to_list() == ["cross_task_transfer"]


def test_what_snakemake_did_not_see_is_no_figure_and_is_said(tmp_path):
    """It looks at once, when a job's processes have hardly begun, and again after half a second."""
    write_benchmark(tmp_path / "measure/a/one.tsv", 0.4, 0.0, 3.2)
    write_benchmark(tmp_path / "measure/a/two.tsv", 0.3, "NA", "NA")
    write_benchmark(tmp_path / "generate/a/one.tsv", 0.2, "NA", "NA")
    write_benchmark(tmp_path / "generate/a/two.tsv", 5.0, 4.0, 100.0)
    jobs = read_benchmarks(tmp_path, ["a"])
    frame = sum_costs(jobs, count_tokens(tmp_path, []))
    assert frame.select("step", "jobs", "wall_seconds", "cpu_seconds", "max_rss_mib").rows() == [
        ("generate", 2, 5.2, 4.0, 100.0),
        ("measure", 2, 0.7, None, None),
    ]
    (note,) = costs_table(frame, {}, "Title", "Caption.").notes
    assert "jobs that end within 0.5 s" in note


def test_no_benchmark_of_a_finished_job_is_an_error(tmp_path):
    with pytest.raises(InputError, match="holds no benchmark of a finished job"):
        read_benchmarks(tmp_path, ["a"])
