"""LARS, learnable response scoring (Yaldiz et al. 2025): training and applying the scorer."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import torch
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from trace_workflow.models.lars_encoder import encoded, loaded, new_encoder, quantile_edges
from trace_workflow.models.training import Training, constant_rate, device, fit, held_out
from tracecal.capture.batches import Prompt, in_batches
from tracecal.errors import InputError
from tracecal.io.checksums import require_sum
from tracecal.io.files import atomic_folder, read_json, write_json

TRACE_COLUMNS = ["example_id", "token_ids", "tokens", "surprisal", "finish_reason"]


def train_lars(
    rows: pl.DataFrame,
    tokenizer: PreTrainedTokenizerBase,
    language_model: str | Path,
    encoder: str | Path | Mapping[str, int],
    bins: int,
    fitting: Training,
    folder: str | Path,
) -> None:
    """Train on `rows` (`group_id`, `correct`, `question`, TRACE_COLUMNS) and write `folder`.

    `encoder` is the folder of a RoBERTa, and `tokenizer` the one in it; or `encoder` has the
    `layers` and `width` of one to train from scratch, over the language model's `tokenizer`.
    """
    correct = rows["correct"].to_list()
    settings = {"training_rows": rows.height, "constant": constant_rate(correct)}
    with atomic_folder(folder) as part:
        if settings["constant"] is None:
            surprisals = rows["surprisal"].explode().to_numpy().astype(float)
            edges = quantile_edges(np.exp(-surprisals), bins)
            torch.manual_seed(fitting.seed)
            model = new_encoder(tokenizer, language_model, encoder, edges).to(device())
            ids = encoded(rows, tokenizer, model.config)
            kept_out = held_out(rows["group_id"].to_list(), fitting.held_out, fitting.seed)
            settings["held_out_losses"] = fit(
                model,
                lambda batch: logits(model, [ids[row] for row in batch]),
                correct,
                kept_out,
                [len(row) for row in ids],
                fitting,
            )
            model.cpu().save_pretrained(part)
        write_json(settings, part / "settings.json")


def lars_probabilities(
    folder: str | Path, answers: pl.DataFrame, tokenizer: PreTrainedTokenizerBase, batch_size: int
) -> pl.DataFrame:
    """`task`, `example_id` and the `probability` that each answer is correct."""
    require_sum(folder)
    settings = Path(folder) / "settings.json"
    # A published scorer has no settings.json.
    constant = read_json(settings)["constant"] if settings.exists() else None
    if constant is not None:
        return answers.select("task", "example_id", probability=pl.lit(constant, pl.Float64))
    model = loaded(folder).eval().to(device())
    if not getattr(model.config, "edges", None):
        raise InputError(
            f"{folder} is not a trained LARS scorer: its config.json has no 'edges' of bins; "
            "set lars.encoder.trained to false to train it."
        )

    @torch.inference_mode()
    def work(batch: list[Prompt]) -> list[dict[str, object]]:
        scores = logits(model, [row["prompt_token_ids"] for row in batch]).double().sigmoid()
        return [
            {"task": row["task"], "example_id": row["example_id"], "probability": score}
            for row, score in zip(batch, scores.tolist(), strict=True)
        ]

    ids = pl.Series(encoded(answers, tokenizer, model.config), dtype=pl.List(pl.Int64))
    inputs = answers.select("task", "example_id", prompt_token_ids=ids).to_dicts()
    probabilities = in_batches(inputs, batch_size, "answers", work)
    return pl.DataFrame(probabilities).sort("task", "example_id")


def logits(model: PreTrainedModel, rows: list[list[int]]) -> torch.Tensor:
    """One logit [rows] per list of token ids; padded on the right, as RoBERTa's positions need."""
    longest = max(map(len, rows))
    pad = model.config.pad_token_id
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=model.device)
    return model(input_ids=ids, attention_mask=(ids != pad).long()).logits[:, 0]
