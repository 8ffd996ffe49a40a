"""What ranks answers, which labels test, and what a calibrator's file guarantees."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, binomtest

import tracecal
from support.labelled_answers import answers, fitted_file, ranked_by
from tracecal.calibrator.answer_ranking import AMOUNTS, choose_ranking, fit_fixed_score
from tracecal.calibrator.catalogue import FIXED_SCORE, MEAN_OF_THREE, SURPRISAL_RIDGE
from tracecal.calibrator.predictor import Kinds, make_predictor
from tracecal.calibrator.training_set import make_training_set
from tracecal.errors import InputError
from tracecal.estimators.features import compute_inputs
from tracecal.fits.fit_settings import FitSettings
from tracecal.fits.fits import probabilities
from tracecal.guarantees.error_rate import find_thresholds
from tracecal.guarantees.forecast import POWER, questions_needed, rounded_count

RATES = FitSettings().risk_control.error_rates


def training(frame, **settings):
    return make_training_set(frame, "t", FitSettings(**settings))


def ranking_of(frame):
    """What ranks single answers."""
    known = training(frame)
    return choose_ranking(known, known.fit_estimators().estimators)


def without_entropies(frame):
    return frame.with_columns(entropy=pl.lit(None, pl.List(pl.Float32)))


def of_one_token(frame):
    return frame.with_columns(pl.col("surprisal", "entropy").list.head(1))


def control_of(file):
    return file.estimators[file.recommended()].risk_control


@pytest.mark.parametrize(
    ("frame", "name", "tests_all"),
    [
        (answers(99), FIXED_SCORE, True),
        (answers(100), MEAN_OF_THREE, False),
        (without_entropies(answers(100)), SURPRISAL_RIDGE, False),
        (without_entropies(of_one_token(answers(300))), FIXED_SCORE, True),
        (of_one_token(answers(300)), MEAN_OF_THREE, False),
    ],
    ids=["few", "enough", "no alternatives", "a number each", "one token each"],
)
def test_the_number_of_labels_and_the_kind_of_log_decide_what_ranks(frame, name, tests_all):
    ranking = ranking_of(frame)
    assert ranking.ranked_by == name
    assert (ranking.tested.height == frame.height) == tests_all
    assert ranking.tested.height + ranking.fitted.height == frame.height
    assert ranking.is_fitted == (name != FIXED_SCORE)


def test_labels_of_the_tests_change_no_score_and_a_fifth_of_one_class_fits_none():
    frame = answers(200)
    ranking = ranking_of(frame)
    tested = pl.col("example_id").is_in(ranking.tested["example_id"].implode())
    flipped = frame.with_columns(correct=pl.col("correct") ^ tested)
    again = ranking_of(flipped)
    assert again.fit == ranking.fit and again.ranked_by == ranking.ranked_by
    sure = ranking_of(frame.with_columns(correct=pl.col("correct") | ~tested))
    assert (sure.ranked_by, sure.tested.height) == (FIXED_SCORE, ranking.tested.height)


def test_an_estimator_ranks_where_it_is_named():
    file = ranked_by("seq_logp")
    assert file.recommended() == control_of(file).ranked_by == "seq_logp"
    with pytest.raises(InputError, match="estimator='nonsense': it cannot be computed"):
        fitted_file(answers(60), "nonsense")


def test_an_estimator_of_ones_own_ranks_where_it_is_named(tmp_path):
    own = {"calm": {"label": "Calm", "score": -pl.col("entropy").list.max()}}
    calibrator = tracecal.calibrate(answers(), "t", estimators=own, estimator="calm")
    assert calibrator.recommended == "calm" == calibrator.predictor().ranked_by
    new = as_new(answers(200, seed=8))
    scored = calibrator.score(new, error_rate=0.5)
    score = -new["entropy"].list.max()
    assert scored.filter("keep").height > 0
    assert score.filter(scored["keep"]).min() > score.filter(~scored["keep"]).max() - 1e-9
    calibrator.save(tmp_path / "C.json")
    loaded = tracecal.Calibrator.load(tmp_path / "C.json", estimators=own)
    assert loaded.score(new, error_rate=0.5).equals(scored)
    with pytest.raises(InputError, match="name it with estimators"):
        tracecal.Calibrator.load(tmp_path / "C.json")


def test_a_file_holds_what_the_line_finds_by_the_fixed_score():
    frame = answers(80)
    control = control_of(fitted_file(frame))
    fixed = fit_fixed_score(compute_inputs(frame.clear(), AMOUNTS))
    (score,) = probabilities(compute_inputs(frame).select(fixed.inputs), [fixed.fit])
    tests = find_thresholds(score, ~frame["correct"].to_numpy(), score[:0], RATES, 0.1)
    assert [entry.threshold for entry in control.thresholds] == [test.threshold for test in tests]
    assert any(test.threshold for test in tests)
    assert control.joint_confidence == pytest.approx(1 - 0.1 * len(RATES))


def test_the_forecast_of_labels_is_that_of_the_plan():
    """In the file, in the reason that score gives, and in the sentence of calibrate."""
    calibrator = tracecal.calibrate(answers(300, seed=7), "t", error_rates=[0.3])
    (entry,) = calibrator.report().control.thresholds
    assert entry.threshold is None and 300 < entry.enough < 3200
    plan = tracecal.plan(0.3, calibrator=calibrator)
    assert rounded_count(questions_needed(POWER, plan.table)) == entry.enough
    assert f"about {entry.enough:,} may be enough" in " ".join(calibrator.report().text.split())
    (reason,) = set(calibrator.score(as_new(answers(5, seed=3)), error_rate=0.3)["reason"])
    assert f"about {entry.enough:,} labelled questions like these would be enough" in reason
    n_to_ask = calibrator.report().n_to_ask
    assert f"or about {n_to_ask} more that 'tracecal label' asks for" in " ".join(
        calibrator.report().text.split()
    )
    assert plan.text.endswith(
        f"'tracecal label' asks for labels that decide: about {n_to_ask} would do."
    )
    several = tracecal.calibrate(answers(300, seed=7), "t", error_rates=[0.3], looks=3)
    (entry,) = several.report().control.thresholds
    plan = tracecal.plan(0.3, calibrator=several)
    assert plan.confidence == pytest.approx(1 - 0.1 / 3)
    assert rounded_count(questions_needed(POWER, plan.table, plan.at_hand)) == entry.enough
    hopeless = tracecal.calibrate(answers(60), "t", error_rates=[0.01]).report().control
    assert hopeless.thresholds[0].enough is None
    assert (
        "3,200 labelled questions like these would not be enough" in hopeless.thresholds[0].reason
    )


def test_unlabelled_answers_standardise_the_score_and_say_what_is_kept():
    labelled, others = answers(80), answers(300, seed=3, correct=None)
    others = others.with_columns(example_id=pl.format("u{}", "example_id"))
    control = control_of(fitted_file(pl.concat([labelled, others])))
    assert len(control.features) > 2 and control.coverage_of == 300
    fixed = fit_fixed_score(compute_inputs(others, AMOUNTS))
    (score,) = probabilities(compute_inputs(others).select(fixed.inputs), [fixed.fit])
    for entry in control.thresholds:
        share = 0 if entry.threshold is None else np.mean(score >= entry.threshold)
        assert entry.coverage == pytest.approx(share)
    by_option = tracecal.calibrate(labelled, "t", unlabelled=others)
    assert control_of(by_option.file) == control
    # Longer answers that are labelled already are left out, whatever their ids.
    again = labelled.filter(pl.col("surprisal").list.len() > 2)
    twice = pl.concat([others, again.with_columns(example_id=pl.format("x{}", "example_id"))])
    assert control_of(tracecal.calibrate(labelled, "t", unlabelled=twice).file) == control


def in_groups(n_groups, sizes, seed=0):
    """Groups of these sizes in turn."""
    size = np.resize(sizes, n_groups)
    frame = answers(int(size.sum()), seed=seed)
    group = np.repeat([f"g{number}" for number in range(n_groups)], size)
    return frame.with_columns(group_id=pl.Series(group))


def as_new(frame):
    """The answers under names of their own, without labels."""
    renamed = {name: pl.format("n{}", name) for name in ("example_id", "group_id")}
    return frame.with_columns(correct=pl.lit(None, pl.Boolean), **renamed)


def test_one_answer_of_each_question_tests_and_what_repeats_is_said():
    frame = in_groups(200, (1, 1, 1, 1, 9))
    calibrator = tracecal.calibrate(frame, "t", error_rates=[0.5])
    control = control_of(calibrator.file)
    ranking = ranking_of(frame)
    assert ranking.tested["rank"].n_unique() == ranking.tested.height == control.groups
    assert ranking.tested.height + ranking.fitted["rank"].n_unique() == 200
    said = "520 labelled answers to 200 questions: each question counts once."
    for text in (str(calibrator.report()), str(calibrator.card())):
        assert said in " ".join(text.split())
    assert "drawn as the labelled ones were, each counted once" in control.about
    new = as_new(in_groups(60, (1, 9), seed=4))
    scored, size = calibrator.score(new, error_rate=0.5), new.select(pl.len().over("group_id"))
    assert scored.filter(size.to_series() > 1)["keep"].any()


def repeated(frame, times=2):
    """Each answer several times, under ids of its own, to a question of its own."""
    frame = frame.with_columns(prompt=pl.format("which {}?", "example_id"))
    copies = [
        frame.with_columns(example_id=pl.format(f"c{number}-{{}}", "example_id"))
        for number in range(times)
    ]
    return pl.concat(copies)


def test_labels_that_are_there_twice_give_the_threshold_of_one_copy():
    once, twice = (
        control_of(tracecal.calibrate(repeated(answers(60), times), "t").file) for times in (1, 2)
    )
    assert once.groups == twice.groups == 60 and once.fit == twice.fit
    assert [e.threshold for e in once.thresholds] == [e.threshold for e in twice.thresholds]
    assert any(entry.threshold is not None for entry in once.thresholds)


def test_the_same_answers_twice_are_kept_twice_and_a_row_is_decided_by_itself():
    calibrator = tracecal.calibrate(repeated(answers(300, seed=7), 1), "t", error_rates=[0.5])
    new = as_new(repeated(answers(94, seed=8)))
    scored = calibrator.score(new, error_rate=0.5)
    alone = calibrator.score(new.head(94), error_rate=0.5)
    assert scored["keep"].sum() == 2 * alone["keep"].sum() > 0
    halves = [calibrator.score(new[k::2], error_rate=0.5) for k in (0, 1)]
    together = pl.concat(halves).sort("example_id")
    assert together.equals(scored.sort("example_id"))


def test_a_row_without_entropies_is_scored_alike_beside_full_rows_and_alone(tmp_path):
    calibrator = tracecal.calibrate(answers(300, seed=7), "t", error_rates=[0.5])
    full, bare = as_new(answers(20, seed=8)), without_entropies(as_new(answers(20, seed=9)))
    bare = bare.with_columns(example_id=pl.format("b{}", "example_id"))
    mixed = pl.concat([full[::2], bare, full[1::2]])
    scored = calibrator.score(mixed, error_rate=0.5)
    parts = [calibrator.score(rows, error_rate=0.5) for rows in (full, bare)]
    expected = pl.concat(parts)
    assert expected["probability"].null_count() == 0
    assert scored.equals(
        mixed.select("example_id").join(
            expected, on="example_id", how="left", maintain_order="left"
        )
    )
    for row, (example_id, probability, keep) in zip(
        mixed.iter_rows(named=True),
        scored.select("example_id", "probability", "keep").iter_rows(),
        strict=True,
    ):
        one = calibrator.score_trace(row["surprisal"], row["entropy"], error_rate=0.5)
        assert (one.probability, one.keep) == (probability, keep), example_id


def test_other_names_give_the_same_file():
    frame = answers(150).filter(pl.col("surprisal").list.len() > 1)
    names = pl.Series("example_id", np.random.default_rng(3).permutation(frame.height))
    files = []
    for rows in (frame, frame.with_columns(names.cast(pl.String))):
        content = tracecal.calibrate(rows, "t").file.content()
        content["fitted_on"].pop("checksum")
        files.append(json.dumps(content))
    assert files[0] == files[1]


def test_labels_drawn_answer_by_answer_each_test_for_a_guarantee_about_traffic():
    frame = in_groups(100, (1, 1, 1, 5))
    calibrator = tracecal.calibrate(frame, "t", unit="answers", error_rates=[0.5])
    control, fitted_on = control_of(calibrator.file), calibrator.fitted_on
    assert (fitted_on.unit, fitted_on.groups, fitted_on.n) == ("answers", 100, 200)
    assert 140 < control.groups == control.thresholds[0].n < 180
    assert "of new answers drawn one by one" in control.about
    text = " ".join(str(calibrator.report()).split())
    assert "200 labelled answers to 100 questions: each answer counts" in text


def test_a_recall_is_an_order_statistic_of_the_right_answers():
    frame, new = answers(), as_new(answers(300, seed=8))
    calibrator = tracecal.calibrate(frame, "t", recall=0.9, error_rates=[0.4])
    recall = calibrator.report().control.recall
    ranking = ranking_of(frame)
    right = np.sort(ranking.score(ranking.tested.filter("correct")))
    n_dropped = int((binom.cdf(np.arange(len(right)), len(right), 0.1) <= 0.1).sum())
    assert recall.threshold == pytest.approx(right[n_dropped - 1], abs=1e-9)
    assert recall.right == len(right)
    rate, alone = (
        calibrator.score(new, **target) for target in ({"error_rate": 0.4}, {"recall": 0.9})
    )
    assert alone["keep"].sum() > rate["keep"].sum() > 0
    with pytest.raises(InputError, match="not tested for a recall of 0.8; tested: 0.9"):
        calibrator.score(new, recall=0.8)
    with pytest.raises(InputError, match="give one of error_rate, overall_error and recall"):
        calibrator.score(new, error_rate=0.4, recall=0.9)
    assert "At least 90 % of the right answers are kept where" in " ".join(
        str(calibrator.card()).split()
    )


def test_errors_are_counted_by_the_values_of_a_column(tmp_path):
    """Of two languages one is wrong twice as often among what a pooled threshold keeps."""
    frame = answers(400)
    language = pl.Series("language", np.resize(["de", "fr", "fr"], 400))
    worse = (language == "de") & (pl.int_range(400, eager=True) % 2 == 0)
    frame = frame.with_columns(language, correct=pl.col("correct") & ~worse)
    path = tmp_path / "labelled.parquet"
    frame.write_parquet(path)
    calibrator = tracecal.calibrate(path, "t", by="language", error_rates=[0.5])
    control = calibrator.report().control
    tested = ranking_of(frame.drop("language")).tested.join(
        frame.select("example_id", "language"), on="example_id"
    )
    score = control.fit.predict(
        tested.select(
            f"features.{n}" if f"features.{n}" in tested.columns else f"scores.{n}"
            for n in control.features
        ).to_numpy()
    )
    kept = tested.filter(score >= control.thresholds[0].threshold)
    for row in control.by.values:
        own = kept.filter(language=row.value)
        assert (row.kept, row.wrong) == (own.height, own.height - own["correct"].sum())
        exact = binomtest(row.wrong, row.kept).proportion_ci(0.9, "exact")
        assert (row.low, row.high) == pytest.approx((exact.low, exact.high))
    assert [row.value for row in control.by.values] == ["fr", "de"]
    text = " ".join(calibrator.report().text.split())
    assert "about all language values together; more are wrong in 1 of 2: de: " in text
    assert "by language, at most 50 % wrong: de: " in str(calibrator.card())
    with pytest.raises(InputError, match="by='nothing': no row has a value there"):
        tracecal.calibrate(path, "t", by="nothing")
    with pytest.raises(InputError, match="by='example_id': the labelled answers have .* values"):
        tracecal.calibrate(path, "t", by="example_id")


def kept(predictor, inputs, rate):
    """Which answers with these inputs, [n, d], are kept."""
    nothing = [None] * len(inputs)
    kinds = Kinds(nothing, nothing, nothing, [1] * len(inputs))
    return predictor.decide(np.stack([inputs] * 3), kinds, rate)["keep"]


@pytest.mark.parametrize("estimator", [None, "trace_plus", "stack_of_six", "seq_logp"])
def test_what_a_threshold_keeps_in_a_file_it_keeps_alone(estimator):
    """A product of a matrix and one of its row differ in the last bit; a threshold lies below."""
    file = fitted_file(
        answers(300, seed=7), estimator, risk_control={"error_rates": [0.4, 0.5, 0.6]}
    )
    predictor = make_predictor(file, None, "C.json")
    inputs = training(answers(300, seed=7)).frame.select(predictor.columns).to_numpy()
    for rate, threshold in predictor.thresholds.items():
        if threshold is None:
            continue
        for layout in (np.ascontiguousarray(inputs), np.asfortranarray(inputs)):
            assert kept(predictor, layout, rate) == [
                kept(predictor, row[None], rate)[0] for row in inputs
            ]
        score = predictor.ranking_score(inputs)
        lowest = int(np.argmin(np.where(score >= threshold, score, np.inf)))
        assert kept(predictor, inputs[[lowest]], rate) == [True], "it set the threshold"


def test_the_same_labels_give_one_file_whatever_the_name_seed_and_order():
    frame, files = answers(150), set()
    for name, seed in (("a", 1), ("b", 2), ("b", 3)):
        rows = frame.sample(fraction=1, shuffle=True, seed=seed)
        content = tracecal.calibrate(rows, name, config={"seed": seed}).file.content()
        files.add(json.dumps(content | {"fitted_on": None}))
    assert len(files) == 1
