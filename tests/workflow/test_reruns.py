"""What a change schedules: only what is new or depends on it, and never a generation for a
downstream edit.
"""

import os
import shutil
from contextlib import ExitStack

import pytest
import yaml

from support.checkout import REPOSITORY, SMOKE, copied_repository
from trace_workflow.config.run import load_run
from trace_workflow.contents.contents import plan
from trace_workflow.contents.entries import PerPair, analysed
from trace_workflow.jobs.code_hash import import_closure
from tracecal.io.input_files import read_yaml

pytestmark = pytest.mark.runs

PLAN = plan(load_run(read_yaml(REPOSITORY / SMOKE), SMOKE, REPOSITORY))
# The jobs that make the plan's analyses and figures, as `Checkout.scheduled` names them.
PLANNED = {
    **PLAN.analyses,
    **{f"draw_{name}": figure for name, figure in PLAN.figures.items()},
}


def reads(result, study):
    """Whether a result is made from files of a study's pairs, directly or not."""
    return any(
        given.study == study
        if isinstance(given, PerPair)
        else (given.endswith("/metrics.parquet") and study == "all")
        or any(given == analysed(name) and reads(made, study) for name, made in PLANNED.items())
        for one in result.inputs.values()
        for given in (one if isinstance(one, list) else [one])
    )


# What joins the main study's pairs alone: what touches none of them need not rerun these.
OF_MAIN = {
    name for name, result in PLANNED.items() if reads(result, "main") and not reads(result, "all")
}
# What joins all pairs; how many tables there are is not this file's business.
AGGREGATES = PLANNED.keys() - OF_MAIN | {
    "accuracy",
    "collect_metrics",
    "describe_tables",
    "make_explorer",
    "write_table",
    "tell_findings",
}
PER_PAIR = (
    "generate audit_traces search_beams label_answers compute_features join_scores calibrate "
    "measure control_risk estimate_likelihood estimate_entropy estimate_trajectory estimate_beam "
    "estimate_trace weigh_token_sar weigh_mars estimate_token_sar estimate_mars resample"
).split()
# The smoke run's two pairs of the main study have these too, its third pair has not.
BROADER = (
    "capture_hidden estimate_internal_probe estimate_lars "
    "ask_p_true estimate_p_true ask_verbalized estimate_verbalized "
    "draw_samples compare_samples estimate_semantic_entropy estimate_selfcheckgpt estimate_ces"
).split()
# What follows from any score.
CALIBRATED = ("calibrate", "control_risk", "measure", "resample")
LEARNED = ("learn_probe", "learn_lars")


def own(scheduled):
    """The scheduled jobs but for the aggregates; those of all pairs must be scheduled too."""
    assert set(scheduled) >= AGGREGATES - {"accuracy"}
    return {rule: n for rule, n in scheduled.items() if rule not in AGGREGATES | OF_MAIN}


def test_a_finished_run_has_nothing_to_do(finished):
    assert finished.scheduled() == {}


def test_another_model_is_all_that_is_computed(finished):
    smoke = finished.smoke()
    third = smoke["models"][0] | {"slug": "third", "label": "Third"}
    for study in ("cross", "broader"):
        smoke["study"][study]["models"].append("third")
    config = finished.variant("third", models=[*smoke["models"], third], study=smoke["study"])
    once = [*PER_PAIR, "link_model", "fingerprint_model", "resolve_config"]
    scheduled = finished.scheduled(config)
    assert own(scheduled) == dict.fromkeys(once, 1)
    assert not OF_MAIN & set(scheduled)


def test_a_wider_cross_study_computes_what_its_models_lack(finished):
    smoke = finished.smoke()
    smoke["study"]["cross"]["broader"] = True
    scheduled = finished.scheduled(finished.variant("wide", study=smoke["study"]))
    once = [*BROADER, *LEARNED, "join_scores", *CALIBRATED, "resolve_config"]
    assert own(scheduled) == dict.fromkeys(once, 1)
    assert not OF_MAIN & set(scheduled)


