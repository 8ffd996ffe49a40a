"""Draw the framework by an answer of the main study, as PDF and SVG."""

import polars as pl

from tracecal.analyse.example import typical_peak
from tracecal.analyse.pairs import read_pairs
from tracecal.decode.traces import read_traces
from tracecal.errors import InputError
from tracecal.job import job
from tracecal.render import style
from tracecal.render.framework import FEATURES, Example, framework
from tracecal.render.glyphs import legible

TRACE = ["example_id", "answer", "tokens", "surprisal", "entropy"]

with job(snakemake.log[0]):
    pairs, inputs = snakemake.params.pairs, snakemake.input
    if not pairs:
        raise InputError("the framework is drawn by an answer of the main study; none is finished.")
    traces = pl.concat(
        read_traces(path, TRACE).with_columns(task=pl.lit(task))
        for path, (_, task) in zip(inputs.traces, pairs, strict=True)
    )
    key = ["task", "example_id"]
    answers = (
        read_pairs(inputs.features, pairs, ["example_id", *FEATURES])
        .join(read_pairs(inputs.tasks, pairs, ["example_id", "question"]), on=key, validate="1:1")
        .join(traces, on=key, validate="1:1")
    )
    texts = answers.select(pl.col("question") + pl.col("answer")).to_series()
    answers = answers.with_columns(legible=pl.Series([legible(text) for text in texts]))
    example = typical_peak(answers)
    predictions = read_pairs(inputs.predictions, pairs, ["estimator", "example_id", "probability"])
    probability = predictions.filter(
        estimator="trace_plus", task=example["task"], example_id=example["example_id"]
    )["probability"].mean()
    figure = framework(
        Example(
            *(example[name] for name in ("question", "answer", "tokens", "surprisal", "entropy")),
            {name: example[name] for name in FEATURES},
            probability,
        )
    )
    style.save(figure, snakemake.output.pdf, snakemake.output.svg)
