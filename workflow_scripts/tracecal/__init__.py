"""Confidence for answers of language models: calibrate on labelled ones, then score new ones.

What is listed here is what people import; it is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

__all__ = [
    "Calibrator",
    "InputError",
    "LabelSearch",
    "Monitors",
    "Reading",
    "__version__",
    "agree",
    "calibrate",
    "cascade",
    "explore",
    "pick",
    "plan",
    "read_answers",
    "replay",
    "trace_features",
    "trace_score",
]
_WHERE = {
    "read_answers": "answers.sources",
    "Reading": "answers.reading",
    **dict.fromkeys(("trace_features", "trace_score"), "features.traces"),
    **dict.fromkeys(("calibrate", "Calibrator"), "calibrator.calibrator"),
    "pick": "labelling.draw",
    "agree": "labelling.agree",
    "plan": "labelling.plan",
    "LabelSearch": "labelling.search",
    "explore": "explorer.explore",
    "cascade": "calibrator.cascade",
    "Monitors": "serving.monitors",
    "replay": "capture.replay",
    "InputError": "errors",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("tracecal")
        except PackageNotFoundError:
            return "(from a checkout, not installed)"
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tracecal.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
