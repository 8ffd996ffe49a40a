"""One command prints what a model is really sent."""

import subprocess
import sys

import polars as pl
import pytest

pytestmark = pytest.mark.runs


def show(checkout, *arguments):
    return subprocess.run(
        [
            sys.executable,
            "workflow_scripts",
            "show_prompt",
            *arguments,
            "--configfile",
            "config/smoke.yaml",
        ],
        cwd=checkout.root,
        capture_output=True,
        text=True,
    )


def test_it_is_the_prompt_of_the_trace(finished):
    traces = pl.read_ipc(finished.root / "results/smoke/traces/demo-small/extractive.arrow")
    for row in traces.head(3).iter_rows(named=True):
        process = show(finished, "demo-small", "extractive", row["example_id"])
        assert process.stdout == row["prompt"] + "\n"
        ends = "<|end|> (2: generation_config.json, config.json, tokenizer, chat template)"
        assert process.stderr.startswith("An answer ends at <|endoftext|> (1: ")
        assert process.stderr.endswith(f" or {ends}.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["demo-huge", "extractive"],
            "'demo-huge' is not in config/smoke.yaml; there are demo-small",
        ),
        (["demo-small", "extractive", "e0"], "has no example 'e0'; its ids begin extractive-"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(finished, arguments, message):
    process = show(finished, *arguments)
    assert process.returncode == 1
    assert message in process.stderr
