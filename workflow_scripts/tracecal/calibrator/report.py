"""The report of a calibrator: how well each estimator predicts, and what is guaranteed.

1. `report = make_report(file, training, settings)` measures by the labelled answers.
2. `report.text` is what `tracecal calibrate` prints, `report.html` the page of its `--report`.
3. `report.estimators` and `report.guarantees` are the tables behind both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import polars as pl

from tracecal.answers.reading import Reading
from tracecal.calibration.forecast import describe_outlook
from tracecal.calibrator.catalogue import LABELS, describe_dependence
from tracecal.calibrator.guarantee_text import describe_terms, guarantee_lines, guarantee_table
from tracecal.calibrator.next_commands import USUAL_RATE, next_commands, recommended_rate
from tracecal.calibrator.population import labelled_population
from tracecal.calibrator.quality import measure_quality
from tracecal.calibrator.recommendation import choose_default, describe_default, describe_labels
from tracecal.calibrator.report_pictures import HEIGHT, WIDTH, across, report_pictures, up
from tracecal.calibrator.schema import CalibratorFile, ErrorRateControl
from tracecal.calibrator.settings import FitSettings
from tracecal.calibrator.training_set import TrainingSet
from tracecal.estimators.registry import LOG_RIDGE_ALSO
from tracecal.io.files import write_text
from tracecal.pages.page import render_page

TEMPLATE = Path(__file__).with_name("report.html")


@dataclass(frozen=True)
class Report:
    """How well each estimator predicts, and which error rates are guaranteed.

    `estimators` has a row per estimator, smallest Brier score first, with the ends of intervals of
    `level`; `guarantees` one per target error rate, with the share of answers kept. `predictions`
    are cross-fitted probabilities of the labelled `answers` (or of their parts); `outlook` says
    what a guarantee would need, None where every error rate has one. `default` is the estimator
    that is used unless another is better, `reservation` why none is recommended. `str` is the text.
    """

    file: CalibratorFile = field(repr=False)
    estimator: str
    estimators: pl.DataFrame = field(repr=False)
    guarantees: pl.DataFrame = field(repr=False)
    predictions: pl.DataFrame = field(repr=False)
    pictures: Mapping[str, Any] = field(repr=False)
    level: float
    outlook: str | None
    default: str
    reservation: str | None = None
    mixed_log: str | None = None
    commands: Sequence[tuple[str, str]] = ()

    @property
    def control(self) -> ErrorRateControl:
        """The guarantees of the recommended estimator."""
        return self.file.estimators[self.estimator].risk_control

    @property
    def text(self) -> str:
        """The report for a terminal."""
        fitted_on, guarantees = self.file.fitted_on, guarantee_lines(self.guarantees)
        lines = [
            f"{fitted_on.n} labelled answers of {fitted_on.model or 'an unnamed model'} to "
            f"{fitted_on.task}, {fitted_on.base_rate:.1%} correct; entropies: {fitted_on.entropy}",
            "",
            f"Measured on the {self.estimators['n'].max()} of them that did not choose the "
            "estimator:",
            "",
            f"{'estimator':34}{'Brier':>20}{'AUROC':>20}{'mean - correct':>22}{'ECE':>8}",
            *(self._line(row) for row in self.estimators.iter_rows(named=True)),
            "",
            f"Guaranteed error rates of {LABELS[self.estimator]}, {describe_terms(self.control)}:",
            *(f"  {line}" for line in guarantees),
        ]
        for paragraph in self.recommendation():
            lines += ["", paragraph]
        lines += ["", "Next:"] if self.commands else []
        lines += [f"  {command}\n      {what}" for what, command in self.commands]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    @property
    def html(self) -> str:
        """The report as a page that loads nothing."""
        return self._page(None)

    def save(self, path: str | Path, explorer: str | None = None) -> None:
        """Write the page, with a link to an `explorer` of the labelled answers if there is one."""
        write_text(self._page(explorer), path)

    def with_commands(
        self,
        answers: str,
        calibrator: str,
        reading: Reading,
        explorer: str | None = None,
        task: str | None = None,
    ) -> Self:
        """Add the commands to type next, for files by their paths as they were typed.

        `task` is the one that the answers state.
        """
        about = self.file.fitted_on, self.estimator, self.guarantees
        commands = next_commands(*about, answers, calibrator, reading, explorer, task)
        return replace(self, commands=commands)

    def recommendation(self) -> list[str]:
        """What to do with the calibrator, in paragraphs, first whether to keep answers by it."""
        fitted_on, rate = self.file.fitted_on, recommended_rate(self.guarantees)
        wrong = f"Of all labelled answers {1 - fitted_on.base_rate:.0%} are wrong."
        if rate is None:
            highest = self.guarantees["error_rate"].max()
            none = (
                f"no error rate up to {highest:.0%} is guaranteed" if highest else "none is tested"
            )
            headline = f"Do not yet keep answers by these probabilities: {none}."
            more = f"{wrong} The probabilities still say which answers to look at first."
        else:
            row = self.guarantees.row(by_predicate=pl.col("error_rate") == rate, named=True)
            headline = (
                f"Keep answers with --error-rate {rate:g}: about {row['coverage']:.0%} of answers "
                f"like these are kept, and at most {rate:.0%} of the kept ones are wrong, with "
                f"{self.control.confidence:.0%} confidence."
            )
            fixed = (
                f"{rate:.0%} was fixed before the labels were seen"
                if rate == USUAL_RATE
                else f"{USUAL_RATE:.0%}, fixed before the labels were seen, is not guaranteed"
            )
            more = (
                f"{wrong} {fixed}. Each guarantee holds by itself: take the rate that your use "
                "asks for, not the strictest of several that happen to be guaranteed."
            )
        paragraphs = [headline, more, self._advice()]
        if self.mixed_log:
            paragraphs.append(self.mixed_log)
        if fitted_on.columns and self.estimator == LOG_RIDGE_ALSO.id:
            needed = describe_dependence(fitted_on.columns)
            paragraphs.append(
                f"Its probabilities and guarantees rest on {needed}: an answer that lacks one of "
                "them has no probability."
            )
        return [*paragraphs, *([self.outlook] if self.outlook else [])]

    def _advice(self) -> str:
        """Which estimator to use, and why that one and not the default."""
        if self.reservation:
            return self.reservation
        estimator, gain = self.estimator, self.file.fitted_on.gain
        default = self.default
        use = f"Use {LABELS[estimator]}, as 'tracecal score' does (--estimator {estimator})"
        if gain is None:
            return (
                f"{use}: it was fixed beforehand, and no other is better by more than its interval."
            )
        return (
            f"{use}: on labels that neither this table nor a guarantee counts, its Brier score is "
            f"{gain[0]:.3f} lower than that of {LABELS[default]}, which is used otherwise "
            f"(interval {gain[1]:.3f} to {gain[2]:.3f}, for all estimators at once)."
        )

    def _line(self, row: Mapping[str, Any]) -> str:
        """An estimator's row of the table in text."""
        ece = "-" if row["ece"] is None else f"{row['ece']:.3f}"
        return (
            f"{LABELS[row['estimator']]:34}{_with_ends(row, 'brier'):>20}"
            f"{_with_ends(row, 'auroc'):>20}{_with_ends(row, 'gap'):>22}{ece:>8}"
            + "".join(f"  {note}" for note in self._notes(row))
        )

    def _notes(self, row: Mapping[str, Any]) -> list[str]:
        """What to say of an estimator's row."""
        is_recommended = row["estimator"] == self.estimator and not self.reservation
        notes = ["recommended"] if is_recommended else []
        return notes + (["few different values"] if 2 * row["distinct"] < row["n"] else [])

    def _page(self, explorer: str | None) -> str:
        fitted_on, drawn, quarters = self.file.fitted_on, self.pictures, (0, 0.25, 0.5, 0.75, 1)
        return render_page(
            TEMPLATE,
            f"Calibrator of {fitted_on.model or 'an unnamed model'} for {fitted_on.task}",
            fitted_on=fitted_on,
            estimator=self.estimator,
            recommendation=self.recommendation(),
            explorer=explorer,
            drawn=drawn,
            share_ticks=[(up(share), f"{100 * share:.0f}") for share in quarters],
            risk_ticks=[(up(share), f"{100 * share * drawn['top']:.3g}") for share in quarters],
            count_ticks=[(up(0), drawn["most"]), (up(0.5), 0), (up(1), drawn["most"])],
            across=across,
            up=up,
            width=WIDTH,
            height=HEIGHT,
            commands=self.commands,
            terms=describe_terms(self.control),
            labels=LABELS,
            notes=self._notes,
            guarantees=guarantee_lines(self.guarantees),
            rows=list(self.estimators.iter_rows(named=True)),
            level=self.level,
        )


