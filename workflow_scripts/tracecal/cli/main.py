"""Confidence for answers of language models: calibrate on labelled ones, then score new ones."""

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import polars as pl

from tracecal.answers.settings import Reading
from tracecal.apps.proxy.settings import Settings
from tracecal.cli import labelling
from tracecal.cli.cascade import add_cascade
from tracecal.cli.options import (
    add_answers,
    add_calibrator,
    add_options,
    add_task,
    ending,
    read_given,
    require_apart,
)
from tracecal.cli.output import Printable, printable, write_beside, write_scored
from tracecal.cli.replay import run_replay
from tracecal.cli.watch import add_watch
from tracecal.errors import InputError
from tracecal.io.files import write_json, write_text
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse

DISTRIBUTION = "tracecal"
EXAMPLES = {
    "calibrate": "tracecal calibrate --answers labelled.jsonl --task svamp --vocabulary 151936 "
    "--output C.json",
    "score": "tracecal score --answers new.jsonl --calibrator C.json --error-rate 0.1 "
    "--output scored.jsonl",
    "replay": "tracecal replay --answers samples_svamp.jsonl --weights path/to/model "
    "--output replayed.arrow",
    "watch": "tracecal watch --answers log.jsonl --calibrator C.json --state state.db",
    "cascade": "tracecal cascade --small small.jsonl --large large.jsonl --picture cascade.svg",
    "serve": "tracecal serve --upstream http://localhost:8000 --calibrator C.json",
} | labelling.EXAMPLES


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows defaults, but for options that have none."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False, {}, []) or action.default == argparse.SUPPRESS:
            return action.help
        return super()._get_help_string(action)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, or 1 after logging an `InputError` or an error of the system.

    Without arguments it prints its help.
    """
    args = parser().parse_args(arguments)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Printable("tracecal: %(message)s"))
    logging.basicConfig(handlers=[handler])
    LOGGER.setLevel(logging.INFO)
    try:
        require_apart(vars(args))
        args.run(args)
    except InputError as error:
        LOGGER.error("error: %s", error)
        return 1
    except BrokenPipeError:  # the reader of the output, such as `head`, has enough
        return 0
    except OSError as error:  # a full disk, a missing permission
        LOGGER.error("error: %s: %s.", error.filename or "the output", error.strerror)
        return 1
    return 0


def installed_version() -> str:
    """The installed version; the checkout's, where the package is not installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "(from a checkout, not installed)"


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    root = argparse.ArgumentParser(
        prog="tracecal",
        description=__doc__,
        epilog="examples:\n" + "\n".join(f"  {example}" for example in EXAMPLES.values()),
        formatter_class=_Help,
    )
    root.add_argument("--version", action="version", version=f"tracecal {installed_version()}")
    root.set_defaults(run=lambda args: root.print_help())
    commands = root.add_subparsers(metavar="COMMAND")

    def command(name: str, what: str, more: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=what,
            description=f"{what[0].upper()}{what[1:]}. {more}",
            epilog=f"example:\n  {EXAMPLES[name]}",
            formatter_class=_Help,
        )

    fit = command(
        "calibrate",
        "fit a calibrator on labelled answers",
        "Prints how well each estimator predicts, and which error rates its thresholds guarantee.",
    )
    fit.add_argument("--task", required=True, help="a name for the task")
    fit.add_argument("--output", required=True, help="the calibrator's JSON file")
    fit.add_argument(
        "--report", type=ending(".html"), help="an HTML page with what is printed, and more"
    )
    fit.add_argument("--revision", help="revision of the model")
    fit.add_argument(
        "--config", help="YAML with seed, splits, calibration, risk_control, bootstrap"
    )
    _add_parts(fit, "they are labelled by part")
    add_answers(fit)
    fit.set_defaults(run=_calibrate)
    score = command(
        "score",
        "write a probability for each answer of a file",
        "Rows keep their order. A text in .csv that a spreadsheet would execute begins with '.",
    )
    add_calibrator(score)
    score.add_argument(
        "--estimator",
        help="one of the calibrator's file (default: the one that 'tracecal calibrate' "
        "recommended; for answers without entropies the best of log-probabilities alone)",
    )
    add_task(score)
    score.add_argument("--output", help=".jsonl, .csv or .parquet (default: JSON Lines to stdout)")
    score.add_argument(
        "--beside",
        metavar="FILE",
        help="JSON Lines of the same answers, read as they are: write its rows with `confidence`",
    )
    _add_parts(score, "by default those of the calibrator")
    add_answers(score)
    score.set_defaults(run=_score)
    replay = command(
        "replay",
        "write exact traces of answers made elsewhere",
        "Each answer is read once with the model that gave it; nothing is generated.",
    )
    replay.add_argument("--weights", required=True, help="the model's folder, as for Transformers")
    replay.add_argument(
        "--output",
        required=True,
        type=ending(".arrow"),
        help="an .arrow file, for score and calibrate",
    )
    replay.add_argument("--revision", help="revision of the model")
    replay.add_argument(
        "--dtype",
        default="float32",
        choices=("float32", "bfloat16", "float16"),
        help="type of the weights",
    )
    replay.add_argument("--batch-size", type=int, default=32, help="answers processed together")
    replay.add_argument("--end-token", action="store_true", help="append it to answers of text")
    add_answers(replay)
    replay.set_defaults(run=run_replay)
    add_watch(command)
    add_cascade(command)
    serve = command(
        "serve",
        "run a proxy that adds confidence to a server's answers",
        "Clients use it in place of the server.",
    )
    add_calibrator(serve)
    add_options(serve, Reading, ("vocabulary", "model", "stop_token", "processed"))
    add_options(serve, Settings, Settings.model_fields)
    serve.set_defaults(run=_serve)
    labelling.add_commands(command)
    return root


