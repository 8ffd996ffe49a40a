"""The record of searches: a JSON file that lists all searches on the same labels.

The best of several guarantees is less certain than each. The file therefore keeps the earlier
searches that have used labels (`tried`), and the confidence that all guarantees hold at once
(`joint_confidence`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracecal.errors import InputError
from tracecal.io.files import read_json, write_json


class RecordFile:
    """The file of a search with its settings, and the earlier searches that the file lists."""

    def __init__(self, path: str | Path, settings: Mapping[str, Any]) -> None:
        """Open a record, if there is one. Raises `InputError` where `path` is another file."""
        self.path = Path(path)
        try:
            earlier = [
                search
                for search in _searches(self.path)
                if search["labels"] and any(search[name] != settings[name] for name in settings)
            ]
            doubt = 1 - settings["confidence"] + sum(1 - search["confidence"] for search in earlier)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} is not a record as this 'tracecal label' writes it: move it away, or name "
                "another --output."
            ) from error
        self._history = {"joint_confidence": round(max(0.0, 1 - doubt), 12), "tried": earlier}

    def save(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Write the state of the search with the earlier ones, and return both."""
        record = {**state, **self._history}
        write_json(record, self.path)
        return record


def _searches(path: Path) -> list[dict[str, Any]]:
    """All searches in the file, in the order of their start."""
    if not path.exists():
        return []
    last = read_json(path)
    earlier = last.pop("tried")
    del last["joint_confidence"]
    return [*earlier, last]


def describe_record(record: Mapping[str, Any]) -> str:
    """Say in a sentence how a search stands, from its record."""
    clauses, answers = ["nothing is guaranteed"], "this file's answers"
    if record["population"] != "finite":
        answers = "further answers like this file's, a question counting once,"
    if record["threshold"] is not None:
        clauses = [
            f"guaranteed: at most {record['error_rate']:.0%} are wrong among the "
            f"{record['coverage']:.1%} of {answers} from {record['threshold']:.4g} on "
            f"({record['confidence']:.0%} confidence)"
        ]
    if earlier := record.get("tried"):
        clauses.append(
            f"search {len(earlier) + 1} on these labels: whoever chooses among them has at "
            f"least {record['joint_confidence']:.0%} confidence"
        )
    if record["next"] is not None:
        clauses.append(f"now tested: from {record['tested']:.4g} on")
    elif record["ended"] == "failed":
        clauses.append(f"from {record['tested']:.4g} on too many are wrong")
    else:
        clauses.append("no threshold is left to test")
    return "; ".join(clauses)
