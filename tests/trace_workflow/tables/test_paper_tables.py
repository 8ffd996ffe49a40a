"""Tables as printed: cell by cell the paper's own, but for the numbers."""

import re
from dataclasses import replace

import polars as pl
import pytest

from support import synthetic
from support.paper_source import read_paper, tabular
from support.typeset import printed_text, typeset
from tests.trace_workflow.tables import (
    test_hyperparameter_sensitivity,
    test_localized_errors,
    test_position_shift,
)
from tests.trace_workflow.tables.test_spike_strata import BOOTSTRAP, answers, modeling, scoped
from trace_workflow.analyses.averages import average_over_splits, averages
from trace_workflow.analyses.spike_strata import spike_strata
from trace_workflow.config.config import load_config
from trace_workflow.config.paper import BIBLIOGRAPHY
from trace_workflow.contents.comparison import protocol_rows
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.estimator_rows import ESTIMATOR_ROWS, estimators_of
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.standing_notes import COUNTS_ELSEWHERE
from trace_workflow.tables.table import as_in_paper
from tracecal.estimators.estimator import Entry
from tracecal.estimators.feature_sets import LIKELIHOOD, TRACE_PLUS_FEATURES
from tracecal.estimators.registry import ESTIMATORS, REPRESENTATIVE
from tracecal.io.input_files import read_yaml

CONFIG = load_config(read_yaml("config/paper.yaml"), "config/paper.yaml")
TASKS = {"mlqa": "MLQA", "svamp": "SVAMP", "triviaqa": "TriviaQA", "truthfulqa": "TruthfulQA"}
SHORT_TASKS = TASKS | {"truthfulqa": "TQA-Gen"}
MAIN = {"model": CONFIG.study.main.model, "tasks": list(CONFIG.study.main.tasks)}
CROSS = {"models": list(CONFIG.study.cross.models), "tasks": list(CONFIG.study.cross.tasks)}
STUDIES = {"main": MAIN, "cross": CROSS}
MODELS = {model.slug: model.name for model in CONFIG.models}
SHORT_MODELS = {model.slug: model.short_label or model.name for model in CONFIG.models}
ENTRIES = [Entry(one.id, one.label, one.group, one.role, one.citation) for one in ESTIMATORS]
COMPARED = [entry for entry in ENTRIES if entry.role in ("baseline", "trace")]
FOLLOWED = [entry for entry in ENTRIES if entry.id in REPRESENTATIVE]
FOUR = [*TASKS]
OWN = {
    "calibration_size": {"calibration_share": (0.05, 0.10, 0.20, 0.35, 0.50)},
    "length_stratified": {"stratum": ("short", "medium", "long")},
}
CROSS_TABLES = ["cross_model", "cross_model_task_details", "cross_model_best_estimators"]


def metrics():
    """Metrics of the main model on all tasks and of the others on three, of all estimators."""
    every = synthetic.study(MODELS, TASKS, ENTRIES, splits=2)
    own = (pl.col("model") == MAIN["model"]) | (pl.col("task") != "mlqa")
    return every.filter(own)


METRICS = metrics()


def divided(column, values):
    parts = [METRICS.with_columns(pl.lit(value).alias(column)) for value in values]
    return averages(pl.concat(parts), {"main": MAIN}, by=[column])


