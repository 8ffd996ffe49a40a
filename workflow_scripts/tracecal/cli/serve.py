"""`tracecal serve`: a proxy that adds confidence to a server's answers."""

from tracecal.answers.reading import Reading
from tracecal.cli.command import command, require_installed
from tracecal.cli.options import USUALLY, ModelOptions, reading_options
from tracecal.monitoring.monitor_settings import MonitorSettings
from tracecal.serving.proxy_settings import ProxySettings

PANELS = {
    USUALLY: ("upstream", "host", "port"),
    "Watching": ("watch", "on_alarm", *MonitorSettings.model_fields),
    "Who may ask, and limits": (
        "allow_host",
        "allow_origin",
        "max_requests",
        "max_body",
        "timeout",
        "client_timeout",
    ),
}
OF_RESPONSES = ("vocabulary", "model", "stop_token", "processed")


@command(
    "add confidence to a server's answers",
    "tracecal serve --upstream http://localhost:8000 --calibrator C.json",
    usual=["error_rate", "overall_error", "recall"],
    models={"settings": ModelOptions(panels=PANELS), "reading": reading_options(only=OF_RESPONSES)},
)
def serve(
    *,
    calibrator: str,
    settings: ProxySettings,
    reading: Reading,
    error_rate: float | None = None,
    overall_error: float | None = None,
    recall: float | None = None,
) -> None:
    """Run a proxy that adds confidence to a server's answers.

    Clients use it in place of the server. --vocabulary, --model, --stop-token and --processed say
    how its answers are read: 'tracecal reading --help'.

    Parameters
    ----------
    calibrator : path
        The calibrator's JSON file.
    error_rate : float, optional
        Target error rate of the answers to keep.
    overall_error : float, optional
        Instead: the share of all answers that may be wrong once people have mended the others.
    recall : float, optional
        Instead: the share of right answers to keep.
    """
    require_installed("'tracecal serve'", "serve", "aiohttp", "prometheus_client")
    from tracecal.calibrator.predictor import target_of
    from tracecal.serving.server import run

    target = target_of(error_rate, overall_error, recall)
    run(settings, calibrator, target, reading)
