"""The proxy as a server: in this process, or in several that accept connections from one socket.

`run(ProxyOptions(settings, calibrator, error_rate, reading))` serves until it is stopped.
"""

import asyncio
import errno
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
from typing import Any, NamedTuple

from aiohttp import web

from tracecal.answers.reading import Reading
from tracecal.calibrator.predictor import Predictor, load_predictor, target_of
from tracecal.calibrator.trace_kinds import vocabulary_for
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.serving.proxy.escalation import Escalation
from tracecal.serving.proxy.proxy import Proxy
from tracecal.serving.proxy.scorer import Scorer, Unscored
from tracecal.serving.proxy.settings import KEY_ENV, ProxySettings
from tracecal.serving.proxy.upstream import UpstreamServer
from tracecal.serving.proxy.watcher import Watcher

SHUTDOWN_SECONDS = 20.0  # for requests to end when the proxy is stopped
REPEAT_SECONDS = 60.0  # between two lines on the same kind of error
RESTART_PAUSE = 1.0  # seconds; a process that cannot start would be started without end


class ProxyOptions(NamedTuple):
    """What a process serves.

    Answers are kept by the `error_rate`, or else by the settings' guarantee of a cascade, if any.
    """

    settings: ProxySettings
    calibrator: str
    error_rate: float | None
    reading: Reading


def run(options: ProxyOptions) -> None:
    """Serve until stopped; raise `InputError` where an option is wrong."""
    settings = options.settings
    proxy = make_proxy(options)
    listening = _listen(settings)
    _raise_file_limit(settings)
    host, port = listening.getsockname()[:2]
    LOGGER.info("http://%s:%d answers for %s", host, port, settings.upstream)
    if settings.escalate is not None:
        LOGGER.info("answers that are not kept are escalated to %s", settings.escalate)
    if settings.workers == 1:
        _serve(proxy, listening)
    else:
        _serve_in_processes(options, listening)


def assumed_group_size(predictor: Predictor) -> str | None:
    """What the proxy assumes of the group of each answer, which it cannot see; None: nothing."""
    control = predictor.control
    if control is None or (control.largest_group == 1 and not control.larger_groups):
        return None
    return (
        "each answer is taken to be in a group (such as the variants of a question) of at most "
        f"{control.largest_group}: the guarantee does not hold for answers of larger ones"
    )


def make_proxy(options: ProxyOptions) -> Proxy:
    """Make the proxy, its scorer and its escalation."""
    scorer = make_scorer(options)
    return Proxy(scorer, options.settings, make_escalation(options.settings, scorer))


def make_scorer(options: ProxyOptions) -> Scorer:
    """Make the scorer of the server's answers, with a watcher where `--watch` asks for one."""
    settings, predictor = options.settings, load_predictor(options.calibrator)
    target = target_of(options.error_rate, settings.guarantee)
    vocabulary = vocabulary_for(predictor.fitted_on, options.reading.vocabulary)
    if options.reading.processed == "auto":
        LOGGER.warning(
            "a request that does not say how to decode is taken to decode as those of the labelled "
            "answers did, and one that changes probabilities otherwise is not kept; where the "
            "server states raw probabilities whatever the request, as vLLM does, say --processed no"
        )
    if isinstance(target, float) and (assumption := assumed_group_size(predictor)):
        LOGGER.warning("%s", assumption)
    reasoning = predictor.fitted_on.reasoning
    reading = options.reading.model_copy(
        update={
            "vocabulary": vocabulary,
            "reasoning": "apart" if reasoning == "none" else reasoning,
        }
    )
    scorer = Scorer(predictor, reading, target)
    if settings.watch is None:
        return scorer
    return replace(scorer, watcher=Watcher(predictor, options.error_rate, settings))


