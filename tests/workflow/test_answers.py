"""A study of models: some decoded, one replayed, and the main one read from a file, without any
entropies. Its labels, file names and answers are attacks: text is text, and reaches no shell,
template, page or typesetter.
"""

import json
import re

import polars as pl
import pytest
import yaml

from tests.tracecal.explorer.test_page import unpacked
from tracecal.calibrator.predictor import load_predictor
from tracecal.io.traces import arrow_metadata

pytestmark = pytest.mark.runs

RESULTS = "results/smoke"
# Where estimators of one's own stand by name, whether they win or not.
SHOW_OWN = set(
    "main_comparison broader_uq calibration_size reliability_selective length_stratified "
    "localized_global_errors localized_error_subtypes protocol_comparison "
    "performance_overview".split()
)
LEFT_OUT = 3  # of the answers that are read
SILENT = 10  # the place of the answer without a judge's verdict
ATTACKS = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    "{{ 7*7 }}",
    "{% raw %}",
    "{wildcards.model}",
    "</script><script>document.title='pwned'</script>",
    "<img src=x onerror=alert(1)>",
    "\\input{/etc/passwd}",
    "\\immediate\\write18{touch pwned}",
    "../../pwned",
    "%PDF & # _ ^ ~ $x$",
    "\u202eright to left\x07",
]
TASK = "Arithmetic \\input{x} <b>{{ 7*7 }}</b> {wildcards.task}"
MODEL = "Model \\write18{touch pwned} <b onclick=alert(1)> {{ 7*7 }} {threads}"


def given(root):
    """Files of answers, made of those of demo-medium: log-probabilities alone, and token ids."""
    task = pl.read_parquet(root / RESULTS / "tasks/arithmetic.parquet").filter(role="evaluation")
    traces = pl.read_ipc(root / RESULTS / "traces/demo-medium/arithmetic.arrow")
    answers = traces.join(task, on="example_id", how="semi").sample(
        fraction=1, shuffle=True, seed=1
    )
    # A judge that errs on every fifth answer, and is silent on one.
    labels = pl.read_parquet(root / RESULTS / "labels/demo-medium/arithmetic.parquet")
    answers = answers.join(labels.select("example_id", "correct"), on="example_id")
    place = pl.int_range(pl.len())
    judge = pl.when(place != SILENT).then((place % 5 == 0) != pl.col("correct"))
    answers = answers.with_columns(scores=pl.struct(judge=judge)).drop("correct")
    logprobs = pl.col("surprisal").list.eval(-pl.element())
    columns = "example_id", "answer", "scores"
    read = answers.select(*columns, logprobs=logprobs).to_dicts()[LEFT_OUT - 1 :]
    for place, row in enumerate(read):
        row["answer"] = f"{ATTACKS[place % len(ATTACKS)]} {row['answer']}"
    read[0]["logprobs"][0] = 3.0
    texts = {
        "$(touch pwned) read": "".join(json.dumps(row) + "\n" for row in read),
        "replayed": answers.select(
            "example_id", "prompt_token_ids", "token_ids", "scores"
        ).write_ndjson(),
    }
    (root / "logs").mkdir()
    for name, text in texts.items():
        (root / f"logs/{name}-arithmetic.jsonl").write_text(text, encoding="utf-8")
    return answers.sort("example_id")


@pytest.fixture(scope="module")
def mixed(extended):
    """The checkout with the study's run, its configuration, and the answers that its files hold."""
    answers, smoke = given(extended.root), extended.smoke()
    read = {
        "answers": "logs/$(touch pwned) read-{task}.jsonl",
        "reading": {"wrong_rows": "skip"},
    }
    replayed = {"answers": "logs/replayed-{task}.jsonl", "path": f"{RESULTS}/models/demo-medium"}
    models = [
        {"slug": "read", "source": read},
        {"slug": "replayed", "label": MODEL, "source": replayed, "shards": 2},
    ]
    spec = yaml.safe_load((extended.root / "config/tasks/arithmetic.yaml").read_text())
    spec = yaml.safe_dump(spec | {"label": TASK})
    (extended.root / "attack.yaml").write_text(spec, encoding="utf-8")
    arithmetic, extractive = smoke["tasks"]
    smoke["study"]["main"] = {"models": ["read"], "tasks": ["arithmetic"]}
    smoke["study"]["cross"]["models"] += ["read", "replayed"]
    smoke["study"]["broader"]["models"] += ["demo-small"]
    smoke["study"]["columns"] = {"judge": "scores.judge"}
    config = extended.variant(
        "mixed",
        models=smoke["models"] + models,
        tasks=[arithmetic | {"file": "attack.yaml"}, extractive],
        study=smoke["study"],
        custom_estimators="examples/custom_estimators.py",
    )
    extended.snakemake(config=config)
    return extended, config, answers


def counted(results):
    return pl.read_parquet(results / "analyses/accuracy.parquet")


