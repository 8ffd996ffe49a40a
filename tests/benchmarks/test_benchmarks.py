"""Benchmarks run to their end, here on next to nothing; `make bench` measures.

That of the workflow is left out: dry runs have tests of their own.
"""

from importlib.util import find_spec

import pytest

from benchmarks import calibration, decoding, growth, operators, parts, polygraph, serve

POLYGRAPH = pytest.mark.skipif(
    not find_spec("lm_polygraph"), reason="lm-polygraph is in .venv-polygraph, for make bench"
)
FEW = dict(list(calibration.ESTIMATORS.items())[:2])


@pytest.mark.parametrize(
    ("area", "small"),
    [
        (calibration, {"SIZES": (60,), "ESTIMATORS": FEW}),
        (decoding, {"SIZES": ((300, 32, 1, 2),), "ANSWERS": 4, "LONGEST": 3, "NEW": 3}),
        (operators, {"SIZES": (50,)}),
        (parts, {"SIZES": (50,)}),
        (serve, {"REQUESTS": 4, "AT_ONCE": 2, "REPEATS": 1, "MANY": 40}),
        pytest.param(polygraph, {"SIZES": ((300, 32, 1, 2, 2, 3),)}, marks=POLYGRAPH),
    ],
    ids=lambda value: getattr(value, "__name__", "").split(".")[-1],
)
def test_an_area_runs_to_its_end(area, small, monkeypatch):
    for name, value in small.items():
        monkeypatch.setattr(area, name, value)
    measured = list(area.rows())
    assert measured
    assert all(row.ours > 0 for row in measured)


def test_growth_is_measured_at_enough_sizes_to_see_its_shape():
    assert all(len(sizes) >= 5 and [*sizes] == sorted(sizes) for sizes in growth.SIZES.values())


def test_growth_is_drawn(monkeypatch, tmp_path):
    monkeypatch.setattr(growth, "_dry_run", lambda models, folder: lambda: 1.0)
    small = {"answers": (20, 40), "tokens an answer": (2, 4), "models": (1,), "estimators": (2, 3)}
    monkeypatch.setattr(growth, "SIZES", small)
    monkeypatch.setattr(growth, "ANSWERS", 60)
    monkeypatch.setattr(growth, "PICTURE", tmp_path / "growth.svg")
    assert len(list(growth.rows())) == 7
    assert (tmp_path / "growth.svg").read_text().count("<svg") == 1
