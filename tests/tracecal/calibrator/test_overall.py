"""The overall error rate at every door: file, card, score, check, parts, and repeated questions."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tracecal
from support.labelled_answers import answers
from tracecal.calibrator.predictor import target_of
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.guarantees.error_rate import allowed_errors
from tracecal.serving.proxy_settings import ProxySettings
from tracecal.serving.server import make_scorer

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def cities():
    return tracecal.calibrate(EXAMPLES / "labelled.jsonl", "cities")


def control_of(calibrator):
    return calibrator.file.estimators[calibrator.recommended].risk_control


def doubled(frame):
    """Each answer twice, under other names."""
    return pl.concat([frame, frame.with_columns(example_id=pl.col("example_id") + " again")])


def test_the_example_of_the_readme(cities):
    control = control_of(cities)
    assert [(row.error_rate, row.n, row.allowed) for row in control.overall] == [
        (0.05, 309, 10),
        (0.1, 309, 23),
        (0.2, 309, 52),
    ]
    assert [row.coverage for row in control.overall] == pytest.approx([0.4325, 0.56, 0.6825])
    assert control.overall_confidence == pytest.approx(0.819, abs=5e-4)
    kept = [
        cities.score(EXAMPLES / "new.jsonl", overall_error=row.error_rate)["keep"].sum()
        for row in control.overall
    ]
    assert kept == [32, 46, 57]
    text = " ".join(str(cities.report()).split())
    assert (
        "Let people check the 44 % least certain answers and mend what is wrong: of all answers at "
        "most 10 % are then wrong (90 % confidence). at 5 %: check 57 % at 20 %: check 32 % (82 "
        "% confidence in all three) Of those that nobody checks more may be wrong, up to 10 / 56 = 18 %."
    ) in text
    assert str(cities.card()).count("Of those that nobody checks") == 1


def test_one_ranking_serves_both_guarantees_and_the_file_holds_the_order_statistic(cities):
    frame = tracecal.read_answers(EXAMPLES / "labelled.jsonl")
    training = cities._read_training(frame, None, None).answers
    control, tested = control_of(cities), training.frame.filter(side="test")
    score = control.fit.predict(tested.select(training.estimators[control.ranked_by]).to_numpy())
    wrong = ~tested["correct"].to_numpy()
    for row in control.overall:
        assert (wrong & (score >= row.threshold)).sum() == row.allowed
        assert row.allowed == allowed_errors(len(score), row.error_rate, 0.1)


def test_a_question_that_is_asked_twice_keeps_twice_as_many(cities, tmp_path):
    new = tracecal.read_answers(EXAMPLES / "new.jsonl")
    target = {"overall_error": 0.1}
    once, twice = cities.score(new, **target), cities.score(doubled(new), **target)
    assert twice["keep"].sum() == 2 * once["keep"].sum()
    halves = pl.concat(cities.score(part, **target) for part in (new.head(40), new.tail(54)))
    assert halves.equals(once)
    labelled = tracecal.read_answers(EXAMPLES / "labelled.jsonl").head(60)
    few = [control_of(tracecal.calibrate(each, "t")) for each in (labelled, doubled(labelled))]
    assert few[0].overall == few[1].overall and few[0].overall[0].n == 60


def test_neither_the_order_of_rows_nor_ids_of_single_questions_matter():
    frame = tracecal.read_answers(EXAMPLES / "labelled.jsonl").head(60)
    renamed = frame.sample(fraction=1, shuffle=True, seed=3).with_columns(
        example_id=pl.format("x{}", pl.int_range(pl.len()))
    )
    first, second = (control_of(tracecal.calibrate(each, "t")) for each in (frame, renamed))
    assert first.ranked_by == "fixed_score" and first.overall == second.overall


def test_labelled_answers_without_a_trace_count_and_are_not_kept():
    frame = answers(80)
    lacking = pl.int_range(pl.len()) < 20
    lists = [
        pl.when(lacking).then(None).otherwise(name).alias(name)
        for name in ("surprisal", "entropy", "tokens")
        if name in frame.columns
    ]
    control = control_of(tracecal.calibrate(frame.with_columns(*lists), "t"))
    assert {row.n for row in control.overall} == {80} and control.groups == 60
    assert all(row.coverage <= 0.75 for row in control.overall)


def test_a_ranking_that_does_not_help_is_named_first():
    rng = np.random.default_rng(0)
    frame = answers(300).with_columns(correct=pl.Series(rng.random(300) < 0.7))
    lines = str(tracecal.calibrate(frame, "t").report())
    assert "Those left unchecked are about as often wrong as the others" in lines


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"error_rate": 0.2, "overall_error": 0.1},
            "give one of error_rate, overall_error and recall",
        ),
        ({"overall_error": 0.1, "recall": 0.9}, "give one of error_rate, overall_error and recall"),
        ({"overall_error": 0.15}, "an overall error rate of 0.15; tested: 0.05, 0.1, 0.2"),
        ({"recall": 0.9}, "not tested for a recall of 0.9; tested: none"),
    ],
)
def test_one_tested_target_at_a_time(cities, options, sentence):
    with pytest.raises(InputError, match=sentence):
        cities.score(EXAMPLES / "new.jsonl", **options)


def test_single_answers_are_kept_as_those_of_a_file(cities):
    lines = (EXAMPLES / "new.jsonl").read_text(encoding="utf-8").splitlines()[:10]
    scored = cities.score(EXAMPLES / "new.jsonl", overall_error=0.1)["keep"]
    reading = tracecal.Reading(processed="no")
    single = [
        cities.score_response(
            row["response"], row["request"], overall_error=0.1, reading=reading
        ).keep
        for row in map(json.loads, lines)
    ]
    assert single == scored.head(10).to_list() and {*single} == {True, False}


def test_the_command_says_what_may_be_wrong_of_what_nobody_checks(tmp_path, caplog, cities):
    cities.save(tmp_path / "C.json")
    output = tmp_path / "scored.jsonl"
    command = ["score", "--answers", str(EXAMPLES / "new.jsonl"), "--output", str(output)]
    command += ["--calibrator", str(tmp_path / "C.json"), "--overall-error", "0.1"]
    assert main(command) == 0
    assert "at most 10 % of all are wrong (90 % confidence)" in caplog.text
    assert "up to 10 / 56 = 18 %" in caplog.text


@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (20, "no answer will have a decision, kept or not: needs at least 22 labels that test"),
        (60, "if people check all answers that are not kept and mend what is wrong, at most 10 %"),
    ],
)
def test_a_proxy_says_as_it_starts_what_its_overall_error_rate_means(tmp_path, caplog, n, sentence):
    frame = tracecal.read_answers(EXAMPLES / "labelled.jsonl").head(n)
    tracecal.calibrate(frame, "cities").save(tmp_path / "C.json")
    settings = ProxySettings(upstream="http://localhost:1")
    caplog.set_level("INFO")
    target = target_of(None, 0.1)
    make_scorer(settings, str(tmp_path / "C.json"), target, tracecal.Reading())
    assert sentence in caplog.text


def labelled_anew(calibrator, n, wrong_of_kept):
    """New answers, the first `n` labelled, so many of those kept wrong; and whether each is kept."""
    frame = answers(300, seed=9)
    keep = calibrator.score(frame, overall_error=0.2)["keep"]
    place = pl.Series(keep).cast(pl.Int64).cum_sum()
    correct = pl.when(pl.int_range(pl.len()) < n).then(~(keep & (place <= wrong_of_kept)))
    return frame.with_columns(correct=correct), keep


@pytest.fixture(scope="module")
def made():
    return tracecal.calibrate(answers(800), "t", reading=tracecal.Reading(vocabulary=100_000))


@pytest.mark.parametrize(
    ("n", "wrong", "verdict", "code"),
    [(300, 20, "fits", 0), (300, 90, "contradicted", 3), (40, 8, "too few", 4)],
)
def test_a_check_counts_wrong_and_kept_among_all_that_are_labelled(made, n, wrong, verdict, code):
    frame, _ = labelled_anew(made, n, wrong)
    result = tracecal.check(frame, made, overall_error=0.2)
    assert (result.verdict, result.exit_code) == (verdict, code)
    assert (result.n_labelled, result.n_counted, result.n_wrong) == (n, n, wrong)
    assert f"{n} have labels, {wrong} kept and wrong" in str(result)


def test_a_check_of_labels_of_kept_answers_alone_tells_nothing(made):
    frame, keep = labelled_anew(made, 300, 20)
    frame = frame.with_columns(correct=pl.when(keep).then("correct"))
    result = tracecal.check(frame, made, overall_error=0.2)
    assert (result.verdict, result.exit_code, result.enough) == ("too few", 4, None)
    assert "Only kept answers have labels" in str(result)
    with pytest.raises(InputError, match="error_rate or overall_error"):
        tracecal.check(frame, made)


def test_answers_on_which_the_calibrator_was_fitted_count_nowhere_in_a_check(cities):
    frame = tracecal.read_answers(EXAMPLES / "labelled.jsonl")
    known = tracecal.check(frame, cities, overall_error=0.1)
    assert (known.verdict, known.n_labelled, known.only_kept) == ("too few", 0, False)
    half = tracecal.calibrate(frame.head(200), "cities")
    grown, new = (tracecal.check(each, half, overall_error=0.1) for each in (frame, frame[200:]))
    assert (grown.n_undecided, grown.n_labelled) == (200, 200)
    assert (grown.verdict, grown.n_counted, grown.n_wrong) == (new.verdict, 200, new.n_wrong)


def test_a_rate_may_be_a_number_by_itself():
    frame = answers(60)
    several, single = (
        tracecal.calibrate(frame, "t", error_rates=rate, overall_errors=overall)
        for rate, overall in (([0.3], [0.15]), (0.3, 0.15))
    )
    assert single.file.text() == several.file.text()
    assert str(single.report()) == str(several.report())


@pytest.mark.parametrize(
    "option, value, expected",
    [
        ("error_rates", "0.1", "error_rate='0.1': expected a number from 1e-06 to below 1."),
        ("overall_errors", ["a"], "overall_error='a': expected a number"),
        ("overall_errors", 1.5, "overall_error=1.5: expected a number"),
        ("recall", "0.9", "recall='0.9': expected a number"),
        ("looks", "3", "looks='3': expected a whole number from 1 on."),
        ("looks", 0, "looks=0: expected a whole number"),
    ],
)
def test_what_is_no_rate_or_no_number_of_looks_is_refused_in_a_sentence(option, value, expected):
    with pytest.raises(InputError) as refusal:
        tracecal.calibrate("missing.jsonl", "t", **{option: value})
    assert str(refusal.value).startswith(expected)


@pytest.mark.parametrize(
    "options, expected",
    [
        ("--overall-error 1.5", "--overall-error 1.5: expected a number"),
        ("--error-rate 0", "--error-rate 0: expected a number"),
        ("--error-rate 0.2 --overall-error 0.1", "give one of --error-rate, --overall-error"),
    ],
)
@pytest.mark.parametrize("command", ["check", "score"])
def test_targets_are_refused_before_a_file_is_read(command, options, expected, caplog):
    files = ["--answers", "missing.jsonl", "--calibrator", "missing.json"]
    assert main([command, *files, *options.split()]) == 1
    assert expected in caplog.text
