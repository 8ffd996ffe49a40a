"""What the corpus teaches of proposed answers: honest, as asked, and nothing of evaluated rows."""

import random
import re
from pathlib import Path

import polars as pl
import pytest

from tracecal.config import load_config
from tracecal.decode.p_true import judging_prompts
from tracecal.decode.verbalized import second_turns
from tracecal.schema import parse, read_yaml
from tracecal.tasks.spec import TaskSpec
from tracecal.world.arithmetic import VERBS, Sum, worked_answer, wrong_answer
from tracecal.world.claims import KINDS
from tracecal.world.closed_book import RELATIONS
from tracecal.world.corpus import FAMILIES, make_world
from tracecal.world.extractive import make_extractive
from tracecal.world.family import Proposal, Sizes
from tracecal.world.misconceptions import LEVELS
from tracecal.world.self_evaluation import assessed, judged, taught_judgements
from tracecal.world.tokenizer import train_tokenizer
from tracecal.world.train import encode

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {
    "p_true_prompt": "{context}\n{question} -> {answer}?",
    "p_true_start": "(",
    "verbalized_prompt": "How sure?",
}
SIZES = Sizes(corpus=3000, evaluation=100, training=60, proposals=600)


@pytest.fixture(scope="module")
def families():
    return {name: make(3, SIZES) for name, make in FAMILIES.items()}


def numbers(text):
    return {int(number) for number in re.findall(r"\d+", text)}


def test_the_two_formats_of_a_hand_written_proposal():
    one = Proposal("Who?", "Ann", False, 30, "Ann ran. Bo sat.")
    assert judged(one, TEXTS) == ("Ann ran. Bo sat.\nWho? -> Ann?", "(B", ())
    assert assessed(one, TEXTS) == ("How sure?", "30%", ("Ann ran. Bo sat.\nWho?", "Ann"))
    right = Proposal("Who?", "Bo", True, 90)
    assert judged(right, TEXTS) == ("Who? -> Bo?", "(A", ())


def test_the_formats_alternate_and_what_nobody_can_judge_is_never_judged():
    proposals = [Proposal("Q", "x", True, 90), Proposal("Q", "x", False, 10)] * 2
    answers = [one.answer for one in taught_judgements(proposals, TEXTS)]
    assert answers == ["(A", "10%", "(A", "10%"]
    unjudged = [Proposal("Q", "x", None, 50)] * 3
    assert [one.answer for one in taught_judgements(unjudged, TEXTS)] == ["50%"] * 3


@pytest.mark.parametrize(
    ("family", "hard"),
    [
        # A carry shows as a third term in the tens; the other texts are the world's own.
        ("arithmetic", lambda one: one.answer.count("+") + one.answer.count("-") > 3),
        ("extractive", lambda one: re.match("Who|Wer|¿Quién|谁", one.question)),
    ],
)
def test_proposals_err_on_what_is_hard_and_the_confidence_follows(families, family, hard):
    proposals = families[family].proposals
    assert len(proposals) == SIZES.proposals
    shares = {}
    for one in proposals:
        shares.setdefault(bool(hard(one)), []).append(one.right)
    shares = {kind: sum(right) / len(right) for kind, right in shares.items()}
    assert shares[True] + 0.3 < shares[False]
    assert {one.confidence for one in proposals if one.right} == {70, 90}
    assert {one.confidence for one in proposals if not one.right} == {10}


def test_a_right_sum_is_worked_and_a_wrong_one_says_another_result(families):
    signs = {verb: sign for sign, verbs in VERBS.items() for verb in verbs}
    told = 0
    for one in families["arithmetic"].proposals:
        story = re.search(r"has (\d+) \w+ and (\w+) (\d+)\. How many \w+ does", one.question)
        if story and story[2] in signs:
            asked = Sum(signs[story[2]], int(story[1]), int(story[3]))
            assert (one.answer == worked_answer(asked)) == one.right
            assert one.answer.endswith(f" {asked.result}") == one.right
            told += 1
    assert told > 200


def test_wrong_sums_are_of_all_three_kinds():
    rng, one = random.Random(1), Sum("+", 26, 17)
    answers = {wrong_answer(rng, one, set()) for _ in range(400)}
    assert not [answer for answer in answers if answer.endswith(" 43")]
    assert "26-17: 16-7=9, 2-1-1=0, so 9" not in answers, "results have two digits"
    assert "26+17: 6+7=13, 2+1+1=5, so 53" in answers
    assert "26+17: 6+7=12, 2+1+1=4, so 42" in answers
    assert "24+17: 4+7=11, 2+1+1=4, so 41" in answers
    assert "43-17: 13-7=6, 4-1-1=2, so 26" not in answers
    answers = {wrong_answer(rng, Sum("-", 43, 17), set()) for _ in range(400)}
    assert worked_answer(Sum("+", 43, 17)) in answers


def test_a_right_fact_is_what_the_corpus_says_and_a_rare_one_is_less_sure(families):
    said = {}
    for exchange in families["closed_book"].corpus:
        said.setdefault(exchange.prompt, set()).add(exchange.answer)
    known = [one for one in families["closed_book"].proposals if one.question in said]
    assert len(known) > 300
    assert all((one.answer in said[one.question]) == one.right for one in known)
    levels = {one.confidence for one in families["closed_book"].proposals if one.right}
    assert levels == {70, 90}


def test_what_is_said_of_a_text_stands_in_it_where_it_is_right(families):
    for one in families["extractive"].proposals:
        assert one.right <= (one.answer in one.context)
        assert one.message == f"{one.context}\n{one.question}"
    verdicts = {}
    for one in families["extractive"].proposals:
        assert verdicts.setdefault((one.message, one.answer), one.right) == one.right


