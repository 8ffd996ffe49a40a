"""What the report's pictures say in words."""

from tracecal.calibrator.report_pictures import describe_reliability


def bin_of(p, share, half_width):
    return {"p": p, "share": share, "low": share - half_width, "high": share + half_width}


def test_reliability_off_the_diagonal_is_named_with_its_direction():
    on, high = bin_of(0.5, 0.55, 0.1), bin_of(0.9, 0.6, 0.1)
    low = bin_of(0.2, 0.35, 0.1)
    assert describe_reliability([on, on]).startswith("Probabilities agree with the labels")
    assert describe_reliability([on, low]) == (
        "Off the diagonal at 20 %, where 35 % are right: too low"
    )
    assert describe_reliability([on, high, low]) == (
        "Off the diagonal in 2 of 3 dots, most at 90 %, where 60 % are right: too high"
    )
