"""The plan of a run: what each result is made from, checked without Snakemake."""

import inspect
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from trace_workflow.analyses.spike_strata import read_risks
from trace_workflow.config.run import load_run
from trace_workflow.contents import comparison, main_study
from trace_workflow.contents.contents import plan
from trace_workflow.contents.entries import PerPair, analysed
from trace_workflow.contents.report_pages import ReportPages
from tracecal.estimators.estimator import Entry, entries
from tracecal.estimators.registry import ESTIMATORS
from tracecal.io.input_files import read_yaml

ROOT = Path(__file__).resolve().parents[3]
CONTENTS = yaml.safe_load((ROOT / "report/contents.yaml").read_text(encoding="utf-8"))
WORDS = {name: words for shown in CONTENTS.values() for name, words in shown.items()}
# Analyses that rules of other stages make.
BEFORE = {"accuracy", "language_accuracy", "languages", "subset_accuracy"}


def planned(config="smoke", **changes):
    """The plan of one of the shipped configurations, with top-level keys replaced."""
    value = read_yaml(ROOT / f"config/{config}.yaml") | changes
    return plan(load_run(value, "config", ROOT))


def smoke_study(**changes):
    return read_yaml(ROOT / "config/smoke.yaml")["study"] | changes


PLANS = {name: planned(name) for name in ("smoke", "config", "paper", "laptop")}
SMOKE = PLANS["smoke"]


def results(run_plan):
    return [*run_plan.analyses.values(), *run_plan.figures.values()]


@pytest.mark.parametrize("run_plan", PLANS.values(), ids=PLANS)
def test_each_module_takes_what_it_is_given(run_plan):
    """That of a figure and a family its inputs and settings by name, that of an analysis its files
    and settings; it names every kind of file that it is given.
    """
    for result in run_plan.analyses.values():
        module = import_module(result.module)
        inspect.signature(getattr(module, result.function)).bind("files", **result.settings)
        source = inspect.getsource(module) + inspect.getsource(read_risks)
        kinds = set(re.findall(r"files\.(labels|splits)\(\)", source))
        kinds |= {kind for kind in result.inputs if f'"{kind}"' in source}
        assert kinds >= {*result.inputs}, result.name
    called = [("draw", figure, figure.settings) for figure in run_plan.figures.values()]
    called += [
        ("answers", family, family.settings_of("a")) for family in run_plan.families.values()
    ]
    for name, result, settings in called:
        pairs = {"pairs": []} if getattr(result, "pairs", None) else {}
        module = import_module(result.module)
        of_family = getattr(module, "FAMILIES", {}).get(result.name, module)
        inspect.signature(getattr(of_family, name)).bind(**result.inputs, **pairs, **settings)
    for table in run_plan.tables.values():
        function = getattr(import_module(table.module), table.function)
        assert [*inspect.signature(function).parameters] == ["study"]


@pytest.mark.parametrize("run_plan", PLANS.values(), ids=PLANS)
def test_what_is_read_of_analyses_is_made_by_one(run_plan):
    files = {path for table in run_plan.tables.values() for path in table.inputs.values()}
    files |= {
        path
        for one in results(run_plan)
        for given in one.inputs.values()
        if not isinstance(given, PerPair)
        for path in ([given] if isinstance(given, str) else given)
        if "/analyses/" in path
    }
    assert files <= {analysed(name) for name in BEFORE | {*run_plan.analyses}}


@pytest.mark.parametrize("run_plan", PLANS.values(), ids=PLANS)
def test_settings_are_plain_values(run_plan):
    """So that a rule's parameters change exactly when what it uses changes."""
    for one in results(run_plan):
        json.dumps(one.settings)
    for name in run_plan.tables:
        json.dumps([run_plan.table_settings(name), entries(run_plan.tables[name].estimators)])
    for family in run_plan.families.values():
        json.dumps(family.settings_of("a"))


@pytest.mark.parametrize("run_plan", PLANS.values(), ids=PLANS)
def test_every_table_and_figure_has_a_title_and_a_caption_of_the_runs_facts(run_plan):
    pairs = run_plan.run.config.study.pairs()
    for name in run_plan.tables:
        words = run_plan.table_words(name, WORDS[name], pairs)
        assert "{" not in words["caption"]
    assert run_plan.figures.keys() <= WORDS.keys()


def test_captions_name_the_finished_tasks_alone():
    words = {"title": "T", "caption": "{model}: {tasks}; {cross_tasks} of {model_count}"}
    every = SMOKE.table_words("main_comparison", words, SMOKE.run.config.study.pairs())
    assert every["caption"].endswith(": Arithmetic and Extractive; Arithmetic of 2 models")
    some = SMOKE.table_words("main_comparison", words, [("demo-small", "extractive")])
    assert some["caption"].endswith(": Extractive; none of 1 model")


