"""The answers that the report's page shows, kept and dropped, with shaded tokens."""

import numpy as np
import polars as pl
import pytest

import tracecal
from support.labelled_answers import answers
from tracecal.calibrator.example_answers import (
    ELLIPSIS,
    MAX_QUESTION,
    MAX_TOKENS,
    N_EXAMPLES,
    shade,
    shade_tokens,
    shorten,
)


@pytest.fixture(scope="module")
def report():
    frame = answers(400)
    texts = [[f"w{place}" for place in range(len(trace))] for trace in frame["surprisal"]]
    frame = frame.with_columns(tokens=pl.Series(texts))
    return tracecal.calibrate(frame, "t", error_rates=[0.4]).report(all_estimators=False)


def test_ten_are_kept_and_ten_dropped_on_either_side_of_the_threshold(report):
    examples = report.examples
    assert examples.is_guaranteed
    assert len(examples.above) == len(examples.below) == N_EXAMPLES
    n_kept, _ = report.n_reordered[0.4]
    assert (examples.n_above, examples.n_above + examples.n_below) == (n_kept, 400)
    above, below = ([one.probability for one in side] for side in (examples.above, examples.below))
    # The ranking is fitted on fewer labels than the probability, so that both agree nearly.
    assert np.mean(above) > np.mean(below) + 0.1
    shown = [token for one in [*examples.above, *examples.below] for token in one.tokens]
    assert {text[0] for text, _ in shown} == {"w"} and len({shade for _, shade in shown}) > 2


def test_examples_carry_the_label_and_the_held_out_probability_of_their_answer(report):
    rows = report.predictions.filter(estimator=report.estimator)
    probability = dict(rows.select("example_id", "probability").iter_rows())
    labels = dict(answers(400).select("example_id", "correct").iter_rows())
    for one in [*report.examples.above, *report.examples.below]:
        assert one.probability == probability[one.answer_id]
        assert one.correct == labels[one.answer_id]


def test_without_a_guarantee_the_page_halves_the_answers_and_says_so():
    report = tracecal.calibrate(answers(60), "t", error_rates=[0.001]).report(all_estimators=False)
    assert not report.examples.is_guaranteed
    assert report.examples.n_above == report.examples.n_below == 30
    page = " ".join(report.html.split())
    assert "Which answers are most probably right?" in page and "Upper half" in page
    assert "No error rate is guaranteed at 0.1 %" in page
    assert "<b>Check 70 %: at most 10 % of all are wrong</b>" in page
    assert "Which answers are kept?" not in page and 'class="chosen"' in page


def test_questions_take_the_place_of_prompts(report):
    first = report.examples.above[0]
    asked = report.with_questions({first.answer_id: "Who  wrote\nit?"})
    assert asked.examples.above[0].question == "Who wrote it?"
    assert "Who wrote it?" in asked.html and "Who wrote it?" not in report.html


def test_a_token_is_the_darker_the_less_probable_it_was():
    shades = [shade(-np.log(probability)) for probability in (1, 0.9, 0.89, 0.5, 0.2, 0.05)]
    assert shades == [0, 0, 1, 2, 3, 4]
    assert shade(float("nan")) == 0


def test_a_long_answer_is_shown_around_its_most_surprising_token():
    tokens = [f"t{place}" for place in range(500)]
    surprisal = [0.0] * 500
    surprisal[400] = 9.0
    shown = shade_tokens(tokens, surprisal)
    assert ("t400", 4) in shown and len(shown) == MAX_TOKENS + 2
    assert shown[0][0] == shown[-1][0] == ELLIPSIS
    surprisal[400], surprisal[0] = 0.0, 9.0
    assert shade_tokens(tokens, surprisal)[0] == ("t0", 4)
    assert shade_tokens(tokens, None)[:2] == [("t0", 0), ("t1", 0)]


def test_a_long_question_keeps_its_end():
    text = shorten("word " * 200 + "last?")
    assert len(text) == MAX_QUESTION and text.startswith(ELLIPSIS) and text.endswith("last?")


def test_markup_in_tokens_stays_text():
    frame = answers(80).with_columns(
        tokens=pl.col("surprisal").list.eval(pl.lit("<b onclick=x>")),
    )
    page = tracecal.calibrate(frame, "t").report(all_estimators=False).html
    assert "&lt;b onclick=x&gt;" in page and "<b onclick" not in page
