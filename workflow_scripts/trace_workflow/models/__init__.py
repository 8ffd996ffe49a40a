"""Running language models and encoders: bringing them in, answers, samples, training."""
