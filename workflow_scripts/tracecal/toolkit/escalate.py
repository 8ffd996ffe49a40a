"""The command `tracecal cascade`: its options, and what it prints and writes."""

import argparse
from collections.abc import Callable

from tracecal.errors import InputError
from tracecal.inputs.schema import parse
from tracecal.logs.options import Reading
from tracecal.storage.files import write_json
from tracecal.toolkit.options import READING, add_options, ending, read_given


def add_cascade(command: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Add the command by the function with which the others are added."""
    cascade = command(
        "cascade",
        "tell what escalating a small model's answers to a large one is worth",
        "Both files hold labelled answers to the same questions, with the same ids. Prints a table "
        "and the thresholds from which to keep the small model's answers.",
    )
    cascade.add_argument("--small", required=True, help="answers of the small model, with traces")
    cascade.add_argument("--large", required=True, help="answers of the large model")
    for model in ("small", "large"):
        cascade.add_argument(
            f"--{model}-price",
            nargs=2,
            type=float,
            metavar=("PROMPT", "GENERATED"),
            help=f"of a million tokens of the {model} model's prompts and answers",
        )
    cascade.add_argument("--large-model", help="the large model's name; by default as in its file")
    cascade.add_argument("--task", default="cascade", help="a name for the task")
    cascade.add_argument(
        "--output", help="the small model's calibrator, with the thresholds: a JSON file"
    )
    cascade.add_argument(
        "--picture", type=ending(".svg", ".pdf", ".png"), help="a picture: .svg, .pdf or .png"
    )
    cascade.add_argument(
        "--config",
        help="YAML with seed, splits, calibration, risk_control, bootstrap",
    )
    add_options(cascade, Reading, READING)
    cascade.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from tracecal.inputs.files import read_yaml
    from tracecal.toolkit import cascade
    from tracecal.toolkit.fit import FitSettings

    given = read_yaml(args.config) if args.config else None
    settings = parse(FitSettings, given or {}, args.config)
    prices = [cascade.price(values) for values in (args.small_price, args.large_price)]
    if prices.count(None) == 1:
        raise InputError("give prices of both models: --small-price and --large-price.")
    small, large = (
        read_given(argparse.Namespace(**vars(args) | {"answers": path, "model": model})).frame
        for path, model in ((args.small, args.model), (args.large, args.large_model))
    )
    found = cascade.cascade_answers(
        small,
        large,
        settings,
        None if None in prices else prices,
        args.task,
        int(args.vocabulary) if args.vocabulary else None,
    )
    if args.output:
        write_json(found.stored, args.output)
    if args.picture:
        cascade.picture(found, args.picture, "seq_logp")
    print(cascade.summary(found))