def make_escalation(settings: ProxySettings, small: Scorer) -> Escalation | None:
    """Make the escalation to the settings' large server; None where they name none.

    Raises `InputError` where it cannot be decided what to escalate.
    """
    if settings.escalate is None:
        return None
    if small.target is None:
        raise InputError(
            "--escalate needs --error-rate or --guarantee, which says what answers are kept."
        )
    if (reason := small.predictor.why_not(small.target)) is not None:
        raise InputError(f"no answer would be kept, and all be escalated: {reason}.")
    if settings.guarantee and settings.escalate_model != small.predictor.large:
        raise InputError(
            f"--guarantee {settings.guarantee} is of escalating to "
            f"{small.predictor.large or 'a model without a name'}, and "
            f"--escalate-model is {settings.escalate_model}: a guarantee is of one large model "
            "('tracecal cascade --large-model' names it as its server does)."
        )
    fitted_on = small.predictor.fitted_on
    if fitted_on.parts is not None:
        raise InputError("the calibrator is of parts of answers: whole answers are escalated.")
    addresses = settings.escalate, settings.upstream
    large_base, small_base = (UpstreamServer(address, settings).base for address in addresses)
    small_names = (fitted_on.model, *fitted_on.known_as)
    if large_base == small_base and settings.escalate_model in small_names:
        raise InputError(
            f"--escalate is {settings.escalate_model!r} at --upstream itself: name a larger model."
        )
    large = Unscored()
    if settings.escalate_calibrator is not None:
        predictor = load_predictor(settings.escalate_calibrator)
        reading = Reading(
            vocabulary=predictor.fitted_on.vocabulary, processed=small.reading.processed
        )
        large = Scorer(predictor, reading, None if settings.guarantee else small.target)
    return Escalation(settings, large, _key(settings.escalate_key_env))


def _key(variable: str) -> str | None:
    """Return the large server's key; None where the default variable is not set."""
    key = os.environ.get(variable, "").strip()
    if not key and variable != KEY_ENV:
        raise InputError(f"the environment has no {variable}, named by --escalate-key-env.")
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"{variable} holds characters that no key can have.")
    return key or None


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
    per_request = 2 if settings.escalate is None else 3
    needed = per_request * settings.max_requests + 200
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
    application.cleanup_ctx.append(short_errors)
    if parent := multiprocessing.parent_process():
        application.cleanup_ctx.append(_end_with(parent.sentinel))
    gc.freeze()  # else each look for garbage goes through all that the imports made
    web.run_app(application, sock=listening, print=None, **server_options(proxy.settings))


def server_options(settings: ProxySettings) -> dict[str, Any]:
    """Return the options of aiohttp's server: a client that leaves cancels its request."""
    return {
        "handler_cancellation": True,
        "keepalive_timeout": settings.client_timeout,
        "auto_decompress": False,
        "access_log": None,
        "logger": _logger_without_content(),
        "shutdown_timeout": SHUTDOWN_SECONDS,
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


def _end_with(sentinel: int) -> Callable[[web.Application], AsyncIterator[None]]:
    """Return a context that stops this process when its parent ends, however that does."""

    async def end_with_parent(application: web.Application) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        loop.add_reader(sentinel, signal.raise_signal, signal.SIGTERM)
        yield
        loop.remove_reader(sentinel)

    return end_with_parent


def _serve_in_processes(options: ProxyOptions, listening: socket.socket) -> None:
    """Keep as many processes as the settings' `workers` until this one is told to stop."""
    context = multiprocessing.get_context("spawn")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    def start() -> multiprocessing.Process:
        process = context.Process(target=_work, args=(options, listening), daemon=True)
        process.start()
        return process

    processes = [start() for _ in range(options.settings.workers)]
    try:
        while True:
            multiprocessing.connection.wait([process.sentinel for process in processes])
            time.sleep(RESTART_PAUSE)
            alive = [process for process in processes if process.is_alive()]
            n_ended = len(processes) - len(alive)
            LOGGER.warning("%d process(es) ended and are started again", n_ended)
            processes = alive + [start() for _ in range(n_ended)]
    except KeyboardInterrupt:
        pass
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(2 * SHUTDOWN_SECONDS)


def _work(options: ProxyOptions, listening: socket.socket) -> None:
    logging.basicConfig(format="tracecal: %(message)s", stream=sys.stderr)
    _serve(make_proxy(options), listening)
