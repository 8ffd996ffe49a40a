"""TokenSAR, MARS, semantic entropy and SelfCheckGPT against hands and independent restatements."""

from itertools import groupby
from math import exp, log

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.answers.normalised_text import normalised
from tracecal.errors import InputError
from tracecal.estimators import mars, selfcheckgpt, semantic_entropy, token_sar
from tracecal.estimators.scores import family_scores

surprisal = st.floats(0, 12, width=32)


def scores(frame, module):
    (name,) = module.SCORES
    return family_scores(frame, module.SCORES, [name])[name].to_list()


def traces(*surprisals):
    return pl.DataFrame(
        {"example_id": [str(i) for i in range(len(surprisals))], "surprisal": list(surprisals)},
        schema_overrides={"surprisal": pl.List(pl.Float32)},
    )


def weights(**columns):
    size = len(next(iter(columns.values())))
    types = {"weight": pl.List(pl.Float32), "phrase": pl.List(pl.Int32)}
    ids = {"example_id": [str(i) for i in range(size)]}
    return pl.DataFrame(ids | columns, schema_overrides={c: types[c] for c in columns})


def test_token_sar_by_hand():
    found = token_sar.weighted(traces([1.0, 2.0, 4.0]), weights(weight=[[0.5, 0.25, 0.25]]))
    assert scores(found, token_sar) == [pytest.approx(exp(-(0.5 + 0.5 + 1.0)))]


def test_token_sar_of_an_answer_without_relevant_tokens_is_undefined():
    found = token_sar.weighted(traces([3.0]), weights(weight=[[0.0]]))
    assert scores(found, token_sar) == [None], "not exp(0) = 1, the most confident"


def test_weights_of_another_answer_are_refused():
    with pytest.raises(InputError, match="weights of example '0' belong to another answer"):
        token_sar.weighted(traces([1.0, 2.0]), weights(weight=[[1.0]]))
    with pytest.raises(InputError, match="weights of example '0' belong to another answer"):
        mars.phrase_risk(traces([1.0, 2.0]), weights(phrase=[[0]], weight=[[1.0]]))


@given(st.lists(st.tuples(surprisal, st.floats(0, 1, width=32)), min_size=1, max_size=15))
def test_token_sar_agrees_with_numpy(row):
    s, w = (np.array(part, dtype=np.float32) for part in zip(*row, strict=True))
    found = token_sar.weighted(traces(s.tolist()), weights(weight=[w.tolist()]))
    expected = exp(-float(w.astype(float) @ s.astype(float)))
    assert scores(found, token_sar) == [pytest.approx(expected, rel=1e-6) if w.sum() else None]


def test_mars_by_hand():
    # Phrases 0 (two tokens, mean 2) and 1 (one token, 6); the end token counts in neither half.
    frame = traces([1.0, 3.0, 6.0, 99.0])
    found = mars.phrase_risk(frame, weights(phrase=[[0, 0, 1, None]], weight=[[0.75, 0.25]]))
    assert found["risk"].to_list() == [pytest.approx(0.5 * (1.5 + 1.5) + 0.5 * 10 / 3)]
    assert scores(found, mars) == [pytest.approx(exp(-1.5 - 5 / 3))]


def test_mars_of_an_answer_without_text_is_undefined():
    frame = traces([0.5], [1.0, 2.0])
    given = weights(phrase=[[None], [0, 0]], weight=[[], [1.0]])
    assert scores(mars.phrase_risk(frame, given), mars) == [None, pytest.approx(exp(-1.5))]


@given(st.lists(st.lists(surprisal, min_size=1, max_size=4), min_size=1, max_size=6), st.data())
def test_mars_agrees_with_numpy(phrases, data):
    raw = data.draw(st.lists(st.floats(0.01, 1), min_size=len(phrases), max_size=len(phrases)))
    w = np.array(raw) / sum(raw)
    tokens = [value for phrase in phrases for value in phrase]
    numbers = [index for index, phrase in enumerate(phrases) for _ in phrase]
    found = mars.phrase_risk(traces(tokens), weights(phrase=[numbers], weight=[w.tolist()]))
    nll = np.array([np.mean(np.array(phrase, dtype=np.float32), dtype=float) for phrase in phrases])
    mean = np.mean(np.array(tokens, dtype=np.float32), dtype=float)
    expected = exp(-(0.5 * w @ nll + 0.5 * mean))
    assert scores(found, mars) == [pytest.approx(expected, rel=1e-5)]


