"""Statistics that know no answer: metrics, ranking metrics, resampling, splits, rates."""
