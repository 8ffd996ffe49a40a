"""Thresholds and monitors beside those of MAPIE, on the same answers and labels.

    make bench AREAS=mapie    # some ten minutes; installs MAPIE in an environment of its own

Thresholds: from so many labels drawn at random of tasks of some 4,000 answers, at a target error rate
of 10 % and a confidence of 90 %. Ours divides, fits and tests as `tracecal calibrate` does.
`BinaryClassificationController` controls the precision of the answers kept, as its documentation
shows, by Bonferroni-Holm (its default) on all labels, and by a fixed sequence of thresholds that is
learned from 30 % of the labels (its advice for precision). The tasks are those of `benchmarks.labels`, others
just miss the target, and some have groups, which MAPIE does not know: it gets every labelled answer, or
one of each group at random. Printed are the mean coverage, with 95 % intervals over draws, and how
often the guarantee is broken, with exact ones.

What MAPIE gets is kind to it: as scores the ranks among all answers, and as thresholds those that keep
4 %, 8 % and so on of them. A threshold that keeps no labelled answer is left out, as its p-value would
be NaN, by which both procedures end with no threshold.

Monitors: of streams that turn after BEFORE answers, false alarms and the answers from the turn to the
alarm. `OnlineMartingaleTest` gets the label of every answer, our monitors of traffic get none; both know
the answers of a reference. `RiskMonitoring` and our monitor of errors get the same labels and the target.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np
from scipy.special import expit
from scipy.stats import beta
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks import labels
from benchmarks.alarms import AFTER, BEFORE, KNOWN, drawn
from benchmarks.timing import Row, paired
from simulations.alarm_streams import first_alarms
from simulations.alarms import at_target, wandering
from simulations.guarantees import GroupPopulation, constant_risk, risk_by_size
from tracecal.calibration.groups import largest_group as choose_largest_group
from tracecal.calibration.guarantees.error_rate import GroupedScores, find_thresholds
from tracecal.calibration.guarantees.sides import FIT_SHARE
from tracecal.calibrator.schema import Reference
from tracecal.serving.monitoring.batch import Batch
from tracecal.serving.monitoring.betting import EXCESS_RATES, bet_on_errors
from tracecal.serving.monitoring.state import AlarmSettings

TARGET, DELTA, SHARE = labels.TARGET, labels.DELTA, 0.35
LABELS, DRAWS = (100, 200, 400, 1000), 200
LEARN, KEEP = 0.3, np.arange(1, 26) / 25
# As many as order the thresholds; MAPIE's thousand take a third of a second.
BETAS = np.logspace(-25, 0, 200)
# As plug-in martingales take seconds a stream, and RiskMonitoring a tenth.
STREAMS, JUDGED_STREAMS, SLOW_STREAMS = 200, 100, 20
CHANCE, BATCH = 0.05, 50


def steep(score: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Of the most confident half a twentieth is wrong."""
    return expit(-2.2 * score - 1.8)


def steep_in_large(score: np.ndarray, size: np.ndarray) -> np.ndarray:
    """As `steep`, and answers of groups that are not single are wrong more often."""
    return np.where(size > 1, expit(-2.2 * score - 1.5), expit(-2.2 * score - 3.0))


GROUPED = {
    "equal groups": {
        "of 5, alike": GroupPopulation(800, (5,), steep, TARGET, correlation=0.6),
        "of 5, wrong as a whole, target just missed": GroupPopulation(
            800, (5,), constant_risk(0.11), TARGET, correlation=1.0
        ),
    },
    "unequal groups": {
        "of 1 and 9, the large ones worse": GroupPopulation(
            800, (1, 9), steep_in_large, TARGET, correlation=0.5
        ),
        "of 1 and 9, the large ones worse, just missed": GroupPopulation(
            800, (1, 9), risk_by_size(0.02, 0.12), TARGET, correlation=0.5
        ),
        "of 1 and 9, the large ones kept first and wrong": GroupPopulation(
            800, (1, 9), risk_by_size(0.02, 0.115), TARGET, correlation=0.3, lift=1.0
        ),
        "of 1 to 5, the large ones worse, wrong as a whole": GroupPopulation(
            1300, (1, 2, 3, 4, 5), risk_by_size(0.05, 0.13, 2), TARGET, correlation=1.0
        ),
    },
}
MISSED = {"target just missed": GroupPopulation(4000, (1,), constant_risk(0.11), TARGET)}

