"""The record of an answer, made from what its format states."""

import math
from typing import Any

from tracecal.logs.options import Reading
from tracecal.logs.raw import RawAnswer
from tracecal.logs.reasoning import with_kept
from tracecal.logs.record import Details, Record
from tracecal.logs.steps import SLACK, WrongRow, entropies, known, most_listed, surprisals

FINISHES = {
    "stop": "stop",
    "eos": "eos",
    "eos_token": "eos",
    "end_turn": "eos",
    "length": "length",
    "limit": "length",
    "max_tokens": "length",
    "word": "stop",
    "stop_sequence": "stop",
}


def record(example_id: str, raw: RawAnswer, reading: Reading) -> Record:
    """The record of an answer. Raises `WrongRow` where it is empty or its numbers are invalid."""
    raw = with_kept(raw, reading.reasoning)
    values = known(raw.steps)
    surprisal, lacks = surprisals(values)
    bounds: dict[str, Any] = dict(raw.exact)
    entropy = bounds.pop("entropy", None)
    if entropy and max(entropy) > (most := math.log(reading.vocabulary or math.inf)) + SLACK:
        raise WrongRow(
            f"it has the entropy {max(entropy):g}, above {most:.4g}, the most that the vocabulary "
            "allows: entropies must be in nats"
        )
    if entropy is None:
        how = reading.vocabulary, reading.greedy, reading.rounding
        bounded, why = entropies(raw.steps, values, *how)
        if bounded is not None:
            bounds["entropy_lower"] = bounded.lower.tolist()
            if reading.vocabulary is None:
                why = "entropies need the vocabulary's size"
            else:
                entropy = bounded.middle.tolist()
                bounds["top_k"] = most_listed(raw.steps, values)
                bounds["entropy_upper"] = bounded.upper.tolist()
        lacks = lacks or why
    if not (raw.answer or "").strip() and not (surprisal or raw.token_ids):
        raise WrongRow("the answer is empty")
    tokens, texts = raw.tokens, [step.text for step in raw.steps]
    if tokens is None and texts and None not in texts:
        tokens = texts
    finish = FINISHES.get(raw.finish_reason or "", raw.finish_reason)
    ending = reading.stop_token
    if ending == "auto":
        ending = "none" if finish == "length" else raw.stop_token
    details = {name: getattr(raw, name) for name in Details.__dataclass_fields__} | {
        "tokens": tokens,
        "finish_reason": finish,
        "stop_token": ending,
        "processed": raw.processed if reading.processed == "auto" else reading.processed,
        "model": reading.model or raw.model,
    }
    return Record(example_id, surprisal, entropy, **bounds, lacks=lacks, **details)
