"""What the metrics add up to: averages, comparisons with intervals, the paper's analyses."""
