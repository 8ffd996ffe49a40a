"""The tables of localized errors, from measurements of made-up answers."""

from dataclasses import replace

import polars as pl
import pytest

from support import synthetic
from support.synthetic import ENTRIES, MODELS, TASKS
from trace_workflow.analyses.localized_errors import ERRORS, GAIN, LOCALIZED, METRICS
from trace_workflow.config import paper
from trace_workflow.tables import localized_errors
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.paper_comparison import compare_with_paper
from tracecal.estimators.estimator import Entry

PAPER = paper.read()
MARS = Entry("mars", "MARS", "semantic", "baseline", "bakman2024mars")
SHOWN = ("seq_logp", "windowed_entropy", "mars", "trace", "trace_plus")
TABLES = ("localized_global_errors", "localized_error_subtypes")
SLICES = {
    "localized_global_errors": ("localized", "global"),
    "localized_error_subtypes": (*LOCALIZED, "localized"),
}


def found(name, estimators=SHOWN, absent=(), low=-0.005, model="tiny_a", tasks=TASKS):
    """Values that tell where they belong: 0.5 + 0.01 per estimator + 0.001 per slice."""
    rows = []
    for s, part in enumerate(SLICES[name]):
        for metric in METRICS:
            for e, estimator in enumerate([*estimators, GAIN]):
                value = 0.5 + 0.01 * e + 0.001 * s
                known = [value, 0.004, value - 0.02, value + 0.02, 90.0 + s, 120, 1.25]
                if part in absent:
                    known = [None] * 4 + [0.0, 0, None]
                elif estimator == GAIN:
                    known = [0.01, None, low, 0.025, None, 120, None]
                rows.append((estimator, part, metric, *known, 20, 0.95))
    frame = pl.DataFrame(rows, schema=ERRORS, orient="row")
    return frame.with_columns(model=pl.lit(model), tasks=pl.lit(" ".join(sorted(tasks))))


def table(name, models=MODELS, tasks=TASKS, frame=None, **made):
    entries = [*ENTRIES[:-2], MARS, *ENTRIES[-2:]]
    frame = found(name, tasks=tasks, **made) if frame is None else frame
    study = {"model": frame["model"][0], "tasks": sorted(tasks)}
    given = synthetic.settings(entries, models, tasks, main=study)
    answered = synthetic.answered([study["model"]], tasks)
    options = given.options | {"table": name}
    return localized_errors.table(replace(given, frames=answered | {name: frame}, options=options))


def lines(made):
    return pl.read_csv(render_csv(made).encode(), infer_schema_length=None).to_dicts()


@pytest.mark.parametrize("name", TABLES)
def test_values_stand_where_they_belong(name):
    made = table(name)
    rows = {row["estimator"]: row for row in lines(made)}
    assert set(rows) == set(SHOWN)
    for e, estimator in enumerate(SHOWN):
        for s, part in enumerate(SLICES[name]):
            value = 0.5 + 0.01 * e + 0.001 * s
            row = rows[estimator]
            assert row[f"{part}_auroc"] == pytest.approx(value)
            assert row[f"{part}_auroc_low"] == pytest.approx(value - 0.02)
            assert row[f"{part}_auroc_sd"] == 0.004
            assert (row[f"{part}_n"], row[f"{part}_errors"]) == (90 + s, 120)
        assert row["sd_over"] == "matchings"
    assert [len(group.rows) for group in made.groups] == [5]


def test_the_papers_grouping():
    text = render_latex(table("localized_global_errors"))
    assert r"\multicolumn{4}{c}{Localized errors}" in text
    assert r"\multicolumn{1}{c}{Global errors}" in text
    columns = {one.group: one.heading for one in table("localized_error_subtypes").columns}
    assert columns["Entity/Span"] == "(n=91) ↑"
    assert "WindowEnt & " in text


@pytest.mark.parametrize(
    ("name", "absent", "words"),
    [
        ("localized_global_errors", ("global",), "too few for a value: global (0)."),
        (
            "localized_error_subtypes",
            ("number", "claim"),
            "too few for a value: number/arithmetic (0) and factual claim (0).",
        ),
    ],
)
def test_a_kind_without_errors_is_dashes_with_a_note(name, absent, words):
    made = table(name, absent=absent)
    assert words in render_html(made)
    assert "too few" not in render_html(table(name))
    for row in lines(made):
        assert [row[f"{part}_auroc"] is None for part in SLICES[name]] == [
            part in absent for part in SLICES[name]
        ]


@pytest.mark.parametrize(("n", "printed"), [(1.0, False), (9.0, False), (10.0, True)])
def test_fewer_than_ten_matched_errors_print_no_value(n, printed):
    few = (pl.col("slice") == "entity") & pl.col("n").is_not_null()
    frame = found("localized_error_subtypes").with_columns(
        n=pl.when(few).then(n).otherwise("n"),
        value=pl.when(few).then(1.0).otherwise("value"),
    )
    made = table("localized_error_subtypes", frame=frame)
    texts = [row[2].text for row in made.rows]
    assert texts == [("1.000" if printed else "–")] * len(SHOWN)
    assert all((row["entity_auroc_low"] is not None) == printed for row in lines(made))
    page = render_html(made)
    assert ("too few for a value: entity/span" in page) != printed
    assert ("entity/span +0.010" in page) == printed
    assert all(row[1].text != "–" for row in made.rows)


@pytest.mark.parametrize("name", TABLES)
def test_a_run_without_any_error_or_without_some_estimators_is_whole(name):
    render_latex(table(name, absent=SLICES[name]))
    made = table(name, estimators=("seq_logp", "trace_plus"))
    assert [row["estimator"] for row in lines(made)] == ["seq_logp", "trace_plus"]
    assert len(table(name, estimators=("trace",)).groups) == 1


@pytest.mark.parametrize("name", TABLES)
def test_the_gain_is_stated_with_its_interval(name):
    assert "overall localized +0.010 [−0.005, +0.025]" in render_html(table(name))
    without = render_html(table(name, absent=SLICES[name]))
    assert "AUROC of TRACE+ minus" not in without


@pytest.mark.parametrize("name", TABLES)
def test_wins_that_the_interval_does_not_support_are_marked(name):
    def marked(low):
        made = table(name, low=low)
        return [
            [one.mark for c, one in zip(made.columns, row, strict=True) if c.better]
            for row in made.rows
        ]

    columns = len(marked(0.0)[0])
    assert marked(-0.005) == [[""] * columns] * 4 + [["§"] * columns]
    assert marked(0.005) == [[""] * columns] * 5
    assert "§ TRACE+ is better" in render_html(table(name))
    assert "§" not in render_html(table(name, low=0.005))


@pytest.mark.parametrize("name", TABLES)
def test_how_well_the_errors_are_matched_is_said(name):
    assert "overall localized 9" in render_html(table(name))
    assert "of 120 (1.2)" in render_html(table(name))


@pytest.mark.parametrize("name", TABLES)
def test_every_published_number_meets_a_row_and_a_column(name):
    four = {slug: slug.upper() for slug in ("mlqa", "svamp", "triviaqa", "truthfulqa")}
    qwen = "qwen2.5-7b-instruct"
    made = table(name, models={qwen: "Qwen"}, model=qwen, tasks=four)
    header, *rows = render_csv(made).splitlines()
    ours = [dict(zip(header.split(","), row.split(","), strict=True)) for row in rows]
    beside = compare_with_paper(name, ours, PAPER[name])
    assert len(list(beside.rows)) == len(PAPER[name])
    page = render_html(beside)
    assert "the spread over matchings" in page
    assert "not explained by the choice of matchings" in page
    assert "splits" not in page
