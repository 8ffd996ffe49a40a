"""The proxy as a server.

`run(settings, calibrator, target, reading)` serves until it is stopped.
"""

import asyncio
import errno
import gc
import logging
import resource
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from aiohttp import web

from tracecal.answers.reading import Reading
from tracecal.calibrator.guarantee_text import describe_target
from tracecal.calibrator.predictor import Target, load_predictor
from tracecal.calibrator.trace_kinds import vocabulary_for
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.serving.proxy import Proxy
from tracecal.serving.proxy_settings import ProxySettings
from tracecal.serving.scorer import Scorer
from tracecal.serving.watcher import Watcher

CLOSING_SECONDS = 1.0  # for the last bytes to clients, once behind `Proxy.stop` and twice at most
REPEAT_SECONDS = 60.0  # between two lines on the same kind of error


def run(settings: ProxySettings, calibrator: str, target: Target | None, reading: Reading) -> None:
    """Serve until stopped, and keep answers at the `target`, if any.

    Raises `InputError` where an option is wrong.
    """
    proxy = Proxy(make_scorer(settings, calibrator, target, reading), settings)
    listening = _listen(settings)
    _raise_file_limit(settings)
    host, port = listening.getsockname()[:2]
    LOGGER.info("http://%s:%d answers for %s", host, port, settings.upstream)
    application = proxy.application()
    application.cleanup_ctx.append(short_errors)
    application.on_shutdown.append(proxy.stop)
    gc.freeze()  # else each look for garbage goes through all that the imports made
    web.run_app(application, sock=listening, print=None, **server_options(settings))


def make_scorer(
    settings: ProxySettings, calibrator: str, target: Target | None, reading: Reading
) -> Scorer:
    """Make the scorer of the server's answers, with a watcher where `--watch` asks for one."""
    predictor = load_predictor(calibrator)
    vocabulary = vocabulary_for(predictor.fitted_on, reading.vocabulary)
    if reading.processed == "auto":
        LOGGER.warning(
            "requests without sampling settings count as decoded like the labelled answers; "
            "answers to requests with other settings are not kept. Where the server always "
            "returns raw probabilities, as vLLM does, state --processed no"
        )
    reasoning = predictor.fitted_on.reasoning
    reading = reading.model_copy(
        update={
            "vocabulary": vocabulary,
            "reasoning": "apart" if reasoning == "none" else reasoning,
        }
    )
    scorer = Scorer(predictor, reading, target)
    if (sentence := describe_target(predictor.control, target)) is not None:
        LOGGER.info("%s", sentence)
    if target is not None and (reason := predictor.why_not(target)) is not None:
        LOGGER.warning("no answer will have a decision, kept or not: %s", reason)
    if settings.watch is None:
        return scorer
    return replace(scorer, watcher=Watcher(predictor, target, settings))


def _listen(settings: ProxySettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server(
            (settings.host, settings.port), family=family, backlog=settings.max_requests
        )
    except OSError as error:
        raise InputError(
            f"cannot listen on {settings.host}, port {settings.port} ({error.strerror}); choose "
            "others with --host and --port."
        ) from error


def _raise_file_limit(settings: ProxySettings) -> None:
    """Raise this process's limit of open files to the connections that requests need."""
    needed = 2 * settings.max_requests + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        LOGGER.warning(
            "only %d files may be open at once (ulimit -n), too few for --max-requests %d",
            allowed,
            settings.max_requests,
        )


def server_options(settings: ProxySettings) -> dict[str, Any]:
    """Return the options of aiohttp's server: a client that leaves cancels its request."""
    return {
        "handler_cancellation": True,
        "keepalive_timeout": settings.client_timeout,
        "auto_decompress": False,
        "access_log": None,
        "logger": _logger_without_content(),
        "shutdown_timeout": CLOSING_SECONDS,
    }


def _logger_without_content() -> logging.Logger:
    """Return a logger that names an error's kind alone: its text may quote a request's keys."""

    def name_kind_only(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0]:
            record.msg = f"{record.msg} ({record.exc_info[0].__name__})"
        record.exc_info = record.exc_text = None
        return True

    logger = LOGGER.getChild("serve")
    logger.filters = [name_kind_only]
    return logger


async def short_errors(application: web.Application) -> AsyncIterator[None]:
    """Log an error of the event loop as one line, and each kind of them once a minute.

    Without a free file handle, each waiting connection is an error.
    """
    loop, next_times = asyncio.get_running_loop(), {}

    def log_once(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        reason = f"{context['message']} ({type(error).__name__})" if error else context["message"]
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            reason = "no file handle is free for a new connection: raise 'ulimit -n'"
        if loop.time() >= next_times.get(reason, 0):
            next_times[reason] = loop.time() + REPEAT_SECONDS
            LOGGER.warning("%s", reason)

    loop.set_exception_handler(log_once)
    yield
