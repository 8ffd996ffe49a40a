"""A rule's script in a process of its own, as Snakemake starts it: python -m engines.decoding SPEC.

SPEC is a JSON file with the arguments of `run_script`, and under `tight` further arguments of vLLM's
engine, such as few blocks of its cache. Prints which of vLLM's model runners decoded, as far as this
process did, and how often vLLM took a request's blocks away.
"""

import functools
import json
import sys
from pathlib import Path

from support.scripts import run_script


def main(spec: dict) -> None:
    preempted = []
    if tight := spec.pop("tight"):
        import vllm
        from vllm.v1.core.sched.scheduler import Scheduler

        vllm.EngineArgs = functools.partial(vllm.EngineArgs, **tight)
        preempt = Scheduler._preempt_request

        def count_and_preempt(scheduler, request, *arguments, **options):
            preempted.append(request.request_id)
            preempt(scheduler, request, *arguments, **options)

        Scheduler._preempt_request = count_and_preempt
    run_script(spec.pop("script"), Path(spec.pop("folder")), **spec)
    print("runner", "V2" if "vllm.v1.worker.cpu.model_runner" in sys.modules else "V1")
    print("preempted", len(preempted))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
