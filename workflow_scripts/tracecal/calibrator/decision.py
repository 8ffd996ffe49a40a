"""The decision that a calibrator allows, in a dozen lines of 80 columns: what `calibrate` prints.

`decision_text` joins what was read, the guarantee at the error rate asked for, how good the
probabilities are and what to type next. `headline` and `other_rates` are its sentences about
guarantees; `estimator_table` is what `--all` adds.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from tracecal.calibrator.catalogue import LABELS, group_of
from tracecal.calibrator.schema import CalibrationData

WIDTH, MOST_LINES = 80, 12
USUAL_RATE = 0.2  # the error rate of the decision where none is asked for
NO_BREAK = "\N{NO-BREAK SPACE}"
REST = "  The rest stands in the calibrator's card: tracecal card --help"
WITHOUT = "not with these labels"


def percent(share: float) -> str:
    """Format a share in percent, with two digits below 1 %.

    >>> percent(0.534), percent(0.025), percent(0.0012)
    ('53 %', '2 %', '0.12 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else f"{100 * share:.2g} %"


def rate_text(error_rate: float) -> str:
    """Format an error rate in percent, with all digits that the user gave.

    >>> rate_text(0.2), rate_text(0.025)
    ('20 %', '2.5 %')
    """
    return f"{100 * error_rate:.6g} %"


def decided_rate(guarantees: pl.DataFrame, asked: Sequence[float]) -> float | None:
    """Return the error rate of the decision: the first `asked` one, or else the usual one.

    If it was not tested, the nearest tested rate; None if no rate was tested.
    """
    rates = guarantees["error_rate"].to_list()
    target = asked[0] if asked else USUAL_RATE
    return min(rates, key=lambda rate: (abs(rate - target), rate), default=None)


def headline(guarantees: pl.DataFrame, rate: float, confidence: float, base_rate: float) -> str:
    """Say what is guaranteed at an error rate, or else how many labels might do."""
    row = guarantees.row(by_predicate=pl.col("error_rate") == rate, named=True)
    if row["threshold"] is None:
        return (
            f"Do not keep answers by these probabilities yet: at most {rate_text(rate)} wrong is "
            f"not guaranteed with these labels{_forecast(row)}."
        )
    share = "all" if row["coverage"] == 1 else f"about {percent(row['coverage'])} of"
    already = ""
    if 0 < 1 - base_rate <= rate:
        already = f" Of all labelled ones {percent(1 - base_rate)} are: a smaller rate drops more."
    return (
        f"Keep {share} answers like these: at most {rate_text(rate)} of those kept are wrong "
        f"({percent(confidence)} confidence).{already}"
    )


def other_rates(
    guarantees: pl.DataFrame, rate: float, base_rate: float, asked: Sequence[float]
) -> str | None:
    """Say what is guaranteed at the other error rates, in a line; None without any.

    Leaves out rates above the error rate of all answers, unless they are among the `asked` ones.
    """
    rows = guarantees.filter(pl.col("error_rate") != rate).filter(
        pl.col("error_rate").is_in(list(asked)) | (pl.col("error_rate") < 1 - base_rate)
    )
    if not asked:  # the nearest ones: stricter ones where the rate is guaranteed, else laxer ones
        is_guaranteed = guarantees.filter(error_rate=rate)["threshold"].null_count() == 0
        side = pl.col("error_rate") < rate if is_guaranteed else pl.col("error_rate") > rate
        rows = rows.filter(side)
    items: list[str] = []
    for row in rows.sort((pl.col("error_rate") - rate).abs()).iter_rows(named=True):
        share = "all" if row["coverage"] == 1 else percent(row["coverage"] or 0)
        what = f"{WITHOUT}{_forecast(row)}" if row["threshold"] is None else f"keep {share}"
        item = f"at {rate_text(row['error_rate'])}: {what}"
        if not asked and len("      ".join([*items, item])) > WIDTH - 2:
            break
        items.append(item)
    return "      ".join(items) or None


def _forecast(row: Mapping[str, Any]) -> str:
    enough = row.get("enough")
    return f"; about {enough:,} might do" if enough else ""


def describe_counts(data: CalibrationData, n_answers: int) -> str:
    """Count the answers by model and task, the labelled and the wrong ones, in a sentence."""
    wrong = f"{percent(1 - data.base_rate)} wrong"
    if data.base_rate in (0, 1):
        wrong = "all right" if data.base_rate else "all wrong"
    labelled = f"all labelled, {wrong}" if n_answers <= data.n else f"{data.n:,} labelled, {wrong}"
    model = data.model or "an unnamed model"
    missing = f"; {data.n_missing:,} have no probability" if data.n_missing else ""
    return f'{max(n_answers, data.n):,} answers by {model} to "{data.task}"; {labelled}{missing}.'


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


def decision_text(paragraphs: Iterable[Iterable[str]], commands: Mapping[str, str]) -> str:
    """Join paragraphs of sentences, each starting a line, and the commands to type.

    Blank lines separate paragraphs as far as MOST_LINES lines allow. If the text is longer, the
    longest paragraph is cut and refers to the card.
    """
    blocks = [
        [line for sentence in paragraph for line in _wrapped(sentence)] for paragraph in paragraphs
    ]
    blocks.append([line for word, command in commands.items() for line in _typed(word, command)])
    blocks = [block for block in blocks if block]
    if (excess := sum(map(len, blocks)) - MOST_LINES) > 0:
        longest = max(blocks[:-1], key=len)
        del longest[-excess - 1 :]
        longest.append(REST)
    spare = MOST_LINES - sum(map(len, blocks))
    gaps = [len(blocks) - 1, *range(1, len(blocks) - 1)]  # the one before the commands first
    separated = gaps[: max(0, spare)]
    lines = [
        line
        for number, block in enumerate(blocks)
        for line in ([""] if number in separated else []) + block
    ]
    return "\n".join(lines)


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


def _typed(word: str, command: str) -> list[str]:
    """Format a command after its word; a long one continues on lines that a shell joins."""
    first, lines = f"{word}: ", []
    for part in command.split(" --"):
        part = part if not lines else f"--{part}"
        if lines and len(lines[-1]) + 1 + len(part) <= WIDTH - 2:
            lines[-1] += f" {part}"
        else:
            lines.append(f"{' ' * len(first) if lines else first}{part}")
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def estimator_table(estimators: pl.DataFrame, recommended: str | None) -> str:
    """Format all estimators (rows of `quality.QUALITY`) in groups, at most 80 columns wide."""
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
