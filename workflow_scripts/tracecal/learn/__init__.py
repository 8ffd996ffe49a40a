"""Supervised estimators, trained on labelled rows: the LARS scorer and the internal-state probe."""
