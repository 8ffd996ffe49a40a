"""Our tables beside the paper's, against verdicts worked out by hand."""

import csv as csv_module
import io
from dataclasses import replace
from statistics import stdev

import pytest

from support import synthetic
from support.scripts import run_script
from support.synthetic import ENTRIES
from trace_workflow.config import paper
from trace_workflow.config.paper import Published, shared
from trace_workflow.tables import cross_model, main_comparison
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.paper_comparison import compare_value, compare_with_paper
from tracecal.estimators.estimator import Entry

PAPER = paper.read()
TASKS = {"mlqa": "MLQA", "svamp": "SVAMP", "triviaqa": "TriviaQA", "truthfulqa": "TruthfulQA"}
QWEN = {"qwen2.5-7b-instruct": "Qwen2.5-7B-Instruct"}
CROSS = {
    one.ids["model"]: one.ids["model"].title() for one in PAPER["cross_model"] if one.ids["model"]
}
CROSS_TASKS = [task for task in TASKS if task != "mlqa"]
OURS = {"estimator": "a", "label": "A", "model": "m", "brier": "0.15", "brier_sd": "0.01"}


def lines(table):
    return list(csv_module.DictReader(io.StringIO(render_csv(table))))


def main_table(models=QWEN, tasks=TASKS, entries=ENTRIES):
    metrics = synthetic.study(models, tasks, entries, splits=4)
    study = {"model": next(iter(models)), "tasks": list(tasks)}
    frames = synthetic.frames(metrics, entries, main=study)
    settings = synthetic.settings(entries, models, tasks, main=study)
    return lines(main_comparison.table(replace(settings, frames=frames)))


def cross_table(models=CROSS, tasks=CROSS_TASKS, splits=4):
    metrics = synthetic.study(models, tasks, splits=splits)
    study = {"models": list(models), "tasks": list(tasks)}
    frames = synthetic.frames(metrics, ENTRIES, cross=study)
    frames["accuracy"] = synthetic.accuracy(models, tasks)
    settings = synthetic.settings(ENTRIES, models, TASKS, cross=study)
    return lines(cross_model.table(replace(settings, frames=frames)))


@pytest.mark.parametrize(
    ("paper", "ours", "sd", "difference", "spread", "exceeds"),
    [
        # two s.d. and half a unit of the last printed digit
        ("0.130", "0.15", "0.01", 0.02, 0.0205, False),
        ("0.130", "0.151", "0.01", 0.021, 0.0205, True),
        ("0.1300", "0.1504", "0.01", 0.0204, 0.02005, True),
        ("0.170", "0.149", "0.01", -0.021, 0.0205, True),
        ("0.130", "0.1304", "0.0", 0.0004, 0.0005, False),
        # no s.d., no verdict
        ("0.130", "0.3", "", 0.17, None, None),
        ("-0.083", "0.001", "", 0.084, None, None),
        # counts are exact
        ("3", "2", "0.0", -1, 0.0, True),
        ("3", "3", "0.0", 0, 0.0, False),
        # undefined here, or a name
        ("0.130", "", "", None, None, None),
        ("seq_logp", "mars", "", None, None, None),
    ],
)
def test_verdicts(paper, ours, sd, difference, spread, exceeds):
    row = OURS | {"brier": ours, "brier_sd": sd}
    found = compare_value(Published("estimator=a", "brier", paper), row)
    assert found["difference"] == (None if difference is None else pytest.approx(difference))
    assert found["spread"] == (None if spread is None else pytest.approx(spread))
    assert found["exceeds"] == {True: "yes", False: "no", None: None}[exceeds]


def test_values_are_matched_by_row_scope_and_column():
    paper = [
        Published("estimator=a", "brier", "0.100", "model=m", "a remark"),
        Published("estimator=a", "auroc", "0.700", "model=m"),
        Published("estimator=b", "brier", "0.200", "model=m"),
        Published("estimator=c", "brier", "0.300", "model=m"),
        Published("estimator=a", "label", "A", "model=m"),
        Published("estimator=b", "brier_sd", "0.020", "model=other"),
    ]
    ours = [OURS | {"estimator": "b", "label": "B"}, OURS]
    table = compare_with_paper("t", ours, paper)
    assert [(line["row"], line["column"], line["exceeds"]) for line in lines(table)] == [
        ("estimator=b", "brier", "yes"),
        ("estimator=a", "brier", "yes"),
        ("estimator=a", "label", ""),
    ]
    assert [group.title for group in table.groups] == ["B", "A"]
    assert table.caption.startswith("3 published values beside this run's: 2 differ by more")
    assert table.notes[1:] == (
        "Not compared: 3 of the paper's 6 values, for this run has no column auroc; "
        "no estimator c; no model other.",
        "† A brier: a remark.",
    )


