"""What `calibrate` prints: in 12 lines of 80 columns, which answers may be kept.

`decision_text` joins the sentences of a report, such as those of `describe_counts` and
`describe_reading`, with the commands to type next. `estimator_table` is what `--all` adds.
"""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from tracecal.calibrator.catalogue import LABELS, group_of
from tracecal.calibrator.schema import CalibrationData
from tracecal.statistics.percentages import percent

WIDTH, MOST_LINES = 80, 12
NO_BREAK = "\N{NO-BREAK SPACE}"
REST = "  For the rest, see the calibrator's card: tracecal card --help"


def describe_counts(data: CalibrationData, n_answers: int) -> str:
    """Count the answers by model and task, the labelled and the wrong ones, in a sentence."""
    wrong = f"{percent(1 - data.base_rate)} wrong"
    if data.base_rate in (0, 1):
        wrong = "none wrong" if data.base_rate else "all wrong"
    labelled = f"all labelled, {wrong}" if n_answers <= data.n else f"{data.n:,} labelled, {wrong}"
    model = data.model or "an unnamed model"
    counts = f'{max(n_answers, data.n):,} answers by {model} to "{data.task}"; {labelled}'
    if not data.n_missing:
        return f"{counts}."
    return f"{counts}; {data.n_missing:,} have no probability: {data.missing_reasons}."


def describe_reading(data: CalibrationData) -> str:
    """Describe how traces were read, in a line."""
    alternatives = {
        "exact": "exact entropies",
        "top-k": f"{data.top_k or 'few'} alternatives per token",
        "none": "no alternatives",
    }
    stop_token, raw, reasoning, _ = data.trace_kinds()
    details = [raw, stop_token, *([reasoning] if data.reasoning != "none" else [])]
    return f"Read with {', '.join([alternatives[data.entropy], *details])}."


def decision_text(
    paragraphs: Iterable[Iterable[str]], commands: Mapping[str, str], detail: str = ""
) -> str:
    """Join paragraphs, whose sentences each start on a new line, and the labelled `commands`.

    Blank lines separate paragraphs as far as MOST_LINES lines allow, and a `detail` ends the first
    one where there is room. If the text is longer, all commands but the first are left out, then
    the last paragraph; or else the longest ones are cut, and the text refers to the card.
    """
    sentences = [[_wrapped(sentence) for sentence in paragraph] for paragraph in paragraphs]
    ends = {lines[-1] for paragraph in sentences for lines in paragraph if lines}
    blocks = [[line for lines in paragraph for line in lines] for paragraph in sentences]
    blocks = [block for block in blocks if block]
    first, *further = (_typed(*item) for item in commands.items()) if commands else [[]]
    typed = [*first, *(line for lines in further for line in lines)]
    if sum(map(len, blocks)) > MOST_LINES - len(typed):
        typed = first
    if sum(map(len, blocks[:-1])) <= MOST_LINES - len(typed) < sum(map(len, blocks)):
        blocks.pop()
    details = _wrapped(detail)
    if sum(map(len, [*blocks, details])) <= MOST_LINES - len(typed):
        blocks[0] += details
    _cut(blocks, ends, MOST_LINES - len(typed))
    blocks += [typed] if typed else []
    spare = MOST_LINES - sum(map(len, blocks))
    gaps = [len(blocks) - 1, *range(1, len(blocks) - 1)]  # the one before the commands first
    separated = gaps[: max(0, spare)]
    lines = [
        line
        for number, block in enumerate(blocks)
        for line in ([""] if number in separated and number else []) + block
    ]
    return "\n".join(lines)


def _cut(blocks: list[list[str]], ends: set[str], n_lines: int) -> None:
    """Shorten the longest of the blocks to `n_lines` in all, the last cut one ending in REST.

    No sentence is cut: `ends` are the lines that end one.
    """
    if sum(map(len, blocks)) <= n_lines:
        return
    while sum(map(len, blocks)) >= n_lines and len(longest := max(blocks, key=len)) > 1:
        longest.pop()
        while len(longest) > 1 and longest[-1] not in ends:
            sentence, stop, _ = longest.pop().rpartition(". ")
            if stop:
                longest.append(f"{sentence}.")
                break
    longest.append(REST)


def _wrapped(sentence: str) -> list[str]:
    indent = "  " if sentence.startswith("  ") else ""
    lines = textwrap.wrap(
        sentence.strip().replace(" %", f"{NO_BREAK}%"),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def _typed(label: str, command: str) -> list[str]:
    """Format a labelled command; a long one breaks before options, with backslashes."""
    first, lines = f"{label}: ", []
    for part in command.split(" --"):
        part = part if not lines else f"--{part}"
        if lines and len(lines[-1]) + 1 + len(part) <= WIDTH - 2:
            lines[-1] += f" {part}"
        else:
            lines.append(f"{' ' * len(first) if lines else first}{part}")
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def estimator_table(estimators: pl.DataFrame, recommended: str | None) -> str:
    """Format all estimators (rows of QUALITY) in groups, at most 80 columns wide."""
    lines = [
        f"{'':28}{'Brier score':>19}{'AUROC':>19}{'mean':>8}{'ECE':>6}",
        f"{'':28}{'':38}{'- right':>8}",
    ]
    rows = estimators.to_dicts()
    for group in ("scores", "fits", "ablations"):
        members = [row for row in rows if group_of(row["estimator"]) == group]
        if members:
            lines += [group[0].upper() + group[1:], *(_row(row, recommended) for row in members)]
    lines.append("* recommended   ~ few different values")
    return "\n".join(line.rstrip() for line in lines)


def _row(row: Mapping[str, Any], recommended: str | None) -> str:
    mark = (
        "*" if row["estimator"] == recommended else "~" if 2 * row["distinct"] < row["n"] else " "
    )
    label = LABELS[row["estimator"]]
    label = label if len(label) <= 26 else f"{label[:25]}…"
    gap = "-" if row["gap"] is None else f"{row['gap']:+.3f}"
    ece = "-" if row["ece"] is None else f"{row['ece']:.3f}"
    ends = "".join(f"{with_ends(row, metric):>19}" for metric in ("brier", "auroc"))
    return f"{mark} {label:26}{ends}{gap:>8}{ece:>6}"


def with_ends(row: Mapping[str, Any], metric: str) -> str:
    """Format a value with its interval, as far as they are known."""
    if row[metric] is None:
        return "-"
    if row[f"{metric}_low"] is None:
        return f"{row[metric]:.3f}"
    return f"{row[metric]:.3f} [{row[f'{metric}_low']:.2f}, {row[f'{metric}_high']:.2f}]"
