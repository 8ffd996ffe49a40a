"""Starts the proxy: in this process, or in several that accept connections from one socket."""

import argparse
import asyncio
import gc
import logging
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from tracecal.answers.settings import Reading
from tracecal.apps.proxy.settings import KEY_ENV, Settings
from tracecal.calibration.calibrator import load, vocabulary_for
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse

try:
    from aiohttp import web

    from tracecal.apps.proxy.confidence import Scorer, Unscored
    from tracecal.apps.proxy.escalation import Escalation
    from tracecal.apps.proxy.proxy import Proxy
    from tracecal.apps.proxy.watcher import Watcher
    from tracecal.apps.proxy.wire import Server
except ModuleNotFoundError as error:
    raise InputError(
        f"the proxy needs {error.name}, which is not installed: pip install 'tracecal[serve]'"
    ) from error

STOPPING = 20.0  # seconds that requests may take to end when the proxy is stopped


def run(args: argparse.Namespace) -> None:
    """Serve until stopped, with the command's options. Raises `InputError` where one is wrong."""
    settings = parse(
        Settings, {name: getattr(args, name) for name in Settings.model_fields}, "options"
    )
    proxy = _proxy(args, settings)
    listening = _listen(settings)
    _allow_connections(settings)
    host, port = listening.getsockname()[:2]
    LOGGER.info("http://%s:%d answers for %s", host, port, settings.upstream)
    if settings.escalate is not None:
        LOGGER.info("answers that are not kept are escalated to %s", settings.escalate)
    if settings.workers == 1:
        _serve(proxy, listening)
    else:
        _serve_in_processes(args, settings, listening)


def _proxy(args: argparse.Namespace, settings: Settings) -> Proxy:
    scorer = _scorer(args, settings)
    return Proxy(scorer, settings, escalation(settings, scorer))


def escalation(settings: Settings, small: Scorer) -> Escalation | None:
    """To the large server of the settings, if they name one. Raises `InputError` where it cannot
    be decided what to escalate.
    """
    if settings.escalate is None:
        return None
    if small.target is None:
        raise InputError(
            "--escalate needs --error-rate or --promise, which says what answers are kept."
        )
    if (why := small.fitted.why_not(small.target)) is not None:
        raise InputError(f"no answer would be kept, and all be escalated: {why}.")
    if settings.promise and settings.escalate_model != small.fitted.large:
        raise InputError(
            f"--promise {settings.promise} is of escalating to "
            f"{small.fitted.large or 'a model without a name'}, and "
            f"--escalate-model is {settings.escalate_model}: a promise is of one large model "
            "('tracecal cascade --large-model' names it as its server does)."
        )
    fitted_on = small.fitted.fitted_on
    if fitted_on.parts is not None:
        raise InputError("the calibrator is of parts of answers: whole answers are escalated.")
    same = Server(settings.escalate, settings).base == Server(settings.upstream, settings).base
    if same and settings.escalate_model in (fitted_on.model, *fitted_on.known_as):
        raise InputError(
            f"--escalate is {settings.escalate_model!r} at --upstream itself: name a larger model."
        )
    large = Unscored()
    if settings.escalate_calibrator is not None:
        fitted = load(settings.escalate_calibrator)
        reading = Reading(vocabulary=fitted.fitted_on.vocabulary, processed=small.reading.processed)
        large = Scorer(fitted, reading, None if settings.promise else small.target)
    return Escalation(settings, large, _key(settings.escalate_key_env))


def _key(variable: str) -> str | None:
    """The large server's key; null where the default variable is not set."""
    key = os.environ.get(variable, "").strip()
    if not key and variable != KEY_ENV:
        raise InputError(f"the environment has no {variable}, named by --escalate-key-env.")
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"{variable} holds characters that no key can have.")
    return key or None


def _scorer(args: argparse.Namespace, settings: Settings) -> Scorer:
    fitted = load(args.calibrator)
    options = {name: getattr(args, name) for name in ("model", "stop_token", "processed")}
    options["vocabulary"] = vocabulary_for(
        fitted.fitted_on, int(args.vocabulary) if args.vocabulary else None
    )
    kept = fitted.fitted_on.reasoning
    options["reasoning"] = "apart" if kept == "none" else kept
    if options["vocabulary"] is None:
        LOGGER.warning("without --vocabulary entropies are unknown, and so is every probability")
    if options["processed"] == "auto":
        LOGGER.warning(
            "without --processed only answers to requests that state 'temperature: 1' are known to "
            "have raw probabilities, and no other is kept; vLLM's are raw (--processed no)"
        )
    if settings.promise and args.error_rate is not None:
        raise InputError("give --error-rate or --promise: answers are kept by one of them.")
    target = settings.promise or args.error_rate
    scorer = Scorer(fitted, parse(Reading, options, "options"), target)
    if settings.watch is None:
        return scorer
    return replace(scorer, watcher=Watcher(fitted, args.error_rate, settings))


def _listen(settings: Settings) -> socket.socket:
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


def _allow_connections(settings: Settings) -> None:
    """Raise this process's limit of open files to the connections that each request needs."""
    needed = (2 if settings.escalate is None else 3) * settings.max_requests + 200
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


def _serve(proxy: Proxy, listening: socket.socket) -> None:
    application = proxy.application()
    if parent := multiprocessing.parent_process():
        application.cleanup_ctx.append(_end_with(parent.sentinel))
    gc.freeze()  # else each look for garbage goes through all that the imports made
    web.run_app(application, sock=listening, print=None, **server_options(proxy.settings))


def server_options(settings: Settings) -> dict[str, Any]:
    """Of the library's server: a client that leaves cancels the handling of its request."""
    return {
        "handler_cancellation": True,
        "keepalive_timeout": settings.client_timeout,
        "auto_decompress": False,
        "access_log": None,
        "logger": _quiet_logger(),
        "shutdown_timeout": STOPPING,
    }


def _quiet_logger() -> logging.Logger:
    """Names the kind of an error only: its text may quote a request, with its keys."""

    def without_content(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0]:
            record.msg = f"{record.msg} ({record.exc_info[0].__name__})"
        record.exc_info = record.exc_text = None
        return True

    logger = LOGGER.getChild("serve")
    logger.filters = [without_content]
    return logger


def _end_with(sentinel: int) -> Callable[[web.Application], AsyncIterator[None]]:
    """Stops this process when its parent ends, however that does."""

    async def watching(application: web.Application) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        loop.add_reader(sentinel, signal.raise_signal, signal.SIGTERM)
        yield
        loop.remove_reader(sentinel)

    return watching


def _serve_in_processes(
    args: argparse.Namespace, settings: Settings, listening: socket.socket
) -> None:
    """Keep as many processes as `settings.workers` until this one is told to stop."""
    context = multiprocessing.get_context("spawn")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    def started() -> multiprocessing.Process:
        process = context.Process(target=_worker, args=(args, settings, listening), daemon=True)
        process.start()
        return process

    processes = [started() for _ in range(settings.workers)]
    try:
        while True:
            multiprocessing.connection.wait([process.sentinel for process in processes])
            time.sleep(1)  # a process that cannot start is not to be started without a pause
            ended = [process for process in processes if not process.is_alive()]
            LOGGER.warning("%d process(es) ended and are started again", len(ended))
            processes = [one for one in processes if one not in ended] + [started() for _ in ended]
    except KeyboardInterrupt:
        pass
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(2 * STOPPING)


def _worker(args: argparse.Namespace, settings: Settings, listening: socket.socket) -> None:
    logging.basicConfig(format="tracecal: %(message)s", stream=sys.stderr)
    _serve(_proxy(args, settings), listening)