def test_replay_gives_back_the_traces_that_decoding_gave(mixed):
    checkout, _, answers = mixed
    results = checkout.root / RESULTS
    path = results / "traces/replayed/arithmetic.arrow"
    replayed = pl.read_ipc(path)
    for column in ("token_ids", "tokens", "answer"):
        assert replayed[column].to_list() == answers[column].to_list()
    assert arrow_metadata(path)["tokenisation"] == "token ids as given"
    for column in ("surprisal", "entropy"):
        far = replayed[column].explode() - answers[column].explode()
        assert far.abs().max() < 1e-4
    assert list((results / "work/journals/replayed/replayed/arithmetic").glob("*/*.arrow"))
    shards = [
        pl.read_ipc(results / f"work/shards/{number}-of-2/traces/replayed/arithmetic.arrow")
        for number in (1, 2)
    ]
    assert abs(shards[0].height - shards[1].height) <= 1
    assert sum(part.height for part in shards) == replayed.height
    fitted_on = load_predictor(results / "calibrators/replayed/arithmetic.json").fitted_on
    assert (fitted_on.n, fitted_on.entropy, fitted_on.processed) == (answers.height, "exact", "no")
    rates = dict(counted(results).filter(task="arithmetic").select("model", "accuracy").iter_rows())
    assert fitted_on.base_rate == rates["replayed"] == rates["demo-medium"]


def test_what_a_file_leaves_out_is_counted_and_what_needs_entropies_is_null(mixed):
    checkout, _, answers = mixed
    results, n = checkout.root / RESULTS, answers.height - LEFT_OUT
    counts = counted(results).filter(model="read")
    assert counts.select("n", "unanswered", "without_entropy").row(0) == (n, LEFT_OUT, n)
    scores = pl.read_parquet(results / "scores/read/arithmetic.parquet")
    assert scores.height == n
    assert scores["seq_logp"].null_count() == 0
    assert scores["trace"].null_count() == scores["mean_token_entropy"].null_count() == n
    decoded = pl.read_parquet(results / "scores/demo-medium/arithmetic.parquet")
    same = scores.join(decoded, on="example_id", suffix="_decoded")
    assert (same["seq_logp"] - same["seq_logp_decoded"]).abs().max() < 1e-6
    brier = pl.read_parquet(results / "metrics/read/arithmetic.parquet").filter(metric="brier")
    known = dict(brier.group_by("estimator").agg(pl.col("n").min()).iter_rows())
    assert known["seq_logp"] > known["trace"] == known["trace_plus"] == 0
    table = (results / "tables/cross_model.tex").read_text(encoding="utf-8")
    without = "Questions without an answer in the files: read on Arithmetic"
    left_out = rf"{without}.* \({LEFT_OUT} of {answers.height}\)"
    assert re.search(left_out, table)
    assert re.search(rf"that TRACE needs: read on Arithmetic.* \({n} of {n}\)", table)
    bridge = pl.read_csv(results / "tables/bridge.csv")
    assert {"trace", "trace_plus"} <= set(bridge.filter(pl.col("brier").is_null())["estimator"])
    figures = [results / f"figures/{name}.svg" for name in ("framework", "spike_evidence")]
    assert all("No answer in the main study has" in path.read_text() for path in figures)
    fitted_on = load_predictor(results / "calibrators/read/arithmetic.json", "seq_logp").fitted_on
    assert (fitted_on.n, fitted_on.entropy, fitted_on.processed) == (n, "none", "unknown")


def test_own_estimators_and_all_models_are_shown(mixed):
    checkout, _, answers = mixed
    results = checkout.root / RESULTS
    names_shown = {
        path.stem for path in results.glob("tables/*.tex") if "Brevity" in path.read_text()
    }
    names_shown |= {
        path.stem for path in results.glob("figures/*.svg") if "Brevity" in path.read_text()
    }
    assert names_shown >= SHOW_OWN
    page = unpacked((results / "explorer.html").read_text(encoding="utf-8"))
    names = [one["id"] for one in page["named"]["model"]]
    assert names == ["demo-medium", "demo-small", "read", "replayed"]
    assert page["answers"]["model"].count(names.index("read")) == answers.height - LEFT_OUT


def test_a_judge_is_a_baseline_and_enters_a_fit_where_answers_have_one(mixed):
    checkout, _, answers = mixed
    results = checkout.root / RESULTS
    given = answers.select("example_id", judge=pl.col("scores").struct.field("judge"))
    scores = pl.read_parquet(results / "scores/replayed/arithmetic.parquet")
    assert scores["judge"].to_list() == given["judge"].cast(pl.Float64).to_list()
    assert scores["judge"].null_count() == 1
    both = {"judge", "log_ridge_also"}
    for model in ("read", "replayed", "demo-medium"):
        text = (results / f"calibrators/{model}/arithmetic.json").read_text(encoding="utf-8")
        fits = json.loads(text)
        assert both.isdisjoint(fits) if model == "demo-medium" else both <= set(fits)
        if model == "replayed":
            fit = fits["log_ridge_also"]
            assert fit["features"][-1] == "judge" and fit["final"]["weights"][-1] > 0
            assert fit["features"][:-1] == fits["log_ridge"]["features"]
    brier = pl.read_parquet(results / "metrics/replayed/arithmetic.parquet").filter(metric="brier")
    means = dict(brier.group_by("estimator").agg(pl.col("value").mean()).iter_rows())
    assert means["log_ridge_also"] < means["log_ridge"]
    main = pl.read_csv(results / "tables/main_comparison.csv")
    assert "judge" in set(main["estimator"])
    names_shown = (results / "tables/few_labels.html").read_text(encoding="utf-8")
    assert "Log ridge + own columns" in names_shown


