"""What a run cost: sums and rates that can be redone by hand."""

import polars as pl
import pytest

from tracecal.errors import InputError
from tracecal.tables.costs import costs, costs_table, count_tokens, read_benchmarks
from tracecal.writers import csv

HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


def write_benchmark(path, s, rss, cpu):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEADER}{s}\t0:00:01\t{rss}\t1\t1\t1\t1\t1\t1\t{cpu}\n")


@pytest.fixture
def results(tmp_path):
    benchmarks = tmp_path / "benchmarks"
    write_benchmark(benchmarks / "make_world.tsv", 1.5, 60.0, 0.5)
    write_benchmark(benchmarks / "generate/a/one.tsv", 4.0, 100.0, 3.0)
    write_benchmark(benchmarks / "generate/a/two/shard-0.tsv", 6.0, 300.0, 5.0)
    write_benchmark(benchmarks / "generate/b/one.tsv", 2.0, "NA", "-")
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
    frame = costs(read_benchmarks(results / "benchmarks", ["a", "b"]), tokens)
    assert frame.rows() == [
        ("generate", "a", 2, 10.0, 8.0, 300.0, 20, 2.0),
        ("generate", "b", 1, 2.0, 0.0, None, 5, 2.5),
        ("make_world", None, 1, 1.5, 0.5, 60.0, None, None),
    ]


def test_the_table_names_models_and_leaves_out_what_was_not_measured(results):
    tokens = count_tokens(results, [("a", "one")])
    frame = costs(read_benchmarks(results / "benchmarks", ["a", "b"]), tokens)
    text = csv.render(costs_table(frame, {"a": "Model A", "b": "Model B"}, "Title", "Caption."))
    assert text.splitlines()[0].startswith("step,model,label,jobs,wall_seconds,cpu_seconds")
    assert "generate,a,Model A,2,10.0,8.0,300.0,20,2.0" in text
    assert "make_world,,,1,1.5,0.5,60.0,," in text


def test_no_benchmarks_is_an_error(tmp_path):
    with pytest.raises(InputError, match="holds no benchmark"):
        read_benchmarks(tmp_path, ["a"])
