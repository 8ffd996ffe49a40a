"""The command `tracecal`: scores, calibrators and a proxy without the workflow around them."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tracecal.errors import InputError
from tracecal.logs.options import Format, Reading
from tracecal.logs.read import Answers, listed, read_answers
from tracecal.progress import LOGGER
from tracecal.schema import parse
from tracecal.storage.files import write_json, write_parquet, write_text

READING = ("format", "vocabulary", "greedy", "stop_token", "processed", "model", "id", "label")
READING += ("filter", "wrong_rows")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 1 with one sentence where something given is not usable."""
    given = parser().parse_args(arguments)
    logging.basicConfig(format="tracecal: %(message)s", stream=sys.stderr)
    LOGGER.setLevel(logging.INFO)
    try:
        given.run(given)
    except InputError as error:
        LOGGER.error("error: %s", error)
        return 1
    except BrokenPipeError:  # what reads the output, `head` say, has enough
        return 0
    return 0


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    whole = argparse.ArgumentParser(prog="tracecal", description=__doc__)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    score = commands.add_parser("score", help="a probability for each answer of a file")
    score.add_argument("--calibrator", required=True, help="its JSON file")
    score.add_argument("--estimator", default="trace_plus", help="of the calibrator's file")
    score.add_argument("--error-rate", type=float, help="keep answers for this wished error rate")
    score.add_argument("--output", help=".jsonl, .csv or .parquet; by default JSON Lines to stdout")
    _reads_answers(score)
    score.set_defaults(run=_score)
    fit = commands.add_parser("calibrate", help="a calibrator from a file of labelled answers")
    fit.add_argument("--task", required=True, help="a name for what was asked")
    fit.add_argument("--output", required=True, help="the calibrator's JSON file")
    fit.add_argument("--revision", help="of the model")
    fit.add_argument("--config", help="YAML with seed, splits, calibration, risk_control")
    _reads_answers(fit)
    fit.set_defaults(run=_calibrate)
    replay = commands.add_parser("replay", help="exact traces of answers made elsewhere")
    replay.add_argument("--weights", required=True, help="the model's folder, as Transformers' own")
    replay.add_argument("--output", required=True, help="an .arrow file, to score or calibrate on")
    replay.add_argument("--revision", help="of the model")
    replay.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    replay.add_argument("--batch-size", type=int, default=32)
    replay.add_argument("--end-token", action="store_true", help="put one after answers of text")
    _reads_answers(replay)
    replay.set_defaults(run=_replay)
    serve = commands.add_parser("serve", help="a proxy that adds confidence to a server's answers")
    serve.add_argument("--upstream", required=True, help="such as http://localhost:8000")
    serve.add_argument("--calibrator", required=True, help="its JSON file")
    serve.add_argument("--error-rate", type=float, help="keep answers for this wished error rate")
    _reading(serve, ("vocabulary", "model", "stop_token", "processed"))
    serve.add_argument("--top", type=int, default=20, help="log-probabilities to ask for")
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=int, default=8400)
    serve.set_defaults(run=_serve)
    return whole


def _reads_answers(command: argparse.ArgumentParser) -> None:
    command.add_argument("--answers", required=True, help="JSON Lines, JSON, Arrow or Parquet")
    _reading(command, READING)


def _reading(command: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Some options of `Reading`, as a command's."""
    for name in names:
        field = Reading.model_fields[name]
        option = {"help": field.description, "dest": name, "default": field.default}
        choices = getattr(Format if name == "format" else field.annotation, "__args__", ())
        if name == "greedy":
            command.add_argument("--greedy", action="store_true", help=field.description)
        elif choices and type(None) not in choices:
            command.add_argument(f"--{name.replace('_', '-')}", choices=choices, **option)
        else:
            command.add_argument(f"--{name.replace('_', '-')}", **option)


def _read(given: argparse.Namespace, vocabulary: int | None = None) -> Answers:
    chosen = {name: getattr(given, name) for name in READING}
    chosen["vocabulary"] = chosen["vocabulary"] or vocabulary
    answers = read_answers(given.answers, parse(Reading, chosen, "options"))
    if answers.wrong:
        LOGGER.warning("%s: left out %s", given.answers, listed(answers.wrong))
    return answers


def _score(given: argparse.Namespace) -> None:
    from tracecal.outside.fitted import load
    from tracecal.outside.score import score_answers

    fitted = load(given.calibrator, given.estimator)
    answers = _read(given, fitted.fitted_on.vocabulary)
    scored = score_answers(answers.frame, fitted, given.error_rate)
    _write(scored, given.output)
    without = scored.filter(pl.col("probability").is_null())
    if without.height:
        LOGGER.warning(
            "%d of %d answers have no probability: %s",
            without.height,
            scored.height,
            "; ".join(without["reason"].unique().sort().to_list()),
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


def _calibrate(given: argparse.Namespace) -> None:
    from tracecal.given import read_yaml
    from tracecal.outside.fit import Fitting, calibrate_answers

    fitting = parse(Fitting, read_yaml(given.config) or {}, given.config) if given.config else None
    answers = _read(given)
    calibrators = calibrate_answers(
        answers.frame,
        given.task,
        fitting or Fitting(),
        given.revision or answers.metadata.get("revision"),
        int(given.vocabulary) if given.vocabulary else None,
    )
    write_json(calibrators, given.output)


def _replay(given: argparse.Namespace) -> None:
    from tracecal.decode.model import load_model, load_tokenizer
    from tracecal.decode.replay import replay_answers, tokenisation, write_replayed

    answers = _read(given)
    model, tokenizer = load_model(given.weights, given.dtype), load_tokenizer(given.weights)
    made = {
        "model": given.model or Path(given.weights).resolve().name,
        "revision": given.revision or answers.metadata.get("revision"),
        "dtype": given.dtype,
        "tokenisation": tokenisation(answers.frame, given.end_token),
    }
    LOGGER.info("%s", made["tokenisation"])
    found = replay_answers(model, tokenizer, answers.frame, given.batch_size, given.end_token)
    found = found.with_columns(pl.col("model").fill_null(made["model"]))
    write_replayed(found, {name: value for name, value in made.items() if value}, given.output)


def _serve(given: argparse.Namespace) -> None:
    from tracecal.outside.serve import run

    run(given)


if __name__ == "__main__":
    sys.exit(main())
