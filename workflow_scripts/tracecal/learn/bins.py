"""Probability tokens of LARS (Yaldiz et al. 2025): quantile bins and their few-hot embeddings.

Probabilities are assigned to bins as in the authors' code (Ybakman/TruthTorchLM,
truth_methods/lars.py) and in HeydarSoudani/ADV_RAG_UNC. That code places a new scorer's edges from
the smallest to the largest probability, which leaves the first bin almost empty; here bins are
equally filled, as in the paper.
"""

from collections.abc import Sequence

import numpy as np
import torch


def quantile_edges(probabilities: Sequence[float], bins: int) -> list[float]:
    """The upper edges of `bins` equally filled bins; the last is 1."""
    shares = np.arange(1, bins) / bins
    return [*np.quantile(np.asarray(probabilities, float), shares).tolist(), 1.0]


def bin_numbers(probabilities: Sequence[float], edges: Sequence[float]) -> list[int]:
    """The bin of each probability, from 0: the number of edges at or below it; 1 is in the last."""
    numbers = np.digitize(np.asarray(probabilities, float), edges)
    return np.minimum(numbers, len(edges) - 1).tolist()


def few_hot(bins: int, width: int, norm: float) -> torch.Tensor:
    """Embeddings [bins, width]: one positive value on each bin's own dimensions, 0 elsewhere.

    Rows are orthogonal and have the Euclidean norm `norm`.
    """
    bin_of_dimension = torch.arange(width) * bins // width
    hot = (bin_of_dimension == torch.arange(bins)[:, None]).float()
    return hot * norm / hot.sum(-1, keepdim=True).sqrt()
