"""`tracecal serve`: a proxy that adds confidence to a server's answers."""

from typing import Annotated

from tracecal.answers.reading import Reading
from tracecal.cli.options import CalibratorFile, ErrorRate, Shown, command, require_installed
from tracecal.serving.monitoring.settings import Watching
from tracecal.serving.proxy.settings import Settings

PANELS = {
    "Escalating to a large model": tuple(
        name for name in Settings.model_fields if name.startswith(("escalate", "promise"))
    ),
    "Watching": ("watch", "keep_texts", "on_alarm", *Watching.model_fields),
    "Who may ask, and limits": (
        "allow_host",
        "allow_origin",
        "workers",
        "max_requests",
        "max_body",
        "connect_timeout",
        "timeout",
        "client_timeout",
    ),
}
OF_ANSWERS = ("vocabulary", "model", "stop_token", "processed")


@command(
    "add confidence to a server's answers",
    "tracecal serve --upstream http://localhost:8000 --calibrator C.json",
)
def serve(
    calibrator: CalibratorFile,
    settings: Annotated[Settings, Shown(panels=PANELS)],
    reading: Annotated[Reading, Shown(OF_ANSWERS, hidden=True)],
    error_rate: ErrorRate = None,
) -> None:
    """Run a proxy that adds confidence to a server's answers.

    Clients use it in place of the server. --vocabulary, --model, --stop-token and --processed say
    how its answers are read: 'tracecal reading'.
    """
    require_installed("'tracecal serve'", "serve", "aiohttp", "orjson", "prometheus_client")
    from tracecal.serving.proxy.proxy import Served, run

    run(Served(settings, calibrator, error_rate, reading))