def test_attacks_are_shown_as_text_and_none_is_executed(mixed):
    checkout, config, _ = mixed
    tables = checkout.root / RESULTS / "tables"
    for path in tables.glob("*.tex"):
        text = path.read_text(encoding="utf-8")
        assert "\\write18" not in text and "\\input{" not in text, path
    for path in tables.glob("*.html"):
        assert "<b onclick" not in path.read_text(encoding="utf-8"), path
    html = (tables / "cross_model.html").read_text(encoding="utf-8")
    assert "&lt;b onclick" in html
    assert "{{ 7*7 }}" in html
    assert "49" not in html.split("7*7")[1][:40]
    report = checkout.root / "report.html"
    checkout.snakemake("--report", str(report), config=config)
    text = report.read_text(encoding="utf-8")
    assert "<script>document.title" not in text
    assert "onerror=alert(1)>" not in text
    assert not list(checkout.root.rglob("pwned*"))
    assert not (checkout.root.parent / "pwned").exists()


def test_attacks_are_asked_as_any_question(extended):
    rows = [
        {"q": f"{ATTACKS[i % len(ATTACKS)]} What is {i} + 1?", "a": [str(i + 1), ATTACKS[i % 13]]}
        for i in range(60)
    ]
    lines = "\n".join(json.dumps(row) for row in rows)
    (extended.root / "rows $(touch pwned).jsonl").write_text(lines, encoding="utf-8")
    spec = {
        "label": TASK,
        "source": {"path": "rows $(touch pwned).jsonl"},
        "fields": {"question": "q", "references": "a"},
        "correctness": "numeric",
        "max_new_tokens": 8,
    }
    (extended.root / "hostile_task.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    source = {"path": f"{RESULTS}/models/demo-small"}
    config = extended.variant(
        "hostile",
        run="hostile",
        models=[{"slug": "hostile", "label": MODEL, "source": source}],
        tasks=[{"slug": "hostile", "file": "hostile_task.yaml"}],
        study={"main": {"models": ["hostile"], "tasks": ["hostile"]}},
        estimators=["seq_logp", "trace"],
    )
    extended.snakemake("results/hostile/labels/hostile/hostile.parquet", config=config)
    prompts = pl.read_ipc(extended.root / "results/hostile/traces/hostile/hostile.arrow")["prompt"]
    for attack in ATTACKS[:-1]:
        assert any(attack in prompt for prompt in prompts)
    assert not list(extended.root.rglob("pwned*"))
    assert not (extended.root.parent / "pwned").exists()


def test_an_edited_file_of_answers_is_read_again_and_nothing_else(mixed):
    checkout, config, _ = mixed
    assert checkout.scheduled(config) == {}
    with checkout.edited("logs/$(touch pwned) read-arithmetic.jsonl", "3.0", "-3.0"):
        scheduled = checkout.scheduled(config)
    assert {"read_answers", "label_answers", "calibrate", "make_explorer"} <= set(scheduled)
    assert {scheduled.get(rule) for rule in ("read_answers", "calibrate", "measure")} == {1}
    assert not {"replay_answers", "generate", "audit_traces"} & set(scheduled)


def test_own_estimators_and_rules_run(broken):
    arithmetic = (broken.root / "config/tasks/arithmetic.yaml").read_text(encoding="utf-8")
    own = arithmetic.replace("correctness: numeric", "correctness: custom.within_one")
    (broken.root / "near.yaml").write_text(own, encoding="utf-8")
    task, extractive = broken.smoke()["tasks"]
    config = broken.variant(
        "own",
        tasks=[task | {"file": "near.yaml"}, extractive],
        estimators=["seq_logp", "trace", "trace_plus", "brevity", "late_entropy"],
        custom_estimators="examples/custom_estimators.py",
        custom_rules="examples/custom_rules.py",
    )
    pair = "demo-small/arithmetic.parquet"
    before = pl.read_parquet(broken.root / RESULTS / "labels" / pair)["correct"]
    names = [f"{RESULTS}/{folder}/{pair}" for folder in ("labels", "scores", "predictions")]
    broken.snakemake(*names, config=config)
    labels, scores, predictions = (pl.read_parquet(broken.root / name) for name in names)
    assert labels["correct"].sum() > before.sum()
    assert scores["late_entropy"].null_count() == 0
    assert "brevity" in set(predictions["estimator"])
