"""How the work's cost grows with answers, tokens, models and estimators, at five sizes each.

`make bench AREAS=growth` measures and draws docs/growth.svg.
"""

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import yaml
from matplotlib.figure import Figure

from benchmarks import calibration, decoding, operators, workflow
from benchmarks.pictures import save_picture
from benchmarks.timing import Row, alone, cpu_seconds
from trace_workflow.figures import figure_style
from trace_workflow.models.decoding import decode
from tracecal.capture.stop_strings import StopStrings
from tracecal.estimators.features import answer_features
from tracecal.fits.predictions import calibrate_all

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "growth.svg"
TASKS, ANSWERS, AT_ONCE = 4, 1_000, 8
Timed = Callable[[], float]  # does the work once and says what it took, in CPU seconds
SIZES = {
    "answers": (10_000, 30_000, 100_000, 300_000, 1_000_000),
    "tokens an answer": (32, 64, 128, 256, 512),
    "models": (5, 10, 25, 50, 100),
    "estimators": (15, 30, 60, 90, 135),
}
TITLES = {
    "answers": "features of stored answers",
    "tokens an answer": f"decoding {AT_ONCE} answers",
    "models": f"dry run, {TASKS} tasks",
    "estimators": f"calibrating {ANSWERS:,} answers",
}
CAPTION = (
    "CPU seconds by the number of answers, tokens, models and estimators, on logarithmic axes; the "
    "dotted lines are in proportion to the largest size."
)


def rows() -> Iterator[Row]:
    """CPU seconds of one piece of work for each of the SIZES, one thing growing at a time."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        of = {
            "answers": _features,
            "tokens an answer": _decoding(),
            "models": lambda models: _dry_run(models, Path(folder)),
            "estimators": _calibration,
        }
        measured = []
        for axis, sizes in SIZES.items():
            for size in sizes:
                row = alone(
                    f"{TITLES[axis]}: {size:,} {axis}",
                    of[axis](size),
                    items=size,
                    unit=axis,
                    repeats=1 if axis == "models" else 3,
                )
                measured.append((axis, row))
                yield row
    draw(measured)


def _features(answers: int) -> Timed:
    traces = operators.made_up(answers)
    return lambda: cpu_seconds(lambda: answer_features(traces))


def _decoding() -> Callable[[int], Timed]:
    model = decoding.model_of(1_500, 96, 2)
    prompts = [decoding.tokens(decoding.PROMPT, 1_500, row) for row in range(AT_ONCE)]

    def answer(new: int) -> object:
        return decode(model, prompts, [], StopStrings(None, ()), new)

    return lambda new: lambda: cpu_seconds(lambda: answer(new))


def _dry_run(models: int, folder: Path) -> Timed:
    path = folder / f"{models}.yaml"
    path.write_text(yaml.safe_dump(workflow.enlarged(models, TASKS)), encoding="utf-8")
    return lambda: workflow.dry_run(path)


def _calibration(estimators: int) -> Timed:
    answers, splits = calibration.made_up(ANSWERS)
    whole = calibration.ESTIMATORS.items()
    copies = range(-(-estimators // len(whole)))
    named = {f"{name}-{copy}": columns for copy in copies for name, columns in whole}
    chosen = dict(list(named.items())[:estimators])
    return lambda: cpu_seconds(lambda: calibrate_all(answers, splits, chosen, "platt"))


def draw(measured: list[tuple[str, Row]]) -> None:
    """One panel for each thing that grows, both axes logarithmic; dotted is in proportion."""
    look = figure_style.FAMILIES["likelihood"]
    factors = []
    with figure_style.applied():
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, 4.2))
        for place, (axis, title) in enumerate(TITLES.items(), 1):
            points = [(row.items, row.ours) for one, row in measured if one == axis]
            sizes, seconds = zip(*points, strict=True)
            panel = figure.add_subplot(2, 2, place)
            proportional = [seconds[-1] * size / sizes[-1] for size in sizes]
            panel.loglog(sizes, proportional, ":", color=figure_style.MUTED)
            panel.loglog(sizes, seconds, "-", **figure_style.point(look))
            panel.set_title(title)
            panel.set_xlabel(axis, fontsize=figure_style.SMALL, color=figure_style.MUTED)
            # Labels of all would run into each other.
            labelled = slice(None, None, max(1, len(sizes) // 2))
            panel.set_xticks(sizes[labelled], [f"{size:,}" for size in sizes[labelled]])
            marked = seconds[labelled]
            panel.set_yticks(marked, [f"{one:.2g} s" for one in marked])
            panel.minorticks_off()
            factors.append(doubled(points))
        figure_style.message(
            figure,
            f"At the largest sizes, twice the size takes {min(factors):.1f} to "
            f"{max(factors):.1f} times the CPU time",
        )
    save_picture(figure, PICTURE, "Growth of cost", CAPTION)


def doubled(points: list[tuple[int, float]]) -> float:
    """By which factor the seconds grow from size to twice the size, from the last two points."""
    (small, before), (large, after) = points[-2:]
    return 2 ** (math.log(after / before) / math.log(large / small))
