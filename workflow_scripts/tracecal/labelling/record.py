"""The file of all searches on the same labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracecal.errors import InputError
from tracecal.io.files import read_json, write_json
from tracecal.labelling.search import LabelQuery, Verdict


class Recorded:
    """A query whose record is on disk before it is answered, with all that was tried before.

    The record holds `tried`, the records of other searches that have looked at labels, and
    `joint_confidence`: that this search's guarantee and all of theirs hold.
    """

    def __init__(self, query: LabelQuery, path: Path) -> None:
        """Raises `InputError` where `path` is another's file."""
        self._query, self.path = query, path
        try:
            tried = [one for one in _searches(path) if one["labels"] and not self._is_own(one)]
            doubt = 1 - query.settings["confidence"] + sum(1 - one["confidence"] for one in tried)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} is not a record as this 'tracecal label' writes it: move it away, or name "
                "another --output."
            ) from error
        self._of_all = {"joint_confidence": round(max(0.0, 1 - doubt), 12), "tried": tried}

    def _is_own(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is of this search, at whatever number of labels."""
        return all(record[name] == value for name, value in self._query.settings.items())

    def record(self, given: Mapping[str, Verdict]) -> dict[str, Any]:
        """What stands by the verdicts so far, with all that was tried; it is on disk."""
        record = self._query.record(given) | self._of_all
        write_json(record, self.path)
        return record

    def ask(self, given: Mapping[str, Verdict]) -> tuple[str | None, str]:
        """The answer to label next, null where the search has ended, and how it stands."""
        record = self.record(given)
        return record["next"], f"{len(given)} labelled; {said(record)}"


def _searches(path: Path) -> list[dict[str, Any]]:
    """The records of all searches that are stored, the first that was tried first."""
    if not path.exists():
        return []
    last = read_json(path)
    earlier = last.pop("tried")
    del last["joint_confidence"]
    return [*earlier, last]


def said(record: Mapping[str, Any]) -> str:
    """How a search stands, by its record."""
    parts = ["nothing is guaranteed"]
    if record["threshold"] is not None:
        parts = [
            f"guaranteed: at most {record['error_rate']:.0%} are incorrect among the "
            f"{record['coverage']:.1%} of {_whom(record)} from {record['threshold']:.4g} on "
            f"({record['confidence']:.0%} confidence)"
        ]
    if record["tried"]:
        parts.append(
            f"search {len(record['tried']) + 1} on these labels: whoever chooses among them has at "
            f"least {record['joint_confidence']:.0%} confidence"
        )
    if record["next"] is not None:
        parts.append(f"now tested: from {record['tested']:.4g} on")
    elif record["ended"] == "failed":
        parts.append(f"from {record['tested']:.4g} on too many are incorrect")
    else:
        parts.append("no threshold is left to test")
    return "; ".join(parts)


def _whom(record: Mapping[str, Any]) -> str:
    if record["population"] == "finite":
        return "this file's answers"
    most = record["largest_group"]
    counts = "" if most == 1 else f", a question counting with at most {most} of them,"
    return f"further answers like this file's{counts}"
