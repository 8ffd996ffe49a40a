"""The frame of every rule's script: a live log, errors as one sentence, no network unless the step
needs it, and a check that the code that runs is the code on record.
"""

import ctypes
import errno
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from trace_workflow.jobs.code_hash import RUNNING, require_code
from trace_workflow.jobs.run_progress import error_in
from tracecal.errors import InputError
from tracecal.io.checksums import MADE_WITH, STORED_IN
from tracecal.io.digests import REMEMBERED
from tracecal.io.log import LOGGER

KEPT_BYTES = 512 << 20
CLUSTERS = {
    "SLURM_JOB_ID",
    "KUBERNETES_SERVICE_HOST",
    "AWS_BATCH_JOB_ID",
}  # variables of their jobs


@contextmanager
def job(snakemake: Any, online: bool = False) -> Iterator[None]:
    """Run a rule's work: log to the terminal and to the rule's log; exit with 1 on any error.

    `snakemake` is the script's own object. An `InputError` or a full disk is logged as one
    sentence, any other error with its traceback. Unless `online`, the hub's libraries are set to
    offline mode. Torch, where the script imported it, uses the rule's threads. The job fails where
    its code is no longer the version in the rule's parameter `code`. On this machine a further
    attempt of a job that ended with a sentence, and was not killed, ends with it at once: memory
    does not help it, and nothing else has changed, as another node of a cluster may.
    """
    log = Path(snakemake.log[0])
    is_repeated = snakemake.resources.get("attempt", 1) > 1 and CLUSTERS.isdisjoint(os.environ)
    sentence = error_in(log) if is_repeated and log.is_file() else None
    log.parent.mkdir(parents=True, exist_ok=True)
    name = log.with_suffix("").as_posix().split("/logs/")[-1]
    formatter = _WithoutToken(f"%(asctime)s {name}: %(message)s", "%H:%M:%S")
    handlers = (logging.StreamHandler(sys.stderr), logging.FileHandler(log, mode="w"))
    for handler in handlers:
        handler.setFormatter(formatter)
        LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    # On a full disk, logging's own errors would hide the job's.
    raising, logging.raiseExceptions = logging.raiseExceptions, False
    running = RUNNING.set(snakemake.params.code)
    made_with = MADE_WITH.set(snakemake.params.made_with)
    remembered = REMEMBERED.set(f"{log.as_posix().partition('/logs/')[0]}/work/digests")
    # With results in a bucket the log, too, is below the folder of Snakemake's copies.
    folder = re.match("((?:.*?/)?)results/[^/]+/logs/", log.as_posix())
    stored_in = STORED_IN.set(folder[1] if folder else "")
    try:
        if sentence and sentence.startswith("error: "):
            raise InputError(sentence.removeprefix("error: "))
        _keep_freed_memory()
        _require_threads(snakemake)
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(snakemake.threads)
        require_code(snakemake.params.code)
        with nullcontext() if online else _offline():
            yield
    except InputError as error:
        LOGGER.error("error: %s", error)
        raise SystemExit(1) from None
    except OSError as error:
        # A full disk or missing permission is not a bug: no traceback.
        no_bug = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
        LOGGER.error("error: %s (%s)", error.strerror, error.filename, exc_info=not no_bug)
        raise SystemExit(1) from None
    except (Exception, SystemExit):  # code of users may end the process, even with status 0
        LOGGER.exception("unexpected error")
        raise SystemExit(1) from None
    finally:
        RUNNING.reset(running)
        MADE_WITH.reset(made_with)
        REMEMBERED.reset(remembered)
        STORED_IN.reset(stored_in)
        for handler in handlers:
            LOGGER.removeHandler(handler)
            with suppress(OSError):
                handler.close()
        logging.raiseExceptions = raising


def _require_threads(snakemake: Any) -> None:
    """Raise `InputError` where a model's job has fewer cores than the threads that it states."""
    threads = (snakemake.params.get("loading") or {}).get("threads", 1)
    if snakemake.threads < threads:
        raise InputError(
            f"model {snakemake.wildcards.model!r} states {threads} threads, and its job gets "
            f"{snakemake.threads}: type --cores {threads}, or state fewer threads"
        )


def _keep_freed_memory() -> None:
    """Let glibc keep what large matrices leave.

    By default it returns the memory of each to the kernel, and a sixth of a forward pass goes into
    page faults.
    """
    if set_option := getattr(ctypes.CDLL(None), "mallopt", None):
        for option in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            set_option(option, KEPT_BYTES)


class _WithoutToken(logging.Formatter):
    """Formats records, tracebacks included, with the hub's token masked."""

    def format(self, record: logging.LogRecord) -> str:
        token = os.environ.get("HF_TOKEN", "").strip()
        text = super().format(record)
        return text.replace(token, "***") if token else text


def _offline() -> ExitStack:
    """Set the hub's libraries to offline mode, including those already imported."""
    stack = ExitStack()
    names = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
    stack.enter_context(mock.patch.dict(os.environ, dict.fromkeys(names, "1")))
    if constants := sys.modules.get("huggingface_hub.constants"):
        stack.enter_context(mock.patch.object(constants, "HF_HUB_OFFLINE", True))
    return stack
