"""Whether answers match the model, task and kind of traces that a calibrator was fitted on.

`fingerprints` are short digests of question, answer and trace, which show no text and tell whether
a calibrator was fitted on an answer.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.answers import require_threads
from tracecal.answers.groups import has_distinctive_trace
from tracecal.answers.parts.parts import Parts
from tracecal.answers.reading import USUAL_READING, Reading
from tracecal.answers.record import ALSO, ENTROPY_KIND, QUESTION, Record
from tracecal.answers.row import as_frame
from tracecal.calibrator.schema import CalibrationData
from tracecal.errors import InputError
from tracecal.estimators.features import ENTROPY_INPUTS, INPUTS
from tracecal.io.log import LOGGER

QUESTIONS = {
    "stop_token": {
        "included": "include the stop token",
        "absent": "leave out the stop token",
        "what": "whether traces include the stop token",
        "option": "--stop-token",
    },
    "processed": {
        "yes": "hold probabilities changed by temperature, penalties or truncation",
        "no": "hold the model's raw probabilities",
        "what": "whether probabilities are the model's raw ones",
        "option": "--processed",
    },
    "reasoning": {
        "none": "are of answers without reasoning before them",
        "apart": "leave out the reasoning tokens that precede an answer",
        "within": "include the reasoning tokens that precede an answer",
        "alone": "are of the reasoning tokens that precede an answer",
        "what": "whether traces include reasoning",
        "option": "--reasoning",
    },
}
KIND = ("model", *QUESTIONS, "decoding")
# Kinds that match every other.
OPEN = {"reasoning": ()} | dict.fromkeys(("stop_token", "processed"), ("unknown", "none"))
KNOWN_ANSWER = "the calibrator was fitted on this very answer: its probability is not out-of-sample"
# Servers may list the chosen token besides the k likeliest.
TOP_K_MARGIN = 1
MOST_GROUPED = 50_000  # answers at once
METADATA = ("revision", "stop_token", "processed", "reasoning", "entropy", "top_k", "vocabulary")
METADATA += ("vocabulary_from",)
# The beginning of another question in an answer's text.
NEXT_QUESTION = r"\n[^\S\n]*(?:Q|Question|Problem|Input|User|Human)\s*(?:\d+\s*)?:"


def compare_answers(
    answers: pl.DataFrame, fitted_on: CalibrationData, task: str | None = None
) -> list[str]:
    """List what is not known of answers or of a calibrator, and what is unusual, a sentence each.

    Text that runs on into another question is decided about as in the tests of thresholds. Raises
    `InputError` where the answers are not those that the calibrator is for.
    """
    require_parts(fitted_on, "part" in answers.columns)
    if task is not None and task != fitted_on.task:
        raise InputError(
            f"the calibrator was fitted on the task {fitted_on.task!r}, but the answers are of "
            f"{task!r}: calibrate on answers to that task. If both names mean the same task, add "
            f"--task {fitted_on.task}."
        )
    run_on = describe_run_on(answers) if fitted_on.parts is None else None
    is_traced = pl.col("surprisal").is_not_null()
    first = pl.col("example_id").first()
    # Groups of all answers at once take 200 bytes of memory each.
    counts = [
        some.group_by(*KIND, is_traced=is_traced, maintain_order=True).agg(first, n=pl.len())
        for some in [*answers.iter_slices(MOST_GROUPED)] or [answers]
    ]
    kinds = pl.concat(counts).group_by(*KIND, "is_traced", maintain_order=True)
    kinds = kinds.agg(first, pl.col("n").sum())
    return [*_compare_kinds(kinds.to_dicts(), fitted_on), *filter(None, [run_on])]


def compare_record(record: Record, fitted_on: CalibrationData) -> list[str]:
    """`compare_answers` of one answer, in Python alone: a forked process has no other threads."""
    kind = {"example_id": "answer", "is_traced": record.surprisal is not None, "n": 1}
    unknown = _compare_kinds([vars(record) | kind], fitted_on)
    if fitted_on.parts is None and re.search(NEXT_QUESTION, record.answer or ""):
        return [*unknown, _run_on(1, 1, record.example_id)]
    return unknown


def _compare_kinds(kinds: Sequence[Mapping[str, Any]], fitted_on: CalibrationData) -> list[str]:
    """List what is not known. Raises `InputError` for another model or another kind of trace.

    `kinds` are those of answers, with the first id of each, and with the number n of its answers.
    Unknown properties of either side count as equal; see `_open_questions`.
    """
    _require_model(sorted({kind["model"] for kind in kinds} - {None}), fitted_on)
    traced = [kind for kind in kinds if kind["is_traced"]]
    for column, words in QUESTIONS.items():
        same = (None, *_same_kinds(column, fitted_on))
        if differing := [kind for kind in traced if kind[column] not in same]:
            n, first = sum(kind["n"] for kind in differing), differing[0]
            raise InputError(
                f"the calibrator was fitted on traces that {words[getattr(fitted_on, column)]}, "
                f"but {n} answer(s), such as {first['example_id']!r}, {words[first[column]]}: its "
                "probabilities do not hold for them. Calibrate on answers like these, or correct "
                f"their kind with {words['option']}."
            )
    return [*_open_questions(traced, sum(kind["n"] for kind in kinds), fitted_on)]


def undecided_answers(
    answers: pl.DataFrame, inputs: Iterable[str], fitted_on: CalibrationData
) -> list[str | None]:
    """Say for each answer why a threshold on these inputs does not decide; None where it does."""
    takes_entropies = need_entropy(inputs)
    kinds = answers.select(ENTROPY_KIND, "top_k", "decoding", "row_task").iter_rows()
    return [
        _undecided(fitted_on, takes_entropies, *kind, is_labelled)
        for kind, is_labelled in zip(kinds, are_among(answers, fitted_on.answers), strict=True)
    ]


def undecided_record(
    record: Record, inputs: Iterable[str], fitted_on: CalibrationData, labelled: Set[str]
) -> str | None:
    """`undecided_answers` of one answer; `labelled` are the fingerprints of the labelled ones."""
    kind = "exact" if record.entropy_upper is None else "top-k"
    return _undecided(
        fitted_on,
        need_entropy(inputs),
        "none" if record.entropy is None else kind,
        record.top_k,
        record.decoding,
        record.row_task,
        is_among(record, labelled),
    )


def _undecided(
    fitted_on: CalibrationData,
    takes_entropies: bool,
    kind: str,
    top_k: int | None,
    decoding: str | None,
    row_task: str | None,
    is_labelled: bool,
) -> str | None:
    """The one rule: what speaks against a decision about an answer with this trace, in words."""
    return (
        (other_entropies(kind, top_k, fitted_on) if takes_entropies else None)
        or other_decoding(decoding, fitted_on)
        or other_task(row_task, fitted_on.row_tasks)
        or (KNOWN_ANSWER if is_labelled else None)
    )


def fingerprints(answers: pl.DataFrame) -> pl.Series:
    """Compute a short digest of each answer's question, text and trace; None without a trace.

    Ids do not count: different files use the same numbers for different answers.
    """
    rows = answers.select(QUESTION, "answer", "surprisal").iter_rows()
    digests = [None if row[-1] is None else _digest(*row) for row in rows]
    return pl.Series(digests, dtype=pl.String)


def _digest(question: str | None, answer: str | None, surprisal: Sequence[float]) -> str:
    trace = np.asarray(surprisal, dtype=np.float32).tobytes()
    content = b"\0".join([(question or "").encode(), (answer or "").encode(), trace])
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def are_among(answers: pl.DataFrame, labelled: Iterable[str]) -> pl.Series:
    """Find the answers with one of the fingerprints `labelled`, bool [n].

    An answer to an unknown question counts only if its trace is too long for a match by chance.
    """
    is_alike = fingerprints(answers).is_in(list(labelled)).fill_null(False)
    places = is_alike.arg_true()
    alike = answers[places]
    is_certain = alike.select(QUESTION.is_not_null()).to_series() | has_distinctive_trace(alike)
    return is_alike.scatter(places, is_certain)


def is_among(record: Record, labelled: Set[str]) -> bool:
    """`are_among` of one answer."""
    if record.surprisal is None:
        return False
    question = record.prompt if record.asked is None else record.asked
    if _digest(question, record.answer, record.surprisal) not in labelled:
        return False
    if question is not None:
        return True
    require_threads()
    return are_among(as_frame([record]), labelled).item()


def require_parts(fitted_on: CalibrationData, scores_parts: bool) -> None:
    """Raise `InputError` unless the calibrator is of parts, or of whole answers, as asked."""
    if scores_parts and fitted_on.parts is None:
        raise InputError(
            "the calibrator was fitted on whole answers: calibrate on parts (--parts)."
        )
    if not scores_parts and fitted_on.parts is not None:
        raise InputError(
            "the calibrator was fitted on parts of answers: score each part, with "
            "'tracecal score' or Calibrator.score_response_parts."
        )


def _same_kinds(column: str, fitted_on: CalibrationData) -> Collection[str]:
    """The values of a property that count as equal to the calibrator's."""
    kind = getattr(fitted_on, column)
    every = QUESTIONS[column].keys() | {*OPEN[column]}
    return [*every] if kind in OPEN[column] else [kind, *OPEN[column]]


