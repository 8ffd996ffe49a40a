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
from tracecal.calibrator.answer_ranking import count_reordered
from tracecal.calibrator.catalogue import LABELS, describe_dependence
from tracecal.calibrator.decision import (
    decision_text,
    describe_counts,
    describe_reading,
    estimator_table,
)
from tracecal.calibrator.guarantee import labelled_population
from tracecal.calibrator.guarantee_text import (
    chosen_overall,
    decided_rate,
    describe_chance,
    describe_errors_by_column,
    describe_looks,
    describe_missing_answers,
    describe_overall,
    describe_ranking,
    describe_recall,
    describe_terms,
    guarantee_table,
    headline,
    other_rates,
)
from tracecal.calibrator.next_commands import SCORED_FILE, next_commands
from tracecal.calibrator.page_frame import render_page
from tracecal.calibrator.recommendation import (
    choose_default,
    describe_labels,
    describe_log,
    measure_quality,
)
from tracecal.calibrator.report_pictures import (
    QUARTERS,
    axes,
    describe_reliability,
    report_pictures,
    up,
)
from tracecal.calibrator.schema import (
    CalibratorFile,
    ErrorRateControl,
    ErrorRateThreshold,
    OverallThreshold,
)
from tracecal.calibrator.training_set import TrainingSet
from tracecal.estimators.registry import LOG_RIDGE_ALSO
from tracecal.fits.fit_settings import FitSettings
from tracecal.guarantees.forecast import labels_to_ask
from tracecal.io.regular_files import write_text
from tracecal.statistics.percentages import percent, rate_text

ABOUT_KEEPING = (
    "A guarantee is about the share of wrong answers among all that are kept, not about each of "
    "them: an answer is kept from a threshold on, also where its own probability is below 50 %."
)
SECOND_LOOK = "Calibrating on more is a second look: continue with --after, or plan --looks 2."
TEMPLATE = Path(__file__).with_name("report.html")


