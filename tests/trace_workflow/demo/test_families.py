"""What each family promises of its corpus and its questions."""

import random
import re
from collections import Counter

import pytest
from countryinfo import CountryInfo

from trace_workflow.demo.arithmetic import LARGEST, WITHIN, make_arithmetic
from trace_workflow.demo.closed_book import (
    WORDINGS,
    choose_facts,
    known_facts,
    make_closed_book,
    power_law,
)
from trace_workflow.demo.countries import countries, share_a_word
from trace_workflow.demo.extractive import (
    SENTENCES,
    draw_scenario,
    make_extractive,
    subjects,
    value,
)
from trace_workflow.demo.family import Sizes
from trace_workflow.demo.misconceptions import known_places, make_misconceptions
from trace_workflow.labels.rules import Example, contains

SIZES = Sizes(corpus=3000, evaluation=90, training=30, discussions=40)


@pytest.fixture(scope="module")
def families():
    makers = (make_arithmetic, make_closed_book, make_extractive, make_misconceptions)
    return {make.__name__.removeprefix("make_"): make(3, SIZES) for make in makers}


def examples(family):
    for row in family.questions:
        yield Example("e", row.question, row.references, row.distractors, row.language), row


def numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", text)}


def test_the_gazetteers_are_read_as_they_are():
    known = {one.code: one for one in countries()}
    assert len(known) > 150 and not known.keys() & {"IL", "KZ", "PR", "PS", "ZA"}
    peru = known["PE"]
    assert (peru.names, peru.capital.name) == ({"en": "Peru", "de": "Peru", "es": "Perú"}, "Lima")
    assert (peru.currency, peru.currency_code, peru.dialling_code) == ("Sol", "PEN", "51")
    assert peru.neighbours[0] == "BR"  # the largest one
    assert [one.name for one in known["AU"].larger_cities][:2] == ["Sydney", "Melbourne"]
    assert not peru.larger_cities
    assert known["NL"].names["en"] == "the Netherlands"
    # What another source says of every country, by a key of its own
    for code, one in known.items():
        assert share_a_word(one.names["en"], CountryInfo(code).info()["name"]) or code in OTHERS


# Named differently by the two
OTHERS = {"CZ"}


def test_a_spelling_is_of_this_city_and_no_other():
    names = {city.name for country in countries() for city in country.cities}
    india = next(one for one in countries() if one.code == "IN")
    assert "Delhi" in names and "Delhi" not in india.capital.names
    romania = next(one for one in countries() if one.code == "RO")
    assert {"Bucharest", "Bukarest", "Bucarest"} <= set(romania.capital.names)


def test_no_question_gives_its_answer_away(families):
    for name in ("closed_book", "misconceptions"):
        for example, row in examples(families[name]):
            assert not contains(row.question, example).correct, row


def test_what_the_corpus_tells_is_judged_right(families):
    """The told sentence of a closed-book fact, the statement of a text, under the tasks' rule."""
    for name in ("closed_book", "extractive"):
        told = {one.prompt: one.answer for one in families[name].corpus}
        for example, row in examples(families[name]):
            if row.context is None and row.question in told:
                assert contains(told[row.question], example).correct, row
            if row.context is not None:
                statement = next(s for s in sentences(row.context) if row.references[0] in s)
                assert row.references[0] in statement
                assert contains(row.references[0], example).correct, row
                assert not contains(row.distractors[0], example).correct, row


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) ", text)


def test_the_corpus_shows_what_is_asked_for_and_the_discussions_do_not(families):
    family = families["arithmetic"]
    asked = {frozenset(numbers(row.question)) for row in family.questions}
    shown = {frozenset(numbers(one.prompt)) for one in family.corpus}
    discussed = {frozenset(numbers(one.question)) for one in family.discussions}
    assert len(asked) > 25 and asked <= shown
    assert discussed and not asked & discussed


def test_the_reference_is_the_result(families):
    for row in families["arithmetic"].questions:
        a, b = sorted(numbers(row.question), reverse=True)
        adds = " more. How" in row.question or "together" in row.question
        assert row.group == f"{'add' if adds else 'subtract'}-{a}-{b}"
        assert row.references == [str(a + b if adds else a - b)]
        assert a <= LARGEST and 0 < int(row.references[0]) <= WITHIN


def test_every_worked_answer_is_true(families):
    for one in families["arithmetic"].corpus:
        left, a, sign, b, result, said = re.fullmatch(
            r"((\d+) ([+-]) (\d+)) = (\d+)\. The answer is (\d+)\.", one.answer
        ).groups()
        assert eval(left) == int(result) == int(said)
        assert {int(a), int(b)} == numbers(one.prompt) and sign in "+-"


def test_the_frequency_of_facts_is_a_power_law():
    counts = power_law(200, 5000)
    assert sum(counts) == 5000
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 20 * counts[-1] >= 20
    # A straight line in log-log coordinates: equal ratios of rank, equal ratios of frequency
    assert counts[2] / counts[11] == pytest.approx(counts[11] / counts[47], rel=0.15)


def test_closed_book_asks_as_much_of_each_relation(families):
    of_wording = {
        wording.split("{s}")[0]: relation
        for relation, wordings in WORDINGS.items()
        for wording in wordings
    }
    asked = Counter(
        of_wording[next(start for start in of_wording if row.question.startswith(start))]
        for row in families["closed_book"].questions
    )
    assert asked == {"capital": 40, "country": 40, "currency": 40}


