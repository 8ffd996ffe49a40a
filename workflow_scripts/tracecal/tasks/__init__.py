"""A task: where its rows come from, which fields they have, how the question is put and judged."""
