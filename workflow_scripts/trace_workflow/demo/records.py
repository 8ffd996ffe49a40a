"""Records of countries: several facts in one answer, each with its own references."""

from trace_workflow.demo.closed_book import TWO_CURRENCIES
from trace_workflow.demo.countries import Country, countries, share_a_word
from trace_workflow.demo.family import Family, Question, Sizes, place_group

# What currencies are called besides their full names
SHORT_NAMES = {"Yuan Renminbi": ("Yuan", "Renminbi"), "Belarusian ruble": ("Ruble", "Rouble")}
MISLEADING = 5  # larger cities than the capital that serve as distractors, at most


def make_records(seed: int, sizes: Sizes) -> Family:
    """One question on each country, up to the number of rows in `sizes`; no corpus states them."""
    by_role = {
        role: [
            country
            for country in countries()
            if sizes.role(seed, place_group(country.names["en"])) == role
        ][:rows]
        for role, rows in sizes.rows.items()
    }
    questions = [_question(one, role) for role, chosen in by_role.items() for one in chosen]
    return Family([], questions, [])


def facts(country: Country) -> dict[str, list[str]]:
    """The names of each fact, none where the country's own name gives it away.

    >>> peru = next(one for one in countries() if one.code == "PE")
    >>> facts(peru)["continent"], facts(peru)["currency"], facts(peru)["calling code"]
    (['South America'], ['Sol'], ['51'])
    """
    known = {
        "capital": country.capital.names,
        "largest city": country.cities[0].names,
        "continent": (country.continent,),
        "currency": _currency(country),
        "calling code": (country.dialling_code,) if country.dialling_code.isdigit() else (),
    }
    own = country.names["en"]
    return {
        name: [] if any(share_a_word(own, text) for text in texts) else list(texts)
        for name, texts in known.items()
    }


def _currency(country: Country) -> tuple[str, ...]:
    """The names of a country's currency; none where it has two."""
    if country.code in TWO_CURRENCIES:
        return ()
    name = country.currency.removesuffix(" Soberano")
    return (name, *SHORT_NAMES.get(name, ()))


def _question(country: Country, role: str) -> Question:
    """A question on all facts; the whole answer is judged by its capital."""
    name = country.names["en"]
    larger = [city.name for city in country.larger_cities[:MISLEADING]]
    return Question(
        group=place_group(name),
        role=role,
        question=name,
        references=list(country.capital.names),
        distractors=larger,
        facts=facts(country),
    )
