"""What a person sees when something is wrong: early, one sentence, nothing lost."""

import hashlib
import json
import re
import shutil

import polars as pl
import pytest
import yaml

from support.checkout import killed, wait_for
from tracecal.io.traces import arrow_metadata, read_table, write_table

pytestmark = pytest.mark.runs


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"modles": []},
            "wrong.yaml: unknown key 'modles' (did you mean 'models'?); allowed: run, seed",
        ),
        (
            {"estimators": ["trcae"]},
            "wrong.yaml: estimators: unknown estimator 'trcae' (did you mean 'trace'?); allowed: first",
        ),
        ({"run": "../x"}, "wrong.yaml: run: '../x' cannot name files"),
        (
            {
                "tasks": [{"slug": "arithmetic", "training_limit": 0}, {"slug": "extractive"}],
                "study": {"main": {"models": ["demo-small"], "tasks": ["arithmetic"]}},
                "estimators": ["lars", "internal_probe", "trace"],
            },
            "lars and internal_probe must be trained on rows of role 'training', and no task of "
            "model 'demo-small' (arithmetic) has any",
        ),
    ],
)
def test_a_wrong_configuration_stops_at_the_start(checkout, changes, message):
    process = checkout.snakemake(config=checkout.variant("wrong", **changes), check=False)
    assert process.returncode == 1
    assert message in process.stdout
    assert "Traceback" not in process.stdout
    assert "rule " not in process.stdout


@pytest.mark.parametrize(
    ("changes", "message", "status"),
    [
        (
            {"encoders": {"similarity": {"source": {"path": "nowhere"}}}},
            "encoder 'similarity': there is no folder nowhere in ",
            1,
        ),
        # Its jobs may run where it is installed, which they say.
        (
            {"encoders": {"similarity": {"source": {"package": "none", "files": {"a": "0" * 64}}}}},
            "encoder 'similarity': the package none is not installed",
            0,
        ),
    ],
)
def test_a_dry_run_finds_encoders_that_are_not_there(checkout, changes, message, status):
    config = checkout.variant("absent", estimators=["token_sar", "trace"], **changes)
    process = checkout.snakemake("--dry-run", config=config, check=False)
    assert process.returncode == status
    assert message in process.stdout
    assert "Traceback" not in process.stdout


MINE = {"label": "A", "fields": {"question": "q", "references": "a"}, "correctness": "alias"}


