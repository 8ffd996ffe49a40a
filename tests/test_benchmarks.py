"""Benchmarks run to their end, here on next to nothing; `make bench` measures.

That of the workflow is left out: dry runs have tests of their own.
"""

import re
from collections import Counter
from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest, ks_2samp

import tracecal
from benchmarks import (
    alarms,
    before,
    calibration,
    changed_words,
    commands,
    decoding,
    growth,
    intervals,
    kept,
    monitors,
    one_answer,
    operators,
    packages,
    pages,
    parts,
    peers,
    polygraph,
    promises,
    reading,
    real,
    real_sets,
    serve,
    start,
    timing,
)
from simulations.guarantees import POPULATIONS
from tracecal.calibrator.recommendation import choose_default
from tracecal.calibrator.training_set import make_training_set
from tracecal.errors import InputError
from tracecal.fits.fit_settings import FitSettings

POLYGRAPH = pytest.mark.skipif(
    not find_spec("lm_polygraph"), reason="lm-polygraph is in .venv-polygraph, for make bench"
)
PACKAGES = pytest.mark.skipif(
    not find_spec("safedecide"), reason="they are in .venv-packages, for make bench AREAS=packages"
)
(CITIES,) = (one for one in real_sets.read_real_sets(None) if one.kind == real_sets.CITIES)
FEW = dict(list(calibration.ESTIMATORS.items())[:2])


def test_the_page_of_speed_has_the_works_that_have_a_peer():
    works = [
        timing.Row("score", 2.0, 4.0, "a script", 0.5),
        timing.Row("score, peak MB", 90.0, 90.0, "a script", 1.0),
        timing.Row("explore", 3.0),
    ]
    lines = peers.table(works, [0.25, 0.75])
    assert [line for line in lines if "a script" in line] == ["| score | 2 | 4 | 0.50 | a script |"]
    assert not any("explore" in line for line in lines)
    assert "a load of 0.2 to 0.8: quiet." in lines[-1]


@pytest.mark.slow
def test_the_same_library_before_computes_the_same_numbers(monkeypatch):
    monkeypatch.setattr(before, "REPEATS", 1)
    monkeypatch.setenv("BEFORE", str(timing.SCRIPTS))
    seconds, peak = reading.rows(50)
    assert 0.2 < seconds.ratio < 5 and "before; 0 of 900 numbers differ" in seconds.against
    assert peak.work == "reading 50 answers, peak MB"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("area", "small"),
    [
        (calibration, {"SIZES": (60,), "ESTIMATORS": FEW}),
        (commands, {"SIZES": (60,), "SCORED": 60, "SHOWN": 60}),
        (decoding, {"SIZES": ((300, 32, 1, 2),), "ANSWERS": 4, "LONGEST": 3, "NEW": 3}),
        (one_answer, {"TIMES": 2}),
        (operators, {"SIZES": (50,)}),
        (parts, {"SIZES": (50,)}),
        (reading, {"SIZES": (50,)}),
        (start, {"STARTS": {"--help": (["--help"], {})}}),
        (serve, {"REQUESTS": 4, "AT_ONCE": 2, "REPEATS": 1, "MANY": 40}),
        pytest.param(polygraph, {"SIZES": ((300, 32, 1, 2, 2, 3),)}, marks=POLYGRAPH),
        pytest.param(
            monitors,
            {"STREAMS": 4, "JUDGED_STREAMS": 4, "SLOW_STREAMS": 1},
            marks=PACKAGES,
        ),
        pytest.param(
            packages,
            {
                "LABELS": (50,),
                "SIMULATED": 1,
                "REFERENCE": 50,
                "read_real_sets": lambda folder: [CITIES],
            },
            marks=PACKAGES,
        ),
    ],
    ids=lambda value: getattr(value, "__name__", "").split(".")[-1],
)
def test_an_area_runs_to_its_end(area, small, monkeypatch):
    monkeypatch.setattr(before, "REPEATS", 1)
    for name, value in small.items():
        monkeypatch.setattr(area, name, value)
    measured = list(area.rows())
    assert measured
    assert all(row.ours > 0 for row in measured)


def test_growth_is_measured_at_enough_sizes_to_see_its_shape():
    assert all(len(sizes) >= 5 and [*sizes] == sorted(sizes) for sizes in growth.SIZES.values())


def test_growth_is_by_how_much_twice_the_size_costs():
    assert growth.doubled([(5, 9.0), (10, 3.0), (40, 48.0)]) == pytest.approx(4)