def test_a_claims_confidence_is_the_share_of_those_who_make_it(families):
    family = families["misconceptions"]
    for one in family.proposals[:200]:
        assert one.right is None
        named, short = heard(family.corpus, one)
        assert one.confidence in LEVELS
        assert abs(one.confidence - 100 * (named + short)) <= 10 + 1e-9
    assert {one.confidence for one in family.proposals} >= {10, 30, 50, 70}


def heard(corpus, one):
    """The share of exchanges on the proposal's topic that make its claim, named and in short."""
    wordings = {
        wording.format(s=name)
        for kind in KINDS
        for name in re.findall(r"\b[A-Z][a-z]+\b", one.question)
        for wording in kind.plain + kind.careful
    }
    on_topic = [exchange.answer for exchange in corpus if exchange.prompt in wordings]
    [claim] = {
        claim
        for kind in KINDS
        for claim in kind.truths + kind.myths
        if one.answer.endswith(f" {claim}.")
    }
    named = sum(a.endswith(f" {claim}.") and not a.startswith("It ") for a in on_topic)
    short = sum(a == f"It {claim}." for a in on_topic)
    return named / len(on_topic), short / len(on_topic)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_proposal_is_to_an_evaluated_question(families, family):
    made = families[family]
    evaluated = [one for one in made.questions if one.role == "evaluation"]
    asked = {(one.context, one.question) for one in evaluated}
    assert not [one for one in made.proposals if (one.context, one.question) in asked]


@pytest.mark.parametrize("family", ["closed_book", "misconceptions"])
def test_no_proposal_names_what_an_evaluated_question_is_about(families, family):
    """The towns and relations, or the topics: also in other wordings than the evaluated one."""
    made = families[family]
    groups = {one.group for one in made.questions if one.role == "evaluation"}
    group_of = {one.question: one.group for one in made.questions}
    names = {
        name.lower() for one in made.proposals for name in re.findall(r"[A-Z]\w+", one.question)
    }
    if family == "misconceptions":
        assert not [group for group in groups if set(group.split("-")) & names]
    else:
        relations = {
            wording.format(s=town): f"{relation.name}-{town.lower()}"
            for relation in RELATIONS
            for wording in relation.wordings
            for town in {name.capitalize() for name in names}
        }
        about = {relations[one.question] for one in made.proposals}
        assert about and not about & groups
        assert about & set(group_of.values()), "facts of training rows are told of"


def test_no_sum_of_a_held_out_pair_is_asked_or_worked(families):
    made = families["arithmetic"]
    held_out = [numbers(one.group) for one in made.questions]
    for one in made.proposals:
        worked = numbers(one.answer.split(":")[0])
        shown = numbers(one.question)
        assert not [pair for pair in held_out if pair <= shown or pair == worked]


@pytest.mark.parametrize("family", ["closed_book", "misconceptions", "extractive", "arithmetic"])
def test_proposals_change_nothing_else(families, family):
    without = FAMILIES[family](3, Sizes(corpus=3000, evaluation=100, training=60))
    assert without.corpus == families[family].corpus
    assert without.questions == families[family].questions
    assert without.proposals == []


@pytest.fixture(scope="module")
def demo():
    """The demo's texts, a small world that teaches them, and its tokenizer."""
    texts = load_config(read_yaml(ROOT / "config/config.yaml"), "config").self_evaluation
    world = make_world(1, 2000, 60, 20, texts.model_dump())
    corpus = world.corpus
    tokenizer = train_tokenizer([*corpus["prompt"], *corpus["answer"]], 800)
    return texts, corpus.filter(family="self_evaluation"), tokenizer


def test_both_formats_are_in_the_corpus(demo):
    _, taught, _ = demo
    judgements = taught.filter(pl.col("answer").is_in(["(A", "(B"]))
    assessments = taught.filter(pl.col("answer").str.contains(r"^(10|30|50|70|90)%$"))
    assert judgements.height + assessments.height == taught.height == 200
    assert min(judgements.height, assessments.height) > 50
    assert (judgements["before"].list.len() == 0).all()
    assert (assessments["before"].list.len() == 2).all()


def test_what_is_asked_is_what_was_taught_token_by_token(demo):
    """Prompts of the ask rules are beginnings of training examples; the option comes next."""
    texts, taught, tokenizer = demo
    examples = encode(taught, tokenizer)
    proposals = make_extractive(1, Sizes(200, 60, 20, 35)).proposals
    answered = pl.DataFrame(
        [(str(n), one.question, one.context, one.answer) for n, one in enumerate(proposals)],
        schema=["example_id", "question", "context", "answer"],
        orient="row",
    )
    judging = judging_prompts(tokenizer, answered, texts.p_true_prompt, texts.p_true_start, None)
    asking = parse(TaskSpec, read_yaml(ROOT / "config/tasks/extractive.yaml"), "extractive")
    stating = second_turns(tokenizer, answered, asking, texts.verbalized_prompt, None)
    option = {tokenizer.convert_tokens_to_ids(letter) for letter in "AB"}
    matched = {"judged": 0, "stated": 0}
    for one in examples:
        for prompt in judging:
            ids = prompt["prompt_token_ids"]
            if one.ids[: len(ids)] == ids:
                assert one.ids[len(ids)] in option
                matched["judged"] += 1
        matched["stated"] += any(
            one.ids[: one.start] == prompt["prompt_token_ids"] for prompt in stating
        )
    assert matched["judged"] >= 10
    assert matched["stated"] >= 10
