"""The formats of answers: how each is recognised, its reader, and the record made of a row."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from tracecal.answers.columns import TRACES, read_columns
from tracecal.answers.evaluations import (
    VERDICTS,
    one_verdict,
    read_inspect,
    read_lm_eval,
    verdict,
)
from tracecal.answers.record import TRACE, Details, RawAnswer, Record, with_kept
from tracecal.answers.servers import (
    first_choice,
    read_chat,
    read_completion,
    read_llama_cpp,
    read_ollama,
    read_response,
    read_sglang,
)
from tracecal.answers.settings import Reading
from tracecal.answers.tokens import (
    SLACK,
    Step,
    WrongRow,
    entropies,
    known,
    most_listed,
    surprisals,
)

Row = dict[str, Any]


def _simple(read: Callable[[Row], RawAnswer]) -> Callable[[Row, str | None], RawAnswer]:
    return lambda body, label: read(body)


def _logprob_objects(body: Row) -> bool:
    """Whether `logprobs` is a list of Ollama's objects, not of numbers."""
    values = body.get("logprobs")
    return isinstance(values, list) and values != [] and all(isinstance(v, dict) for v in values)


# How to recognise each format, tried in this order, and its reader, which also gets the path of the
# verdict where one is named.
FORMATS: dict[str, tuple[Callable[[Row], bool], Callable[[Row, str | None], RawAnswer]]] = {
    "inspect": (
        lambda body: isinstance(body.get("output"), dict) and "choices" in body["output"],
        read_inspect,
    ),
    "lm_eval": (lambda body: "resps" in body and "doc_id" in body, read_lm_eval),
    "openai_chat": (lambda body: "message" in first_choice(body), _simple(read_chat)),
    "openai_completions": (
        lambda body: "text" in first_choice(body),
        _simple(read_completion),
    ),
    "openai_responses": (lambda body: isinstance(body.get("output"), list), _simple(read_response)),
    "llama_cpp": (
        lambda body: "completion_probabilities" in body or "generation_settings" in body,
        _simple(read_llama_cpp),
    ),
    "sglang": (lambda body: isinstance(body.get("meta_info"), dict), _simple(read_sglang)),
    "ollama": (lambda body: "done" in body or _logprob_objects(body), _simple(read_ollama)),
    "columns": (
        lambda body: any(name in body for name in (*TRACES, "token_ids", "answer", "text")),
        _simple(read_columns),
    ),
}

# The record of an answer, made from what its format states.


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
    exact = {name: one for name, one in raw.exact.items() if None not in one}
    trace, why = _entropies(raw.steps, values, exact, reading)
    lacks = lacks or why
    partial = None
    if surprisal is None or "entropy" not in trace:
        partial, top_k = _partial(raw, values, reading)
        trace["top_k"] = trace.get("top_k", top_k)
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
    return Record(example_id, surprisal, **trace, lacks=lacks, partial=partial, **details)


def _entropies(
    steps: Sequence[Step], values: np.ndarray, exact: Mapping[str, Any], reading: Reading
) -> tuple[dict[str, Any], str | None]:
    """The entropies of steps by their `known` values or as they are stated, and their bounds, as
    `Record` has them; and why there are none.
    """
    found = dict(exact)
    if entropy := found.get("entropy"):
        if max(entropy) > (most := math.log(reading.vocabulary or math.inf)) + SLACK:
            raise WrongRow(
                f"it has the entropy {max(entropy):g}, above {most:.4g}, the most that the "
                "vocabulary allows: entropies must be in nats"
            )
        return found, None
    how = reading.vocabulary, reading.greedy, reading.rounding
    bounded, why = entropies(steps, values, *how)
    if bounded is None:
        return found, why
    found["entropy_lower"] = bounded.lower.tolist()
    if reading.vocabulary is None:
        return found, "entropies need the vocabulary's size"
    found["entropy"] = bounded.middle.tolist()
    found["top_k"] = most_listed(steps, values)
    found["entropy_upper"] = bounded.upper.tolist()
    return found, None


def _partial(
    raw: RawAnswer, values: np.ndarray, reading: Reading
) -> tuple[dict[str, Any] | None, int | None]:
    """The lists of a trace, null at the tokens that lack a value, and how many tokens are listed;
    null where no token has a log-probability.
    """
    given = values > -np.inf
    if not len(values) or not given[:, 0].any():
        return None, None
    surprisal = [None if value == -np.inf else 0.0 - value for value in values[:, 0].tolist()]
    lists: dict[str, Any] = dict.fromkeys(TRACE) | {"surprisal": surprisal}
    if "entropy" in raw.exact:
        return lists | raw.exact, None
    places = np.flatnonzero(given.any(axis=1)).tolist()
    trace, _ = _entropies([raw.steps[place] for place in places], values[places], {}, reading)
    for name in {*trace} & {*TRACE}:
        of_place = dict(zip(places, trace[name], strict=True))
        lists[name] = [of_place.get(place) for place in range(len(values))]
    return lists, trace.get("top_k")


# The answer that a row holds.


# The settings of a request that can change probabilities, and the values at which they do not. No
# server divides by a temperature of 0: it takes the likeliest token, and states what 1 would give
# (https://github.com/standardcompletions/rfcs/issues/11; vLLM, SGLang and llama.cpp do so).
NEUTRAL: dict[str, tuple[object, ...]] = {
    "temperature": (0, 1),
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "repeat_penalty": (1,),
    "logit_bias": ({}, []),
}
LABELS = ("correct", "label")
IDS = ("custom_id", "example_id", "id", "doc_id")


