"""A step that reads evaluated answers with a text encoder, resumed after an interruption.

`weigh_answers` weighs the answers of one task; `write_output` writes the rows of any answers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from trace_workflow.models.folders import fingerprint
from trace_workflow.models.step import dealt, recorded, shard_of
from trace_workflow.models.text_encoders import TextEncoder, load_encoder
from tracecal.capture.batches import Keep
from tracecal.capture.model import load_tokenizer
from tracecal.capture.tokens import special_ids
from tracecal.io.digests import digest
from tracecal.io.evaluated import evaluated
from tracecal.io.journal import Journal, Row
from tracecal.io.traces import arrow_metadata, read_traces, write_table

# Answers per entry of the journal: many, so that batches hold texts of similar length.
CHUNK = 256
Weigh = Callable[[TextEncoder | None, list[Row], frozenset[int]], list[Row]]


def weigh_answers(
    snakemake: Any,
    columns: Sequence[str],
    schema: pa.Schema,
    weigh: Weigh,
    encoder_task: str | None = None,
) -> None:
    """Write the weights of a task's evaluated answers, as `write_output` does.

    The rule's inputs are `traces`, `task`, the language `model` and, where there is one, the
    `encoder`, loaded for `encoder_task`. `weigh(encoder, answers, special)` gets the answers with
    `columns` of their questions and the ids of tokens without text.
    """
    files = snakemake.input
    traces = read_traces(files.traces, ["example_id", "token_ids", "tokens"])
    answers = evaluated(traces, files.task, columns)
    folder = files.get("encoder")

    def start() -> Callable[[list[Row]], list[Row]]:
        encoder = load_encoder(folder, encoder_task) if folder else None
        special = special_ids(load_tokenizer(files.model))
        return lambda rows: weigh(encoder, rows, special)

    metadata = arrow_metadata(files.traces)
    metadata |= {"encoder": fingerprint(folder) if folder else "none"}
    sources = [files.traces, files.task]
    write_output(snakemake, answers.to_dicts(), schema, metadata, sources, start)


def write_output(
    snakemake: Any,
    answers: Sequence[Row],
    schema: pa.Schema,
    metadata: Mapping[str, str],
    sources: Sequence[str],
    start: Callable[[], Callable[[list[Row]], list[Row]]],
) -> None:
    """Write the rows of all `answers`, or of the job's shard of them, CHUNK at a time.

    `snakemake` is the script's own object, whose parameters hold the folder `journal`; `sources`
    are the files from which the rows are computed. `start` loads the models and returns the
    function from answers to rows; it is called only where answers are missing.
    """
    settings, shard = dict(snakemake.params.items()), shard_of(snakemake.wildcards)
    folder, output = settings.pop("journal"), snakemake.output[0]
    inputs = {"sources": [digest(path) for path in sources]}
    journal = Journal(folder, schema, {**settings, **metadata, **inputs})

    def work(missing: list[Row], keep: Keep) -> None:
        rows_of = start()
        for begin in range(0, len(missing), CHUNK):
            keep(rows_of(missing[begin : begin + CHUNK]))

    ordered = sorted(answers, key=lambda row: row["example_id"])
    table = recorded(dealt(ordered, shard), journal, work)
    write_table(table, dict(metadata), output)
    if shard is None:
        journal.settle(output)