def make_report(file: CalibratorFile, training: TrainingSet, settings: FitSettings) -> Report:
    """Measure a calibrator by the answers that it was fitted on, held out in turn."""
    estimator, predictions = file.recommended(), training.cross_fitted(settings)
    calibrated = file.estimators[estimator]
    control = calibrated.risk_control
    guarantees = guarantee_table(control)
    outlook = None
    if guarantees["threshold"].null_count():
        population = labelled_population(calibrated, "the calibrator")
        share = settings.splits.calibration_share
        outlook = describe_outlook(population, control.confidence, guarantees, share, settings.seed)
    tested_fit = calibrated.splits[control.split]
    return Report(
        file=file,
        estimator=estimator,
        estimators=measure_quality(training, predictions, settings),
        guarantees=guarantees,
        predictions=predictions,
        pictures=report_pictures(training, predictions, tested_fit, estimator, guarantees),
        level=settings.bootstrap.level,
        outlook=outlook,
        default=choose_default(training),
        reservation=describe_labels(training, file.estimators),
        mixed_log=describe_default(training),
    )


def _with_ends(row: Mapping[str, Any], metric: str) -> str:
    if row[metric] is None:
        return "-"
    if row[f"{metric}_low"] is None:
        return f"{row[metric]:.3f}"
    return f"{row[metric]:.3f} [{row[f'{metric}_low']:.2f}, {row[f'{metric}_high']:.2f}]"