@dataclass(frozen=True)
class Report:
    """How well each estimator predicts, and which error rates are guaranteed.

    `estimators` has a row per estimator, smallest Brier score first, with the ends of intervals of
    `level`; `guarantees` one per target error rate, with the share of answers kept. `predictions`
    are cross-fitted probabilities of the labelled `answers` (or of their parts). `default` is the
    estimator that is used unless another is better, `reservation` why none is recommended.
    `n_reordered` says by error rate how many labelled answers are kept, and how many of these would
    be others if the probability ranked them.
    `n_to_ask` is how many labels `tracecal label` would ask for where the rate of the decision is
    not guaranteed, as far as it is known.
    `n_answers` counts the labelled and the unlabelled, `requested` and `requested_overall` are the
    rates that the user named, `notes` say what else to know of the answers. `str` is the text.
    """

    file: CalibratorFile = field(repr=False)
    estimator: str
    estimators: pl.DataFrame = field(repr=False)
    guarantees: pl.DataFrame = field(repr=False)
    predictions: pl.DataFrame = field(repr=False)
    pictures: Mapping[str, Any] = field(repr=False)
    level: float
    default: str
    n_reordered: Mapping[float, tuple[int, int]] = field(repr=False)
    n_answers: int = 0
    n_to_ask: int | None = None
    requested: Sequence[float] = ()
    requested_overall: Sequence[float] = ()
    reservation: str | None = None
    notes: Sequence[str] = ()
    commands: Sequence[tuple[str, str]] = ()

    @property
    def control(self) -> ErrorRateControl:
        """The guarantees of the recommended estimator."""
        return self.file.estimators[self.estimator].risk_control

    @property
    def decided(self) -> ErrorRateThreshold | None:
        """The error rate of the decision; None where none is tested."""
        return decided_rate(self.control.thresholds, self.requested)

    @property
    def rate(self) -> float | None:
        """The same as a number."""
        return self.decided.error_rate if self.decided else None

    @property
    def is_guaranteed(self) -> bool:
        """Whether the error rate of the decision is guaranteed."""
        return self.decided is not None and self.decided.threshold is not None

    @property
    def text(self) -> str:
        """The decision in a dozen lines, for a terminal."""
        data = self.file.fitted_on
        commands = {}
        if self.commands:
            commands["Next"] = self.commands[0][1].removesuffix(f" --output {SCORED_FILE}")
            commands["More"] = "--all for every estimator, tracecal --help for what else there is"
        counts, reading = describe_counts(data, self.n_answers), describe_reading(data)
        paragraphs = [counts], self._decision(), self.overall(), [self._quality()]
        return decision_text(paragraphs, commands, reading)

    @property
    def warnings(self) -> list[str]:
        """Warnings for the user beside the decision, a sentence each."""
        return [*self.notes, *self._dependence()]

    @property
    def table(self) -> str:
        """All estimators with their quality, as `calibrate --all` prints them."""
        recommended = None if self.reservation else self.estimator
        count = self.estimators["n"].max()
        return (
            f"Measured on the {count} labelled answers that did not choose the estimator:\n"
            f"{estimator_table(self.estimators, recommended)}"
        )

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
        """Add the next commands to type, with paths as the user typed them.

        `task` is the task that the answers state.
        """
        decision = self.file.fitted_on, self.estimator, self.rate, self.is_guaranteed
        commands = next_commands(*decision, answers, calibrator, reading, explorer, task)
        return replace(self, commands=commands)

    @property
    def chosen_overall(self) -> OverallThreshold | None:
        """The overall error rate of the decision; None where none is tested."""
        return chosen_overall(self.control, self.requested_overall)

    def overall(self) -> list[str]:
        """How much people must check for each overall error rate; nothing of parts."""
        return describe_overall(self.control, self.file.fitted_on.base_rate, self.requested_overall)

    def recommendation(self) -> list[str]:
        """Whether to keep answers by the calibrator, and what else holds of those kept."""
        return [self._headline(), *self._exceptions(), *map(str.strip, self.overall())]

    def evidence(self) -> list[str]:
        """Why to believe it, and what to beware of, a paragraph each."""
        paragraphs = [self._advice(), *self.notes]
        if self.is_guaranteed:
            ranking = describe_ranking(self.control, *self.n_reordered[self.rate])
            paragraphs += [f"{ranking[0].upper()}{ranking[1:]}.", ABOUT_KEEPING]
        return [*paragraphs, *self._dependence()]

    def _promises(self) -> str:
        """Both guarantees in a sentence, as the title of their picture."""
        clauses = []
        if self.is_guaranteed:
            share = percent(self.decided.coverage)
            clauses.append(f"Keep {share}: at most {rate_text(self.rate)} of these are wrong")
        if (overall := self.chosen_overall) is not None and overall.threshold is not None:
            clauses.append(
                f"check {percent(1 - overall.coverage)}: at most {rate_text(overall.error_rate)} "
                "of all are wrong"
            )
        wrong = percent(1 - self.file.fitted_on.base_rate)
        sentence = "; or ".join(clauses) or f"of all answers {wrong} are wrong"
        return f"{sentence[0].upper()}{sentence[1:]}"

    def _dependence(self) -> list[str]:
        """Say in a sentence which own columns the probabilities depend on."""
        columns = self.file.fitted_on.columns
        if not columns or self.estimator != LOG_RIDGE_ALSO.id:
            return []
        return [
            f"Its probabilities and guarantees rest on {describe_dependence(columns)}: an answer "
            "that lacks one of them has no probability."
        ]

    def _decision(self) -> list[str]:
        """Decide whether to keep answers at the decision's rate, and list other rates."""
        base_rate = self.file.fitted_on.base_rate
        rates = self.control.thresholds
        further = self.decided and other_rates(rates, self.decided, base_rate, self.requested)
        return [self._headline(), *([f"  {further}"] if further else []), *self._exceptions()]

    def _headline(self) -> str:
        if self.decided is None:
            return "Do not keep answers by these probabilities: no error rate is tested."
        base_rate = self.file.fitted_on.base_rate
        confidence = self.control.stated_confidence
        return headline(self.decided, confidence, base_rate, self.n_to_ask)

    def _exceptions(self) -> list[str]:
        """What else holds at this rate: recall, columns, repeats, answers that lack."""
        if self.rate is None:
            return []
        further = (
            describe_looks(self.control, self.file.fitted_on),
            self._second_look(),
            describe_recall(self.control),
            describe_errors_by_column(self.control, self.rate),
            self.file.fitted_on.describe_repeats(),
            describe_missing_answers(self.control),
        )
        return [*filter(None, further)]

    def _second_look(self) -> str | None:
        """Say what calibrating on further labels means, where it is advised."""
        is_first = len(self.file.fitted_on.looks) == 1 and not self.is_guaranteed
        return SECOND_LOOK if is_first and self.decided.enough else None

    def _advice(self) -> str:
        """Which estimator gives the probabilities, and why."""
        if self.reservation:
            return self.reservation
        gain, label = self.file.fitted_on.gain, LABELS[self.estimator]
        use = f"Probabilities are those of {label} (--estimator {self.estimator})"
        if gain is None:
            return f"{use}, the default fit: no other is better by more than its interval."
        return (
            f"{use}: on labels that neither this table nor a guarantee counts, its Brier score is "
            f"{gain[0]:.3f} lower than that of {LABELS[self.default]}, the default fit (interval "
            f"{gain[1]:.3f} to {gain[2]:.3f}, for all estimators at once)."
        )

    def _quality(self) -> str:
        """Summarise the quality of the probabilities in a sentence."""
        if self.reservation:
            return self.reservation
        rows = self.estimators.filter(estimator=self.estimator)
        base_rate = self.file.fitted_on.base_rate
        name = "default fit" if self.estimator == self.default else LABELS[self.estimator]
        if rows.is_empty() or rows["brier"].item() is None:
            return f"Probabilities: {name}."
        return (
            f"Probabilities: {name}, Brier score {rows['brier'].item():.3f} (always saying "
            f"{percent(base_rate)}: {base_rate * (1 - base_rate):.3f})."
        )

    def _ranks(self) -> str:
        """How well the probabilities rank, as the title of the picture of right and wrong ones."""
        rows = self.estimators.filter(estimator=self.estimator)
        if rows.is_empty() or rows["auroc"].item() is None:
            return "Probabilities of right and of wrong answers"
        row = rows.row(0, named=True)
        low, high = row["auroc_low"], row["auroc_high"]
        interval = "" if low is None else f" (interval {percent(low)} to {percent(high)})"
        return (
            "A right answer has a higher probability than a wrong one in "
            f"{percent(row['auroc'])} of pairs{interval}"
        )

    def _marks(self, row: Mapping[str, Any]) -> list[str]:
        """Return the notes on an estimator's row."""
        is_recommended = row["estimator"] == self.estimator and not self.reservation
        notes = ["recommended"] if is_recommended else []
        return notes + (["few different values"] if 2 * row["distinct"] < row["n"] else [])

    def _page(self, explorer: str | None) -> str:
        fitted_on, pictures = self.file.fitted_on, self.pictures
        n_tested, n_counted = self.control.thresholds[0].n, self.control.coverage_of
        return render_page(
            TEMPLATE,
            f"Calibrator of {fitted_on.model or 'an unnamed model'} for {fitted_on.task}",
            fitted_on=fitted_on,
            missing=fitted_on.describe_missing(),
            estimator=self.estimator,
            recommendation=self.recommendation(),
            wrong=percent(1 - fitted_on.base_rate),
            evidence=self.evidence(),
            quality=self._quality(),
            reliability=describe_reliability(pictures["bins"]),
            ranks=self._ranks(),
            explorer=explorer,
            drawn=pictures,
            rate=self.rate,
            overall=self.control.overall,
            chosen_overall=self.chosen_overall,
            promises=self._promises(),
            rate_text=rate_text,
            percent=percent,
            share_ticks=[(up(share), f"{100 * share:.0f}") for share in QUARTERS],
            count_ticks=[(up(0), pictures["most"]), (up(0.5), 0), (up(1), pictures["most"])],
            **axes(),
            commands=self.commands,
            terms=describe_terms(self.control),
            chance=describe_chance(self.control),
            tested=n_tested,
            n_unlabelled=n_counted if n_counted != n_tested else None,
            ranked_by=LABELS[self.control.ranked_by],
            labels=LABELS,
            notes=self._marks,
            guarantees=list(self.guarantees.iter_rows(named=True)),
            rows=list(self.estimators.iter_rows(named=True)),
            level=self.level,
        )


