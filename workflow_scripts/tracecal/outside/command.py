"""The command `tracecal`: scores, calibrators and a proxy without the workflow."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args, get_origin

import polars as pl

from tracecal.errors import InputError
from tracecal.logs.options import Reading
from tracecal.logs.read import Answers, listed, read_answers
from tracecal.progress import LOGGER
from tracecal.schema import parse
from tracecal.storage.files import write_json, write_parquet, write_text

READING = ("format", "vocabulary", "greedy", "stop_token", "processed", "model", "id", "label")
READING += ("filter", "wrong_rows")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, or 1 after logging an `InputError`."""
    args = parser().parse_args(arguments)
    logging.basicConfig(format="tracecal: %(message)s", stream=sys.stderr)
    LOGGER.setLevel(logging.INFO)
    try:
        args.run(args)
    except InputError as error:
        LOGGER.error("error: %s", error)
        return 1
    except BrokenPipeError:  # the reader of the output, such as `head`, has enough
        return 0
    return 0


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    root = argparse.ArgumentParser(prog="tracecal", description=__doc__)
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    score = commands.add_parser("score", help="a probability for each answer of a file")
    score.add_argument("--calibrator", required=True, help="the calibrator's JSON file")
    score.add_argument("--estimator", default="trace_plus", help="one of the calibrator's file")
    score.add_argument("--error-rate", type=float, help="target error rate of the answers to keep")
    score.add_argument("--output", help=".jsonl, .csv or .parquet; default: JSON Lines to stdout")
    _add_answers(score)
    score.set_defaults(run=_score)
    fit = commands.add_parser("calibrate", help="a calibrator from a file of labelled answers")
    fit.add_argument("--task", required=True, help="a name for the task")
    fit.add_argument("--output", required=True, help="the calibrator's JSON file")
    fit.add_argument("--revision", help="of the model")
    fit.add_argument("--config", help="YAML with seed, splits, calibration, risk_control")
    _add_answers(fit)
    fit.set_defaults(run=_calibrate)
    replay = commands.add_parser("replay", help="exact traces of answers made elsewhere")
    replay.add_argument("--weights", required=True, help="the model's folder, as for Transformers")
    replay.add_argument("--output", required=True, help="an .arrow file, for score and calibrate")
    replay.add_argument("--revision", help="of the model")
    replay.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    replay.add_argument("--batch-size", type=int, default=32)
    replay.add_argument("--end-token", action="store_true", help="append it to answers of text")
    _add_answers(replay)
    replay.set_defaults(run=_replay)
    serve = commands.add_parser("serve", help="a proxy that adds confidence to a server's answers")
    serve.add_argument("--upstream", required=True, help="such as http://localhost:8000")
    serve.add_argument("--calibrator", required=True, help="the calibrator's JSON file")
    serve.add_argument("--error-rate", type=float, help="target error rate of the answers to keep")
    _add_reading(serve, ("vocabulary", "model", "stop_token", "processed"))
    serve.add_argument("--top", type=int, default=20, help="log-probabilities to request per token")
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=int, default=8400)
    serve.set_defaults(run=_serve)
    return root


def _add_answers(command: argparse.ArgumentParser) -> None:
    command.add_argument("--answers", required=True, help="JSON Lines, JSON, Arrow or Parquet")
    _add_reading(command, READING)


def _add_reading(command: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Add some fields of `Reading` as a command's options."""
    for name in names:
        field = Reading.model_fields[name]
        option = {"help": field.description, "default": field.default}
        if field.annotation is bool:
            option["action"] = "store_true"
        elif get_origin(field.annotation) is Literal:
            option["choices"] = get_args(field.annotation)
        command.add_argument(f"--{name.replace('_', '-')}", **option)


def _read(args: argparse.Namespace, vocabulary: int | None = None) -> Answers:
    options = {name: getattr(args, name) for name in READING}
    options["vocabulary"] = options["vocabulary"] or vocabulary
    answers = read_answers(args.answers, parse(Reading, options, "options"))
    if answers.wrong:
        LOGGER.warning("%s: left out %s", args.answers, listed(answers.wrong))
    return answers


def _score(args: argparse.Namespace) -> None:
    from tracecal.outside.fitted import load
    from tracecal.outside.score import score_answers

    fitted = load(args.calibrator, args.estimator)
    answers = _read(args, fitted.fitted_on.vocabulary)
    scored = score_answers(answers.frame, fitted, args.error_rate)
    _write(scored, args.output)
    without = scored.filter(pl.col("probability").is_null())
    if without.height:
        reasons = "; ".join(without["reason"].unique().sort())
        LOGGER.warning(
            "%d of %d answers have no probability: %s", without.height, scored.height, reasons
        )


def _write(scored: pl.DataFrame, output: str | None) -> None:
    suffix = Path(output).suffix if output else ".jsonl"
    writers = {".jsonl": scored.write_ndjson, ".csv": scored.write_csv}
    if output and suffix == ".parquet":
        write_parquet(scored, output)
    elif suffix not in writers:
        raise InputError(f"{output}: expected a name that ends in .jsonl, .csv or .parquet.")
    elif output:
        write_text(writers[suffix](), output)
    else:
        sys.stdout.write(scored.write_ndjson())


def _calibrate(args: argparse.Namespace) -> None:
    from tracecal.given import read_yaml
    from tracecal.outside.fit import Fitting, calibrate_answers

    settings = read_yaml(args.config) if args.config else None
    fitting = parse(Fitting, settings or {}, args.config)
    answers = _read(args)
    calibrators = calibrate_answers(
        answers.frame,
        args.task,
        fitting,
        args.revision or answers.metadata.get("revision"),
        int(args.vocabulary) if args.vocabulary else None,
    )
    write_json(calibrators, args.output)


def _replay(args: argparse.Namespace) -> None:
    from tracecal.decode.model import load_model, load_tokenizer
    from tracecal.decode.replay import replay_answers, tokenisation, write_replayed

    answers = _read(args)
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


def _serve(args: argparse.Namespace) -> None:
    from tracecal.outside.serve import run

    run(args)


if __name__ == "__main__":
    sys.exit(main())