def test_another_task_links_no_model(finished):
    smoke = finished.smoke()
    smoke["study"]["main"]["tasks"].append("closed_book")
    config = finished.variant(
        "task", tasks=[*smoke["tasks"], {"slug": "closed_book"}], study=smoke["study"]
    )
    once = [*PER_PAIR, *BROADER, *LEARNED]
    once += ["vary_operators", "prepare_task", "draw_splits", "resolve_config"]
    expected = dict.fromkeys(once, 1)
    # Its training rows teach the model's supervised estimators something new: they, and nothing
    # that decodes, score the model's three tasks anew.
    scored = ["estimate_internal_probe", "estimate_lars", "join_scores", *CALIBRATED]
    scheduled = finished.scheduled(config)
    assert own(scheduled) == expected | dict.fromkeys(scored, 3)
    assert set(scheduled) >= OF_MAIN


def test_a_probes_settings_rerun_the_probe_alone(finished):
    fitting = {"epochs": 3}
    scheduled = finished.scheduled(finished.variant("fit", probe={"fitting": fitting}))
    per_pair = ["estimate_internal_probe", "join_scores", *CALIBRATED]
    once = {"learn_probe": 1, "resolve_config": 1}
    assert own(scheduled) == dict.fromkeys(per_pair, 2) | once


def test_the_learning_code_never_reruns_what_decodes(finished):
    with finished.edited(
        "workflow_scripts/trace_workflow/models/training.py",
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "pass",
    ):
        scheduled = finished.scheduled()
    assert scheduled["learn_probe"] == scheduled["learn_lars"] == 1
    upstream = {"generate", "capture_hidden", "search_beams", "label_answers", "compute_features"}
    assert not upstream & set(scheduled)


def test_another_estimator_reruns_its_family_and_what_joins_it(finished):
    registry = "workflow_scripts/tracecal/estimators/registry.py"
    line = '    Estimator("min_prob"'
    new = '    Estimator("max_prob", "MaxProb", "likelihood", "baseline", "someone2026"),\n'
    table = "workflow_scripts/tracecal/estimators/features.py"
    score = '    "mean_prob": (_same,'
    with (
        finished.edited(registry, line, new + line),
        finished.edited(table, score, f'    "max_prob": (_same, ("mean_probability",)),\n{score}'),
    ):
        scheduled = finished.scheduled()
    assert scheduled["estimate_likelihood"] == scheduled["compute_features"] == 3
    assert {rule for rule in scheduled if rule.startswith("estimate_")} == {
        *(f"estimate_{family}" for family in ("likelihood", "entropy", "trajectory", "ces")),
        "estimate_trace",
    }
    expensive = (
        "generate",
        "search_",
        "draw_samples",
        "ask_",
        "weigh_",
        "learn_",
        "record_",
        "audit",
    )
    assert not [rule for rule in scheduled if rule.startswith(expensive)]
    assert "accuracy" not in scheduled


def test_selecting_fewer_estimators_computes_no_other_family(finished):
    config = finished.variant("fewer", estimators=["seq_logp", "mean_token_entropy", "trace_plus"])
    scheduled = finished.scheduled(config)
    others = {"generate", "search_beams", "compute_features", "estimate_trajectory", "ask_p_true"}
    assert not others & set(scheduled)
    assert scheduled["estimate_likelihood"] == scheduled["estimate_entropy"] == 3


def test_a_semantic_estimator_reruns_itself_alone(finished):
    module = "workflow_scripts/tracecal/estimators/mars.py"
    with finished.edited(module, "risk=0.5 *", "risk=0.4 *"):
        scheduled = finished.scheduled()
    families = {rule for rule in scheduled if rule.startswith(("estimate_", "weigh_", "draw_s"))}
    assert families == {"estimate_mars"}


def test_a_subset_for_what_costs_most_decodes_no_answer_again(finished):
    study = finished.smoke()["study"] | {"broader": {"answers": 30}}
    scheduled = finished.scheduled(finished.variant("subset", study=study))
    assert scheduled["draw_subset"] == scheduled["calibrate_on_subset"] == 2
    assert scheduled["draw_samples"] == scheduled["search_beams"] == 2
    again = {"generate", "audit_traces", "label_answers", "compute_features", "weigh_mars"}
    assert not again & set(scheduled)