def test_growth_is_drawn(monkeypatch, tmp_path):
    monkeypatch.setattr(growth, "_dry_run", lambda models, folder: lambda: 1.0)
    small = {
        "answers": (20, 40),
        "tokens an answer": (2, 4),
        "models": (1, 2),
        "estimators": (2, 3),
    }
    monkeypatch.setattr(growth, "SIZES", small)
    monkeypatch.setattr(growth, "ANSWERS", 60)
    monkeypatch.setattr(growth, "PICTURE", tmp_path / "growth.svg")
    assert len(list(growth.rows())) == 8
    assert (tmp_path / "growth.svg").read_text().count("<svg") == 1


def test_labels_are_drawn_in_whole_groups_until_there_are_as_many():
    rng = np.random.default_rng(3)
    population = POPULATIONS["groups of 1 and 7, the large ones worse"]
    frame, truth = packages.Simulation(population).draw(rng, 300)
    answers = real_sets.AnswerSet("made", "made", frame)
    assert answers.confidence == pytest.approx(truth["confidence"].to_numpy(), rel=1e-5)
    labelled = answers.draw_labelled(rng, 200)
    assert 200 <= labelled.sum() < 207
    groups, counts = np.unique(truth["group"].filter(labelled), return_counts=True)
    assert (counts == np.bincount(truth["group"])[groups]).all()


def test_tracecal_is_compared_as_its_commands_keep():
    labelled = CITIES.draw_labelled(np.random.default_rng(1), 150)
    answers, new = CITIES.frame.filter(labelled), CITIES.frame.filter(~labelled)
    masks = kept.keep(answers, CITIES.with_inputs.filter(~labelled), (0.2, 0.3))
    for rate, mask in zip((0.2, 0.3), masks, strict=True):
        calibrator = tracecal.calibrate(answers, "task", error_rates=[rate])
        scored = calibrator.score(new, error_rate=rate)
        assert mask.tolist() == scored["keep"].fill_null(False).to_list()
    assert masks[1].any()


def test_tracecal_is_broken_by_question_no_more_often_than_stated_where_large_groups_are_worse(
    monkeypatch,
):
    kind = {packages.UNEQUAL: packages.HOSTILE[packages.UNEQUAL]}
    small = {"HOSTILE": kind, "LABELS": (300,), "SIMULATED": 20, "REFERENCE": 500, "PACKAGES": {}}
    for name, value in small.items():
        monkeypatch.setattr(packages, name, value)
    found = packages.measure_populations()
    assert found.height == 60
    assert packages.most_broken(found)[0] <= 0.1


def test_the_interval_of_a_share_is_scipys():
    for count, n in ((0, 40), (7, 40), (40, 40)):
        expected = binomtest(count, n).proportion_ci(method="wilson")
        assert intervals.wilson(count, n) == pytest.approx((count / n, expected.low, expected.high))


@PACKAGES
@pytest.mark.parametrize("name", packages.PACKAGES)
def test_a_package_keeps_what_is_right_and_nothing_where_half_is_wrong(name):
    find, confidence = packages.PACKAGES[name], np.linspace(0.5, 0.995, 400)
    confidence = np.random.default_rng(0).permutation(confidence)
    assert find(confidence, confidence > 0.6, 0.2) < 0.75
    half = np.random.default_rng(1).random(400) < 0.5
    assert find(confidence, half, 0.2) > confidence.max()


def test_the_picture_of_packages_says_what_the_table_beside_it_says():
    rows = [line.split(" | ") for line in packages.PAGE.read_text().splitlines()]
    names = [packages.TRACECAL, *packages.PACKAGES]
    kept = {
        row[0].removeprefix("| "): row[2] for row in rows if len(row) == 1 + len(packages.LABELS)
    }
    columns = ["set", "labels", "package", "kept"]
    shares = [("one", 100, name, float(kept[name].split()[0])) for name in names]
    headline = packages.headline(pl.DataFrame(shares, schema=columns, orient="row"))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", packages.PICTURE.read_text())
    assert headline in " ".join(texts)