def _add_parts(command: argparse.ArgumentParser, more: str) -> None:
    what = "parts of the answers, a file or text: 'json: [a, b]', 'lines: [a, b]' or a JSON Schema"
    command.add_argument("--parts", help=f"{what}; {more}; see docs/guides/parts.md")


def _score(args: argparse.Namespace) -> None:
    from tracecal.calibration.calibrator import (
        LABELS,
        default_estimator,
        from_stored,
        stored_in,
        vocabulary_for,
    )
    from tracecal.calibration.parts import given_parts, score_parts
    from tracecal.calibration.score import score_answers

    stored = stored_in(args.calibrator)
    estimator = args.estimator or default_estimator(stored)
    fitted = from_stored(stored, estimator, args.calibrator)
    size = int(args.vocabulary) if str(args.vocabulary).isdecimal() else None
    answers = read_given(args, vocabulary_for(fitted.fitted_on, size))
    frame = answers.frame
    if args.estimator is None and frame["entropy"].is_null().all():
        fitted = from_stored(stored, default_estimator(stored, entropies=False), args.calibrator)
    if fitted.estimator != estimator:
        names = LABELS.get(estimator, estimator), LABELS.get(fitted.estimator, fitted.estimator)
        LOGGER.warning("without entropies %s is not defined; using %s", *names)
    task = args.task or answers.metadata.get("task")
    of_parts = given_parts(args.parts) if args.parts else fitted.fitted_on.parts
    if args.beside and of_parts:
        raise InputError("--beside writes the confidence of whole answers, not of parts.")
    if of_parts:
        write_scored(score_parts(frame, fitted, args.error_rate, task, of_parts), args.output)
        return
    if args.beside and frame["surprisal"].is_null().all():
        raise InputError(
            f"{args.answers}: no answer has log-probabilities, so none has a confidence to write "
            f"({'; '.join(frame['lacks'].drop_nulls().unique().sort())}). Replay the answers with "
            "'tracecal replay', or have them kept where they are made (docs/guides/evaluators.md)."
        )
    scored = score_answers(frame, fitted, args.error_rate, task)
    if args.beside:
        rows = read_given(args, with_rows=True, path=args.beside)
        without = write_beside(scored, rows.frame["example_id"].to_list(), rows.rows, args.output)
        if without:
            LOGGER.warning("%d rows of %s are not in %s", without, args.beside, args.answers)
    else:
        write_scored(scored, args.output)
    for column, what in (("probability", "no probability"), ("keep", "no decision")):
        if column == "keep" and args.error_rate is None:
            continue
        without = scored.filter(pl.col(column).is_null() & pl.col("reason").is_not_null())
        if without.height:
            reasons = "; ".join(without["reason"].unique().sort())
            LOGGER.warning(
                "%d of %d answers have %s: %s", without.height, scored.height, what, reasons
            )


def _calibrate(args: argparse.Namespace) -> None:
    from tracecal.apps import report
    from tracecal.calibration import planning
    from tracecal.calibration.calibrator import default_estimator, run_on
    from tracecal.calibration.fit import FitSettings, calibrate_answers, labelled
    from tracecal.calibration.parts import labelled_parts
    from tracecal.io.input_files import read_yaml

    given = read_yaml(args.config) if args.config else None
    settings = parse(FitSettings, given or {}, args.config)
    answers = read_given(args)
    if warning := run_on(answers.frame):
        LOGGER.warning("%s", warning)
    frame, parts = labelled_parts(answers, args.parts)
    stored = calibrate_answers(
        frame,
        args.task,
        settings,
        args.revision or answers.metadata.get("revision"),
        int(args.vocabulary) if args.vocabulary else None,
        parts,
    )
    write_json(stored, args.output)
    known = labelled(frame, args.task, settings, parts)
    measured = report.quality(known, args.task, settings)
    estimator = default_estimator(stored)
    certified = report.guarantees(
        stored[estimator]["risk_control"], known.frame["group_id"].n_unique()
    )
    outlook = planning.outlook(stored, certified, settings.splits.calibration_share, settings.seed)
    print(printable(report.summary(stored, measured, certified, estimator, outlook)))
    if args.report:
        level = settings.bootstrap.level
        text = report.render(stored, measured, certified, estimator, level, outlook)
        write_text(text, args.report)


def _serve(args: argparse.Namespace) -> None:
    from tracecal.apps.proxy.run import run

    run(args)


if __name__ == "__main__":
    sys.exit(main())