def test_more_samples_rerun_what_is_made_of_samples(finished):
    config = finished.variant("more", sampling={"answers": 4, "equivalence": "nli"})
    scheduled = finished.scheduled(config)
    first_words = ("estimate_", "weigh_", "draw_s", "compare_s")
    sampled = {rule for rule in scheduled if rule.startswith(first_words)}
    estimated = {"estimate_semantic_entropy", "estimate_selfcheckgpt"}
    assert sampled == {"draw_samples", "compare_samples"} | estimated
    assert "generate" not in scheduled


def test_the_operators_never_rerun_generation(finished):
    operators = "workflow_scripts/tracecal/estimators/features.py"
    with finished.edited(
        operators,
        "LOW_PROBABILITY, HIGH_PROBABILITY = 0.1",
        "LOW_PROBABILITY, HIGH_PROBABILITY = 0.2",
    ):
        scheduled = finished.scheduled()
    assert scheduled["compute_features"] == 3
    assert scheduled["vary_operators"] == 2
    upstream = {"generate", "audit_traces", "search_beams", "label_answers"}
    assert not upstream & set(scheduled)
    assert "estimate_beam" not in scheduled


@pytest.mark.parametrize(
    ("file", "old", "new", "asked"),
    [
        ("verbalized", "number >= 2", "number >= 3", "verbalized"),
        ("verbalized", "REPLY_TOKENS = 16", "REPLY_TOKENS = 17", "verbalized"),
        ("p_true", 'letter in "AB"', 'letter in ["A", "B"]', "p_true"),
    ],
)
def test_a_change_to_one_question_never_puts_the_other_again(finished, file, old, new, asked):
    with finished.edited(f"workflow_scripts/trace_workflow/models/{file}.py", old, new):
        scheduled = finished.scheduled()
    rules = [f"ask_{asked}", f"estimate_{asked}", "join_scores", *CALIBRATED]
    assert own(scheduled) == dict.fromkeys(rules, 2)


def test_another_text_is_asked_anew_and_nothing_else(finished):
    texts = finished.smoke()["self_evaluation"] | {"verbalized_prompt": "Sure?"}
    scheduled = finished.scheduled(finished.variant("texts", self_evaluation=texts))
    assert not {"prepare_task", "link_model", "generate"} & set(scheduled)
    assert scheduled["ask_verbalized"] == 2


def test_the_judge_reruns_labels_and_what_follows(finished):
    with finished.edited(
        "workflow_scripts/trace_workflow/correctness/containment.py",
        "_NEGATION_REACH = 3",
        "_NEGATION_REACH = 4",
    ):
        scheduled = finished.scheduled()
    learned = ["join_scores", "estimate_internal_probe", "estimate_lars"]
    assert own(scheduled) == (
        dict.fromkeys(["label_answers", *CALIBRATED], 3)
        | dict.fromkeys(learned, 2)
        | dict.fromkeys(LEARNED, 1)
    )


def test_code_that_makes_the_same_table_of_a_task_runs_nothing(finished):
    with ExitStack() as edits:
        for name in ("task_tables", "row_fields", "row_files", "task_digests"):
            file = f"workflow_scripts/trace_workflow/config/{name}.py"
            edits.enter_context(finished.edited(file, "\nfrom ", "\nUNUSED = 1\nfrom "))
        assert finished.scheduled() == {}
    with finished.edited(
        "workflow_scripts/trace_workflow/config/task_tables.py",
        ').sort("example_id")\n    LOGGER',
        ').sort("example_id").head(9)\n    LOGGER',
    ):
        scheduled = finished.scheduled()
    assert (scheduled["prepare_task"], scheduled["generate"]) == (2, 3)


