"""What is edited in place, or while a run is going, is neither missed nor mixed."""

import os
import re
import shutil
import subprocess

import pytest

from support.checkout import Checkout, wait_for
from workflow.small import EDITS, RESULTS, START, TARGETS, Small

pytestmark = pytest.mark.runs


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The small run, finished."""
    made = Small(tmp_path_factory.mktemp("small"))
    made.finish()
    return made


def scheduled(small):
    return set(small.checkout.scheduled("small.yaml"))


def test_rows_and_weights_are_what_they_hold_whatever_their_times(small):
    finished = scheduled(small)
    for name in ("rows.jsonl", "model/model.safetensors", "model/config.json"):
        os.utime(small.root / name)
    assert scheduled(small) == finished, "touching makes nothing anew"
    for name, rule in (("rows", "prepare_task"), ("weights", "link_model")):
        small.become(START | {name: 1})
        assert {rule, "generate", "calibrate"} <= scheduled(small), name
        small.become(START)
        assert scheduled(small) == finished
    (small.root / "model/added_tokens.json").write_text("{}")
    assert {"link_model", "generate"} <= scheduled(small)
    (small.root / "model/added_tokens.json").unlink()


def test_rows_that_come_to_the_same_table_are_the_same(small):
    finished, rows = scheduled(small), small.root / "rows.jsonl"
    before = rows.read_bytes()
    first, *others = before.splitlines(keepends=True)
    rows.write_bytes(b"".join([*others, first, first, b'{"q": "", "a": "dropped"}\r\n']))
    assert scheduled(small) == finished, "order, repetitions and rows that are dropped"
    rows.write_bytes(b"".join(others))
    assert {"prepare_task", "generate"} <= scheduled(small)
    rows.write_bytes(before)


def test_a_template_that_is_asked_for_is_the_one_that_is_taken_anyway(small, tmp_path):
    text = (small.root / "small.yaml").read_text(encoding="utf-8")
    template, traces = (
        small.root / "model/chat_template.jinja",
        str(RESULTS / "traces/m/sums.arrow"),
    )

    def planned(chat):
        said = text.replace("chat: false", f"chat: {chat}")
        (small.root / "small.yaml").write_text(said, encoding="utf-8")
        return small.run("--dry-run", traces).stdout

    template.write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    planned("null")
    assert small.run(traces).returncode == 0
    assert "Nothing to be done" in planned("null")
    assert "Nothing to be done" in planned("true")
    assert "generate" in planned("false")
    template.unlink()
    planned("null")
    assert small.run(traces).returncode == 0
    assert "model 'm': 'chat: true' needs a chat template and its tokenizer has none" in (
        planned("true")
    )
    (small.root / "small.yaml").write_text(text, encoding="utf-8")
    small.finish()


def test_a_folder_that_now_leads_elsewhere_is_another_model(small):
    finished, model = scheduled(small), small.root / "model"
    shutil.copytree(model, small.root / "v1")
    model.rename(small.root / "away")
    model.symlink_to("v1")
    assert scheduled(small) == finished
    shutil.copytree(small.root / "v1", small.root / "v2")
    (small.root / "v2/generation_config.json").write_text('{"eos_token_id": 1}')
    model.unlink()
    model.symlink_to("v2")
    assert "link_model" in scheduled(small)
    model.unlink()
    (small.root / "away").rename(model)


def test_code_edited_while_a_run_is_going_and_put_back_is_in_no_result(small):
    before = small.results()
    file, (old, _) = EDITS["operators"]
    # What is asked for is gone too: else nobody would need what it is made from.
    for target in TARGETS:
        (small.root / target).unlink()
    for folder in ("features", "labels", "logs/label_answers"):
        shutil.rmtree(small.root / RESULTS / folder)
    with small.checkout.edited(file, old, old + "\nUNUSED = 1"):
        # The edit is what the next run starts with; put back while this one goes on.
        process = small.begin()
        wait_for(lambda: (small.root / RESULTS / "logs/label_answers/m/sums.log").exists())
    process.wait()
    small.finish()
    assert small.results() == before
    assert "compute_features" not in scheduled(small)


def test_a_copy_that_lost_its_times_reruns_nothing_once_it_is_touched(small, tmp_path):
    finished, copy = scheduled(small), Checkout(tmp_path / "copy")
    subprocess.run(["cp", "-r", small.root, copy.root], check=True)
    copy.snakemake(*TARGETS, "--touch", config="small.yaml")
    assert set(copy.scheduled("small.yaml")) == finished


def doubted(small):
    return small.checkout.doubted(*TARGETS, config="small.yaml")


def mended(small, config="small.yaml", targets=TARGETS):
    """The rules that a run with --verify would run."""
    said = small.checkout.run("--verify", "--dry-run", *targets, config=config).stdout
    return {*re.findall(r"^(\w+) +\d+$", said, re.M)}


def test_without_records_the_results_say_what_made_them(small):
    records = small.root / ".snakemake/metadata"
    assert doubted(small) == set()
    records.rename(small.root / "records")
    try:
        assert doubted(small) == set()
        small.become(START | {"splits": 1})
        assert {"draw_splits", "calibrate"} <= mended(small)
        assert not {"generate", "compute_features"} & mended(small)
    finally:
        small.become(START)
        shutil.rmtree(records, ignore_errors=True)
        (small.root / "records").rename(records)


def test_what_another_configuration_made_is_not_taken_for_this_ones(small):
    """A results folder that was copied, or brought back, or touched, after an edit."""
    finished, results = scheduled(small), small.root / RESULTS
    (small.root / "other.yaml").write_text(
        (small.root / "small.yaml")
        .read_text(encoding="utf-8")
        .replace("run: small", "run: other")
        .replace("count: 2", "count: 3")
    )
    shutil.copytree(results, results.with_name("other"), symlinks=True)
    targets = [target.replace("small", "other") for target in TARGETS]
    planned = mended(small, "other.yaml", targets)
    assert {"draw_splits", "calibrate"} <= planned
    assert "generate" not in planned, "which has the same settings"

    small.become(START | {"splits": 1})
    small.run("--touch")
    assert "draw_splits" not in scheduled(small), "Snakemake trusts its records"
    assert {"draw_splits", "calibrate"} <= mended(small)

    shutil.copytree(results, small.root / "backup", symlinks=True)
    small.checkout.run("--verify", *TARGETS, config="small.yaml")
    assert doubted(small) == set()
    right = small.results()
    shutil.rmtree(results)
    shutil.copytree(small.root / "backup", results, symlinks=True)
    assert {"draw_splits", "calibrate"} <= mended(small)
    small.checkout.run("--verify", *TARGETS, config="small.yaml")
    assert small.results() == right
    small.become(START)
    small.finish()
    assert scheduled(small) == finished


def test_a_result_that_was_edited_or_deleted_by_hand_is_found(small):
    edited, gone = small.root / RESULTS / "features/m/sums.parquet", "labels/m/sums.parquet"
    before, times = edited.read_bytes(), edited.stat()
    edited.write_bytes(before[:-9] + bytes([before[-9] ^ 1]) + before[-8:])
    os.utime(edited, ns=(times.st_atime_ns, times.st_mtime_ns))
    (small.root / RESULTS / gone).unlink()
    assert "compute_features" not in scheduled(small), "whose time is as it was"
    assert doubted(small) == {"features/m/sums.parquet", gone}
    small.checkout.run("--verify", *TARGETS, config="small.yaml")
    assert edited.read_bytes() == before
    assert doubted(small) == set()