def test_a_picture_of_packages_says_who_keeps_how_much():
    names = [packages.TRACECAL, *packages.PACKAGES]
    rows = [
        ("made", one, n, draw, name, (9 - place) / 100, name == "deferguard")
        for place, name in enumerate(names)
        for n in packages.LABELS
        for one in ("first", "second")
        for draw in range(2)
    ]
    columns = ["kind", "set", "labels", "draw", "package", "kept", "broken"]
    found = pl.DataFrame(rows, schema=columns, orient="row")
    assert packages.headline(found).replace("\N{NO-BREAK SPACE}", " ") == (
        "From 100 labels tracecal keeps 1.0 % of real answers more than safedecide, the next package"
    )
    assert packages.paired_differences(found)["difference"].min() == pytest.approx(0.01)
    figure = packages.draw(found)
    assert len(figure.axes) == 1 and len(figure.axes[0].lines) == 2 * 4 * len(packages.PACKAGES) + 1
    made = pl.concat(found.with_columns(kind=pl.lit(kind)) for kind in packages.HOSTILE)
    lines = packages.tables(found, made)
    assert len(lines) == 2 * (2 + len(names)) + 1
    assert lines[2].startswith("| tracecal | .090 (.090–.090)<br>broken&nbsp;.00 (.00–.49) | ")


def test_a_table_is_written_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    marks = "<!-- {}packages{} -->\n".format
    begin, end = marks("", ": written by `make bench`"), marks("end of ", "")
    page.write_text(f"# Page\n\n{begin}old\n{end}\nText.\n")
    pages.replace_table(page, "packages", ["| a |", "|---|"])
    assert page.read_text() == f"# Page\n\n{begin}\n| a |\n|---|\n\n{end}\nText.\n"
    with pytest.raises(InputError, match="0 places for 'speed'"):
        pages.replace_table(page, "speed", [])


def test_the_windows_statistic_is_scipys():
    rng = np.random.default_rng(2)
    reference, values = rng.random(150).round(2), rng.random(260).round(2)
    told = alarms.distance(reference, values)
    window, step = alarms.WINDOW, alarms.STEP
    for end in (window, window + step, 260):
        expected = ks_2samp(reference, values[end - window : end]).statistic
        assert told[end - 1] == pytest.approx(expected)
    assert told[: window - 1].max() == told[window] == 0


def test_a_change_of_traffic_is_noticed_soon_and_no_change_hardly_ever():
    turned, unchanged = (
        alarms.monitors([alarms.drawn(shift, seed) for seed in range(20)]) for shift in (1.0, 0.0)
    )
    assert np.isfinite(unchanged).mean() <= 0.15
    delays = turned[turned > alarms.BEFORE] - alarms.BEFORE
    assert len(delays) >= 18 and 5 <= np.median(delays) <= 60


def test_a_word_has_its_most_surprising_token_and_ties_are_drawn_at_random():
    tokens = [("a@@", -1.0), ("b", -2.0), ("c", -2.0), ("d", -0.5), ("</s>", -9.0)]
    tokens = [{"token": token, "logprob": value} for token, value in tokens]
    words, surprisals, word_of = changed_words.word_surprisals(tokens)
    assert (words, surprisals, word_of.tolist()) == (
        ["ab", "c", "d"],
        [2.0, 2.0, 0.5],
        [0, 0, 1, 2],
    )
    row = {"tokens": tokens, "words": words, "changed": [True, False, False]}
    rates = {"d": 0.9}
    (chosen,) = changed_words.hits(
        pl.DataFrame([row]), rates, Counter(["ab", "c", "c", "d"])
    ).to_dicts()
    assert chosen == pytest.approx(
        {"highest": 0.5, "usual": 0, "rarest": 0.5, "longest": 1, "random": 1 / 3, "lowest": 0}
        | {"window": 1, "random_window": 1}
    )