WORDS = [
    ("workflow_scripts/tracecal/estimators/operators.py", '"""Mean over', '"""The mean over'),
    ("workflow_scripts/tracecal/capture/capture.py", '"""One decoded', '"""A decoded'),
    ("workflow_scripts/generate.py", '"""Decode', '"""Greedily decode'),
    (
        "workflow_scripts/trace_workflow/models/decoding.py",
        "import torch\n",
        "# A comment.\nimport torch\n",
    ),
    ("workflow_scripts/tracecal/io/progress.py", "every: float = 5.0", "every: float = 9.0"),
    ("workflow_scripts/trace_workflow/jobs/job.py", '"unexpected error"', '"an unexpected error"'),
    ("workflow_scripts/tracecal/io/settings.py", '"is required"', '"is needed"'),
    ("workflow_scripts/tracecal/io/regular_files.py", "cannot be written", "could not be written"),
    (
        "workflow_scripts/trace_workflow/config/prompting.py",
        "strings that end an answer",
        "what ends one",
    ),
    ("README.md", "\n", "\n\n"),
]


def test_words_and_layout_rerun_nothing(finished):
    with ExitStack() as edits:
        for file, old, new in WORDS:
            edits.enter_context(finished.edited(file, old, new))
        assert finished.scheduled() == {}


def test_another_wished_error_rate_fits_nothing(finished):
    config = finished.variant("rates", risk_control={"error_rates": [0.15, 0.5]})
    shown = ["risk_coverage", "describe_tables", "tell_findings", "make_explorer"]
    expected = dict.fromkeys([*shown, "resolve_config"], 1) | {"control_risk": 3, "write_table": 1}
    assert finished.scheduled(config) == expected


def test_an_analysis_code_makes_that_analysis_anew(finished):
    with finished.edited(
        "workflow_scripts/trace_workflow/analyses/local_risk.py",
        "\nimport ",
        "\nUNUSED = 1\nimport ",
    ):
        assert finished.scheduled() == {"local_risk": 1, "draw_local_risk_aggregation": 1}


def test_a_figures_code_redraws_that_figure(finished):
    with finished.edited(
        "workflow_scripts/trace_workflow/figures/model_landscape.py",
        "\nimport ",
        "\nUNUSED = 1\nimport ",
    ):
        assert finished.scheduled() == {"draw_model_landscape": 1}


def test_a_tables_code_makes_the_tables_of_its_file_anew(finished):
    with finished.edited(
        "workflow_scripts/trace_workflow/tables/spikes.py",
        "\nimport ",
        "\nUNUSED = 1\nimport ",
    ):
        assert finished.scheduled() == {"write_table": 2, "describe_tables": 1}
    with finished.edited(
        "workflow_scripts/trace_workflow/tables/protocol.py",
        "\nimport ",
        "\nUNUSED = 1\nimport ",
    ):
        once = dict.fromkeys(["compare_with_paper", "describe_tables"], 1)
        assert finished.scheduled() == once | {"write_table": 2}


def test_a_caption_prints_its_table_anew(finished):
    words = "cut into terciles of mean risk", "cut in terciles of mean risk"
    with finished.edited("report/contents.yaml", *words):
        assert finished.scheduled() == {"write_table": 1, "describe_tables": 1}


def test_a_published_number_reruns_the_comparisons(finished):
    numbers = "workflow_scripts/trace_workflow/config/paper.csv"
    with finished.edited(numbers, "mlqa_brier,0.230,", "mlqa_brier,0.231,"):
        assert set(finished.scheduled()) == {"compare_with_paper"}


def test_the_page_of_a_table_makes_all_tables_anew(finished):
    page = "workflow_scripts/trace_workflow/tables/table.html"
    with finished.edited(page, "further columns", "more columns"):
        scheduled = finished.scheduled()
    assert {*scheduled} == {"write_table", "compare_with_paper", "describe_tables"}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("figure_style.py", "\nCOLUMN_", "\nUNUSED = 1\nCOLUMN_"),
        ("figures.mplstyle", "grid.linewidth: 0.5", "grid.linewidth: 0.6"),
    ],
)
def test_the_figures_style_redraws_the_figures(finished, file, old, new):
    with finished.edited(f"workflow_scripts/trace_workflow/figures/{file}", old, new):
        scheduled = finished.scheduled()
    assert scheduled == {rule: 1 for rule in AGGREGATES | OF_MAIN if rule.startswith("draw_")}


