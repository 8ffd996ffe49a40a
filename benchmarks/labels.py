"""How many labels a guarantee costs: labels asked for where they decide, beside the package bargain.

    pip install bargain==0.1.3    # in an environment that has this project's requirements
    PYTHONPATH=workflow_scripts:tests python -m benchmarks.labels

Draws made-up tasks of 4,000 answers, asks for 50 to 400 labels at a target error rate of 10 %
and a confidence of 90 %, and prints the mean coverage (the answers above the threshold, with those
labelled right and without those labelled wrong) and in how many draws the guarantee was broken: for
`tracecal.guarantees.sequential`, for `BARGAIN_P` of bargain (Zeighami et al. 2026) on the same answers and
scores, and for as many random labels that all test by the line, as `tracecal calibrate` does; and the gain of the first over each other, with its 95 % interval over draws. On the first
three tasks the numbers of `asking` were chosen, on the others nothing was.
"""

import sys

import numpy as np
from scipy.special import expit

from tracecal.guarantees.error_rate import find_thresholds
from tracecal.guarantees.sequential import NoMoreLabels, search_threshold

ANSWERS, TARGET, DELTA, DRAWS = 4000, 0.1, 0.1, 60
LABELS = (50, 100, 200, 400)


def strong(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Half of the answers are right, and the score tells most of them."""
    x = rng.normal(size=ANSWERS)
    return x, rng.random(ANSWERS) < 1.01 - expit(3.2 * x)


def medium(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of the most confident fifth a tenth is wrong."""
    x = rng.normal(size=ANSWERS)
    return x, rng.random(ANSWERS) < 1 - expit(1.25 * x + 0.55)


def saturated(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A large model: more than half of the scores are nearly 1 and tell nothing of one another."""
    x = rng.normal(size=ANSWERS)
    sure = x > -0.2
    score = np.where(sure, 1 - 1e-3 * rng.random(ANSWERS), expit(x))
    return score, rng.random(ANSWERS) < np.where(sure, 0.055, 0.35)


def coarse(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Scores in steps, as a model states them."""
    x = np.round(2 * rng.normal(size=ANSWERS)) / 2
    return x, rng.random(ANSWERS) < 1 - expit(1.6 * x + 0.6)


def mostly_right(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of all answers a little more than a tenth is wrong, and the score tells little."""
    x = rng.normal(size=ANSWERS)
    return x, rng.random(ANSWERS) < 1 - expit(0.8 * x + 2.1)


def mixed(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of three answers in ten a quarter is wrong whatever their score."""
    x = rng.normal(size=ANSWERS)
    misled = rng.random(ANSWERS) < 0.3
    return x, rng.random(ANSWERS) < np.where(misled, 0.25, 1 - expit(2.5 * x + 0.5))


TASKS = {
    "a strong score": strong,
    "a medium score": medium,
    "a saturated score": saturated,
    "a coarse score": coarse,
    "mostly right": mostly_right,
    "mixed": mixed,
}


def asked(score: np.ndarray, wrong: np.ndarray, most: int, seed: int) -> tuple[float, float]:
    """Coverage and error rate above the threshold, of ours."""
    order = np.random.default_rng([seed, 1]).permutation(len(score))
    known: set[int] = set()

    def label(place: int) -> bool:
        if place not in known and len(known) >= most:
            raise NoMoreLabels
        known.add(place)
        return bool(wrong[order][place])

    found = search_threshold(score[order], label, TARGET, DELTA, "finite")
    kept = np.zeros(len(score), dtype=bool)
    if found.threshold is not None:
        kept = score >= found.threshold
    error = wrong[kept].mean() if kept.any() else 0.0
    labelled = order[list(known)]
    kept[labelled] = ~wrong[labelled]
    return kept.mean(), error


def random_labels(
    score: np.ndarray, wrong: np.ndarray, most: int, seed: int
) -> tuple[float, float]:
    """The same of a random sample, which tests as for a calibrator."""
    drawn = np.random.default_rng([seed, 2]).permutation(len(score))[:most]
    others = np.setdiff1d(np.arange(len(score)), drawn)
    (found,) = find_thresholds(score[drawn], wrong[drawn], score[others], [TARGET], DELTA)
    kept = score >= found.threshold if found.threshold is not None else np.zeros(len(score), bool)
    error = wrong[kept].mean() if kept.any() else 0.0
    kept[drawn] = ~wrong[drawn]
    return kept.mean(), error


def bargain(score: np.ndarray, wrong: np.ndarray, most: int, seed: int) -> tuple[float, float]:
    """The same of the package."""
    from BARGAIN import BARGAIN_P, Oracle, Proxy

    class Scores(Proxy):
        def get_preds_and_scores(self, indxs, data_records):
            return np.ones(len(indxs), dtype=int), score[np.asarray(indxs)]

    class Labels(Oracle):
        def get_pred(self, data_records, indxs=None):
            return (~wrong[np.asarray(indxs, dtype=int)]).astype(float)

    search_threshold = BARGAIN_P(
        Scores(), Labels(), delta=DELTA, target=1 - TARGET, budget=most, seed=seed
    )
    with np.errstate(divide="ignore"):
        kept = np.array(search_threshold.process(np.arange(len(score))), dtype=int)
    return len(kept) / len(score), wrong[kept].mean() if len(kept) else 0.0


def main() -> int:
    ways = {"asked for": asked, "random": random_labels}
    try:
        import BARGAIN  # noqa: F401
    except ImportError:
        print("bargain is not installed: without it")
    else:
        ways["bargain"] = bargain
    for name, drawn in TASKS.items():
        tasks = [drawn(np.random.default_rng(seed)) for seed in range(DRAWS)]
        for most in LABELS:
            found = {
                way: np.array([make(*task, most, seed) for seed, task in enumerate(tasks)])
                for way, make in ways.items()
            }
            line = f"{name}, {most} labels:"
            for way, values in found.items():
                broken = (values[:, 1] > TARGET).mean()
                line += f"  {way} {values[:, 0].mean():.3f} (broken {broken:.2f}"
                gain = found["asked for"][:, 0] - values[:, 0]
                error = 1.96 * gain.std(ddof=1) / np.sqrt(DRAWS)
                line += f", {gain.mean():+.3f} ± {error:.3f})" if way != "asked for" else ")"
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
