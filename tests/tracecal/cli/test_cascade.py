"""A cascade from two files of labelled answers."""

import json
from pathlib import Path

import polars as pl
import pytest

from support.labelled_answers import answers, pair, predictor_of
from tracecal.calibrator.cascade import fit_cascade
from tracecal.calibrator.catalogue import LABELS
from tracecal.calibrator.catalogue import MEAN_OF_THREE as DEFAULT
from tracecal.calibrator.settings import FitSettings
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.estimators.trace_inputs import compute_inputs

SETTINGS = {"splits": {"count": 2}, "bootstrap": {"resamples": 40}}


@pytest.fixture(scope="module")
def found():
    return fit_cascade(*pair(), FitSettings(**SETTINGS))


def value(found, column="value", **where):
    return found.table.filter(**where)[column].item()


def test_it_tells_what_escalating_is_worth(found):
    ids = found.table["router"].drop_nulls().unique()
    compared = {found.router, "trace_plus", "picked_baseline", "random", "oracle", "seq_logp"}
    assert compared <= {*ids}
    plus, random, oracle = (
        value(found, router=name, metric="area") for name in ("trace_plus", "random", "oracle")
    )
    assert random < plus < oracle
    ends = (value(found, metric="small_right") + value(found, metric="large_right")) / 2
    assert random == pytest.approx(ends)
    assert found.table.filter(metric="cost")["value"].is_null().all()


def test_thresholds_are_those_of_the_tested_answers(found):
    _, large = pair()
    assert found.file.fitted_on.model == "m" and found.router == DEFAULT
    told = found.file.content()[DEFAULT]["cascade"]
    assert told["large"] == "l"
    assert [one["promised"] for one in told["thresholds"]] == [0.01, 0.02, 0.05]
    last = told["thresholds"][-1]
    assert 0 < last["escalated"] <= 1
    assert last["n"] < 300 and last["groups"] == last["n"]
    # Within what some two hundred tested answers can tell.
    assert last["large_accuracy"] == pytest.approx(large["correct"].mean(), abs=0.06)
    json.dumps(found.file.content())


def test_answers_without_a_trace_count_and_are_escalated_and_unlabelled_questions_do_not():
    small, large = pair()
    bare = pl.int_range(pl.len()) % 3 == 0
    lists = [name for name, kind in small.schema.items() if kind == pl.List(pl.Float32)]
    small = small.with_columns(pl.when(~bare).then(pl.col(name)).name.keep() for name in lists)
    large = large.with_columns(correct=pl.when(pl.int_range(pl.len()) < 280).then("correct"))
    settings = SETTINGS | {"risk_control": {"cascades": {"below": [0.6]}}}
    told = fit_cascade(small, large, FitSettings(**settings))
    (kept,) = told.file.content()[told.router]["cascade"]["thresholds"]
    assert told.table["n"].unique().to_list() == [280]
    assert kept["threshold"] is not None
    assert kept["escalated"] >= 0.25, "what has no trace is never kept"


def test_what_is_stored_is_a_calibrator_that_keeps_by_its_promises(found):
    small, _ = pair()
    fitted = predictor_of(json.loads(found.file.text()), None, "C.json")
    told = found.file.content()[DEFAULT]["cascade"]["thresholds"]
    by_promise = {f"below:{one['promised']}": one["threshold"] for one in told}
    assert by_promise == {name: fitted.thresholds[name] for name in by_promise}
    assert by_promise["below:0.01"] is None and "groups" in fitted.why_not("below:0.01")
    x = compute_inputs(small, fitted.columns).select(fitted.columns).to_numpy()
    kept = fitted.keeps(x, "below:0.05")
    # The thresholds are on the probabilities of the fit that left answers to test on, whose
    # results are those told.
    at = by_promise["below:0.05"]
    assert (kept == (fitted.routing_fit.predict(fitted.select_inputs(x)) >= at)).all()
    assert 1 - kept.mean() == pytest.approx(told[-1]["escalated"], abs=0.1)
    with pytest.raises(
        InputError, match="no guarantee 'below:0.3'; it has: below:0.01, below:0.02"
    ):
        fitted.require_tested("below:0.3")
    with pytest.raises(InputError, match="tested: 0.05, 0.1, 0.2, 0.3, 0.4, 0.5[.]"):
        fitted.require_tested(0.33)


def test_prices_give_costs():
    told = [{"prompt": 1.0, "generated": 2.0}, {"prompt": 10.0, "generated": 20.0}]
    small, large = (
        frame.with_columns(prompt_token_ids=pl.lit([1, 2, 3], pl.List(pl.Int32)))
        for frame in pair(120)
    )
    found = fit_cascade(small, large, FitSettings(**SETTINGS), told)
    cost = found.table.filter(metric="cost", router="random").sort("share")["value"]
    ends = [value(found, metric=name) for name in ("small_cost", "large_cost")]
    assert (cost[0], cost[-1]) == pytest.approx((ends[0], sum(ends)))
    tokens = small["surprisal"].list.len().mean()
    assert ends[0] == pytest.approx((3 * 1 + 2 * tokens) / 1000, rel=0.1)