def test_a_null_id_is_an_empty_cell_and_several_ids_make_the_title():
    ours = [
        {"model": "", "task": "", "n": "4"},
        {"model": "m", "task": "t", "n": "5", "label": "M"},
    ]
    paper = [Published("model=;task=", "n", "4"), Published("model=m;task=t", "n", "6")]
    table = compare_with_paper("t", ours, paper)
    assert [line["difference"] for line in lines(table)] == ["0.0", "-1.0"]
    assert [group.title for group in table.groups] == ["", "m · t"]
    assert not [note for note in table.notes if "Not compared" in note]


def test_rows_that_conditions_do_not_tell_apart_are_a_mistake():
    with pytest.raises(ValueError, match="2 rows meet"):
        compare_with_paper("t", [OURS, OURS], [Published("estimator=a", "brier", "0.1")])


def test_ids_that_are_there_but_not_together_are_said_to_be_so():
    ours = [OURS, OURS | {"estimator": "b", "model": "n"}]
    note = compare_with_paper(
        "t", ours, [Published("estimator=a", "brier", "0.1", "model=n")]
    ).notes[0]
    assert note.endswith("this run has no row that combines their ids.")


@pytest.mark.parametrize("ours", [main_table(synthetic.MODELS, synthetic.TASKS), []])
def test_a_run_with_nothing_in_common_lists_no_row_and_says_so(ours):
    table = compare_with_paper("main_comparison", ours, PAPER["main_comparison"])
    assert lines(table) == []
    assert table.caption.startswith("This run and the paper's table have no value in common")
    assert "210 of the paper's 210 values" in table.notes[0]
    assert "no model qwen2.5-7b-instruct" in table.notes[0]
    assert table.caption.replace("'", "&#39;") in render_html(table)


def test_another_model_on_the_papers_tasks_is_not_compared():
    ours = main_table({"my-model": "Mine"})
    assert lines(compare_with_paper("main_comparison", ours, PAPER["main_comparison"])) == []


def test_the_main_comparison_beside_the_paper():
    ours = main_table()
    found = lines(compare_with_paper("main_comparison", ours, PAPER["main_comparison"]))
    assert len(found) == 19 * 10  # TokenSAR and MARS are not among the estimators
    assert all(line["spread"] for line in found)
    cells = {(line["row"], line["column"]): line for line in found}
    line = cells["estimator=trace_plus", "average_brier"]
    mine = next(row for row in ours if row["estimator"] == "trace_plus")
    assert line["paper"] == "0.137"
    assert line["ours"] == mine["average_brier"]
    spread = 2 * float(mine["average_brier_sd"]) + 0.0005
    difference = float(mine["average_brier"]) - 0.137
    assert float(line["spread"]) == pytest.approx(spread)
    assert float(line["difference"]) == pytest.approx(difference)
    assert line["exceeds"] == ("yes" if abs(difference) > spread else "no")


def test_fewer_tasks_leave_out_the_average_but_not_the_tasks():
    ours = main_table(tasks={task: TASKS[task] for task in ("svamp", "triviaqa")})
    found = lines(compare_with_paper("main_comparison", ours, PAPER["main_comparison"]))
    assert {line["column"].rpartition("_")[0] for line in found} == {"svamp", "triviaqa"}


def test_the_cross_model_study_beside_the_paper():
    table = compare_with_paper("cross_model", cross_table(), PAPER["cross_model"])
    found = lines(table)
    assert len(found) == 8 * 12
    assert table.groups[-1].title == "Overall"
    with_verdict = {line["column"] for line in found if line["exceeds"]}
    sides = ("best_baseline", "trace_plus", "improvement")
    assert with_verdict == {f"{m}_{side}" for m in ("brier", "auroc") for side in sides}
    pool = [line for line in found if line["column"] == "baselines"]
    assert {(line["paper"], line["ours"], line["difference"]) for line in pool} == {
        ("19.0", "17.0", "-2.0")
    }


def test_one_model_of_the_paper_is_compared_and_the_overall_row_is_not():
    name = "gemma-2-9b"
    ours = cross_table({name: CROSS[name], "my-model": "Mine"})
    found = lines(compare_with_paper("cross_model", ours, PAPER["cross_model"]))
    assert {line["row"] for line in found} == {f"model={name}"}