def samples(*texts, surprisals=None):
    return pl.DataFrame(
        {
            "example_id": ["a"] * len(texts),
            "sample": list(range(len(texts))),
            "text": list(texts),
            "surprisal": surprisals or [[1.0]] * len(texts),
        },
        schema_overrides={"sample": pl.Int32, "surprisal": pl.List(pl.Float32)},
    )


def test_semantic_entropy_by_hand():
    drawn = samples("Paris", "paris.", "Rome", surprisals=[[1.0, 3.0], [1.0], [0.5, 0.5]])
    found = semantic_entropy.entropies(semantic_entropy.exact_meanings(drawn))
    expected = -(log(exp(-2) + exp(-1)) + log(exp(-0.5))) / 2
    assert found["nats"].to_list() == [pytest.approx(expected)]
    assert scores(found, semantic_entropy) == [pytest.approx(-expected)]


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.lists(surprisal, min_size=1, max_size=4)),
        min_size=2,
        max_size=7,
    )
)
def test_semantic_entropy_agrees_with_numpy(rows):
    drawn = samples(*(text for text, _ in rows), surprisals=[values for _, values in rows])
    found = semantic_entropy.entropies(semantic_entropy.exact_meanings(drawn))
    ordered = sorted((text, np.exp(-np.float32(values).mean(dtype=float))) for text, values in rows)
    sums = [sum(p for _, p in same) for _, same in groupby(ordered, key=lambda row: row[0])]
    assert found["nats"].to_list() == [pytest.approx(-np.mean(np.log(sums)), rel=1e-6, abs=1e-9)]