def make_report(
    file: CalibratorFile,
    training: TrainingSet,
    settings: FitSettings,
    requested: Sequence[float] = (),
    requested_overall: Sequence[float] = (),
    predictions: pl.DataFrame | None = None,
    all_estimators: bool = True,
) -> Report:
    """Measure a calibrator on its labelled answers, each held out in turn.

    `requested` are the error rates that the user named, `requested_overall` the overall ones, and
    `predictions` those of `TrainingFits`.
    Without `all_estimators` only the recommended estimator is measured, in a third of the time.
    """
    estimator = file.recommended()
    measured = training if all_estimators else training.select(estimator)
    if predictions is None:
        predictions = measured.cross_fitted()
    predictions = predictions.filter(pl.col("estimator").is_in([*measured.estimators]))
    fitted = file.estimators[estimator]
    control = fitted.risk_control
    decided = decided_rate(control.thresholds, requested)
    rate = decided.error_rate if decided else None
    held_out = predictions.filter(estimator=estimator)
    n_to_ask = None
    if decided is not None and decided.threshold is None and fitted.held_out is not None:
        population = labelled_population(fitted, "the calibrator")
        n_to_ask = labels_to_ask(population, rate, control.confidence)
    return Report(
        file=file,
        estimator=estimator,
        estimators=measure_quality(measured, predictions, settings),
        guarantees=guarantee_table(control),
        predictions=predictions,
        pictures=report_pictures(
            training,
            predictions,
            estimator,
            control,
            rate,
            chosen_overall(control, requested_overall),
        ),
        level=settings.bootstrap.level,
        default=choose_default(training),
        n_reordered=count_reordered(training, held_out, control),
        n_answers=training.n_answers,
        n_to_ask=n_to_ask,
        requested=requested,
        requested_overall=requested_overall,
        reservation=describe_labels(training, file.estimators),
        notes=describe_log(training),
    )
