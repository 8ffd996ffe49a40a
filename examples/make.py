"""Make the files of this folder: `make examples` makes a run and its two steps.

Some of the questions in demo/rows/ serve to choose a task. `tune` says which task has the best
guarantee on these. `answers` writes the answers to the others, in the format of each program; the
probabilities of the likeliest tokens are recomputed by a teacher-forced pass.
"""

import copy
import logging
import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from statistics import mean

import forms
import polars as pl
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers.convert_slow_tokenizer import bytes_to_unicode

from trace_workflow.config.config import load_config
from trace_workflow.config.run import load_tasks
from trace_workflow.config.tasks import TaskSpec
from trace_workflow.models.prompts import messages
from tracecal.answers.answers import read_file
from tracecal.answers.reading import Reading
from tracecal.calibrator.fitting import fit_calibrator
from tracecal.calibrator.training_set import make_training_set
from tracecal.capture.model import load_model, load_tokenizer
from tracecal.fits.fit_settings import FitSettings
from tracecal.io.input_files import read_yaml
from tracecal.io.log import LOGGER
from tracecal.io.traces import read_traces
from tracecal.statistics.percentages import percent, rate_text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CONFIG = ROOT / "config/examples.yaml"
RUN = ROOT / "results/examples"
MODEL, TASK = "smollm2-135m-instruct", "cities"
TRIED, CHOSEN = ("city_names", "city_sentences", "states"), "city_names"
TUNING, LABELLED, FEW, TOP, BATCH = 400, 400, 4, 20, 32
# The bytes of a tokenizer's signs
BYTES = {sign: byte for byte, sign in bytes_to_unicode().items()}


def tune() -> None:
    """Say of each task which error rate nine of ten seeds guarantee on the rows for tuning, and how
    many answers are kept at it; stop where another than CHOSEN has the best.
    """
    LOGGER.setLevel(logging.ERROR)
    guaranteed = {}
    for task in TRIED:
        rows = answered(f"{task}_tuning")
        path = RUN / f"{task}_tuning.jsonl"
        forms.write_lines(path, map(forms.columns, rows))
        rate, coverage = strictest(path)
        guaranteed[task] = (rate, -coverage)
        right, kept = percent(mean(row["correct"] for row in rows)), percent(coverage)
        print(f"{task}: {right} right; at most {rate_text(rate)} wrong of the {kept} kept")
    if min(guaranteed, key=guaranteed.__getitem__) != CHOSEN:
        sys.exit(f"Not {CHOSEN} has the best guarantee: ask the best (config/examples.yaml).")


def strictest(path: Path, reading: Reading | None = None) -> tuple[float, float]:
    """The strictest guaranteed error rate, and the share kept; 1 and 1 without one."""
    settings = FitSettings()
    training = make_training_set(read_file(path, reading).frame, TASK, settings)
    file = fit_calibrator(training, training.fit_estimators(), TASK, settings)
    for row in file.estimators[file.recommended()].risk_control.thresholds:
        if row.threshold is not None:
            return row.error_rate, row.coverage
    return 1.0, 1.0


def answers() -> None:
    """The answers to the task that was chosen."""
    folder = RUN / "models" / MODEL
    model, tokenizer = load_model(folder, "float32"), load_tokenizer(folder)
    spec = load_tasks(load_config(read_yaml(CONFIG), str(CONFIG)), ROOT)[TASK]
    rows = answered(TASK)
    for row, row["steps"] in zip(rows, steps(model, tokenizer, rows), strict=True):
        row["request"] = request(spec, row)
    labelled, new = rows[:LABELLED], rows[LABELLED:]
    forms.write(HERE, labelled, new, new[:FEW])


def answered(task: str) -> list[forms.Row]:
    """The answers with their question, references and label, sorted by id."""
    rows = pl.read_parquet(RUN / "tasks" / f"{task}.parquet")
    labels = pl.read_parquet(RUN / "labels" / MODEL / f"{task}.parquet")
    traces = read_traces(RUN / "traces" / MODEL / f"{task}.arrow")
    named = rows.select("example_id", "question", "references", "context", model=pl.lit(MODEL))
    judged = labels.select("example_id", "correct")
    joined = traces.join(named, on="example_id").join(judged, on="example_id")
    return joined.sort("example_id").rows(named=True)


def request(spec: TaskSpec, row: forms.Row) -> forms.Row:
    """What a client would have sent for this answer."""
    return {
        "model": MODEL,
        "messages": messages(spec, row),
        "temperature": 0,
        "max_tokens": spec.max_new_tokens,
        "stop": list(spec.stop),
        "logprobs": True,
        "top_logprobs": TOP,
    }


@torch.inference_mode()
def steps(model, tokenizer, rows: Sequence[forms.Row]) -> Iterator[list[forms.Step]]:
    """Of each answer its tokens with their log-probabilities, and the likeliest tokens.

    All prompts begin alike, with the worked examples, which the model reads once.
    """
    texts = [row["prompt_token_ids"] + row["token_ids"][:-1] for row in rows]
    columns = takewhile(lambda ids: len(set(ids)) == 1, zip(*texts, strict=False))
    start = sum(1 for _ in columns)
    begun = model(input_ids=torch.tensor([texts[0][:start]]), use_cache=True).past_key_values
    pairs = list(zip(rows, texts, strict=True))
    for batch in (pairs[place : place + BATCH] for place in range(0, len(pairs), BATCH)):
        rests = [torch.tensor(text[start:]) for _, text in batch]
        cache = copy.deepcopy(begun)
        cache.batch_repeat_interleave(len(batch))
        ids = pad_sequence(rests, batch_first=True)  # at the end, where no token sees it
        logits = model(input_ids=ids, past_key_values=cache).logits
        for (row, _), rest, own in zip(batch, rests, logits, strict=True):
            answered = own[len(rest) - len(row["token_ids"]) : len(rest)].log_softmax(-1)
            tokens = zip(row["token_ids"], answered, strict=True)
            yield [step(tokenizer, token, logprobs) for token, logprobs in tokens]


def step(tokenizer, token: int, logprobs: torch.Tensor) -> forms.Step:
    values, places = logprobs.topk(TOP)
    listed = zip(places.tolist(), values.tolist(), strict=True)
    top = [named(tokenizer, place, value) for place, value in listed]
    return forms.Step(named(tokenizer, token, logprobs[token].item()), top)


def named(tokenizer, token: int, logprob: float) -> forms.Token:
    spelling = bytes(BYTES[sign] for sign in tokenizer.convert_ids_to_tokens(token))
    return forms.Token(token, tokenizer.decode([token]), spelling, logprob)


if __name__ == "__main__":
    {"tune": tune, "answers": answers}[sys.argv[1]]()