def comparisons(*rows):
    columns = ["premise", "hypothesis", "entailment", "neutral", "contradiction"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return frame.with_columns(
        pl.col("premise", "hypothesis").cast(pl.Int32), example_id=pl.lit("a")
    )


ENTAILS, NEUTRAL, CONTRADICTS = (0.8, 0.1, 0.1), (0.3, 0.4, 0.3), (0.1, 0.2, 0.7)


def test_mutual_entailment_joins_what_entails_the_first_of_a_cluster_and_is_entailed_by_it():
    yes, no = ENTAILS, NEUTRAL
    given = comparisons(
        (0, 1, *yes), (1, 0, *yes),  # 1 says what 0 says
        (0, 2, *yes), (2, 0, *no),   # 2 is entailed by 0 but does not entail it
        (1, 2, *yes), (2, 1, *yes),  # and is compared with 0, not with 1
        (0, 3, *no), (3, 0, *no), (1, 3, *no), (3, 1, *no),
        (2, 3, *yes), (3, 2, *yes),
        (0, None, *yes), (1, None, *yes), (2, None, *yes), (3, None, *yes),
    )  # fmt: skip
    drawn = samples("a", "b", "c", "d")
    found = semantic_entropy.compared_meanings(drawn, given, "mutual_entailment")
    assert found["meaning"].to_list() == [0, 0, 2, 2]
    found = semantic_entropy.compared_meanings(drawn, given, "no_contradiction")
    assert found["meaning"].to_list() == [0, 0, 0, 0]


def test_one_contradiction_of_the_two_keeps_samples_apart_under_either_rule():
    for first, second in ((ENTAILS, CONTRADICTS), (CONTRADICTS, ENTAILS)):
        given = comparisons((0, 1, *first), (1, 0, *second))
        for rule in semantic_entropy.AGREES:
            found = semantic_entropy.compared_meanings(samples("a", "b"), given, rule)
            assert found["meaning"].to_list() == [0, 1]


def test_a_text_drawn_twice_has_one_meaning_whatever_the_model_says_of_it():
    given = comparisons(
        *((one, other, *CONTRADICTS) for one in range(3) for other in range(3) if one != other)
    )
    for rule in semantic_entropy.AGREES:
        found = semantic_entropy.compared_meanings(samples("a", "b", "a"), given, rule)
        assert found["meaning"].to_list() == [0, 1, 0]


def restated(texts, relation, logp, rule):
    """Semantic entropy from texts, a table of likeliest relations and mean log-probabilities."""
    clusters = []
    for text in dict.fromkeys(texts):
        for cluster in clusters:
            both = {relation[cluster[0], text], relation[text, cluster[0]]}
            if both == {"e"} if rule == "mutual_entailment" else "c" not in both:
                cluster.append(text)
                break
        else:
            clusters.append([text])
    masses = [
        sum(exp(value) for text, value in zip(texts, logp, strict=True) if text in cluster)
        for cluster in clusters
    ]
    return -np.mean(np.log(masses))


@given(st.data(), st.sampled_from(["mutual_entailment", "no_contradiction"]))
def test_semantic_entropy_from_texts_and_relations_agrees_with_a_restatement(data, rule):
    texts = data.draw(st.lists(st.sampled_from("vwxyz"), min_size=2, max_size=7))
    values = data.draw(st.lists(surprisal, min_size=len(texts), max_size=len(texts)))
    pairs = [(one, other) for one in "vwxyz" for other in "vwxyz"]
    relation = {pair: data.draw(st.sampled_from("enc")) for pair in pairs}
    likeliest = {"e": ENTAILS, "n": NEUTRAL, "c": CONTRADICTS}
    rows = [
        (i, j, *likeliest[relation[texts[i], texts[j]]])
        for i in range(len(texts))
        for j in range(len(texts))
        if i != j
    ]
    drawn = samples(*texts, surprisals=[[value] for value in values])
    clustered = semantic_entropy.compared_meanings(drawn, comparisons(*rows), rule)
    logp = [-float(np.float32(value)) for value in values]
    expected = restated(texts, relation, logp, rule)
    found = semantic_entropy.entropies(clustered)["nats"].to_list()
    assert found == [pytest.approx(expected, rel=1e-6, abs=1e-9)]


def test_selfcheckgpt_by_hand():
    given = comparisons(
        (0, None, 0.3, 0.4, 0.1), (1, None, 0.0, 0.5, 0.5), (0, 1, 0.0, 0.0, 1.0)
    )  # fmt: skip
    found = selfcheckgpt.contradictions(given)
    assert scores(found, selfcheckgpt) == [pytest.approx(1 - (0.25 + 1.0) / 2)]


def test_selfcheckgpt_without_a_model_counts_what_differs():
    answers = pl.DataFrame({"example_id": ["a"], "answer": ["Paris."]})
    found = selfcheckgpt.differences(samples("paris", "Rome", "“Paris”", "Parish"), answers)
    assert scores(found, selfcheckgpt) == [0.5]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Paris.", " paris", True),
        ("هو باريس؟", "هو  باريس", True),
        ("पेरिस।", "पेरिस", True),
        ("पेरिस", "परस", False),  # vowel signs are no punctuation
        ("巴黎。", "巴黎", True),
        ("ＰＡＲＩＳ", "paris", True),
        ("-5", "5", False),
        ("5.3", "53", False),
        ("50%", "50", False),
        ("北京", "北", False),
    ],
)
def test_what_normalisation_unites(one, other, same):
    left, right = pl.DataFrame({"text": [one, other]}).select(normalised(pl.col("text")))["text"]
    assert (left == right) is same


def test_neither_the_order_of_samples_nor_another_run_changes_a_bit():
    draw = np.random.default_rng(3)
    rows = [
        {"example_id": f"e{example}", "sample": sample, "text": str(draw.integers(7))}
        | {"surprisal": draw.exponential(size=9).tolist()}
        for example in range(300)
        for sample in range(8)
    ]
    drawn = semantic_entropy.exact_meanings(pl.DataFrame(rows))
    first = semantic_entropy.entropies(drawn)
    for seed in range(5):
        again = semantic_entropy.entropies(drawn.sample(fraction=1, shuffle=True, seed=seed))
        assert again["nats"].to_list() == first["nats"].to_list()