def test_an_entry_says_what_it_is_made_from():
    assert SMOKE.tables["main_comparison"].inputs == {
        "improvements": "<results>/analyses/improvements.parquet",
        "averages": "<results>/analyses/averages.parquet",
        "accuracy": "<results>/analyses/accuracy.parquet",
    }
    traces = SMOKE.analyses["local_risk"].inputs["traces"]
    assert traces == PerPair("<results>/traces/{model}/{task}.arrow", "main")
    assert SMOKE.path(traces.pattern, model="m", task="t") == "<results>/traces/m/t.arrow"


def test_the_rows_of_answers_from_files_are_those_that_were_answered():
    model = {"slug": "logged", "label": "L", "source": {"answers": "logs/{task}.jsonl"}}
    task = read_yaml(ROOT / "config/smoke.yaml")["tasks"][0]["slug"]
    study = {"main": {"models": ["logged"], "tasks": [task]}}
    run_plan = planned(models=[model], study=study, estimators=["seq_logp", "trace_plus"])
    read = run_plan.families["likelihood"].inputs["task"]
    assert run_plan.path(read, model="logged", task=task) == (
        f"<results>/work/answered/logged/{task}.parquet"
    )
    assert SMOKE.path(read, model="demo-small", task=task) == f"<results>/tasks/{task}.parquet"


def test_what_a_study_lacks_is_not_planned():
    alone = planned(study=smoke_study(cross=None))
    crossed = {"cross_model", "cross_model_task_details", "cross_model_best_estimators"}
    assert SMOKE.tables.keys() - alone.tables.keys() == crossed
    assert SMOKE.figures.keys() - alone.figures.keys() == {"model_landscape"}
    few = planned(estimators=["mean_prob", "trace"])
    gone = {"risk_coverage", "broader_uq", "ablation", "semantic_fusion", "bridge"}
    assert gone | {"operator_ablation"} <= SMOKE.tables.keys() - few.tables.keys()
    assert "robustness_panels" in few.figures, "TRACE is among those that stand for their kind"
    none = planned(estimators=["mean_prob"])
    assert "robustness_panels" not in none.figures
    assert "calibration_size" not in none.tables


def test_tables_of_what_costs_most_read_the_analyses_of_the_subset():
    run_plan = planned(study=smoke_study(broader={"answers": 30}))
    broader, main = run_plan.tables["broader_uq"], run_plan.tables["main_comparison"]
    assert broader.inputs == {
        "averages": "<results>/analyses/subset_averages.parquet",
        "accuracy": "<results>/analyses/subset_accuracy.parquet",
    }
    shown = {one.id for one in broader.estimators}
    assert shown >= {"p_true", "token_sar", "beam_ratio", "seq_logp", "trace_plus"}
    of_main = {one.id for one in main.estimators}
    assert not of_main & {"token_sar", "beam_ratio", "p_true"} and "mars" in of_main
    assert not {one.id for one in run_plan.run.selection.compared} & {"token_sar", "beam_ratio"}
    assert run_plan.families["token_sar"].inputs["task"] == "<results>/work/subsets/{task}.parquet"
    assert run_plan.families["mars"].inputs["task"] == SMOKE.families["mars"].inputs["task"]
    assert SMOKE.tables["broader_uq"].inputs["averages"] == analysed("averages")
    assert "subset_averages" not in SMOKE.analyses


def test_a_table_says_how_many_weights_a_fit_of_its_estimators_has():
    weights = {name: one.more.get("weights") for name, one in SMOKE.tables.items()}
    assert weights["main_comparison"] == 8
    assert weights["semantic_fusion"] == 9
    assert (weights["position_shift"], weights["risk_coverage"]) == (0, None)


def test_tables_of_the_cross_model_study_have_its_labels():
    told = PLANS["paper"].table_settings("cross_model_task_details")
    assert [*told["studies"]] == ["cross"]
    assert told["tasks"]["truthfulqa"] == "TQA-Gen"
    assert PLANS["paper"].table_settings("main_comparison")["tasks"]["truthfulqa"] == "TruthfulQA"
    assert len(told["models"]) == 7


def test_families_compute_the_scores_of_the_run():
    every = {score for family in SMOKE.families.values() for score in family.scores}
    assert every == {one.id for one in ESTIMATORS if not one.features}
    few = planned(estimators=["seq_logp"]).families
    assert few["likelihood"].scores == ["seq_logp"]
    assert few["beam"].scores == []


def test_samples_are_compared_where_a_model_is_to_compare_them():
    assert (
        "comparisons"
        in planned(sampling={"equivalence": "nli"}).families["semantic_entropy"].inputs
    )
    exact = planned(sampling={"equivalence": "exact"}).families["selfcheckgpt"]
    assert "comparisons" not in exact.inputs
    assert exact.settings == {"equivalence": "exact"}


def test_names_are_distinct():
    """An entry would replace another of its name."""
    listed = [
        *comparison.results(SMOKE.run),
        *main_study.results(SMOKE.run),
    ]
    kinds = [(type(one), one.name) for one in listed]
    assert len(set(kinds)) == len(kinds)