# The places of the labelled answers in order of their groups, and the answers that are kept [n].
Keeps = Callable[["Task", np.ndarray, int], np.ndarray]


class Task:
    """Answers: their score, whether they are wrong, and their group [n]."""

    def __init__(self, score: np.ndarray, wrong: np.ndarray, group: np.ndarray | None = None):
        self.score, self.wrong, self.single = score, wrong, group is None
        self.group = np.arange(len(score)) if group is None else group
        self.rank = np.searchsorted(np.sort(score), score) / len(score)

    def labelled(self, most: int, rng: np.random.Generator) -> np.ndarray:
        """The places of the answers of random groups, the first that have so many answers."""
        order = rng.permutation(self.group.max() + 1)[self.group]
        places = np.argsort(order, kind="stable")
        return places[: np.searchsorted(order[places], order[places[most - 1]], side="right")]


def tasks() -> Iterator[tuple[str, str, Callable[[int], Task]]]:
    """The kind of a task, its name, and what draws one by a seed."""

    def of_population(population: GroupPopulation, seed: int) -> Task:
        rng = np.random.default_rng(seed)
        answers = population.draw(rng, population.groups)
        group = None if population.sizes == (1,) else answers.group
        return Task(answers.score, answers.wrong, group)

    def of_labels(draw: Callable, seed: int) -> Task:
        return Task(*draw(np.random.default_rng(seed)))

    for name, draw in labels.TASKS.items():
        yield "single answers", name, partial(of_labels, draw)
    for kind, own in {"single answers, just missed": MISSED, **GROUPED}.items():
        for name, population in own.items():
            yield kind, name, partial(of_population, population)


def ours(task: Task, places: np.ndarray, seed: int) -> np.ndarray:
    _, number = np.unique(task.group[places], return_inverse=True)
    order = np.random.default_rng([seed, 3]).permutation(number.max() + 1)[number]
    sizes = np.bincount(order)
    scores = GroupedScores(task.score[places], order, sizes[order])
    limit = 1 if task.single else choose_largest_group(sizes)
    fits = order < round(FIT_SHARE * len(sizes))
    wrong, others = task.wrong[places], scores.select(fits)
    terms = [TARGET], DELTA, limit, False, (others.score, wrong[fits])
    (test,) = find_thresholds(scores.select(~fits), wrong[~fits], others, *terms)
    if test.threshold is None:
        return np.zeros(len(task.score), dtype=bool)
    return (task.score >= test.threshold) & (np.bincount(task.group)[task.group] <= limit)


def holm(task: Task, places: np.ndarray, seed: int) -> np.ndarray:
    return _mapie(task, places, None)


def sequence(task: Task, places: np.ndarray, seed: int) -> np.ndarray:
    """As many groups as have about 30 % of the answers learn the order."""
    groups = np.unique(task.group[places])
    rng = np.random.default_rng([seed, 4])
    learns = rng.choice(groups, round(LEARN * len(groups)), replace=False)
    return _mapie(task, places, np.isin(task.group[places], learns))


def one_each(way: Keeps, task: Task, places: np.ndarray, seed: int) -> np.ndarray:
    """A way that gets one answer of each group, at random."""
    shuffled = np.random.default_rng([seed, 5]).permutation(places)
    return way(task, shuffled[np.unique(task.group[shuffled], return_index=True)[1]], seed)


def _mapie(task: Task, places: np.ndarray, learns: np.ndarray | None) -> np.ndarray:
    """What the controller keeps; `learns` says which labels teach the order of thresholds."""
    from mapie.risk_control import BinaryClassificationController

    x, right = task.rank[places], (~task.wrong[places]).astype(int)
    both = (x,) if learns is None else (x[learns], x[~learns])
    thresholds = np.unique(1 - KEEP)
    controller = BinaryClassificationController(
        lambda x: np.column_stack([1 - x, x]),
        "precision",
        target_level=1 - TARGET,
        confidence_level=1 - DELTA,
        list_predict_params=thresholds[thresholds <= min(map(np.max, both))],
        fwer_method="bonferroni_holm" if learns is None else "split_fixed_sequence",
    )
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # that there is no threshold
        if learns is not None:
            controller.learn_fixed_sequence_order(x[learns], right[learns], beta_grid=BETAS)
            x, right = x[~learns], right[~learns]
        controller.calibrate(x, right)
    found = controller.best_predict_param
    return task.rank >= (np.inf if found is None else found)


