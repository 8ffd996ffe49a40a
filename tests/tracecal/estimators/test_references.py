"""The semantic estimators on made-up inputs, as public implementations compute them.

Each restatement is written anew after the arithmetic of the code that it names; the names are those
of repositories on GitHub.
"""

import numpy as np
import polars as pl
import pytest
from scipy.special import logsumexp, softmax

from trace_workflow.models.lars import bin_numbers, quantile_edges
from tracecal.estimators import mars, selfcheckgpt, semantic_entropy, token_sar

RNG = np.random.default_rng(11)
NLL = RNG.exponential(1, 7).astype(np.float32)
PHRASE = [0, 0, 1, 2, 2, 2, 3]
IMPORTANCE = np.array([0.9, 0.2, 0.6, 0.1])
RELEVANCE = RNG.random(7)


def traced(surprisal):
    frame = pl.DataFrame({"example_id": ["a"], "surprisal": [list(map(float, surprisal))]})
    return frame.cast({"surprisal": pl.List(pl.Float32)})


def mars_risk(weights):
    # The end token, which implementations drop before they begin, is last here.
    given = {"example_id": ["a"], "phrase": [[*PHRASE, None]], "weight": [list(weights)]}
    types = {"phrase": pl.List(pl.Int32), "weight": pl.List(pl.Float64)}
    return mars.phrase_risk(traced([*NLL, 5.0]), pl.DataFrame(given, schema_overrides=types))


def over_phrases():
    """The mean of each phrase's negative log-likelihoods."""
    groups = [NLL[[own == phrase for own in PHRASE]] for phrase in range(4)]
    return np.array([group.mean(dtype=float) for group in groups])


def test_mars_as_in_llm_uncertainty():
    """Ybakman/LLM_Uncertainty: importances that sum to 1; the plain half is over tokens."""
    weights = IMPORTANCE / IMPORTANCE.sum()
    expected = 0.5 * (weights * over_phrases()).sum() + 0.5 * NLL.mean(dtype=float)
    assert mars_risk(weights)["risk"].item() == pytest.approx(expected, rel=1e-6)
    plain = 0.5 * (weights * over_phrases()).sum() + 0.5 * over_phrases().mean()
    assert abs(expected - plain) > 0.01, "a mean over phrases would be seen"


def test_mars_as_in_truth_torch_lm():
    """Ybakman/TruthTorchLM: weights are a softmax of importances at temperature 0.1."""
    weights = softmax(IMPORTANCE / 0.1)
    expected = 0.5 * np.dot(weights, over_phrases()) + 0.5 * NLL.mean(dtype=float)
    assert mars_risk(weights)["risk"].item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("repository", ["IINemo/lm-polygraph", "Ybakman/TruthTorchLM"])
def test_token_sar(repository):
    weight = RELEVANCE / RELEVANCE.sum()
    if repository == "IINemo/lm-polygraph":
        shifted = [nll * one for nll, one in zip(NLL.tolist(), weight, strict=True)]
        expected = sum(shifted)
    else:
        expected = -np.dot(weight, -NLL.astype(float))
    given = pl.DataFrame({"example_id": ["a"], "weight": [weight.tolist()]})
    found = token_sar.weighted(traced(NLL), given)["weighted_surprisal"].item()
    assert found == pytest.approx(expected, rel=1e-6)


SAMPLED = [
    ("Paris", [0.1, 0.4]),
    ("It is Paris", [0.3, 0.2, 0.9]),
    ("Rome", [1.5]),
    ("Oslo", [2.0]),
]
MEANINGS = [0, 0, 2, 3]


def semantic_nats():
    drawn = pl.DataFrame(
        {
            "example_id": ["a"] * 4,
            "sample": range(4),
            "text": [text for text, _ in SAMPLED],
            "surprisal": [values for _, values in SAMPLED],
            "meaning": MEANINGS,
        }
    )
    return semantic_entropy.entropies(drawn)["nats"].item()


def test_semantic_entropy_as_in_the_authors_code():
    """lorenzkuhn/semantic_uncertainty: -(sum of the log of each meaning's sum, - 5) / meanings."""
    logp = np.array([-np.mean(values) for _, values in SAMPLED])
    of_meanings = [logsumexp(logp[np.array(MEANINGS) == one]) - 5.0 for one in (0, 2, 3)]
    assert semantic_nats() + 5.0 == pytest.approx(-sum(of_meanings) / 3)


def test_semantic_entropy_as_in_truth_torch_lm():
    """Ybakman/TruthTorchLM: by the texts in each cluster, which are all different here."""
    clusters = [["Paris", "It is Paris"], ["Rome"], ["Oslo"]]
    scores = {text: -sum(values) / len(values) for text, values in SAMPLED}
    total = 0.0
    for cluster in clusters:
        total -= np.log(sum(np.exp(scores[text]) for text in cluster))
    assert semantic_nats() == pytest.approx(total / len(clusters))


LOGITS = np.array(
    [[2.0, 0.1, -1.0], [-0.5, 0.3, 1.2], [0.0, 3.0, 0.4]]
)  # entailed, neutral, contra


@pytest.mark.parametrize("classes", [2, 3])
def test_selfcheckgpt(classes):
    """potsawee/selfcheckgpt: a model of two classes; ports leave the neutral logit out of three."""
    given = pl.DataFrame(softmax(LOGITS, axis=1), ["entailment", "neutral", "contradiction"])
    given = given.with_columns(
        example_id=pl.lit("a"),
        premise=pl.int_range(3, dtype=pl.Int32),
        hypothesis=pl.lit(None, pl.Int32),
    )
    if classes == 2:
        expected = np.mean([1 / (1 + np.exp(e - c)) for e, _, c in LOGITS])
    else:
        expected = softmax(LOGITS[:, [0, -1]], axis=1)[:, -1].mean()
    found = selfcheckgpt.contradictions(given)["inconsistency"].item()
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_bins_of_lars():
    """Ybakman/TruthTorchLM: np.digitize, and what is at or above the last edge in the last bin."""
    probabilities = RNG.random(50)
    edges = quantile_edges(RNG.random(400), 8)
    expected = [min(int(np.digitize(p, edges, right=False)), 7) for p in probabilities]
    assert bin_numbers(probabilities, edges) == expected
    # HeydarSoudani/ADV_RAG_UNC: the same of one probability at a time, by counting edges passed.
    assert expected == [min(sum(edge <= p for edge in edges), 7) for p in probabilities]