@pytest.mark.parametrize(
    ("model", "rows", "message"),
    [
        ("nowhere", "rows.csv", "model 'm': there is no folder nowhere in "),
        ("empty", "rows.csv", "model 'm': there is no model in empty: config.json is missing"),
        ("model", "none.csv", "task 'mine': none.csv cannot be read in "),
        (
            "model",
            "wrong.csv",
            "task 'mine': wrong.csv: the task is empty: none of its 1 row(s) has a",
        ),
    ],
)
def test_a_dry_run_finds_what_is_not_there(checkout, model, rows, message):
    root = checkout.root
    for name in ("empty", "model"):
        (root / name).mkdir(exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        (root / "model" / name).touch()
    (root / "rows.csv").write_text("q,a\nWho?,Ann\n")
    (root / "wrong.csv").write_text("q,a\nWho?,\n")
    (root / "mine.yaml").write_text(yaml.safe_dump(MINE | {"source": {"path": rows}}))
    config = checkout.variant(
        "absent",
        run="absent",
        models=[{"slug": "m", "source": {"path": model}}],
        tasks=[{"slug": "mine", "file": "mine.yaml"}],
        study={"main": {"models": ["m"], "tasks": ["mine"]}},
        estimators=["trace"],
    )
    process = checkout.snakemake("--dry-run", config=config, check=False)
    assert process.returncode == 1
    assert message in process.stdout


def test_a_key_that_is_given_twice_stops_the_run_with_its_line(checkout):
    path = checkout.variant("twice")
    path.write_text(path.read_text() + "seed: 1\nseed: 2\n")
    process = checkout.snakemake("--dry-run", config=path, check=False)
    assert process.returncode == 1
    assert re.search(r"twice\.yaml, line \d+, .*the key 'seed' is given twice", process.stdout)


DAMAGED = ["features/demo-small/arithmetic", "scores/demo-small/extractive"]
DAMAGED += ["predictions/demo-medium/arithmetic"]  # one for each pair: its readers still begin
READER = "results/smoke/features/demo-small/arithmetic.parquet"  # of a trace


def test_damaged_files_are_named_and_mended_by_the_commands_they_name(broken):
    paths = [broken.root / f"results/smoke/{name}.parquet" for name in DAMAGED]
    whole = [path.read_bytes() for path in paths]
    for path, content in zip(paths, whole, strict=True):
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 1
        path.write_bytes(flipped)
    process = broken.snakemake("results/smoke/metrics.parquet", "--keep-going", check=False)
    assert process.returncode == 1
    assert "its bytes do not match its own checksum" in process.stdout
    told = set(re.findall(r"snakemake --cores all --force (\S+)", process.stdout))
    assert told == {str(path.relative_to(broken.root)) for path in paths}
    broken.snakemake("--force", *sorted(told))
    assert [path.read_bytes() for path in paths] == whole

    trace = broken.root / "results/smoke/traces/demo-small/arithmetic.arrow"
    content = trace.read_bytes()
    trace.write_bytes(content[:1000])
    process = broken.snakemake(READER, check=False)
    assert process.returncode == 1
    assert (
        "error: results/smoke/traces/demo-small/arithmetic.arrow cannot be read" in process.stdout
    )
    told = re.search(r"snakemake --cores all (--force \S+)", process.stdout)[1]
    broken.snakemake(*told.split())
    assert trace.read_bytes() == content
    broken.snakemake(READER)
    planned = broken.snakemake("--dry-run", READER).stdout
    assert "Nothing to be done" in planned


OTHER, OWN = (f"traces/{model}/arithmetic.arrow" for model in ("demo-medium", "demo-small"))


def test_another_models_file_is_refused_by_name(broken):
    run = broken.root / "results/smoke"
    shutil.copyfile(run / OTHER, run / OWN)
    process = broken.snakemake(READER, check=False)
    assert process.returncode == 1
    assert f"{OWN} is in the wrong place: it was made as {OTHER}" in process.stdout


def test_a_run_killed_while_it_decodes_goes_on_from_what_is_finished(broken):
    """test_faults.py does so with all of a model's steps."""
    trace = broken.root / "results/smoke" / OWN
    before, journals = trace.read_bytes(), broken.root / "results/smoke/work/journals/traces"
    shutil.rmtree(journals)
    process = broken.begin("--force", str(trace.relative_to(broken.root)))
    wait_for(lambda: [*journals.glob("*/*/*/*.arrow")])
    killed(process)
    broken.snakemake("--unlock")
    said = broken.snakemake(str(trace.relative_to(broken.root))).stdout
    assert "are finished already" in said
    assert trace.read_bytes() == before


def test_a_trace_the_model_did_not_make_stops_the_run(broken):
    run = broken.root / "results/smoke"
    # Sealed as its own, so that only the replay can tell.
    write_table(read_table(run / OTHER), arrow_metadata(run / OTHER), run / OWN)
    audit = "results/smoke/audits/demo-small/arithmetic.json"
    process = broken.snakemake(audit, check=False)
    assert process.returncode == 1
    assert "audit: largest" in process.stdout
    assert "more than the tolerance 0.001" in process.stdout
    # The finished batches are as wrong, and following the message mends both.
    batches = run / "work/journals/traces/demo-small/arithmetic"
    (finished,) = batches.glob("*/*.arrow")
    wrong = (run / OWN).read_bytes()
    finished.unlink()
    (finished.parent / f"{hashlib.sha256(wrong).hexdigest()}.arrow").write_bytes(wrong)
    assert "the folder of this model and task in work/journals/traces/" in process.stdout
    shutil.rmtree(batches)
    (run / OWN).unlink()
    broken.snakemake(audit)


def test_available_tabulates_what_is_finished(broken):
    smoke = broken.smoke()
    third = smoke["models"][0] | {"slug": "third", "label": "Third"}
    smoke["study"]["cross"]["models"].append("third")
    config = broken.variant("third", models=[*smoke["models"], third], study=smoke["study"])
    broken.snakemake("available", config=config)
    table = pl.read_csv(broken.root / "results/smoke/tables/cross_model.csv")
    assert set(table["model"].drop_nulls()) >= {"demo-small", "demo-medium"}
    assert not (broken.root / "results/smoke/traces/third").exists()
    scheduled = broken.scheduled(config)
    assert scheduled["collect_metrics"] == 1
    assert scheduled["generate"] == 1


def test_available_before_anything_is_finished_says_so(finished):
    config = finished.variant("early", run="early")
    process = finished.snakemake("available", config=config, check=False)
    assert process.returncode == 1
    assert "nothing is available yet" in process.stdout


def test_an_empty_task_is_said(checkout):
    (checkout.root / "empty.jsonl").write_text("", encoding="utf-8")
    spec = {
        "label": "Empty",
        "source": {"path": "empty.jsonl"},
        "fields": {"question": "q", "references": "a"},
        "correctness": "numeric",
    }
    (checkout.root / "empty_task.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    config = checkout.variant(
        "empty",
        run="empty",
        tasks=[{"slug": "empty", "file": "empty_task.yaml"}],
        study={"main": {"models": ["demo-small"], "tasks": ["empty"]}},
    )
    process = checkout.snakemake("--dry-run", config=config, check=False)
    assert process.returncode == 1
    assert "task 'empty': empty.jsonl holds no rows" in process.stdout


def test_the_resolved_configuration_stands_beside_the_results(finished):
    resolved = yaml.safe_load((finished.root / "results/smoke/config.yaml").read_text())
    assert resolved["run"] == "smoke"
    assert resolved["audit"]["answers"] == 8
    assert resolved["audit"]["tolerance"]["float32"] == 0.001, "a default, written out"


def test_supervised_scores_are_probabilities_of_every_evaluated_answer(finished):
    run = finished.root / "results/smoke"
    for estimator in ("lars", "internal_probe"):
        scores = pl.read_parquet(run / f"estimates/{estimator}/demo-small/extractive.parquet")
        task = pl.read_parquet(run / "tasks/extractive.parquet").filter(role="evaluation")
        assert scores["example_id"].to_list() == task["example_id"].sort().to_list()
        assert scores[estimator].is_between(0, 1).all()
        kept = [path for path in (run / "work/learned").rglob("*") if path.is_file()]
        kinds = {path.suffix for path in kept if not path.name.startswith(".")}
        assert kinds and kinds <= {".json", ".safetensors", ".parquet"}


def test_calibrators_are_plain_json(finished):
    path = finished.root / "results/smoke/calibrators/demo-small/arithmetic.json"
    calibrators = json.loads(path.read_text())
    assert {"trace_plus", "seq_logp"} <= set(calibrators)
    assert set(calibrators["trace_plus"]) == {"features", "splits", "final"}
    promised = calibrators["mean_of_three"]["risk_control"]
    assert promised["fit"] == calibrators["mean_of_three"]["splits"][str(promised["split"])]
    assert [one["error_rate"] for one in promised["thresholds"]] == [0.05, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_what_a_model_folder_lacks_is_said_when_the_run_is_planned(checkout):
    lost = checkout.root / "demo/models/lost"
    shutil.copytree(checkout.root / "demo/models/smoke-small", lost)
    first, second = checkout.smoke()["models"]
    first = first | {"source": {"path": "demo/models/lost"}}
    config = checkout.variant("lost", models=[first, second])
    (lost / "chat_template.jinja").unlink()
    said = "model 'demo-small' has no chat template, so it is asked in plain text"
    assert said in checkout.snakemake("--dry-run", config=config).stdout
    meant = checkout.variant("meant", models=[first | {"chat": False}, second])
    assert said not in checkout.snakemake("--dry-run", config=meant).stdout
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 577248\n"
    (lost / "model.safetensors").write_text(pointer)
    process = checkout.snakemake("--dry-run", config=config, check=False)
    assert process.returncode == 1
    assert (
        "model 'demo-small': demo/models/lost/model.safetensors is a Git LFS pointer"
        in process.stdout
    )
