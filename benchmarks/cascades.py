"""What a cascade costs at an equal guarantee: the guarantee of docs/guides/cascades.md beside bargain.

    pip install bargain==0.1.3    # in an environment that has this project's requirements
    PYTHONPATH=workflow_scripts:tests python -m benchmarks.cascades

Draws pairs of a small and a large model. Both ways guarantee, with a confidence of 90 %, that the cascade
is right at most a share ε less often than the large model: `tracecal.calibration.cascade_guarantee` for
further questions, learned from 500, 1,000 and 2,000 questions with references and both models' answers;
and `BARGAIN_A` (Zeighami et al. 2026) for the 4,000 questions of a batch, without any reference, where
its accuracy target of 1 - ε is of answers that agree with the large model's. Prints the mean share
escalated of such a batch (with bargain those that it asks the large model for to learn its threshold
count too), how much less often than the large model the cascade is right, and in how many draws the
guarantee was broken against the references.
"""

import sys
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from simulations.cascades import (
    CONFIDENCE,
    REFERENCE,
    CascadeAnswers,
    CascadePopulation,
    constant_chance,
    find_threshold,
    rising_chance,
    true_loss,
)
from tracecal.calibration.bets import significance_level

BATCH, DRAWS = 4000, 400
LABELLED = (500, 1000, 2000)
PROMISED = (0.02, 0.05)
WRONG = 3  # wrong answers to a question, of which a model that is wrong gives one
RIGHT = 0


@dataclass(frozen=True)
class Pair(CascadePopulation):
    """Single questions; `together` in [0, 1] is how much of their luck both models share."""

    together: float = 0.0

    def draw(self, rng: np.random.Generator, groups: int) -> CascadeAnswers:
        score, common = rng.normal(size=(2, groups))
        chances = self.small(score), self.large(score)
        own = rng.normal(size=(2, groups))
        luck = ndtr(np.sqrt(self.together) * common + np.sqrt(1 - self.together) * own)
        return CascadeAnswers(np.arange(groups), score, *(luck < np.array(chances)), *chances)


def pairs(promised: float) -> dict[str, Pair]:
    """By name, at a guaranteed ε."""
    told = {
        "right on the same questions": (rising_chance(0.2, 0.97), constant_chance(0.97), 0.9),
        "the small model knows": (rising_chance(0.3, 0.95), constant_chance(0.9), 0.0),
        "the large model knows, too": (rising_chance(0.3, 0.95), rising_chance(0.7, 0.99), 0.0),
        "nearly as good, on others": (constant_chance(0.74), constant_chance(0.76), 0.0),
    }
    return {
        name: Pair(0, (1,), small, large, "below", promised, together=together)
        for name, (small, large, together) in told.items()
    }


def ours(
    pair: Pair, labelled: int, seed: int, reference: CascadeAnswers
) -> tuple[float, float, bool]:
    """Share escalated, loss, and whether the guarantee is broken, for further questions."""
    drawn = pair.draw(np.random.default_rng([seed, 1]), labelled)
    calibrator, threshold, _ = find_threshold(drawn, seed, pair)
    if threshold is None:
        return 1.0, 0.0, False
    probability = calibrator.predict(reference.score[:, None])
    lost = true_loss(reference, probability, threshold, "below")
    return float((probability < threshold).mean()), lost, lost > pair.target


def bargain(pair: Pair, seed: int) -> tuple[float, float, bool]:
    """The same of the package, for the questions of a batch."""
    from BARGAIN import BARGAIN_A, Oracle, Proxy

    rng = np.random.default_rng([seed, 2])
    batch = pair.draw(rng, BATCH)
    small, large = (
        np.where(right, RIGHT, rng.integers(1, WRONG + 1, BATCH))
        for right in (batch.small, batch.large)
    )

    class Small(Proxy):
        def get_preds_and_scores(self, indxs, data_records):
            places = np.asarray(indxs, dtype=int)
            return small[places], batch.score[places]

    class Large(Oracle):
        def get_pred(self, data_records, indxs=None):
            return large[np.asarray(indxs, dtype=int)]

        def is_answer_correct(self, data_indxs, data_records, proxy_output_at_indxs):
            return large[np.asarray(data_indxs, dtype=int)] == proxy_output_at_indxs

    level = significance_level(CONFIDENCE)
    search = BARGAIN_A(Small(), Large(), 1 - pair.target, level, verbose=False, seed=seed)
    with np.errstate(all="ignore"):
        told, asked = search.process(np.arange(BATCH), return_oracle_usage=True)
    lost = batch.large.mean() - (np.array(told) == RIGHT).mean()
    return float(np.mean(asked)), float(lost), bool(lost > pair.target)


def main() -> int:
    try:
        import BARGAIN  # noqa: F401
    except ImportError:
        print("bargain is not installed: without it")
        others = []
    else:
        others = ["bargain"]
    print(f"{'pair':<30}{'ε':>6}{'way':>10}{'escalated':>12}{'loss':>10}{'broken':>10}")
    for promised in PROMISED:
        for name, pair in pairs(promised).items():
            reference = pair.draw(np.random.default_rng(0), REFERENCE)
            for way in [*LABELLED, *others]:
                found = [
                    bargain(pair, seed) if way == "bargain" else ours(pair, way, seed, reference)
                    for seed in range(DRAWS)
                ]
                escalated, lost, broken = np.mean(np.array(found, dtype=float), axis=0)
                line = f"{name:<30}{promised:>6}{way:>10}{escalated:>12.2f}"
                print(f"{line}{lost:>10.3f}{broken:>10.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