def test_files_that_share_no_question_and_wrong_shares_are_refused():
    small, large = pair(60)
    other = large.with_columns(pl.col("example_id") + "x")
    with pytest.raises(InputError, match="share no question"):
        fit_cascade(small, other, FitSettings())
    with pytest.raises(ValueError, match="less than 1"):
        FitSettings(risk_control={"cascades": {"below": (1.5,)}})


def test_the_command_prints_a_table_and_writes_thresholds_and_a_picture(
    tmp_path, monkeypatch, capsys, caplog
):
    monkeypatch.chdir(tmp_path)
    for name, frame in zip(("small", "large"), pair(120), strict=True):
        frame.write_ndjson(f"{name}.jsonl")
    (tmp_path / "c.yaml").write_text(
        json.dumps(SETTINGS | {"risk_control": {"cascades": {"at_least": [0.5]}}})
    )
    start = ["cascade", "--small", "small.jsonl", "--large", "large.jsonl", "--config", "c.yaml"]
    assert main([*start, "--output", "C.json", "--picture", "p.svg"]) == 0
    printed = capsys.readouterr().out
    assert "120 questions: m is right on" in printed
    assert all(name in printed for name in (f"\n{LABELS[DEFAULT]} ", "\nTRACE+ ", "\noracle "))
    assert f"Thresholds on {LABELS[DEFAULT]}" in printed
    assert "an accuracy of at least 0.5" in printed
    stored = json.loads((tmp_path / "C.json").read_text())
    told = stored[DEFAULT]["cascade"]
    assert [one["promise"] for one in told["thresholds"]] == ["below"] * 3 + ["at_least"]
    drawn = Path("p.svg").read_text(encoding="utf-8")
    assert f"Routing by {LABELS[DEFAULT]} gains" in " ".join(drawn.split())
    is_guaranteed = any(one["threshold"] is not None for one in told["thresholds"])
    assert ("Threshold of a guarantee" in drawn) == is_guaranteed
    assert stored["fitted_on"]["task"] == "cascade" and told["large"] == "l"
    assert "share escalated" in (tmp_path / "p.svg").read_text()
    named = ["--large-model", "qwen", "--task", "sums", "--vocabulary", "9000"]
    assert main([*start, *named, "--output", "C.json"]) == 0
    stored = json.loads((tmp_path / "C.json").read_text())
    assert stored[DEFAULT]["cascade"]["large"] == "qwen"
    assert (stored["fitted_on"]["task"], stored["fitted_on"]["vocabulary"]) == ("sums", 9000)
    assert main([*start, "--small-price", "1", "2"]) == 1
    assert "prices of both models" in caplog.text


def test_two_names_of_one_file_are_no_cascade(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    answers(60).write_ndjson("a.jsonl")
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    for large in ("a.jsonl", "./a.jsonl", "link.jsonl"):
        assert main(["cascade", "--small", "a.jsonl", "--large", large]) == 1
    assert caplog.text.count("a cascade is of two models") == 3


def test_answers_are_kept_by_a_promise_about_a_cascade(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    for name, frame in zip(("small", "large"), pair(), strict=True):
        frame.write_ndjson(f"{name}.jsonl")
    (tmp_path / "c.yaml").write_text(json.dumps(SETTINGS))
    told = ["--small", "small.jsonl", "--large", "large.jsonl", "--config", "c.yaml"]
    assert main(["cascade", *told, "--output", "C.json"]) == 0
    answers(80, seed=3).write_ndjson("new.jsonl")
    score = ["score", "--answers", "new.jsonl", "--calibrator", "C.json", "--output", "s.jsonl"]
    assert main([*score, "--guarantee", "below:0.05"]) == 0
    fitted = predictor_of(json.loads((tmp_path / "C.json").read_text()), None, "C.json")
    x = compute_inputs(answers(80, seed=3), fitted.columns).select(fitted.columns).to_numpy()
    kept = fitted.keeps(x, "below:0.05")
    assert pl.read_ndjson("s.jsonl")["keep"].to_list() == kept.tolist()
    assert 0 < kept.sum() < 80
    assert main([*score, "--guarantee", "below:0.3"]) == 1
    assert "no guarantee 'below:0.3'" in caplog.text
    assert main([*score, "--guarantee", "below:0.05", "--error-rate", "0.1"]) == 1
    assert "give --error-rate or --guarantee, not both" in caplog.text
