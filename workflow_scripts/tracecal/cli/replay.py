import argparse
from pathlib import Path

import polars as pl

from tracecal.cli.options import read_given
from tracecal.io.log import LOGGER


def run_replay(args: argparse.Namespace) -> None:
    from tracecal.capture.model import load_model, load_tokenizer
    from tracecal.capture.replay import replay_answers, tokenisation, write_replayed

    answers = read_given(args)
    model, tokenizer = load_model(args.weights, args.dtype), load_tokenizer(args.weights)
    metadata = {
        "model": args.model or Path(args.weights).resolve().name,
        "revision": args.revision or answers.metadata.get("revision"),
        "dtype": args.dtype,
        "tokenisation": tokenisation(answers.frame, args.end_token),
    }
    LOGGER.info("%s", metadata["tokenisation"])
    traces = replay_answers(model, tokenizer, answers.frame, args.batch_size, args.end_token)
    traces = traces.with_columns(pl.col("model").fill_null(metadata["model"]))
    write_replayed(traces, {name: value for name, value in metadata.items() if value}, args.output)
