"""A study of models: some decoded, one replayed, and the main one read from a file, without any
entropies.
"""

import json

import polars as pl
import pytest

from tests.tracecal.apps.explorer.test_page import unpacked
from tracecal.calibration.calibrator import load
from tracecal.io.traces import arrow_metadata

pytestmark = pytest.mark.workflow

RESULTS = "results/smoke"
# Where estimators of one's own stand by name, whether they win or not.
SHOW_OWN = set(
    "main_comparison broader_uq calibration_size reliability_selective length_stratified "
    "localized_global_errors localized_error_subtypes protocol_comparison "
    "performance_overview".split()
)
LEFT_OUT = 3  # of the answers that are read


def given(root):
    """Files of answers, made of those of demo-medium: log-probabilities alone, and token ids."""
    task = pl.read_parquet(root / RESULTS / "tasks/arithmetic.parquet").filter(role="evaluation")
    traces = pl.read_ipc(root / RESULTS / "traces/demo-medium/arithmetic.arrow")
    answers = traces.join(task, on="example_id", how="semi").sample(
        fraction=1, shuffle=True, seed=1
    )
    logprobs = pl.col("surprisal").list.eval(-pl.element())
    read = answers.select("example_id", "answer", logprobs=logprobs).to_dicts()[LEFT_OUT - 1 :]
    read[0]["logprobs"][0] = 3.0
    texts = {
        "read": "".join(json.dumps(row) + "\n" for row in read),
        "replayed": answers.select("example_id", "prompt_token_ids", "token_ids").write_ndjson(),
    }
    (root / "logs").mkdir()
    for name, text in texts.items():
        (root / f"logs/{name}-arithmetic.jsonl").write_text(text, encoding="utf-8")
    return answers.sort("example_id")


@pytest.fixture
def mixed(broken):
    """The configuration, and the answers that its files hold."""
    answers, smoke = given(broken.root), broken.smoke()
    read = {"answers": "logs/read-{task}.jsonl", "reading": {"wrong_rows": "skip"}}
    replayed = {"answers": "logs/replayed-{task}.jsonl", "path": f"{RESULTS}/models/demo-medium"}
    models = [{"slug": "read", "source": read}, {"slug": "replayed", "source": replayed}]
    smoke["study"]["main"] = {"model": "read", "tasks": ["arithmetic"]}
    smoke["study"]["cross"]["models"] += ["read", "replayed"]
    config = broken.variant(
        "mixed",
        models=smoke["models"] + models,
        study=smoke["study"],
        custom_estimators="examples/custom_estimators.py",
    )
    return config, answers


def test_answers_from_files_run_to_the_end_beside_decoded_ones(broken, mixed):
    config, answers = mixed
    broken.snakemake(config=config)
    results = broken.root / RESULTS

    # Replay gives back the traces that decoding gave.
    path = results / "traces/replayed/arithmetic.arrow"
    replayed = pl.read_ipc(path)
    for column in ("token_ids", "tokens", "answer"):
        assert replayed[column].to_list() == answers[column].to_list()
    assert arrow_metadata(path)["tokenisation"] == "token ids as given"
    for column in ("surprisal", "entropy"):
        far = replayed[column].explode() - answers[column].explode()
        assert far.abs().max() < 1e-4
    assert list((results / "work/journals/replayed/replayed/arithmetic").glob("*/*.arrow"))

    # What the file leaves out is counted, and what needs entropies is null.
    counted = pl.read_parquet(results / "analyses/accuracy.parquet")
    counts = counted.filter(model="read")

    def accuracy(model):
        return counted.filter(model=model, task="arithmetic")["accuracy"].item()

    n = answers.height - LEFT_OUT
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
    assert f"leave out questions: read on Arithmetic ({LEFT_OUT} of {answers.height})" in table
    assert f"are answers: read on Arithmetic ({n} of {n})" in table
    shown = {path.stem for path in results.glob("tables/*.tex") if "Brevity" in path.read_text()}
    shown |= {path.stem for path in results.glob("figures/*.svg") if "Brevity" in path.read_text()}
    assert shown >= SHOW_OWN
    bridge = pl.read_csv(results / "tables/bridge.csv")
    assert {"trace", "trace_plus"} <= set(bridge.filter(pl.col("brier").is_null())["estimator"])
    figures = [results / f"figures/{name}.svg" for name in ("framework", "spike_evidence")]
    assert all("No answer in the main study has" in path.read_text() for path in figures)
    told = load(results / "calibrators/read/arithmetic.json", "seq_logp").fitted_on
    assert (told.n, told.entropy, told.processed) == (n, "none", "unknown")
    told = load(results / "calibrators/replayed/arithmetic.json").fitted_on
    assert (told.n, told.entropy, told.processed) == (answers.height, "exact", "no")
    assert told.base_rate == accuracy("replayed") == accuracy("demo-medium")
    shown = unpacked((results / "explorer.html").read_text(encoding="utf-8"))
    names = [one["id"] for one in shown["named"]["model"]]
    assert names == ["demo-medium", "demo-small", "read", "replayed"]
    assert shown["answers"]["model"].count(names.index("read")) == n
    broken.snakemake("--report", str(broken.root / "report.html"), config=config)

    assert broken.scheduled(config) == {}
    with broken.edited("logs/read-arithmetic.jsonl", "3.0", "-3.0"):
        scheduled = broken.scheduled(config)
    assert {"read_answers", "label_answers", "calibrate", "make_explorer"} <= set(scheduled)
    assert {scheduled.get(rule) for rule in ("read_answers", "calibrate", "measure")} == {1}
    assert not {"replay_answers", "generate", "audit_traces"} & set(scheduled)


def test_own_estimators_and_rules_run(broken):
    arithmetic = (broken.root / "config/tasks/arithmetic.yaml").read_text(encoding="utf-8")
    own = arithmetic.replace("correctness: numeric", "correctness: custom.within_one")
    (broken.root / "near.yaml").write_text(own, encoding="utf-8")
    tasks = [{"slug": "arithmetic", "file": "near.yaml"}, {"slug": "extractive"}]
    files = {
        "custom_estimators": "examples/custom_estimators.py",
        "custom_rules": "examples/custom_rules.py",
    }
    config = broken.variant("own", tasks=tasks, **files)
    pair = "demo-small/arithmetic.parquet"
    before = pl.read_parquet(broken.root / RESULTS / "labels" / pair)["correct"]
    names = [f"{RESULTS}/{folder}/{pair}" for folder in ("labels", "scores", "predictions")]
    broken.snakemake(*names, config=config)
    labels, scores, predictions = (pl.read_parquet(broken.root / name) for name in names)
    assert labels["correct"].sum() > before.sum()
    assert scores["late_entropy"].null_count() == 0
    assert "brevity" in set(predictions["estimator"])
