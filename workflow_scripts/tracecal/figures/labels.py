"""Labels beside points, placed where they cover least, and at the ends of lines."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.path import Path
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from scipy.optimize import isotonic_regression

from tracecal.figures import style

SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
DISTANCES = (4.5, 9, 15, 22, 30)
POINT = 3.8
BERTH = 2.0  # points between a label and the point of something else
CLEARANCE = 3.0  # points between labels on one line
UNREADABLE = 4.0  # how much worse it is that labels share an area than that one hides a point
DETOUR = 2.0  # the area in square points that a point of distance is worth
KEPT = 400  # placements of the labels so far that the search carries on


class Label(NamedTuple):
    """Text that belongs to the point (x, y); `line` colours what leads to it, if not as `color`."""

    x: float
    y: float
    text: str
    color: str
    bold: bool
    line: str = ""


class Spot(NamedTuple):
    """A place for a label: distance from its point in points, and direction."""

    distance: float
    across: int
    up: int


class Place(NamedTuple):
    """A label's box in pixels at a spot around its point, and its cost but for other labels."""

    spot: Spot
    box: Bbox
    point: tuple[float, float]
    cost: float


SPOTS = [Spot(distance, across, up) for distance in DISTANCES for across, up in SIDES]


def place(axes: Axes, labels: Sequence[Label], points: Sequence[tuple[float, float]]) -> None:
    """Write each label at the nearest free place around its point.

    The layout of the figure must be settled; labels keep clear of points, of each other, of each
    other's lines and of the panel's edges as far as there is room.
    """
    axes.figure.set_layout_engine("none")
    drawn = [_around(axes.transData.transform(point), POINT * _scale(axes)) for point in points]
    options = [_places(axes, label, drawn) for label in labels]
    chosen = _cheapest(options, CLEARANCE * _scale(axes))
    for label, one in zip(labels, chosen, strict=True):
        _write(axes, label, one.spot)


def name_ends(axes: Axes, labels: Sequence[Label]) -> list[Annotation]:
    """Write labels beside the panel's right edge; the layout then leaves them room."""
    line = {"arrowstyle": "-", "lw": 0.5, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5)}
    return [
        axes.annotate(
            label.text,
            (label.x, label.y),
            (1.05, 0.5),
            textcoords="axes fraction",
            va="center",
            color=label.color,
            fontsize=style.SMALL,
            fontweight=_weight(label),
            arrowprops=line | {"color": label.line or label.color},
            annotation_clip=False,
            zorder=1.5,
        )
        for label in labels
    ]


def spread_names(axes: Axes, names: Sequence[Annotation]) -> None:
    """Move names to the heights of their ends, as near as leaves each a line of its own.

    The layout must be settled. Names of one height keep the order in which they are given, the
    first at the bottom.
    """
    axes.figure.set_layout_engine("none")
    if not names:
        return
    to_axes = axes.transData + axes.transAxes.inverted()
    height = 1.15 * style.SMALL * _scale(axes) / axes.bbox.height
    ends = [to_axes.transform(name.xy)[1] for name in names]
    order = sorted(range(len(names)), key=ends.__getitem__)
    steps = height * np.arange(len(names))
    # Least squares with a distance between neighbours is isotonic regression without it.
    heights = isotonic_regression([ends[i] for i in order] - steps).x + steps
    heights += max(0.0, -heights[0]) - max(0.0, heights[-1] - 1)
    for i, y in zip(order, heights, strict=True):
        names[i].xyann = (1.05, float(y))


def _cheapest(options: Sequence[Sequence[Place]], clearance: float) -> Sequence[Place]:
    """One place for each label, all of them together as cheap as a beam search finds."""
    found: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for index, places in enumerate(options):
        shared = [
            [[_shared(one, other, clearance) for one in places] for other in others]
            for others in options[:index]
        ]
        longer = [
            (
                cost + one.cost + sum(s[j][k] for s, j in zip(shared, chosen, strict=True)),
                (*chosen, k),
            )
            for cost, chosen in found
            for k, one in enumerate(places)
        ]
        found = sorted(longer)[:KEPT]
    return [places[k] for places, k in zip(options, found[0][1], strict=True)]


def _places(axes: Axes, label: Label, drawn: Sequence[Bbox]) -> list[Place]:
    """Where the label could stand, the nearest first."""
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
    return places


def _write(axes: Axes, label: Label, spot: Spot) -> None:
    line = {"arrowstyle": "-", "color": label.color, "lw": 0.5, "shrinkA": 0, "shrinkB": 3}
    axes.annotate(
        label.text,
        (label.x, label.y),
        (spot.across * spot.distance, spot.up * spot.distance),
        textcoords="offset points",
        ha=("center", "left", "right")[spot.across],
        va=("center", "bottom", "top")[spot.up],
        color=label.color,
        fontsize=style.SMALL,
        fontweight=_weight(label),
        zorder=9,
        arrowprops=line if spot.distance > DISTANCES[0] else None,
        path_effects=[patheffects.withStroke(linewidth=1.5, foreground="white")],
    )


def _weight(label: Label) -> str:
    return "bold" if label.bold else "normal"


def _around(center, radius: float) -> Bbox:
    x, y = center
    return Bbox.from_extents(x - radius, y - radius, x + radius, y + radius)


def _own_cost(
    spot: Spot, box: Bbox, point: tuple[float, float], drawn: Sequence[Bbox], axes: Axes
) -> float:
    """The area of points that a label hides, that its line crosses, and that is off the panel.

    Distance counts as well, so that a label leaves its point only to uncover something.
    """
    others = [other for other in drawn if not other.contains(*point)]
    berth = BERTH * _scale(axes)
    hidden = sum(_overlap(box, other.padded(berth)) for other in others)
    outside = _area(box) - _overlap(box, axes.bbox)
    crossed = sum(_area(other) for other in others if _crosses(spot, point, box, other))
    return hidden + 3 * outside + 3 * crossed + DETOUR * spot.distance * _scale(axes) ** 2


def _shared(place: Place, other: Place, clearance: float) -> float:
    """What two labels, their lines included, take of each other: the same seen from either."""
    return (
        UNREADABLE * _overlap(place.box.padded(clearance, 0), other.box)
        + 3 * _area(other.box) * _crosses(place.spot, place.point, place.box, other.box)
        + 3 * _area(place.box) * _crosses(other.spot, other.point, other.box, place.box)
    )


def _crosses(spot: Spot, point: tuple[float, float], own: Bbox, box: Bbox) -> bool:
    """Whether the line from a point to its own label, where it has one, runs through a box."""
    if spot.distance == DISTANCES[0]:
        return False
    return Path([point, (own.p0 + own.p1) / 2]).intersects_bbox(box, filled=False)


def _overlap(box: Bbox, other: Bbox) -> float:
    shared = Bbox.intersection(box, other)
    return _area(shared) if shared else 0.0


def _area(box: Bbox) -> float:
    return box.width * box.height


def _scale(axes: Axes) -> float:
    """Pixels in a point."""
    return axes.figure.dpi / 72
