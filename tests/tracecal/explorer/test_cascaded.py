"""What a cascade's thresholds would do with the explorer's answers."""

import polars as pl
import pytest

from support.explorer_answers import ESTIMATORS, MODELS, TASKS, answers
from trace_workflow.analyses.cascade_promises import CASCADE_PROMISES
from tracecal.explorer.contents import apply_guarantees, contents
from tracecal.explorer.page import page

ANSWERS = answers(16).with_columns(
    # One answer that TRACE+ says nothing of.
    pl.when(example_id="sums-1", model="tiny-a").then(None).otherwise(pl.col(name)).alias(name)
    for name in ("probability.trace_plus", "held_out.trace_plus")
)
COMMON = {"small": "tiny-a", "large": "tiny-b", "task": "sums"}
GUARANTEES = pl.DataFrame(
    [
        COMMON | {"promise": "below", "promised": 0.05, "threshold": 0.5},
        COMMON | {"promise": "below", "promised": 0.01, "threshold": None},
        COMMON | {"promise": "at_least", "promised": 0.9, "threshold": 0.9},
    ],
    schema=CASCADE_PROMISES,
)


def test_answers_are_kept_from_the_threshold_on_by_the_fit_that_it_is_for():
    found = apply_guarantees(ANSWERS, GUARANTEES, MODELS)
    assert found["told"] == {
        "tiny-a/sums": [
            {"large": "Tiny B", "promise": "at most 0.05 below", "threshold": 0.5},
            {"large": "Tiny B", "promise": "at most 0.01 below", "threshold": None},
            {"large": "Tiny B", "promise": "at least 0.9", "threshold": 0.9},
        ]
    }
    rows = zip(ANSWERS.iter_rows(named=True), found["kept"], strict=True)
    own = {
        row["example_id"]: (row["held_out.trace_plus"], kept)
        for row, kept in rows
        if (row["model"], row["task"]) == ("tiny-a", "sums")
    }
    assert own.pop("sums-1") == (None, [False] * 3), "without a probability it is escalated"
    for held_out, kept in own.values():
        assert kept == (None if held_out is None else [held_out >= 0.5, False, held_out >= 0.9])
    assert [True, False, False] in [kept for _, kept in own.values()]
    assert None in [kept for _, kept in own.values()]


def test_a_run_without_cascades_tells_nothing():
    nothing = {"told": {}, "kept": []}
    assert apply_guarantees(ANSWERS, None, MODELS) == nothing
    assert apply_guarantees(ANSWERS, GUARANTEES.clear(), MODELS) == nothing


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    shown = (ANSWERS, ESTIMATORS, MODELS, TASKS, "trial", ANSWERS.height)
    path.write_text(page(contents(*shown, guarantees=GUARANTEES)), encoding="utf-8")
    return path


def told(browser, explorer, name):
    """The rows of an answer's cascades, and the caption; null where there are none."""
    browser.open(explorer, f"#answer={name.replace('/', '%2F')}")
    return browser.ask(
        "(() => { const found = document.querySelector('#escalation'); return found && {"
        " rows: [...found.querySelectorAll('tbody tr')].map((row) =>"
        " [...row.children].map((cell) => cell.textContent)),"
        " caption: found.querySelector('caption').textContent }; })()"
    )


def test_an_answer_says_whether_it_would_be_escalated(browser, explorer):
    kept = apply_guarantees(ANSWERS, GUARANTEES, MODELS)["kept"]
    at = kept.index([True, False, False])
    row = ANSWERS.row(at, named=True)
    found = told(browser, explorer, f"tiny-a/sums/{row['example_id']}")
    assert found["rows"] == [
        ["Tiny B", "at most 0.05 below", "0.500", "kept"],
        ["Tiny B", "at most 0.01 below", "–", "escalated"],
        ["Tiny B", "at least 0.9", "0.900", "escalated"],
    ]
    assert f"its probability is {row['held_out.trace_plus']:.3f}." in found["caption"]


def test_an_answer_that_calibrated_the_fit_says_so(browser, explorer):
    at = apply_guarantees(ANSWERS, GUARANTEES, MODELS)["kept"].index(None)
    found = told(browser, explorer, f"tiny-a/sums/{ANSWERS['example_id'][at]}")
    assert {row[-1] for row in found["rows"]} == {"–"}
    assert "calibrated that fit" in found["caption"]


def test_an_answer_of_no_cascade_says_nothing(browser, explorer):
    assert told(browser, explorer, "tiny-b/sums/sums-2") is None
