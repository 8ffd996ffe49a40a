"""A decoding step without Snakemake: its shares together are the whole, and its file says why."""

from dataclasses import replace

import pytest

from support.decoding_attempt import ASKING, model_and_prompts
from trace_workflow.models.decoding import answer_task
from trace_workflow.models.step import DecodingStep, record
from tracecal.io.files import write_checked
from tracecal.io.traces import TRACES, arrow_metadata, read_table

SETTINGS = {
    "code": "0" * 64,
    "loading": {"dtype": "float32", "attention": None, "quantization": None},
    "seed": 1,
}


@pytest.fixture
def decode(tmp_path):
    model, tokenizer, prompts = model_and_prompts()
    weights = tmp_path / "models/tiny"
    model.save_pretrained(weights)
    tokenizer.save_pretrained(weights)
    write_checked("sha256:7\n", tmp_path / "tiny.txt")
    whole = DecodingStep(
        model="tiny",
        weights=str(weights),
        revision=str(tmp_path / "tiny.txt"),
        output=str(tmp_path / "whole.arrow"),
        settings=SETTINGS | {"journal": str(tmp_path / "journal")},
        shard=None,
        gpus=0,
        memory_mb=1000,
    )

    def decode(**changed):
        step = replace(whole, **changed)
        arguments = tokenizer, ASKING, 8
        record(step, prompts[:12], TRACES, "greedy", answer_task, *arguments)
        return read_table(step.output)

    decode.folder = tmp_path
    return decode


def test_two_shares_hold_the_rows_of_the_whole(decode):
    whole = decode().replace_schema_metadata()
    shares = [
        decode(shard=f"{number}-of-2", output=str(decode.folder / f"{number}.arrow"))
        for number in (1, 2)
    ]
    rows = [row for share in shares for row in share.to_pylist()]
    assert sorted(rows, key=lambda row: row["example_id"]) == whole.to_pylist()
    assert {share.num_rows for share in shares} == {6}


def test_the_file_says_what_it_was_made_from(decode):
    decode()
    stated = arrow_metadata(decode.folder / "whole.arrow")
    expected = {"model": "tiny", "revision": "sha256:7", "dtype": "float32", "seed": "1"}
    assert stated.items() >= expected.items()
    assert "engine" not in stated


def test_a_whole_file_stands_for_its_journal_and_a_share_does_not(decode):
    share, whole = (decode.folder / f"{name}.arrow" for name in ("share", "whole"))
    decode(shard="1-of-2", output=str(share))
    assert not any(part.samefile(share) for part in decode.folder.glob("journal/*/*.arrow"))
    decode()
    assert [part.samefile(whole) for part in decode.folder.glob("journal/*/*.arrow")] == [True]