def _require_model(models: list[str], fitted_on: CalibrationData) -> None:
    if fitted_on.model is None:
        return
    fitted_names = {name.lower() for name in (fitted_on.model, *fitted_on.known_as) if name}
    for model in models:
        if fitted_names.isdisjoint(model_spellings(model)):
            raise InputError(
                f"the calibrator was fitted on answers of {fitted_on.model!r}, but some answers "
                f"are by {model!r}: calibrate on that model's answers. If both names mean the "
                f"same model, add --model {fitted_on.model}."
            )


def model_spellings(model: str) -> set[str]:
    """Return a model's name with and without its owner, in small letters."""
    return {model.lower(), model.lower().rsplit("/", 1)[-1]}


def _open_questions(
    traced: Sequence[Mapping[str, Any]], n_answers: int, fitted_on: CalibrationData
) -> Iterator[str]:
    """What the calibrator, or of `n_answers` those with a trace, do not say, one sentence each."""
    for column, words in QUESTIONS.items():
        calibrators, of_answers = getattr(fitted_on, column), {kind[column] for kind in traced}
        for side, kinds in (("calibrator does", {calibrators}), ("answers do", of_answers)):
            if "unknown" in kinds and column != "processed":  # which the last sentence is about
                yield f"the {side} not say {words['what']} ({words['option']})"
    if fitted_on.model is None or any(kind["model"] is None for kind in traced):
        side = "answers do" if fitted_on.model else "calibrator does"
        yield f"the {side} not say which model gave the answers (--model)"
    n_open = sum(
        kind["n"] for kind in traced if kind["processed"] == "unknown" and kind["decoding"] is None
    )
    if n_open and fitted_on.processed != "yes":
        yield (
            f"{n_open} of {n_answers} answers do not say how they were decoded: the "
            "temperature, top_p and penalties of the labelled ones are assumed. If the server "
            "always gives the model's raw probabilities, say --processed no"
        )