def pooled():
    names = ["ece", "brier", "auroc", "risk_at_10", "risk_at_50", "risk_at_90"]
    rows = [
        (MAIN["model"], " ".join(FOUR), entry.id, name, 0.5, 0.1, 2, 0)
        for entry in FOLLOWED
        for name in names
    ]
    columns = ["model", "tasks", "estimator", "metric", "mean", "sd", "splits", "undefined"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def frames():
    scope = {"model": MAIN["model"], "tasks": FOUR}
    own = METRICS.filter(model=MAIN["model"])
    transfer = synthetic.frames(own, COMPARED, main=MAIN)["improvements"]
    fitted = scoped(modeling().drop("model", "tasks"), **scope)
    ece = METRICS.filter(metric="brier").with_columns(metric=pl.lit("ece"))
    compared = synthetic.frames(METRICS, COMPARED, **STUDIES)
    return (
        compared
        | {
            "averages": averages(pl.concat([METRICS, ece]), STUDIES),
            "cross_task_transfer_improvements": transfer,
            "calibration_size_averages": divided("calibration_share", (0.05, 0.1, 0.2, 0.35, 0.5)),
            "length_stratified_averages": divided("stratum", ("short", "medium", "long")),
            "reliability_selective_averages": pooled(),
            "spike_strata": scoped(spike_strata(answers(), BOOTSTRAP), **scope),
            "spike_modeling_averages": average_over_splits(
                fitted, ["model", "tasks", "features", "metric"]
            ),
            "hyperparameter_sensitivity": test_hyperparameter_sensitivity.analysis(),
            "position_shift": test_position_shift.analysis(test_position_shift.VALUES),
        }
        | {
            name: test_localized_errors.found(name, **scope)
            for name in test_localized_errors.TABLES
        }
    )


FRAMES = frames()


def made(name, frames=FRAMES):
    """A table as a run of the paper's configuration prints it, of made-up numbers."""
    entries, more, module = COMPARED, {}, name
    if name in ESTIMATOR_ROWS:
        module = "estimator_averages"
        entries = [entry for entry in ENTRIES if entry.id in estimators_of(name)]
        more = {"table": name, "requires": {one.id: one.requires for one in ESTIMATORS}}
    elif name in test_localized_errors.TABLES:
        entries, more, module = FOLLOWED, {"table": name}, "localized_errors"
    elif name in (*OWN, "reliability_selective"):
        entries = FOLLOWED
    elif name == "protocol_comparison":
        more = {"methods": protocol_rows(ESTIMATORS)}
    elif name == "trace_plus_features":
        more = {"features": TRACE_PLUS_FEATURES, "excluded": LIKELIHOOD}
    cross = name in CROSS_TABLES
    models = SHORT_MODELS if name == "cross_model_task_details" else MODELS
    studies = STUDIES if name == "ablation" else {"cross": CROSS} if cross else {"main": MAIN}
    settings = synthetic.settings(entries, models, SHORT_TASKS if cross else TASKS, more, **studies)
    made = synthetic.made(module, frames, settings)
    return replace(made, name=name)


NAMES = """
main_comparison cross_model bridge ablation semantic_fusion cross_task_transfer spike_strata
spike_modeling trace_plus_features protocol_comparison cross_model_task_details broader_uq
cross_model_best_estimators localized_global_errors operator_ablation hyperparameter_sensitivity
position_shift localized_error_subtypes calibration_size reliability_selective length_stratified
""".split()
WORDS = {
    r"\cmark": "✓",
    r"\xmark": "✗",
    r"\pmark": "△",
    r"\ding{51}": "✓",
    r"\ding{55}": "✗",
    r"\triangle": "△",
    r"\%": "%",
    "{=}": "=",
    "{+}": "+",
    "$": "",
    r"\quad": "",
    r"\mathbf": "",
    "~": " ",
    "--": "–",
}
COMMANDS = r"(?:cite\w*|label)\{[^{}]*\}|cmidrule(?:\([lr]+\))?\{[^{}]*\}|midrule|toprule|addlinespace(?:\[[^]]*\])?"


def cells(tex):
    """The cells of a tabular, row by row: words and symbols as they read, every number a #."""
    tex = re.sub(r"\\shortstack\{([^{}/]*)(/?)\\\\([^{}]*)\}", _stacked, tex)
    tex = re.sub(rf"\\(?:{COMMANDS})", "", tex)
    tex = re.sub(r"\\multi(?:row|column)\{\d+\}\{(?:[^{}]|\{\})*\}", "", tex)
    for word, reading in WORDS.items():
        tex = tex.replace(word, reading)
    tex = re.sub(r"\\(?:text\w+|underline)(?=\{)|\\S\{\}", "", tex)
    rows = [row.split("&") for row in re.split(r"\\\\", tex) if row.strip()]
    return [[_read(cell) for cell in row] for row in rows]


def _stacked(lines):
    first, slash, second = lines.groups()
    return f"{first}{slash or ' '}{second}"


def _read(cell):
    cell = re.sub(r"[{}]|\\downarrow|\\uparrow", "", cell)
    number = r"(?<![\w.-])[+-]?(?:\d+\.\d+|\.\d+|\d+)(?![\w-]*[A-Za-z])"
    return re.sub(r"\s*\\pm\s*", "±", re.sub(number, "#", " ".join(cell.split())))


BASELINES = {entry.label for entry in COMPARED} | {"First-Token Prob."}


def _best(cell):
    return "baseline" if cell in BASELINES else cell


@pytest.fixture(scope="module")
def paper(shared_data):
    return read_paper(shared_data)


@pytest.mark.parametrize("name", NAMES)
def test_each_cell_reads_as_the_papers(paper, name):
    theirs, tex = cells(tabular(paper, name)), render_latex(as_in_paper(made(name)))
    ours = cells(tex[tex.index(r"\toprule") : tex.index(r"\bottomrule")])
    assert [*map(len, ours)] == [*map(len, theirs)]
    if "Best" in tex:  # which baseline is best hangs on the numbers
        ours, theirs = ([[_best(cell) for cell in row] for row in rows] for rows in (ours, theirs))
    if name == "hyperparameter_sensitivity":  # a list of values says more than a range
        ours, theirs = ([row[:1] + row[2:] for row in rows] for rows in (ours, theirs))
    assert ours == theirs


@pytest.mark.pages
@pytest.mark.parametrize("added", [False, True])
def test_everything_is_set_in_seven_points_within_the_page(tmp_path, added):
    made_up = [made(name) if added else as_in_paper(made(name)) for name in NAMES]
    paths = [tmp_path / f"{table.name}.tex" for table in made_up]
    for table, path in zip(made_up, paths, strict=True):
        path.write_text(render_latex(table), encoding="utf-8")
    (tmp_path / "paper").mkdir()
    assert typeset(paths, BIBLIOGRAPHY, "acl", tmp_path / "paper") == []
    text = printed_text(tmp_path / "paper/paper.pdf")
    assert min(size for size, *_ in text) >= 6.9
    # A4 with margins of 2.5 cm, in points.
    assert min(left for _, left, _ in text) > 70 - 2
    assert max(right for *_, right in text) < 525 + 2


def test_what_is_added_leaves_with_the_flag():
    for name in NAMES:
        whole, plain = made(name), as_in_paper(made(name))
        assert not any("§" in cell.mark for row in plain.rows for cell in row)
        assert plain.legend == whole.footnotes
        kept = [column.keys for column in plain.columns]
        assert kept == [column.keys for column in whole.columns if not column.added]
        assert render_csv(plain).splitlines()[0] == render_csv(whole).splitlines()[0]
    assert len(made("main_comparison").rows) == len(as_in_paper(made("main_comparison")).rows) + 8


# Of features, strata, methods, or of TRACE alone, which scores all answers.
ALONE = """
spike_strata spike_modeling trace_plus_features protocol_comparison hyperparameter_sensitivity
position_shift
""".split()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ALONE])
def test_who_scores_fewer_answers_is_marked_in_every_table(name):
    if name == "operator_ablation":
        few = ["operator_d"]
    else:
        few = ["trace"] if name in ("bridge", "ablation") else [e.id for e in COMPARED[:-2]]
    few += ["entropy_local_only"]
    fewer = pl.when(pl.col("estimator").is_in(few)).then(pl.col("n") * 0.9).otherwise("n")
    whole, part = (
        as_in_paper(made(name, FRAMES | {"averages": FRAMES["averages"].with_columns(n=n)}))
        for n in (pl.col("n"), fewer)
    )
    marks = [
        {cell.mark for row in table.rows for cell in row}
        | {column.heading_mark for column in table.columns}
        for table in (whole, part)
    ]
    assert "‡" not in "".join(marks[0]) and "‡" in "".join(marks[1])
    assert not any(note.startswith("‡") for note in whole.footnotes)
    assert any("(10.0 % of the answers)" in note for note in part.footnotes)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("trace_plus_features", "protocol_comparison")]
)
def test_every_comparison_tells_right_answers_and_whether_they_are_enough(name):
    table = made(name)
    told = any(
        note.startswith("Correct answers (accuracy): ") or note == COUNTS_ELSEWHERE
        for note in table.notes
    )
    assert name != "main_comparison" or COUNTS_ELSEWHERE not in table.notes
    columns = [column.keys for column in table.columns]
    assert told or ("right", "answers") in columns
    assert told or ("accuracy",) in columns
    assert any(note.startswith("Too few calibration answers for ") for note in table.notes)