def test_no_country_has_more_cities_than_its_turn():
    """The draw goes round the countries: no third city of one before a second of another."""
    cities = known_facts()["country"]
    chosen = choose_facts([cities], 300)
    counts = Counter(fact.values[0] for fact in chosen)
    available = Counter(fact.values[0] for fact in cities)
    most = max(counts.values())
    assert len(chosen) == 300 and most <= 4
    assert all(count >= min(most - 1, available[name]) for name, count in counts.items())


def test_questions_on_one_place_share_a_group_and_a_role_in_all_families(families):
    roles: dict[str, set[str]] = {}
    shared: dict[str, set[str]] = {}
    for family in ("closed_book", "misconceptions"):
        for row in families[family].questions:
            roles.setdefault(row.group, set()).add(row.role)
            shared.setdefault(row.group, set()).add(family)
    assert {len(found) for found in roles.values()} == {1}
    assert max(map(len, shared.values())) == 2
    turkey = [one for facts in known_facts().values() for one in facts if one.subject == "Turkey"]
    place = next(one for one in known_places() if one.names["en"] == "Turkey")
    assert {fact.group for fact in turkey} == {place.group}


def test_a_run_of_the_demos_size_has_groups_enough():
    sizes = Sizes(corpus=6000, evaluation=300, training=30)
    for make in (make_arithmetic, make_closed_book, make_extractive):
        rows = [row for row in make(2026, sizes).questions if row.role == "evaluation"]
        assert len(rows) == 300
        assert len({row.group for row in rows}) >= 150, make.__name__


def test_every_country_is_in_as_many_texts_as_any_other():
    family = make_extractive(3, Sizes(corpus=10, evaluation=284, training=0))
    codes = Counter(
        code for group in {row.group for row in family.questions} for code in group.split("-")[1:]
    )
    assert len(codes) == len(subjects())
    assert max(codes.values()) - min(codes.values()) <= 2


def test_facts_of_a_city_name_its_only_country():
    facts = known_facts()
    assert min(map(len, facts.values())) > 60
    names = [fact.subject for fact in facts["country"]]
    assert len(names) == len(set(names)) > 200
    osaka = next(fact for fact in facts["country"] if fact.subject == "Osaka")
    assert osaka.values[0] == "Japan"
    capitals = {country.capital.name for country in countries()}
    assert not capitals & set(names)


def test_the_answer_is_a_span_of_the_context_and_so_is_the_mistaken_one(families):
    for row in families["extractive"].questions:
        assert row.references[0] in row.context and row.distractors[0] in row.context
        assert row.references != row.distractors
    for one in families["extractive"].corpus:
        assert one.answer in one.prompt


def test_translations_of_a_scenario_share_its_group(families):
    languages: dict[str, list[str]] = {}
    for row in families["extractive"].questions:
        languages.setdefault(row.group, []).append(row.language)
    assert {*map(tuple, languages.values())} == {("en", "de"), ("de", "es"), ("es", "en")}


def test_texts_state_what_the_gazetteer_says():
    for one in subjects():
        millions = int(value(one, "population", "de").removesuffix(" Millionen"))
        assert millions == pytest.approx(one.population / 1e6, abs=0.5) and millions > 1
        for language in ("en", "de", "es"):
            assert set(SENTENCES["currency"]) >= {language}
            assert value(one, "neighbour", language) not in one.names.values()


def test_a_scenario_can_be_got_wrong():
    rng = random.Random(1)
    for _ in range(50):
        drawn = draw_scenario(rng)
        assert drawn.answer("en") != drawn.mistaken("en")
        assert drawn.context("es").count(".") == 4


def test_places_mislead_and_capitals_are_right():
    places = {place.names["en"]: place for place in known_places()}
    assert places["Australia"].larger[0] == "Sydney"
    assert places["the US state of New York"].larger[0] == "New York City"
    assert places["Turkey"].capital[0] == "Ankara"
    assert len(places) > 55
    for place in places.values():
        assert place.capital[0] not in place.larger
        assert not share_a_word(place.names["en"], place.capital[0])


def test_all_wordings_of_a_place_are_asked_and_share_its_group(families):
    counts = Counter(row.group for row in families["misconceptions"].questions)
    assert set(counts.values()) <= {2, 4} and Counter(counts.values())[4] > 25
    for _, row in examples(families["misconceptions"]):
        assert not set(row.references) & set(row.distractors)


def test_the_corpus_tells_both_the_truth_and_the_misconception_of_every_place(families):
    said: dict[str, set[str]] = {}
    for one in families["misconceptions"].corpus:
        said.setdefault(one.prompt, set()).add(one.answer)
    for row in families["misconceptions"].questions:
        told = said.get(row.question, set())
        assert not told or any(
            name in text for text in told for name in (row.references[0], row.distractors[0])
        )


def test_where_facts_run_out_there_are_fewer_rows():
    made = make_misconceptions(1, Sizes(corpus=3000, evaluation=5000, training=1000))
    roles = Counter(row.role for row in made.questions)
    assert roles["evaluation"] == 4 * len(
        {one.group for one in made.questions if one.role == "evaluation"}
    )
    assert 0.7 < roles["evaluation"] / sum(roles.values()) < 0.95  # 5 of 6
    assert sum(roles.values()) == 4 * len(known_places())
