"""A step that reads answers with an encoder, and its output, resumed after an interruption."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from trace_workflow.models.step import recorded
from tracecal.capture.batches import Keep
from tracecal.io.digests import digest
from tracecal.io.journal import Journal, Row
from tracecal.io.traces import write_table

# Answers per entry of the journal: many, so that batches hold texts of similar length.
CHUNK = 256


def write_output(
    output: str,
    answers: Sequence[Row],
    schema: pa.Schema,
    params: Mapping[str, object],
    metadata: Mapping[str, str],
    sources: Sequence[str],
    start: Callable[[], Callable[[list[Row]], list[Row]]],
) -> None:
    """Write the rows of all `answers` to `output`, CHUNK answers at a time.

    `params` are the rule's, `journal` among them; `sources` the files from which the rows are
    computed. `start` loads the models and returns the function from answers to rows; it is called
    only where answers are missing.
    """
    settings = {key: value for key, value in params.items() if key != "journal"}
    inputs = {"sources": [digest(path) for path in sources]}
    journal = Journal(params["journal"], schema, {**settings, **metadata, **inputs})

    def work(missing: list[Row], keep: Keep) -> None:
        weigh = start()
        for begin in range(0, len(missing), CHUNK):
            keep(weigh(missing[begin : begin + CHUNK]))

    table = recorded(sorted(answers, key=lambda row: row["example_id"]), journal, work)
    write_table(table, dict(metadata), output)
    journal.settle(output)


def visible_texts(
    token_ids: Sequence[int], tokens: Sequence[str], special: frozenset[int]
) -> list[str]:
    """The text that each token adds to the answer: none for special tokens."""
    return ["" if token in special else text for token, text in zip(token_ids, tokens, strict=True)]
