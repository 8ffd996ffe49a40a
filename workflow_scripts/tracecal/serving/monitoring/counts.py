"""How many answers or labels a call added."""

from dataclasses import dataclass


@dataclass
class AddedCounts:
    """Answers or labels of one call.

    Attributes
    ----------
    new : int
        Answers or labels whose id was new.
    watched : int
        New answers that the monitors watch.
    repeated, contradicting : int
        Answers or labels of known ids, with the same value and with another.
    """

    new: int = 0
    watched: int = 0
    repeated: int = 0
    contradicting: int = 0

    def __add__(self, other: "AddedCounts") -> "AddedCounts":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return AddedCounts(*(first + second for first, second in pairs))