def other_decoding(decoding: str | None, fitted_on: CalibrationData) -> str | None:
    """Say why no threshold decides about answers with this `decoding`; None if one does.

    A request that states nothing counts as decoded like the labelled answers.
    """
    if decoding is None or decoding in fitted_on.decodings or fitted_on.processed == "yes":
        return None
    if not decoding and not fitted_on.decodings:
        return None
    states = f"states {decoding}, which changes" if decoding else "states nothing that changes"
    return (
        f"its request {states} probabilities, and {_labelled_decoding(fitted_on)}: if the server "
        "always gives the model's raw probabilities, say --processed no"
    )


def _labelled_decoding(fitted_on: CalibrationData) -> str:
    if stated := " or ".join(filter(None, fitted_on.decodings)):
        return f"the labelled answers state {stated}"
    if fitted_on.decodings or fitted_on.processed == "no":
        return "the labelled answers have raw ones"
    return "the labelled answers do not say how they were decoded"


def vocabulary_for(fitted_on: CalibrationData, vocabulary: int | None) -> int | None:
    """Return the vocabulary's size for scoring: the calibrator's, or else the stated one.

    Warns if both differ: entropies are comparable only with the same bounds.
    """
    if vocabulary is not None and fitted_on.vocabulary not in (None, vocabulary):
        LOGGER.warning(
            "entropies are computed for a vocabulary of %s tokens, as for the labelled answers, "
            "and not of %s (--vocabulary): calibrate with it to change that",
            *(f"{fitted_on.vocabulary:,}", f"{vocabulary:,}"),
        )
    return fitted_on.vocabulary or vocabulary


