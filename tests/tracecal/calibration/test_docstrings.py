"""The examples in the docstrings of what users import run as they stand."""

import doctest

import pytest

from tracecal.calibrator import schema as calibrator
from tracecal.calibrator import scoring as score
from tracecal.capture import attach
from tracecal.features import features, operators

EXPECTED = {
    score: {"score_answer", "score_response"},
    calibrator: {"Fitted", "load"},
    features: {"features_of_one"},
    operators: {"decayed", "length_normalised", "mean", "slope", "trace_risk", "window_peak"},
    attach: {"Attached"},
}
EXAMPLES = [
    (module, test)
    for module in EXPECTED
    for test in doctest.DocTestFinder(exclude_empty=True).find(module)
    if test.examples
]


@pytest.mark.parametrize(
    ("module", "example"), EXAMPLES, ids=[example.name for _, example in EXAMPLES]
)
def test_an_example_gives_what_it_says(module, example, request):
    example.globs["getfixture"] = request.getfixturevalue
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example).failed == 0


def test_public_functions_have_an_example():
    found = {module: set() for module in EXPECTED}
    for module, example in EXAMPLES:
        found[module].add(example.name.removeprefix(f"{module.__name__}."))
    assert {module: names - found[module] for module, names in EXPECTED.items()} == {
        module: set() for module in EXPECTED
    }