def test_an_estimator_is_handed_over_by_name():
    (shown,) = entries(planned(estimators=["seq_logp"]).tables["main_comparison"].estimators)
    assert Entry(**shown) == Entry(
        "seq_logp", "SeqLogP / Total NLL", "likelihood", "baseline", "aichberger2024rethinking"
    )


def test_studies_divide_the_pairs_of_a_run():
    run_plan = PLANS["config"]
    study = run_plan.run.config.study
    pairs = study.pairs()
    parts = run_plan.pairs_of_study("parts", pairs)
    assert parts == [[model, task] for model, task in pairs if task in study.parts.tasks] != []
    assert sorted([*parts, *run_plan.pairs_of_study("whole", pairs)]) == sorted(map(list, pairs))
    assert run_plan.pairs_of_study("main", pairs) == [
        [study.main.model, task] for task in study.main.tasks
    ]


def test_an_analysis_reads_the_finished_pairs_of_its_study_in_one_order():
    study = SMOKE.run.config.study
    first, *_ = study.main.tasks
    finished = [(study.main.model, first), ("another", first)]
    found = SMOKE.inputs(SMOKE.analyses["position_shift"], finished)
    assert found == {
        "operators": [f"<results>/operators/{study.main.model}/{first}.parquet"],
        "labels": [f"<results>/labels/{study.main.model}/{first}.parquet"],
        "splits": [f"<results>/splits/{first}.parquet"],
    }


def test_further_models_of_the_main_study_have_a_table_each_and_are_compared():
    study = {"main": {"tasks": ["extractive"]}, "broader": {"models": ["demo-medium"]}}
    run_plan = planned(study=study)
    assert {*run_plan.tables_of_models} == {
        f"{kind}_demo-medium" for kind in ("main_comparison", "broader_uq", "semantic_fusion")
    }
    first, second = (run_plan.tables[f"main_comparison{end}"] for end in ("", "_demo-medium"))
    assert (second.kind, second.module) == (first.name, first.module)
    assert second.estimators == first.estimators
    settings = run_plan.table_settings(second.name)
    assert settings["studies"] == {"main": {"model": "demo-medium", "tasks": ("extractive",)}}
    assert run_plan.analyses["averages"].settings["studies"]["main"]["models"] == (
        "demo-medium",
        "demo-small",
    )
    pages = ReportPages(CONTENTS, run_plan.tables_of_models)
    words = run_plan.table_words(second.name, pages.words[second.name], study_pairs(run_plan))
    assert words["title"] == "Main comparison: Demo-Medium"
    assert words["caption"].startswith("Confidence estimators on Demo-Medium, task by task")
    assert pages.entries[second.name][1] == f"{pages.entries[first.name][1]}: Demo-Medium"
    assert pages.entries[first.name][1].endswith(" Main comparison")
    assert run_plan.run.study["main"]["model"] == "demo-small"
    assert run_plan.pairs_of_study("main", study_pairs(run_plan)) == [["demo-small", "extractive"]]
    assert "cross_model" in run_plan.tables


def study_pairs(run_plan):
    return run_plan.run.config.study.pairs()


def test_a_small_run_draws_what_few_answers_can_show_and_says_what_it_leaves_out():
    value = read_yaml(ROOT / "config/smoke.yaml")
    value["study"] |= {"all_tables": False, "broader": {"answers": 30}}
    run = load_run(value, "config", ROOT)
    every, small = plan(run), plan(run, questions=60)
    assert {*small.tables} == {
        *("main_comparison", "risk_coverage", "broader_uq", "semantic_fusion"),
        *("cross_task_transfer", "cross_model", "cross_model_task_details"),
        "cross_model_best_estimators",
    }
    assert {*small.figures} == {"robustness_panels", "model_landscape"}
    n_tables, n_figures = (
        len(every.tables) - len(small.tables),
        len(every.figures) - len(small.figures),
    )
    assert small.left_out == (
        f"60 questions: {n_tables} tables and {n_figures} figures need 200; "
        "`study.all_tables: true` draws them."
    )
    assert plan(run, questions=200).tables == every.tables
    assert plan(SMOKE.run, questions=60).tables == SMOKE.tables
    alone = value["study"] | {"main": {"models": ["demo-small"], "tasks": ["extractive"]}}
    one = plan(load_run(value | {"study": alone | {"headline": None}}, "config", ROOT), 60)
    assert "cross_task_transfer" not in one.tables


def test_what_no_study_uses_is_named():
    assert SMOKE.run.unused == ""
    run_plan = planned(
        study={"main": {"models": ["demo-small"], "tasks": ["extractive"]}, "all_tables": True}
    )
    sentence = "configured and not used: model demo-medium, task arithmetic."
    assert run_plan.run.unused == sentence
    assert run_plan.findings_settings()["options"]["remarks"] == [sentence]
