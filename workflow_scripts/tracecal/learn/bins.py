"""Probability tokens of LARS (Yaldiz et al. 2025): quantile bins and their few-hot embeddings.

Given a scorer's edges, probabilities find their bins as in the authors' code
(Ybakman/TruthTorchLM, truth_methods/lars.py) and in HeydarSoudani/ADV_RAG_UNC. That code draws the
edges of a new scorer from the smallest to the largest probability, so that the first bin stays
almost empty; here bins are equally filled, as the paper says.
"""

from collections.abc import Sequence

import numpy as np
import torch


def quantile_edges(probabilities: Sequence[float], bins: int) -> list[float]:
    """The upper edges of `bins` equally filled bins; the last is 1."""
    shares = np.arange(1, bins) / bins
    return [*np.quantile(np.asarray(probabilities, float), shares).tolist(), 1.0]


def bin_numbers(probabilities: Sequence[float], edges: Sequence[float]) -> list[int]:
    """The bin of each probability, from 0: how many edges are at or below it; 1 is in the last."""
    numbers = np.digitize(np.asarray(probabilities, float), edges)
    return np.minimum(numbers, len(edges) - 1).tolist()


def few_hot(bins: int, width: int, norm: float) -> torch.Tensor:
    """Embeddings [bins, width]: each bin's own slice of dimensions is alike and positive.

    Rows are orthogonal and of Euclidean norm `norm`.
    """
    bin_of_dimension = torch.arange(width) * bins // width
    hot = (bin_of_dimension == torch.arange(bins)[:, None]).float()
    return hot * norm / hot.sum(-1, keepdim=True).sqrt()
