"""`tracecal plan`: what it prints, draws and refuses; and the sentence that a report ends with."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import tracecal
from support.labelled_answers import answers
from tracecal.calibrator.answer_ranking import choose_ranking, rank_answers
from tracecal.calibrator.catalogue import MEAN_OF_THREE as DEFAULT
from tracecal.calibrator.guarantee import find_guarantees, labelled_population, population_of
from tracecal.calibrator.schema import CalibratorFile, HeldOut
from tracecal.calibrator.training_set import make_training_set
from tracecal.cli.main import main
from tracecal.fits.fit_settings import FitSettings
from tracecal.guarantees import forecast
from tracecal.guarantees.error_rate import find_thresholds
from tracecal.labelling import label_plan as plan

QUICK = ["--draws", "4", "--most", "200"]


def test_a_plan_is_a_table_a_picture_and_a_sentence(tmp_path, calibrator_file, capsys):
    path = tmp_path / "plan.svg"
    options = ["--calibrator", str(calibrator_file), "--error-rate", "0.3", "--picture", str(path)]
    assert main(["plan", *options, *QUICK]) == 0
    output = capsys.readouterr().out
    rows = re.findall(r"^ +(\d+) +\d+ %", output, re.MULTILINE)
    assert rows == ["50", "100", "200"]
    assert "labelled questions" in output.splitlines()[-1]
    drawing = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    circles = [item for item in drawing.iter() if item.tag.endswith("circle")]
    assert len(circles) == 3


def read_picture(shares, high):
    """The picture of a table: its marks, its texts, and the heights of its dots."""
    rows = [
        {"questions": 50 * 2**n, "guaranteed": item, "low": 0.0, "median": high / 2, "high": high}
        for n, item in enumerate(shares)
    ]
    root = ElementTree.fromstring(plan.draw_plan(pl.DataFrame(rows), 0.2, 0.9999))
    elements = {
        item: [e for e in root.iter() if e.tag.endswith(item)]
        for item in ("line", "text", "circle")
    }
    needed = [float(item.get("x1")) for item in elements["line"] if item.get("class") == "enough"]
    dots = [(float(item.get("cx")), float(item.get("cy"))) for item in elements["circle"]]
    return needed, [item.text for item in elements["text"]], dots


def test_the_picture_marks_the_number_that_suffices_and_its_axis_fits():
    needed, texts, dots = read_picture([0.5, 0.8, 1.0], 0.16)
    assert needed == [dots[1][0]] and "100 suffice in 80 % of the draws" in texts
    assert "20 %" in texts and "100 %" not in texts
    assert "Answers kept with at most 20 % wrong (99.9 % confidence)" in texts
    assert 120 < dots[0][1] < 180, "half of 16 % is well above the ground of an axis to 20 %"
    needed, texts, _ = read_picture([0.0, 0.1, 0.3], 0.9)
    assert needed == [] and "not even 200 suffice in 80 % of the draws" in texts
    assert "100 %" in texts


def test_guesses_do_without_a_calibrator(capsys):
    options = ["--accuracy", "0.9", "--auroc", "0.9", "--error-rate", "0.2"]
    assert main(["plan", *options, *QUICK]) == 0
    assert "About" in capsys.readouterr().out


def test_the_population_is_the_labelled_answers(content):
    """In the order of their hashes, ranked within the folds of the fits: better ranks are more
    often right."""
    estimator = CalibratorFile.parse(content, "C.json").estimators[DEFAULT]
    population, held = labelled_population(estimator, "C.json"), content[DEFAULT]["held_out"]
    frame = answers()
    order = make_training_set(frame, "t", FitSettings()).frame["example_id"]
    correct = dict(frame.select("example_id", "correct").iter_rows())
    assert held["correct"] == [correct[example_id] for example_id in order]
    assert len(set(population.group)) == frame.height and population.correlation == 0
    for ranked, column in ((population, "by_fifths"), (population.many, "probability")):
        folds = pl.DataFrame({"fold": held["fold"], "score": ranked.score, "p": held[column]})
        assert folds["fold"].n_unique() == 5
        for (_,), fold in folds.partition_by("fold", as_dict=True).items():
            assert fold["score"].mean() == pytest.approx(0, abs=0.02)
            assert fold.select(pl.corr("score", "p", method="spearman")).item() == pytest.approx(1)
        assert ranked.coefficients[1] > 0.5


def test_a_plan_counts_parts_of_an_answer_together_as_the_calibrator_does(content, monkeypatch):
    changed = json.loads(json.dumps(content))
    changed[DEFAULT]["risk_control"]["most_parts"] = 3
    estimator = CalibratorFile.parse(changed, "C.json").estimators[DEFAULT]
    population = labelled_population(estimator, "C.json")
    assert population.of_parts
    kinds = []
    ranked = forecast.rank_draw
    monkeypatch.setattr(
        forecast, "rank_draw", lambda *terms: kinds.append(terms[-1]) or ranked(*terms)
    )
    forecast.forecast_tables(population, [0.3], 0.9, 50, 2, 1)
    assert kinds == [True, True]


def test_a_plan_counts_each_question_once(content):
    """Its first answer, in the order of their hashes."""
    changed = json.loads(json.dumps(content))
    held = changed[DEFAULT]["held_out"]
    held["group"] = [place // 2 for place in range(len(held["group"]))]
    estimator = CalibratorFile.parse(changed, "C.json").estimators[DEFAULT]
    population = labelled_population(estimator, "C.json")
    assert len(population.group) == len({*held["group"]}) == (len(held["group"]) + 1) // 2
    assert population.correlation == 0


@pytest.mark.parametrize("n", [90, 240])
def test_shares_of_a_plan_are_of_all_answers(n):
    """A third of the labelled answers lack a trace: at most two thirds can be kept."""
    frame = answers(n).with_columns(
        pl.when(pl.int_range(n) % 3 > 0).then(name).alias(name) for name in ("surprisal", "entropy")
    )
    calibrator = tracecal.calibrate(frame, "t")
    held = calibrator.file.estimators[calibrator.recommended].held_out
    assert sum(value is None for value in held.probability) == n // 3 == held.fold.count(None)
    last = tracecal.plan(0.6, calibrator=calibrator, most=800, draws=20).table.row(-1, named=True)
    assert 0.5 < last["median"] < 0.72 and last["high"] < 0.8 and last["unchecked"] < 0.72
    assert tracecal.plan(0.6, calibrator=calibrator).text.count("\n") > 8


def share_guaranteed(draw, draws):
    """How often `calibrate` guarantees 20 % with 50 labels, which the fixed score ranks."""
    guaranteed = 0
    for _ in range(draws):
        score, wrong = draw(50)
        (test,) = find_thresholds(score, wrong, score[:0], [0.2], 0.1)
        guaranteed += test.threshold is not None
    return guaranteed / draws


def share_forecast(population, draws, seed):
    simulated = forecast.simulate_draws(population, [50], draws, [0.2], 0.9, seed)
    return simulated.select((pl.col("coverage") > 0).mean()).item()


def test_the_forecast_of_the_readmes_example_is_what_50_of_its_labels_guarantee():
    calibrator = tracecal.calibrate(
        Path(__file__).parents[3] / "examples" / "labelled.jsonl", "cities"
    )
    estimator = calibrator.file.estimators[calibrator.recommended]
    score, wrong = np.array(estimator.held_out.fixed), ~np.array(estimator.held_out.correct)
    rng, draws = np.random.default_rng(0), 1000

    def draw(n):
        rows = rng.integers(len(score), size=n)
        return score[rows], wrong[rows]

    expected = share_guaranteed(draw, draws)
    foreseen = share_forecast(labelled_population(estimator, "C.json"), draws, 0)
    deviation = np.sqrt(2 * expected * (1 - expected) / draws)
    assert 0.1 < expected < 0.2 and abs(foreseen - expected) < 3 * deviation


def test_the_forecast_of_the_readmes_example_is_what_100_of_its_labels_guarantee():
    """With a fit on a fifth of them, and the tests by the others."""
    frame = tracecal.read_answers(Path(__file__).parents[3] / "examples" / "labelled.jsonl")
    calibrator, settings = tracecal.calibrate(frame, "cities"), FitSettings().with_targets([0.2])
    draws, guaranteed = 40, 0
    for seed in range(draws):
        training = make_training_set(frame.sample(100, seed=seed), "cities", settings)
        fits = training.select(DEFAULT).fit_estimators().estimators
        ranking = choose_ranking(training, fits)
        answers_ranked = rank_answers(training, ranking)
        control = find_guarantees(ranking, answers_ranked, settings.risk_control)
        guaranteed += control.thresholds[0].threshold is not None
    table = tracecal.plan(0.2, calibrator=calibrator, most=100).table
    (foreseen,) = table.filter(questions=100)["guaranteed"]
    assert 0.5 < guaranteed / draws < 1 and foreseen == pytest.approx(guaranteed / draws, abs=0.15)


@pytest.mark.parametrize(
    "risk, shortfall",
    [
        (lambda score: expit(-0.3 - 1.2 * score), 0),
        (lambda score: expit(-0.5 - 1.2 * score - 0.6 * (score**2 - 1)), 0),
        (lambda score: 0.05 + 0.5 * expit(-3 * score), 0.1),
    ],
    ids=["falls evenly", "falls faster at the top", "levels off"],
)
def test_on_average_the_forecast_for_few_labels_is_what_they_guarantee(risk, shortfall):
    """Over sets of 400 labels, whose forecasts differ; less where no bend levels off as the risk."""
    rng, n, sets = np.random.default_rng(1), 400, 16

    def draw(number):
        score = rng.normal(size=number)
        return score, rng.random(number) < risk(score)

    def forecast_of_a_set(seed):
        score, wrong = draw(n)
        rank = ((np.argsort(np.argsort(score)) + 0.5) / n).tolist()
        labels = {"group": range(n), "answer": map(str, range(n)), "correct": (~wrong).tolist()}
        ranks = {"fold": [0] * n, "probability": rank, "fixed": rank}
        held_out = HeldOut(**{name: tuple(column) for name, column in (labels | ranks).items()})
        return share_forecast(population_of(held_out, of_parts=False), 150, seed)

    forecasts = [forecast_of_a_set(seed) for seed in range(sets)]
    deviation = np.std(forecasts, ddof=1) / np.sqrt(sets)
    difference = np.mean(forecasts) - share_guaranteed(draw, 1000)
    assert -shortfall - 3 * deviation < difference < 3 * deviation


@pytest.mark.parametrize(
    "options, reason",
    [
        ("0.2 --accuracy 0.9", "give either --calibrator, or"),
        ("0.2 --calibrator C.json --auroc 0.9", "give either --calibrator, or"),
        ("1.5 --accuracy 0.9 --auroc 0.8", "--error-rate 1.5"),
        ("1e-300 --accuracy 0.9 --auroc 0.8", "--error-rate 1e-300"),
        ("0.2 --accuracy 0.9 --auroc 0.8 --most 10", "--most must be 50"),
    ],
)
def test_what_cannot_be_planned_is_refused(options, reason, caplog):
    assert main(["plan", "--error-rate", *options.split()]) == 1
    assert reason in caplog.text


def test_a_runs_calibrator_has_no_answers_to_draw_from(content, calibrator_file, caplog):
    without = json.loads(json.dumps(content))
    del without[DEFAULT]["held_out"]
    calibrator_file.with_name("R.json").write_text(json.dumps(without))
    options = ["--calibrator", str(calibrator_file.with_name("R.json")), "--error-rate", "0.2"]
    assert main(["plan", *options]) == 1
    assert "give --accuracy and --auroc" in caplog.text
