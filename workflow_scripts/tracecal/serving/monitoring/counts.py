"""How many answers or labels a call added."""

from dataclasses import dataclass


@dataclass
class AddedCounts:
    """Answers or labels of one call.

    Attributes
    ----------
    new, repeated, contradicting : int
        Of new ids, and of known ids with the same value and with another.
    watched : int
        New answers that the monitors watch.
    """

    new: int = 0
    watched: int = 0
    repeated: int = 0
    contradicting: int = 0

    def __add__(self, more: "AddedCounts") -> "AddedCounts":
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return AddedCounts(*(first + second for first, second in pairs))
