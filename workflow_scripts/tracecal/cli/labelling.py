"""The parts of the command that show answers, and choose those to label."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracecal.answers.read import Answers
from tracecal.answers.settings import Reading
from tracecal.cli.options import (
    READING,
    Command,
    add_answers,
    add_options,
    add_task,
    ending,
    read_given,
    require_apart,
)
from tracecal.cli.output import printable
from tracecal.io.files import write_text
from tracecal.io.log import LOGGER

if TYPE_CHECKING:  # slow to load, and not needed at import
    import polars as pl

    from tracecal.answers.part_spec import Parts
    from tracecal.apps.label_page import Recorded, Verdicts
    from tracecal.calibration.calibrator import Fitted


EXAMPLES = {
    "pick": "tracecal pick --answers all.jsonl --number 200 --output pick.jsonl",
    "label": "tracecal label pick.jsonl --output labelled.jsonl",
    "agree": "tracecal agree a.labelled.jsonl b.labelled.jsonl",
    "plan": "tracecal plan --calibrator C.json --error-rate 0.05 --picture plan.svg",
    "explore": "tracecal explore --answers log.jsonl --calibrator C.json --output answers.html",
}
SEED = 2026
MOST = 10_000


def add_commands(command: Command) -> None:
    """Add them by `command`, which makes a parser of a name, what it does and more on it."""
    pick = command(
        "pick",
        "draw answers to label at random",
        "Answers to one question stay together. The first 50 of 200 are a random sample too, so "
        "labelling may stop anywhere; a larger number goes on where a smaller one ended.",
    )
    pick.add_argument("--number", type=int, required=True, help="answers to draw, at least")
    pick.add_argument("--output", required=True, help="the rows drawn, as JSON Lines")
    pick.add_argument("--seed", type=int, default=SEED, help="of the draw")
    add_answers(pick)
    pick.set_defaults(run=_pick)
    label = command(
        "label",
        "label answers on a page of this machine",
        "Shows one answer after the other, without its scores; each verdict is on disk before the "
        "next. Started again, it goes on where it was.",
    )
    label.add_argument("--output", help="rows with verdicts (default: beside, .labelled.jsonl)")
    label.add_argument(
        "--calibrator", help="a calibrator's JSON file: shows probabilities afterwards"
    )
    add_task(label)
    label.add_argument(
        "--error-rate",
        type=float,
        help="ask only for labels that a guarantee of this error rate needs, and end when it "
        "stands",
    )
    label.add_argument("--confidence", type=float, default=0.9, help="of that guarantee")
    label.add_argument(
        "--population",
        default="finite",
        choices=("finite", "further"),
        help="whom it is about: the answers of the file, or further ones like them",
    )
    label.add_argument(
        "--largest-group",
        type=int,
        help="with further: how many answers of a question count at most (default: as many as the "
        "largest of the file has)",
    )
    label.add_argument("--parts", help="judge parts by themselves: as of explore")
    label.add_argument("--estimator", help="whose score or probability decides (default: the best)")
    label.add_argument("--seed", type=int, default=SEED, help="of the order of asking")
    label.add_argument(
        "--labels",
        help="take the verdicts from an export of Label Studio or Argilla, or from a file of this "
        "command; no page",
    )
    label.add_argument("--question", help="of the export, the one that asks for the verdict")
    label.add_argument("--port", type=int, default=0, help="to serve the page on; 0: any free one")
    add_answers(label, first=True)
    label.set_defaults(run=_label)
    agree = command(
        "agree",
        "say how far two people's labels agree",
        "Prints the share of equal verdicts and Cohen's kappa with intervals, and the answers on "
        "which they disagree. Unsure does not count as a verdict.",
    )
    agree.add_argument("answers", help="one person's labels, JSON Lines, JSON, CSV or Parquet")
    agree.add_argument("second", help="the other's")
    agree.add_argument("--seed", type=int, default=SEED, help="of the resamples")
    add_options(agree, Reading, READING)
    agree.set_defaults(run=_agree)
    plan = command(
        "plan",
        "say how many labels a guaranteed error rate needs",
        "By simulation from the labelled answers of a calibrator, or from two guesses.",
    )
    plan.add_argument("--error-rate", type=float, required=True, help="target error rate")
    plan.add_argument("--calibrator", help="a calibrator's JSON file")
    plan.add_argument("--accuracy", type=float, help="without a calibrator: share of right answers")
    plan.add_argument("--auroc", type=float, help="without a calibrator: AUROC of the confidence")
    plan.add_argument("--confidence", type=float, default=0.9, help="of the guarantee")
    plan.add_argument("--most", type=int, default=3200, help="largest number of labels to try")
    plan.add_argument("--draws", type=int, default=100, help="simulated draws of each number")
    plan.add_argument("--seed", type=int, default=SEED, help="of the draws")
    plan.add_argument("--picture", type=ending(".svg"), help="an .svg of the table")
    plan.set_defaults(run=_plan)
    explore = command(
        "explore",
        "write a page that shows the answers of a file",
        "It is the page that a run of the workflow makes: one file, which loads nothing else.",
    )
    explore.add_argument("--calibrator", help="a calibrator's JSON file, for probabilities")
    explore.add_argument("--output", required=True, type=ending(".html"), help="the page, .html")
    explore.add_argument("--number", type=int, default=MOST, help="answers to show, at most")
    explore.add_argument("--seed", type=int, default=SEED, help="of the choice of more answers")
    add_task(explore)
    explore.add_argument(
        "--parts", help="parts to show, each in its answer: as of calibrate; default: its own"
    )
    add_answers(explore)
    explore.set_defaults(run=_explore)


def _pick(args: argparse.Namespace) -> None:
    from tracecal.calibration.labelling import as_lines, picked

    rows = picked(read_given(args, with_rows=True), args.number, args.seed)
    write_text(as_lines(rows), args.output)
    LOGGER.info("%s holds %d answers; label them from the first on", args.output, len(rows))


def _explore(args: argparse.Namespace) -> None:
    from tracecal.apps.explorer.of_file import page_data
    from tracecal.apps.explorer.page import page

    calibrators, answers, task = _read_for(args)
    name, parts = Path(args.answers).name, _parts(args, calibrators)
    data = page_data(answers, name, calibrators, args.number, args.seed, task, parts)
    write_text(page(data), args.output)


def _label(args: argparse.Namespace) -> None:
    from tracecal.apps.explorer.of_file import page_data
    from tracecal.apps.label_page import Verdicts
    from tracecal.calibration.parts import part_answers

    output = args.output or str(Path(args.answers).with_suffix(".labelled.jsonl"))
    outcome = Path(output).with_suffix(".promise.json")
    require_apart(vars(args) | {"output": output, "promise_file": outcome})
    calibrators, answers, task = _read_for(args)
    parts, judged, names = _parts(args, calibrators), answers.frame, {}
    rows = dict(zip(judged["example_id"], answers.rows, strict=True))
    if parts is not None:
        judged = part_answers(answers.frame, parts)[0]
        names = dict(judged.select("example_id", "name").iter_rows())
        rows = {
            one: rows[answer] for one, answer in judged.select("example_id", "parent_id").rows()
        }
    if args.labels and args.error_rate is None:
        _take(args, Verdicts(output, rows, names))
        return
    data = page_data(answers, Path(args.answers).name, calibrators, task=task, parts=parts)
    query = None
    if args.error_rate is not None:
        recommended = next((one.fitted_on.estimator for one in calibrators.values()), None)
        query = _query(args, judged, data, outcome, recommended)
    verdicts = Verdicts(output, rows, names)
    if args.labels:
        _take(args, verdicts)
    else:
        from tracecal.apps.label_page import Labelling, calibrating, in_order, serve

        own_task = next((one.fitted_on.task for one in calibrators.values()), task)
        then = calibrating(output, own_task or Path(args.answers).stem, vars(args))
        ask = query.ask if query else in_order([*rows])
        serve(Labelling(data, verdicts, ask, then), args.port)
        LOGGER.info("%s holds %d verdicts on %d answers", output, len(verdicts.given), len(rows))
        LOGGER.info("next: %s", then)
    if query:
        following, said = query.ask(verdicts.given)
        then = "" if following is None else f"; the next label needed is that of {following!r}"
        LOGGER.info("%s: %s%s", query.path, said, then)


def _query(
    args: argparse.Namespace,
    judged: "pl.DataFrame",
    data: dict[str, Any],
    path: Path,
    recommended: str | None,
) -> "Recorded":
    """The query for the labels of `judged` that the wanted guarantee needs, recorded at `path`."""
    from tracecal.apps.label_page import LabelQuery, Recorded, Wanted, scores

    estimator, values = scores(data, args.estimator, recommended)
    names = ("error_rate", "confidence", "population", "largest_group", "seed")
    wanted = Wanted(estimator, **{name: getattr(args, name) for name in names})
    return Recorded(LabelQuery(judged, values, wanted), path)


def _take(args: argparse.Namespace, verdicts: "Verdicts") -> None:
    """Write the verdicts of an export, in the order of the answers."""
    from tracecal.answers.annotations import read_annotations

    found = read_annotations(args.labels, args.question, args.wrong_rows == "skip")
    others = verdicts.take(found)
    if others:
        LOGGER.warning("%s: %d verdict(s) are on other answers", args.labels, others)
    LOGGER.info("%s holds %d verdicts", verdicts.path, len(verdicts.given))


def _parts(args: argparse.Namespace, calibrators: dict[str, "Fitted"]) -> "Parts | None":
    """The parts that a command names, or else those of the calibrator."""
    from tracecal.calibration.parts import given_parts

    own = next((one.fitted_on.parts for one in calibrators.values()), None)
    return given_parts(args.parts) if args.parts else own


def _agree(args: argparse.Namespace) -> None:
    from tracecal.calibration.labelling import agreement, format_agreement

    first = read_given(args).frame
    args.answers = args.second
    print(printable(format_agreement(agreement(first, read_given(args).frame, args.seed))))


def _plan(args: argparse.Namespace) -> None:
    from tracecal.calibration import planning

    population, share = planning.population(args.calibrator, args.accuracy, args.auroc)
    planned = planning.planned(
        population, share, args.error_rate, args.confidence, args.most, args.draws, args.seed
    )
    print(planning.printed(population, planned, args.error_rate, args.confidence))
    if args.picture:
        write_text(planning.picture(planned, args.error_rate, args.confidence), args.picture)


def _read_for(args: argparse.Namespace) -> tuple[dict[str, "Fitted"], Answers, str | None]:
    """The fits of the calibrator that a command names, if it does; its answers and their task."""
    from tracecal.apps.explorer.of_file import fits
    from tracecal.calibration.calibrator import stored_in, vocabulary_for

    calibrators = fits(stored_in(args.calibrator), args.calibrator) if args.calibrator else {}
    size = int(args.vocabulary) if str(args.vocabulary).isdecimal() else None
    for fitted in list(calibrators.values())[:1]:
        size = vocabulary_for(fitted.fitted_on, size)
    answers = read_given(args, size, with_rows=True)
    return calibrators, answers, args.task or answers.metadata.get("task")
