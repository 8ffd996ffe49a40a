"""Labels beside points, placed where they cover least."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from tracecal.figures import style

# Where a label's middle lies relative to its point: all around a square, beside the point first.
STEPS = (0, 0.5, -0.5, 1, -1)
SIDES = [(side, up) for up in STEPS for side in (1, -1)]
SIDES += [(across, side) for across in STEPS[:3] for side in (1, -1)]
DISTANCES = (4.5, 9, 15, 22, 30, 40)
POINT = 3.8
BERTH = 2.0  # points between a label and other labels' points
CLEARANCE = 3.0  # points between labels on one line
MISNAMED = 60.0  # cost in square points of each other point that is nearer than the label's own
HIDDEN = 10.0  # cost of hiding a point, per area that the label covers
OUTSIDE = 20.0  # the same for a label outside its panel
UNREADABLE = 12.0  # the same for labels that overlap
DETOUR = 2.0  # cost in square points of one point of distance
KEPT = 400  # beam width: partial placements that the search keeps
TRIED = 32  # candidate places of each label, the cheapest


class Label(NamedTuple):
    """Text that belongs to the point (x, y)."""

    x: float
    y: float
    text: str
    color: str
    bold: bool


class Spot(NamedTuple):
    """A place for a label: distance from its point in points, and direction."""

    distance: float
    across: float
    up: float


class Place(NamedTuple):
    """A label's box in pixels at a spot around its point, and its cost without other labels."""

    spot: Spot
    box: Bbox
    point: tuple[float, float]
    cost: float


SPOTS = [Spot(distance, across, up) for distance in DISTANCES for across, up in SIDES]


def place(axes: Axes, labels: Sequence[Label], points: Sequence[tuple[float, float]]) -> None:
    """Write each label at the nearest free place around its point, with a line that leads to it.

    The layout of the figure must be settled. As far as there is room, labels keep clear of points,
    of each other and each other's lines and of the panel's edges, and stay nearer to their own
    point than to any other.
    """
    axes.figure.set_layout_engine("none")
    drawn = [_around(axes.transData.transform(point), POINT * _scale(axes)) for point in points]
    options = [_places(axes, label, drawn) for label in labels]
    chosen = _cheapest(options, CLEARANCE * _scale(axes))
    for label, spot in zip(labels, chosen, strict=True):
        _write(axes, label, spot)


def _cheapest(options: Sequence[Sequence[Place]], clearance: float) -> Sequence[Place]:
    """One place for each label: the cheapest combination that a beam search finds."""
    kept: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for index, places in enumerate(options):
        shared = [
            [[_shared(place, other, clearance) for place in places] for other in others]
            for others in options[:index]
        ]
        longer = [
            (
                cost + candidate.cost + sum(s[j][k] for s, j in zip(shared, chosen, strict=True)),
                (*chosen, k),
            )
            for cost, chosen in kept
            for k, candidate in enumerate(places)
        ]
        kept = sorted(longer)[:KEPT]
    return [places[k] for places, k in zip(options, kept[0][1], strict=True)]


def _places(axes: Axes, label: Label, drawn: Sequence[Bbox]) -> list[Place]:
    """The label's candidate places, the cheapest first, the nearest of equal ones first."""
    probe = axes.text(label.x, label.y, label.text, fontsize=style.SMALL, fontweight=_weight(label))
    extent = probe.get_window_extent()
    probe.remove()
    x, y = axes.transData.transform((label.x, label.y))
    places = []
    for spot in SPOTS:
        reach = spot.distance * _scale(axes)
        left = x + spot.across * reach - extent.width * (1 - spot.across) / 2
        bottom = y + spot.up * reach - extent.height * (1 - spot.up) / 2
        box = Bbox.from_bounds(left, bottom, extent.width, extent.height)
        cost = _own_cost(spot, box, (x, y), drawn, axes)
        places.append(Place(spot, box, (x, y), cost))
    return sorted(places, key=lambda place: place.cost)[:TRIED]


def _write(axes: Axes, label: Label, place: Place) -> None:
    axes.annotate(
        label.text,
        (label.x, label.y),
        (_middle(place.box) - place.point) / _scale(axes),
        textcoords="offset points",
        ha="center",
        va="center",
        color=label.color,
        fontsize=style.SMALL,
        fontweight=_weight(label),
        zorder=2,  # above the panel's own lines, which it hides, and below points
        bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
        arrowprops={"arrowstyle": "-", "color": label.color, "lw": 0.5, "shrinkA": 0, "shrinkB": 2},
    )


def _weight(label: Label) -> str:
    return "bold" if label.bold else "normal"


def _around(center, radius: float) -> Bbox:
    x, y = center
    return Bbox.from_extents(x - radius, y - radius, x + radius, y + radius)


def _own_cost(
    spot: Spot, box: Bbox, point: tuple[float, float], drawn: Sequence[Bbox], axes: Axes
) -> float:
    """The cost of the points that a label hides or its line crosses, and of its area off the panel.

    Its distance counts as well, so that a label leaves its point only to uncover something, and so
    do other points that are nearer to it.
    """
    others = [other for other in drawn if not other.contains(*point)]
    berth, area = BERTH * _scale(axes), _scale(axes) ** 2
    hidden = sum(_overlap(box, other.padded(berth)) for other in others)
    outside = _area(box) - _overlap(box, axes.bbox)
    crossed = sum(_area(other) for other in others if _crosses(spot, point, box, other))
    own = _apart(box, point)
    misnamed = sum(_apart(box, _middle(other)) <= own for other in others)
    away = (DETOUR * spot.distance + MISNAMED * misnamed) * area
    return HIDDEN * (hidden + crossed) + OUTSIDE * outside + away


def _shared(place: Place, other: Place, clearance: float) -> float:
    """The cost of two labels that overlap, their lines included; symmetric."""
    lines = (Path([label.point, _middle(label.box)]) for label in (place, other))
    meet = next(lines).intersects_path(next(lines), filled=False)
    return (
        HIDDEN * meet * min(_area(place.box), _area(other.box))
        + UNREADABLE * _overlap(place.box.padded(clearance, 0), other.box)
        + HIDDEN * _area(other.box) * _crosses(place.spot, place.point, place.box, other.box)
        + HIDDEN * _area(place.box) * _crosses(other.spot, other.point, other.box, place.box)
    )


def _crosses(spot: Spot, point: tuple[float, float], own: Bbox, box: Bbox) -> bool:
    """Whether the line from a point to its own label, where it has one, runs through a box."""
    if spot.distance == DISTANCES[0]:
        return False
    return Path([point, _middle(own)]).intersects_bbox(box, filled=False)


def _middle(box: Bbox) -> np.ndarray:
    return (box.p0 + box.p1) / 2


def _overlap(box: Bbox, other: Bbox) -> float:
    shared = Bbox.intersection(box, other)
    return _area(shared) if shared else 0.0


def _apart(box: Bbox, point: Sequence[float]) -> float:
    """The distance of a point from a box, 0 inside it."""
    x, y = point
    return math.hypot(max(box.x0 - x, x - box.x1, 0), max(box.y0 - y, y - box.y1, 0))


def _area(box: Bbox) -> float:
    return box.width * box.height


def _scale(axes: Axes) -> float:
    """Pixels in a point."""
    return axes.figure.dpi / 72