def test_touching_every_tracked_file_reruns_nothing(finished):
    for path in finished.root.rglob("*"):
        inside = path.relative_to(finished.root).parts[0]
        if path.is_file() and inside not in ("results", ".snakemake"):
            os.utime(path)
    assert finished.scheduled() == {}


def test_a_fresh_clone_with_results_and_metadata_reruns_nothing(finished, tmp_path):
    clone = copied_repository(tmp_path)
    shutil.copytree(finished.root / "results/smoke", clone.root / "results/smoke", symlinks=True)
    shutil.copytree(finished.root / ".snakemake/metadata", clone.root / ".snakemake/metadata")
    assert clone.scheduled() == {}


def test_reordering_the_config_reruns_nothing_but_the_display_of_models(finished):
    smoke = finished.smoke()
    for name in ("main", "cross"):
        for key in ("models", "tasks"):
            smoke["study"][name][key].reverse()
    reordered = {key: smoke[key] for key in reversed(smoke)}
    reordered["models"] = [dict(reversed(list(one.items()))) for one in smoke["models"]]
    reordered["tasks"] = smoke["tasks"][::-1]
    path = finished.variant("reordered")
    path.write_text(yaml.safe_dump(reordered, sort_keys=False), encoding="utf-8")
    assert finished.scheduled(path) == {}
    reordered["models"] = reordered["models"][::-1]
    path.write_text(yaml.safe_dump(reordered, sort_keys=False), encoding="utf-8")
    again = finished.scheduled(path)
    display = {"write_table", "compare_with_paper", "describe_tables", "tell_findings"}
    of_models = ("performance_overview", "model_landscape", "paired_differences")
    assert set(again) <= display | {f"draw_{name}" for name in of_models}
    assert again["draw_model_landscape"] == 1
    assert 0 < again["write_table"] < 10, "the tables that show several models"


def test_another_label_changes_what_people_read_alone(finished):
    models = [model | {"label": f"My {model['label']}"} for model in finished.smoke()["models"]]
    of_models = finished.scheduled(finished.variant("labels", models=models))
    with finished.edited("config/tasks/arithmetic.yaml", "label: ", "label: My "):
        of_tasks = finished.scheduled()
    read = {"write_table", "describe_tables", "tell_findings", "make_explorer", "resolve_config"}
    for scheduled in (of_models, of_tasks):
        assert {rule for rule in scheduled if not rule.startswith("draw_")} == read
        assert any(rule.startswith("draw_") for rule in scheduled)


def test_printing_tables_as_the_paper_does_makes_tables_alone(finished):
    plain = finished.scheduled(finished.variant("plain", tables={"as_printed": True}))
    assert set(plain) == {"resolve_config", "write_table", "compare_with_paper", "describe_tables"}
    assert plain["write_table"] == 21


def test_another_batch_size_reruns_nothing(finished):
    models = [one | {"batch_size": 7} for one in finished.smoke()["models"]]
    config = finished.variant("batch", models=models)
    assert finished.scheduled(config) == {"resolve_config": 1}


def test_the_import_closure_of_generate_is_pinned(finished):
    scripts = finished.root / "workflow_scripts"
    files = import_closure(scripts / "generate.py", root=scripts)
    closure = [str(path.relative_to(scripts)) for path in files]
    assert closure == [
        "trace_workflow/config/prompting.py",
        "trace_workflow/models/decoding.py",
        "trace_workflow/models/parallel.py",
        "trace_workflow/models/prompts.py",
        "trace_workflow/models/step.py",
        "tracecal/capture/batches.py",
        "tracecal/capture/capture.py",
        "tracecal/capture/context.py",
        "tracecal/capture/model.py",
        "tracecal/capture/packed_linear.py",
        "tracecal/capture/stop_strings.py",
        "tracecal/capture/tokens.py",
        "tracecal/io/checksums.py",
        "tracecal/io/digests.py",
        "tracecal/io/evaluated.py",
        "tracecal/io/files.py",
        "tracecal/io/journal.py",
        "tracecal/io/regular_files.py",
        "tracecal/io/seals.py",
        "tracecal/io/traces.py",
    ]