def test_the_spread_of_improvements_is_paired_by_split():
    entries = [Entry("a", "A", "f", "baseline", "k"), Entry("trace_plus", "T+", "f", "trace", "k")]
    briers = {("m", "a"): (0.2, 0.3, 0.4), ("m", "trace_plus"): (0.1, 0.2, 0.3)}
    briers |= {("n", "a"): (0.2, 0.2, 0.5), ("n", "trace_plus"): (0.1, 0.2, 0.2)}
    metrics = synthetic.rows(
        [
            (model, "t", estimator, split, metric, value)
            for (model, estimator), values in briers.items()
            for split, value in enumerate(values)
            for metric in ("brier", "auroc")
        ]
    )
    models = {"m": "M", "n": "N"}
    accuracy = synthetic.accuracy(models, ["t"])
    study = {"models": ["m", "n"], "tasks": ["t"]}
    frames = synthetic.frames(metrics, entries, cross=study) | {"accuracy": accuracy}
    settings = synthetic.settings(entries, models, {"t": "T"}, cross=study)
    table = cross_model.table(replace(settings, frames=frames))
    m, n, overall = lines(table)
    assert float(m["brier_best_baseline_sd"]) == pytest.approx(0.1)
    assert float(m["brier_improvement_sd"]) == pytest.approx(0, abs=1e-9)
    assert float(n["brier_improvement_sd"]) == pytest.approx(stdev([0.1, 0.0, 0.3]))
    assert float(overall["brier_trace_plus_sd"]) == pytest.approx(stdev([0.1, 0.2, 0.25]))
    assert float(overall["brier_improvement_sd"]) == pytest.approx(stdev([0.1, 0.05, 0.2]))
    assert (m["baselines"], m["models"], m["tasks"]) == ("1", "m n", "t")


def test_one_split_has_no_spread_and_no_verdict():
    found = lines(compare_with_paper("cross_model", cross_table(splits=1), PAPER["cross_model"]))
    assert len(found) == 8 * 12
    assert not any(line["ours_sd"] or line["exceeds"] for line in found)


def test_the_page_prints_to_the_papers_digits_with_bold_verdicts():
    paper = [
        Published("estimator=a", "brier", "0.1300", "", "known"),
        Published("estimator=a", "n", "65"),
    ]
    table = compare_with_paper("t", [OURS | {"n": "60", "brier": "0.15061"}], paper)
    page = render_html(table)
    for text in (
        ">0.1300<sup>†</sup>",
        ">0.1506<",
        ">+0.0206<",
        ">0.02005<",
        ">65<",
        ">60<",
        ">−5<",
    ):
        assert text in page
    assert "<strong>yes</strong>" in page
    assert "Bold: exceeds the spread." in page
    assert r"\textbf{yes}" in render_latex(table)


def test_names_stand_in_no_column_of_numbers():
    ours = [{"model": "m", "brier": "0.2", "best": "mars"}]
    paper = [Published("model=m", "brier", "0.125"), Published("model=m", "best", "token_sar")]
    number, name = lines(compare_with_paper("t", ours, paper))
    columns = ("paper_printed", "paper", "ours", "ours_name", "difference")
    assert [number[key] for key in columns] == ["0.125", "0.125", "0.2", "", "0.07500000000000001"]
    assert [name[key] for key in columns] == ["token_sar", "", "", "mars", ""]


def test_what_the_paper_shares_with_a_run_is_known_before_it_runs():
    models, tasks = ["qwen2.5-7b-instruct"], ["mlqa", "svamp", "triviaqa", "truthfulqa"]
    found = {name for name, values in PAPER.items() if shared(values, models, tasks)}
    assert {"main_comparison", "bridge", "protocol_comparison"} <= found
    assert not found & {"cross_model", "cross_model_task_details"}
    assert not shared(PAPER["bridge"], models, tasks[:2]), "averages over all four tasks"
    foreign = {name for name, values in PAPER.items() if shared(values, ["m"], ["t"])}
    assert foreign == {"protocol_comparison"}
    every = {one.ids["model"] for one in PAPER["cross_model_best_estimators"]}
    values = PAPER["cross_model"]
    assert shared(values, every, tasks) == values


@pytest.mark.parametrize(("name", "ours"), [("main_comparison", main_table()), ("cross_model", [])])
def test_the_adapter_writes_its_outputs(name, ours, tmp_path, pytestconfig):
    with (tmp_path / "ours.csv").open("w", newline="") as handle:
        writer = csv_module.DictWriter(handle, ours[0] if ours else ["model"])
        writer.writeheader()
        writer.writerows(ours)
    run_script(
        "compare_with_paper.py",
        tmp_path,
        input=[tmp_path / "ours.csv"],
        output={"csv": tmp_path / "out.csv", "html": tmp_path / "out.html"},
        table=name,
    )
    assert len((tmp_path / "out.csv").read_text().split("\n")) == (190 if ours else 0) + 2
    assert "Beside the paper" in (tmp_path / "out.html").read_text()


def test_where_all_are_names_it_is_counted_how_many_are_the_same():
    paper = [Published("estimator=a", name, "yes") for name in ("same", "single")]
    table = compare_with_paper("t", [OURS | {"same": "yes", "single": "no"}], paper)
    assert "2 published names beside this run's: 1 are the same." in table.caption