def reading_for(fitted_on: CalibrationData, reading: Reading | None) -> Reading:
    """Complete reading options with the calibrator's vocabulary and further columns.

    Raises `InputError` if an option contradicts the calibrator.
    """
    reading = reading or USUAL_READING
    columns = fitted_on.columns
    if unknown := [name for name in reading.also if name not in columns]:
        raise InputError(
            f"the calibrator was not fitted on the further column {unknown[0]!r}; it has: "
            f"{', '.join(columns) or 'none'}. "
            "Leave it out, or calibrate with it (--also)."
        )
    vocabulary = vocabulary_for(fitted_on, reading.vocabulary)
    return reading.model_copy(update={"vocabulary": vocabulary, "also": columns | reading.also})


def other_entropies(kind: str, top_k: int | None, fitted_on: CalibrationData) -> str | None:
    """Say why a threshold does not hold for this kind of entropies; None if it does.

    `kind` is 'exact' or 'top-k'; `top_k` is the number of listed tokens, None if unknown.
    """
    if are_alike(kind, top_k, fitted_on.entropy, fitted_on.top_k):
        return None
    tested = describe_entropies(fitted_on.entropy, fitted_on.top_k)
    return (
        f"the threshold was tested on answers with {tested}, and this one has "
        f"{describe_entropies(kind, top_k)}: calibrate on answers like it"
    )


def are_alike(kind: str, top_k: int | None, usual_kind: str, usual_top_k: int | None) -> bool:
    """Whether a threshold holds for both kinds of entropies; None: unknown, which may be equal."""
    is_near = top_k is None or usual_top_k is None or abs(top_k - usual_top_k) <= TOP_K_MARGIN
    return kind == usual_kind and is_near


def need_entropy(names: Iterable[str]) -> bool:
    """Whether some of the inputs depend on the entropies; custom ones count as if they did.

    >>> need_entropy(["scores.min_prob"]), need_entropy(["features.mean_entropy"])
    (False, True)
    """
    return any(
        name in ENTROPY_INPUTS or (name not in INPUTS and not name.startswith(ALSO))
        for name in names
    )


def describe_entropies(kind: str, top_k: int | None) -> str:
    """Describe a kind of entropies in words."""
    tokens = f"the {top_k} likeliest tokens" if top_k else "the likeliest tokens"
    words = {"exact": "exact entropies", "top-k": f"entropies from {tokens}"}
    return words.get(kind, "no entropies")


