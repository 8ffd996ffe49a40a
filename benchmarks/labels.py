"""How many labels a promise costs: labels asked for where they decide, beside the package bargain.

    pip install bargain==0.1.3    # in an environment that has this project's requirements
    PYTHONPATH=workflow_scripts:tests python -m benchmarks.labels

Draws three made-up tasks of 4,000 answers, asks for 100, 200 and 400 labels at a target error rate
of 10 % and a confidence of 90 %, and prints the mean coverage (the answers above the threshold, with
those labelled right and without those labelled wrong) and in how many draws the promise was broken:
for `tracecal.calibration.labelling` and for `BARGAIN_P` of bargain (Zeighami et al. 2026), on the same
answers and scores, and for as many random labels that are divided, fitted and certified as
`tracecal calibrate` does.
"""

import sys

import numpy as np
from scipy.special import expit

from tracecal.calibration.guarantees import Part, guarantee
from tracecal.calibration.labelling import NoMoreLabels, Pool, promise
from tracecal.calibration.planning import divided

ANSWERS, TARGET, DELTA, DRAWS, SHARE = 4000, 0.1, 0.1, 100, 0.35
LABELS = (100, 200, 400)


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


TASKS = {"a strong score": strong, "a medium score": medium, "a saturated score": saturated}


def asked(score: np.ndarray, wrong: np.ndarray, most: int, seed: int) -> tuple[float, float]:
    """Coverage and error rate above the threshold, of ours."""
    order = np.random.default_rng([seed, 1]).permutation(len(score))
    known: set[int] = set()

    def label(place: int) -> bool:
        if place not in known and len(known) >= most:
            raise NoMoreLabels
        known.add(place)
        return bool(wrong[order][place])

    found = promise(Pool(np.arange(len(score)), score[order]), label, TARGET, DELTA, "finite")
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
    """The same of a random sample, divided and certified as for a calibrator."""
    drawn = np.random.default_rng([seed, 2]).permutation(len(score))[:most]
    part = Part(np.arange(most), score[drawn], ~wrong[drawn])
    found = guarantee(*divided(part, round(SHARE * most)), TARGET, DELTA)
    kept = score >= found.threshold if found.threshold is not None else np.zeros(len(score), bool)
    return kept.mean(), wrong[kept].mean() if kept.any() else 0.0


def bargain(score: np.ndarray, wrong: np.ndarray, most: int, seed: int) -> tuple[float, float]:
    """The same of the package."""
    from BARGAIN import BARGAIN_P, Oracle, Proxy

    class Scores(Proxy):
        def get_preds_and_scores(self, indxs, data_records):
            return np.ones(len(indxs), dtype=int), score[np.asarray(indxs)]

    class Labels(Oracle):
        def get_pred(self, data_records, indxs=None):
            return (~wrong[np.asarray(indxs, dtype=int)]).astype(float)

    search = BARGAIN_P(Scores(), Labels(), delta=DELTA, target=1 - TARGET, budget=most, seed=seed)
    with np.errstate(divide="ignore"):
        kept = np.array(search.process(np.arange(len(score))), dtype=int)
    return len(kept) / len(score), wrong[kept].mean() if len(kept) else 0.0


def main() -> int:
    ways = {"asked for": asked, "random": random_labels}
    try:
        import BARGAIN  # noqa: F401
    except ImportError:
        print("bargain is not installed: without it")
    else:
        ways["bargain"] = bargain
    print(f"{'score':<20}{'labels':>8}" + "".join(f"{way:>24}" for way in ways))
    print(f"{'':<28}" + f"{'coverage':>14}{'broken':>10}" * len(ways))
    for name, drawn in TASKS.items():
        tasks = [drawn(np.random.default_rng(seed)) for seed in range(DRAWS)]
        for most in LABELS:
            line = f"{name:<20}{most:>8}"
            for way in ways.values():
                found = np.array([way(*task, most, seed) for seed, task in enumerate(tasks)])
                line += f"{found[:, 0].mean():>14.3f}{(found[:, 1] > TARGET).mean():>10.2f}"
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
