"""A step that reads evaluated answers with a text encoder, resumed after an interruption.

`weigh_answers` weighs the answers of one task; `write_output` writes the rows of any answers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from trace_workflow.models.folders import fingerprint
from trace_workflow.models.step import dealt, recorded
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
    files: Any,
    columns: Sequence[str],
    schema: pa.Schema,
    settings: Mapping[str, object],
    output: str,
    weigh: Weigh,
    encoder_task: str | None = None,
    shard: str | None = None,
) -> None:
    """Write the weights of a task's evaluated answers to `output`, or those of a `shard` of them.

    `files` are the rule's inputs: `traces`, `task`, the language `model` and, where there is one,
    the `encoder`, loaded for `encoder_task`. `weigh(encoder, answers, special)` gets the answers
    with `columns` of their questions and the ids of tokens without text. `settings` are the rule's.
    """
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
    write_output(output, answers.to_dicts(), schema, settings, metadata, sources, start, shard)


def write_output(
    output: str,
    answers: Sequence[Row],
    schema: pa.Schema,
    settings: Mapping[str, object],
    metadata: Mapping[str, str],
    sources: Sequence[str],
    start: Callable[[], Callable[[list[Row]], list[Row]]],
    shard: str | None = None,
) -> None:
    """Write the rows of all `answers`, or of a `shard` of them, to `output`, CHUNK at a time.

    `settings` are the rule's, `journal` among them; `sources` the files from which the rows are
    computed. `start` loads the models and returns the function from answers to rows; it is called
    only where answers are missing.
    """
    identity = {key: value for key, value in settings.items() if key != "journal"}
    inputs = {"sources": [digest(path) for path in sources]}
    journal = Journal(settings["journal"], schema, {**identity, **metadata, **inputs})

    def work(missing: list[Row], keep: Keep) -> None:
        rows_of = start()
        for begin in range(0, len(missing), CHUNK):
            keep(rows_of(missing[begin : begin + CHUNK]))

    ordered = sorted(answers, key=lambda row: row["example_id"])
    table = recorded(dealt(ordered, shard), journal, work)
    write_table(table, dict(metadata), output)
    if shard is None:
        journal.settle(output)