def ways(task: Task) -> dict[str, Keeps]:
    found = {"ours": ours, "Holm": holm, "sequence": sequence}
    if not task.single:
        found |= {f"{name}, one each": partial(one_each, found[name]) for name in list(found)[1:]}
    return found


def kept(draw: Callable[[int], Task], draws: int) -> dict[tuple[int, str], np.ndarray]:
    """By number of labels and way, coverage and whether the guarantee is broken, [draws, 2]."""
    found: dict[tuple[int, str], list[tuple[float, bool]]] = {}
    for seed in range(draws):
        task = draw(seed)
        for most in LABELS:
            places = task.labelled(most, np.random.default_rng([seed, most]))
            for name, way in ways(task).items():
                keeps = way(task, places, seed)
                broken = keeps.any() and task.wrong[keeps].mean() > TARGET
                found.setdefault((most, name), []).append((keeps.mean(), bool(broken)))
    return {key: np.array(values, dtype=float) for key, values in found.items()}


def interval(count: float, n: int) -> str:
    """A share with its exact 95 % interval (Clopper and Pearson 1934)."""
    low, high = beta.ppf([0.025, 0.975], [count, count + 1], [n - count + 1, n - count])
    return f"{count / n:.2f} [{np.nan_to_num(low):.2f}, {np.nan_to_num(high, nan=1.0):.2f}]"