@pytest.fixture(scope="module")
def scores():
    """Brier scores on the example of the repository."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real, "SIZES", (20, 50))
        patch.setattr(real, "DRAWS", 3)
        yield real.measure_brier([CITIES])


def test_the_default_is_compared_with_the_base_rate_by_hand(scores):
    assert {*scores["fit"]} == {*real.FITS} and scores.height == 2 * 3 * len(real.FITS)
    split = real.split(CITIES, 50, 2).join(CITIES.frame, on="example_id")
    rate = split.filter(part="calibration")["correct"].mean()
    others = split.filter(part="evaluation")["correct"]
    assert len(others) == 350
    brier = scores.filter(labels=50, draw=2, fit="base rate")["brier"].item()
    assert brier == pytest.approx(((others.cast(float) - rate) ** 2).mean())
    first = scores.filter(labels=50, draw=0)
    default, isotonic = (first.filter(fit=fit)["brier"].item() for fit in ("default", "isotonic"))
    compared = real.differences(scores).filter(labels=50, draw=0, fit="isotonic")
    assert compared["difference"].item() == pytest.approx(default - isotonic)
    assert real.sets_won(real.differences(scores).filter(labels=50), "isotonic") == (1, 1)


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("with_entropies", [True, False])
def test_the_default_of_real_answers_is_that_of_calibrate(n, with_entropies):
    frame = CITIES.frame.head(n)
    if not with_entropies:
        frame = frame.with_columns(entropy=pl.lit(None, frame.schema["entropy"]))
    training = make_training_set(frame, "task", FitSettings())
    answers = real_sets.AnswerSet("some", "some", frame)
    assert real.default_fit(answers, n).id == choose_default(training)


def test_real_answers_are_shown_in_tables_and_pictures(scores, monkeypatch):
    monkeypatch.setattr(real, "SIZES", (20, 50))
    monkeypatch.setattr(real, "SHOWN", 50)
    lines = real.brier_table(scores)
    assert lines[2].startswith("| cities (1) | 50 | .") and "*)" in lines[2]
    assert lines[-1].startswith("| **all** (1) | 20 | .")
    assert real.won_table(scores)[:3] == [
        "| better than | all sets |",
        "|---|---|",
        "| isotonic regression | on 1 of 1 |",
    ]
    assert "beats isotonic regression on 1 of 1 sets" in real.draw_brier(scores).get_suptitle()
    monkeypatch.setattr(kept, "LABELS", (100, 300))
    monkeypatch.setattr(kept, "DRAWS", 1)
    found = real.measure_kept([CITIES])
    assert found.height == 4 and found.filter(labels=300, rate=0.2)["kept"].item() > 0.3
    lines = real.kept_table(found)
    assert len(lines) == 5 and lines[2].startswith("| cities (1) | 20 % | .")
    assert "<br>broken&nbsp;.00 (.00–.79)<br>1&nbsp;set |" in lines[4]
    assert real.nothing_table(found)[-1] == "| 300 | 0 of 1 sets | 100 % |"
    assert "something is kept on" in real.draw_kept(found).get_suptitle()


def test_both_promises_are_measured_on_the_same_labels(monkeypatch):
    monkeypatch.setattr(promises, "LABELS", (60, 100))
    monkeypatch.setattr(promises, "DRAWS", 1)
    measured = promises.measure([CITIES])
    assert measured.height == 2 * 2 * 3 and set(measured["promise"]) == {"nobody checks", "kept"}
    share = {
        promise: rows["share"].item()
        for (promise,), rows in measured.filter(labels=100, rate=0.1).group_by("promise")
    }
    assert share["nobody checks"] > 0.3 > share["kept"]
    lines = promises.table(measured)
    assert lines[2].startswith("| cities (1) | 10 % | nobody checks | .") and "broken" in lines[2]
    assert lines[-1].startswith("| **all** (1) | 20 % | kept | ")
    assert "nobody checks" in promises.draw(measured).get_suptitle()


def test_sets_of_the_model_that_chose_the_default_are_told_apart():
    """Three sets of others, of which one is no better; nothing is kept on two."""
    compared = pl.DataFrame(
        [
            (kind, kind, 100, draw, fit, 0.2 if fit == "default" else 0.2 + more)
            for kind, more in {"cities": 0.05, "a": 0.0004, "b": 0.0, "c": -0.0004}.items()
            for draw in range(2)
            for fit in real.FITS
        ],
        schema=["kind", "set", "labels", "draw", "fit", "brier"],
        orient="row",
    )
    lines = real.won_table(compared)
    assert lines[0] == "| better than | all sets | all but cities and demo |"
    assert lines[2] == "| isotonic regression | on 2 of 4 | on 1 of 3 |"
    assert "**all but cities and demo** (3)" in real.kinds(compared)
    title = real.draw_brier(compared).get_suptitle().replace("\n", " ")
    assert title.endswith("on 2 of 4 sets; on other models it ties with one logistic regression")
    kept_shares = pl.DataFrame(
        [
            (kind, kind, n, 0, 0.2, share, False)
            for kind, share in {"cities": 0.5, "a": 0.0, "b": 0.0, "c": 0.1}.items()
            for n in kept.LABELS
        ],
        schema=["kind", "set", "labels", "draw", "rate", "kept", "broken"],
        orient="row",
    )
    assert real.nothing_table(kept_shares)[2] == "| 50 | 2 of 4 sets | 100 % |"
    assert "kept on 2 of 4 sets" in real.kept_message(kept_shares)