def read_row(row: Any, reading: Reading) -> Record:
    """The answer of one row: a format's object itself, or an object with that as `response`.

    Raises `WrongRow`.
    """
    if not isinstance(row, dict):
        raise WrongRow("it is not a JSON object")
    if row.get("error"):
        raise WrongRow("the request failed")
    body = _body(row)
    if reading.columns:
        body = {name: find(row, path) for name, path in reading.columns.items()}
    name = _name(body, reading)
    request = _request(row, body)
    if request.get("temperature") == 0:
        reading = reading.model_copy(update={"greedy": True})
    try:
        raw = FORMATS[name][1](body, reading.label)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise WrongRow(f"as {name}, {where}: {first['msg']}") from error
    if raw.processed == "unknown" and request and _neutral(request):
        raw = replace(raw, processed="no")
    raw = replace(raw, correct=_label(row, body, reading, raw.correct))
    if isinstance(row.get("group_id"), str | int):
        raw = replace(raw, group_id=str(row["group_id"]))
    answer = record(_id(row, body, reading), raw, reading)
    if reading.also:
        answer = replace(answer, also=_also(row, body, reading.also))
    texts = [text for text in vars(answer).values() if isinstance(text, str)]
    try:
        "".join([*texts, *(answer.tokens or ())]).encode()
    except UnicodeEncodeError as error:
        raise WrongRow("one of its texts holds an unpaired surrogate") from error
    return answer


def _body(row: Row) -> Row:
    """The answer itself, without the envelope of a batch file."""
    response = row.get("response")
    if not isinstance(response, dict):
        return row
    if "body" not in response:
        return response
    status = response.get("status_code")
    if status not in (None, 200) or not isinstance(response["body"], dict):
        raise WrongRow(f"the request failed with status {status}")
    return response["body"]


def _request(row: Row, body: Row) -> Row:
    """The request's settings, where a file keeps them beside the answer."""
    request = row.get("request") or body.get("generation_settings") or {}
    request = request.get("body", request) if isinstance(request, dict) else {}
    return request if isinstance(request, dict) else {}


def _neutral(request: Row) -> bool:
    """Whether nothing in a request changes the probabilities, so that processed ones are raw."""
    return request.get("temperature") is not None and all(
        request.get(name) is None or request[name] in values for name, values in NEUTRAL.items()
    )


def _name(body: Row, reading: Reading) -> str:
    if reading.format != "auto":
        return reading.format
    for name, (recognised, _) in FORMATS.items():
        if recognised(body):
            return name
    raise WrongRow(f"its format is unknown; expected one of {', '.join(FORMATS)}")


def _id(row: Row, body: Row, reading: Reading) -> str:
    if reading.id is not None:
        value = find(row, reading.id)
    else:
        values = (source.get(key) for source in (row, body) for key in IDS)
        value = next((value for value in values if value not in ("", None)), None)
    if not isinstance(value, str | int) or value == "":
        raise WrongRow(f"it has no id; add one as {reading.id or ', '.join(IDS)}")
    epoch = body.get("epoch")
    return str(value) if epoch in (None, 1) else f"{value}#epoch-{epoch}"


def _label(row: Row, body: Row, reading: Reading, own: bool | None) -> bool | None:
    """The first of three sources that a row has; the verdicts of one source must agree.

    1. The verdict of `tracecal label`, which may be unsure.
    2. That at the path `label`, else the answer's `own`.
    3. Without `label`: `own`, and those under the names LABELS in the row and in the answer.
    """
    if isinstance(given := row.get("labelled"), dict):
        return verdict(given.get("correct"))
    if reading.label is not None:
        found = one_verdict(row=find(row, reading.label), answer=find(body, reading.label))
        return own if found is None else found
    # Columns that are named, and a harness's own metrics, are not second-guessed.
    looked_at = ("correct",) if reading.columns else () if "metrics" in body else LABELS
    beside = {name: row.get(name) for name in looked_at}
    inside = {f"response.{name}": body.get(name) for name in looked_at if body is not row}
    return one_verdict(answer=own, **beside, **inside)


def _also(row: Row, body: Row, paths: Mapping[str, str]) -> list[dict[str, Any]]:
    """The columns of a user's own: numbers as they are, verdicts as 1 and 0; null where the row has
    none.
    """
    found = []
    for name, path in paths.items():
        value = find(row, path)
        value = find(body, path) if value is None else value
        try:
            number = None if value in (None, "") else _number(value)
        except (TypeError, ValueError) as error:
            raise WrongRow(f"{path} holds {value!r}, neither a number nor a verdict") from error
        found.append({"name": name, "path": path, "value": number})
    return found


def _number(value: Any) -> float | None:
    """A finite number, or a verdict's; null for NaN. Raises `TypeError` or `ValueError`."""
    number = float(VERDICTS.get(value, value))
    if math.isinf(number):
        raise ValueError
    return None if math.isnan(number) else number


def find(row: Any, path: str) -> Any:
    """The value at a path such as 'scores.match.value'; null where there is none."""
    for key in path.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return row