def describe_traces(
    metadata: Mapping[str, str], correct: pl.Series, model: str, known_as: Sequence[str], task: str
) -> CalibrationData:
    """Describe a run's answers by the `metadata` of its traces and their labels.

    The schema's defaults describe traces decoded here: raw, exact, with the token that ends an
    answer.
    """
    names = {*known_as, *filter(None, metadata.get("known_as", "").split("\n"))} - {model}
    return CalibrationData(
        model=model,
        known_as=tuple(sorted(names)),
        task=task,
        n=len(correct),
        base_rate=float(correct.mean()),
        parts=Parts.model_validate_json(metadata["parts"]) if "parts" in metadata else None,
        **{name: metadata[name] for name in METADATA if name in metadata},
    )


def usual_entropies(answers: pl.DataFrame) -> tuple[str, int | None]:
    """Return the most frequent kind of entropies and its usual number of listed tokens."""
    traced = answers.filter(pl.col("entropy").is_not_null()).select("top_k", kind=ENTROPY_KIND)
    kind = traced["kind"].mode().min() or "none"
    return kind, traced.filter(kind=kind)["top_k"].drop_nulls().mode().min()


def has_usual_entropies(answers: pl.DataFrame, kind: str, top_k: int | None) -> pl.Series:
    """Whether answers have entropies of a kind, as `other_entropies` compares them, bool [n]."""
    kinds = answers.select(ENTROPY_KIND, "top_k").iter_rows()
    is_usual = [are_alike(*of_answer, kind, top_k) for of_answer in kinds]
    return pl.Series(is_usual, dtype=pl.Boolean)


def describe_other_kinds(answers: pl.DataFrame, fitted_on: CalibrationData) -> str | None:
    """Count the labelled answers with unusual entropies, in a sentence; None without any."""
    traced = answers.filter(pl.col("entropy").is_not_null()).select("top_k", kind=ENTROPY_KIND)
    counts = traced.group_by("kind", "top_k").len().sort("kind", "top_k").rows()
    n_undecided = sum(count for *kind, count in counts if other_entropies(*kind, fitted_on))
    if not n_undecided:
        return None
    kinds = ", ".join(f"{describe_entropies(*kind)} ({count} answers)" for *kind, count in counts)
    margin = f", give or take {TOP_K_MARGIN}" if fitted_on.top_k else ""
    return (
        f"the labelled answers have entropies of several kinds: {kinds}. Thresholds on entropies "
        f"hold for {describe_entropies(fitted_on.entropy, fitted_on.top_k)}{margin}: the "
        f"{n_undecided} other labels enter the fits, and not the tests of thresholds"
    )


def describe_mix(answers: pl.DataFrame, tasks: Collection[str]) -> str | None:
    """Warn of answers to some of several tasks that were pooled; None of others."""
    names = {*answers["row_task"].drop_nulls().unique()}
    if not names or not names < {*tasks}:
        return None
    return (
        f"the calibrator was fitted on a mix of {', '.join(tasks)}, and these answers are to "
        f"{', '.join(sorted(names))} alone: its guarantees are about the mix"
    )


def other_task(name: str | None, tasks: Collection[str]) -> str | None:
    """Why a threshold for these `tasks` does not decide about an answer to the task `name`.

    An answer or a calibrator that names no task is not doubted.
    """
    if name is None or not tasks or name in tasks:
        return None
    return f"it is to the task {name!r}, and the labelled answers were to {', '.join(tasks)}"


def describe_run_on(answers: pl.DataFrame) -> str | None:
    """Warn of answers that run on into another question; None without any."""
    run_on = answers.filter(pl.col("answer").str.contains(NEXT_QUESTION))
    if not run_on.height:
        return None
    return _run_on(run_on.height, answers.height, run_on["example_id"][0])


def _run_on(n: int, n_answers: int, example_id: str) -> str:
    return (
        f"{n} of {n_answers} answers, such as {example_id!r}, run on into another question, whose "
        "tokens count as theirs: decode with a stop string, or cut texts and traces there"
    )
