"""A file of labels: JSON Lines with `id` (or `example_id`) and `correct`."""

from pathlib import Path

from tracecal.errors import InputError
from tracecal.io.input_files import MOST_BYTES, parsed_json, require_regular


def read_labels(path: str | Path) -> tuple[list[tuple[str, bool]], list[str]]:
    """Read labels.

    Returns
    -------
    labels : list of (str, bool)
        An answer's id and whether it is correct.
    invalid : list of str
        Why other lines are skipped, those without a verdict among them.

    Raises
    ------
    InputError
        Where the file cannot be read.
    """
    require_regular(path, MOST_BYTES)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as labels ({error}).") from error
    labels, invalid = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parsed_json(line)
            example_id = row.get("id", row.get("example_id"))
            if not isinstance(example_id, str | int) or not isinstance(row.get("correct"), bool):
                raise ValueError("expected 'id', and 'correct' that is true or false")
            labels.append((str(example_id), row["correct"]))
        except (ValueError, AttributeError) as error:
            invalid.append(f"line {number}: {error}")
    return labels, invalid