def mean(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {1.96 * values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def print_thresholds() -> None:
    """A line for each kind, number of labels and way; the broken share of the worst task."""
    of_kinds: dict[str, dict[str, dict[tuple[int, str], np.ndarray]]] = {}
    for kind, name, draw in tasks():
        of_kinds.setdefault(kind, {})[name] = kept(draw, DRAWS)
    for kind, of_tasks in of_kinds.items():
        print(f"\n{kind}: {', '.join(of_tasks)}\n{'labels':<8}{'':<20}kept", end="")
        print(f"{'less than ours by':>32}{'most often broken':>24}")
        for most, way in next(iter(of_tasks.values())):
            values = np.stack([found[most, way] for found in of_tasks.values()])
            first = np.stack([found[most, "ours"] for found in of_tasks.values()])
            less = (first - values)[..., 0].mean(0)  # over tasks, which draws are paired in
            worst = values[..., 1].sum(1).max()
            print(f"{most:<8}{way:<20}{mean(values[..., 0].mean(0))}", end="")
            print(f"{mean(less):>20}{interval(worst, DRAWS):>26}", flush=True)


# Monitors.


class Known(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose probability is its one feature."""

    classes_, n_features_in_ = np.array([0, 1]), 1

    def fit(self, x: np.ndarray, y: np.ndarray) -> "Known":
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.column_stack([1 - x[:, 0], x[:, 0]])

    def predict(self, x: np.ndarray) -> np.ndarray:
        return (x[:, 0] >= 0.5).astype(int)


# By kind, by how much the scores fall and by how much odds of being right fall beside them.
TURNS = {
    "nothing changes": (0.0, 0.0),
    "scores fall by .5 s.d.": (0.5, 0.0),
    "scores fall by 1 s.d.": (1.0, 0.0),
    "scores stay, odds fall by e": (0.0, 1.0),
}
Stream = tuple[Reference, Batch, np.ndarray, np.ndarray]


def stream(turn: tuple[float, float], seed: int) -> Stream:
    """Reference and answers, and whether those and these are right."""
    known, given = drawn(turn[0], seed)
    rng = np.random.default_rng([seed, 6])
    odds = np.log(given.probability / (1 - given.probability))
    odds[BEFORE:] -= turn[1]
    return known, given, rng.random(KNOWN) < known.probability, rng.random(len(odds)) < expit(odds)


def of_traffic(streams: list[Stream]) -> np.ndarray:
    """The place of our first alarm without labels [streams]; infinite: none."""
    settings = AlarmSettings(answers_per_alarm=round((BEFORE + AFTER) / (2 * CHANCE)))
    found = first_alarms([one[0] for one in streams], [one[1] for one in streams], settings)
    places = np.stack([*found.values()])
    return np.where(places > 0, places, np.inf).min(0)


def martingale(method: str, streams: list[Stream]) -> np.ndarray:
    """As `of_traffic`, of `OnlineMartingaleTest`, which has every label."""
    from mapie.classification import SplitConformalClassifier
    from mapie.exchangeability_testing import OnlineMartingaleTest

    places = np.full(len(streams), np.inf)
    for number, (known, given, known_right, right) in enumerate(streams):
        test = OnlineMartingaleTest(
            SplitConformalClassifier(Known(), prefit=True),
            test_method=method,
            test_level=CHANCE,
            warn=False,
            random_state=number,
        )
        test.update(known.probability[:, None], known_right.astype(int))
        for start in range(0, len(right), BATCH):
            own = slice(start, start + BATCH)
            test.update(given.probability[own, None], right[own].astype(int))
            if test.is_exchangeable is False:
                places[number] = max(test.summary()["stopping_time"] - KNOWN, 1)
                break
    return places


def of_errors(wrong: np.ndarray) -> np.ndarray:
    """The label at which our monitor raises its alarm [streams]; infinite: never."""
    _, evidence = bet_on_errors(np.zeros((len(wrong), len(EXCESS_RATES))), wrong, TARGET, 0)
    above = evidence >= 1 / CHANCE
    return np.where(above.any(1), above.argmax(1) + 1.0, np.inf)


def risk_monitoring(wrong: np.ndarray) -> np.ndarray:
    """As `of_errors`. Half of its level is for a reference, which a given threshold makes needless."""
    from mapie.exchangeability_testing import RiskMonitoring

    places = np.full(len(wrong), np.inf)
    for number, own in enumerate(wrong):
        monitor = RiskMonitoring("precision", 2 * CHANCE, threshold=TARGET, warn=False)
        monitor.update((~own).astype(int), np.ones(len(own), dtype=int))
        above = monitor.online_risk_lower_bound_sequence_history > TARGET
        if above.any():
            places[number] = above.argmax() + 1
    return places


def told(places: np.ndarray, turned: bool) -> str:
    """False alarms, and the median delay of the others with the 95 % interval of its ranks."""
    false = np.isfinite(places) & ((places <= BEFORE) | (not turned))
    text = f"false {interval(false.sum(), len(places))}"
    if turned:
        n = (~false).sum()
        half = 0.98 * np.sqrt(n)
        delays = np.sort(places[~false]) - BEFORE
        ends = delays[[int(max(n / 2 - half, 0)), int(n / 2), int(min(n / 2 + half, n - 1))]]
        low, middle, high = (f"{one:.0f}" if np.isfinite(one) else "–" for one in ends)
        text += f", delay {middle} [{low}, {high}]"
    return text


def print_monitors() -> None:
    for name, turn in TURNS.items():
        streams = [stream(turn, seed) for seed in range(STREAMS)]
        print(f"\n{name}")
        print(f"  ours, no label   {told(of_traffic(streams), any(turn))}")
        for method, count in (("jumper", STREAMS), ("plugin", SLOW_STREAMS)):
            places = martingale(f"{method}_martingale", streams[:count])
            print(f"  {method}           {told(places, any(turn))}", flush=True)
    rng = np.random.default_rng(7)
    shape = (JUDGED_STREAMS, BEFORE + AFTER)
    judged = {
        "an error rate at its target": (at_target(rng, shape, TARGET), False),
        "wandering below its target": (wandering(rng, shape, TARGET), False),
    }
    for rate in (0.15, 0.2, 0.3):
        rates = np.repeat([TARGET / 2, rate], [BEFORE, AFTER])
        judged[f"an error rate of .05, then {rate:g}"] = rng.random(shape) < rates, True
    for name, (wrong, turned) in judged.items():
        print(f"\n{name}")
        print(f"  ours             {told(of_errors(wrong), turned)}")
        print(f"  RiskMonitoring   {told(risk_monitoring(wrong), turned)}", flush=True)


def rows() -> Iterator[Row]:
    if not find_spec("mapie"):
        print("MAPIE is not installed: its tables are left out.")
        return
    print_thresholds()
    print_monitors()
    task = Task(*labels.medium(np.random.default_rng(0)))
    places = task.labelled(LABELS[-1], np.random.default_rng(0))
    work = partial(ours, task, places, 0)
    for name, way in (("Bonferroni-Holm", holm), ("split fixed sequence", sequence)):
        other = partial(way, task, places, 0)
        yield paired(f"a threshold from {len(places):,} labels", work, other, f"MAPIE, {name}")
