"""Confidence for answers of language models: calibrate on labelled ones, then score new ones.

`import tracecal` loads nothing else: each name is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

MODULES = {
    "Calibrator": "calibrator.calibrator",
    "InputError": "errors",
    "LabelSearch": "labelling.search",
    "Monitors": "monitoring.monitors",
    "Reading": "answers.reading",
    "agree": "labelling.agree",
    "calibrate": "calibrator.calibrator",
    "check": "monitoring.check",
    "explain_reading": "explorer.reading_summary",
    "explore": "explorer.explore",
    "pick": "labelling.draw",
    "plan": "labelling.label_plan",
    "read_answers": "answers.answers",
    "replay": "capture.replay",
    "trace_features": "estimators.trace_features",
    "trace_score": "estimators.trace_features",
}
__all__ = ["__version__", *MODULES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return installed_version()
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tracecal.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


def installed_version() -> str:
    """The installed version, or that this is a checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tracecal")
    except PackageNotFoundError:
        return "(from a checkout, not installed)"
