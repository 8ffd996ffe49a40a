"""vLLM as the engine: it schedules and computes; the answers are the same."""

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoConfig, GenerationConfig, PretrainedConfig, PreTrainedTokenizerBase

from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.decoding import AnswerEnd
from tracecal.capture.batches import NotFiniteError, Prompt
from tracecal.capture.capture import Answer
from tracecal.capture.draws import Draws
from tracecal.capture.model import loaded
from tracecal.capture.stop_strings import StopStrings
from tracecal.errors import InputError

if TYPE_CHECKING:  # slow to load, and not needed at import
    from vllm import LLMEngine


# The engine runs in our process, so that a kill ends it and results do not depend on timing; no
# usage statistics are sent. vLLM chooses its model runner: `Capture` has the interfaces of both.
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # several jobs may share a machine
}
CAPTURE = "tracecal.capture.vllm_capture"
GPU_MEMORY = 0.9  # share of a GPU's memory that vLLM takes: its default


@dataclass
class VllmModel:
    """A model loaded by vLLM, with its folder's configurations as a Transformers model has them."""

    engine: "LLMEngine"
    config: PretrainedConfig
    generation_config: GenerationConfig
    name_or_path: str


def installed() -> str | None:
    """The version of vLLM without its build; None where it is not installed."""
    if find_spec("vllm") is None:
        return None
    from vllm import __version__

    return __version__.partition("+")[0]


def on_model(
    memory_mb: float,
    work: Callable[..., Any],
    folder: str,
    loading: dict[str, Any],
    gpus: int,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    asking: PromptSettings,
    batch_size: int,
    *arguments: object,
    **local: object,
) -> Any:
    """As `parallel.on_model`, for work that takes a `decode`, which is vLLM's."""
    longest = max(len(prompt["prompt_token_ids"]) for prompt in prompts) + asking.max_new_tokens
    model = load(folder, loading["dtype"], gpus, memory_mb, batch_size, longest)
    return work(model, prompts, tokenizer, asking, batch_size, *arguments, **local, decode=decode)


def load(
    folder: str, dtype: str, gpus: int, memory_mb: float, batch_size: int, longest: int
) -> VllmModel:
    """The model in `folder`, each of its layers split over the job's `gpus`.

    At most `batch_size` answers grow at once, each of `longest` tokens including its prompt. On a
    CPU vLLM takes at most `memory_mb`. Raises `InputError` where vLLM cannot load the model or it
    does not fit.
    """
    os.environ |= ENVIRONMENT
    from vllm import EngineArgs, LLMEngine
    from vllm.platforms import current_platform

    config = loaded(AutoConfig, folder)
    ranks, memory, cpu = max(1, gpus), GPU_MEMORY, current_platform.is_cpu()
    if cpu:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = min(GPU_MEMORY, 1e6 * memory_mb / machine / ranks)
    try:
        with _script_hidden():
            engine = LLMEngine.from_engine_args(
                EngineArgs(
                    model=str(folder),
                    skip_tokenizer_init=True,  # token ids in, token ids out
                    generation_config="vllm",  # the model's could change logits
                    load_format="safetensors",
                    trust_remote_code=False,
                    dtype=dtype,
                    max_model_len=longest,
                    max_num_seqs=batch_size,
                    tensor_parallel_size=ranks,
                    gpu_memory_utilization=memory,
                    enforce_eager=cpu,  # compilation and CUDA graphs pay off on a GPU only
                    async_scheduling=False,
                    logits_processors=[f"{CAPTURE}:Capture"],
                    worker_extension_cls=f"{CAPTURE}.Captured",
                    disable_log_stats=True,
                )
            )
    except Exception as error:  # vLLM's parts raise anything
        raise InputError(
            f"vLLM cannot load {folder} ({type(error).__name__}: {shorten(str(error), 500)}): if "
            "it does not fit, give the model more 'gpus' (on a CPU 'memory_gb') or a smaller "
            "'batch_size', else leave 'engine: vllm' out."
        ) from error
    return VllmModel(engine, config, _generation_config(folder, config), str(folder))


@contextmanager
def _script_hidden() -> Iterator[None]:
    """Keep worker processes from running the rule's script, which they would import as main."""
    main = sys.modules["__main__"]
    file = vars(main).pop("__file__", None)
    try:
        yield
    finally:
        if file is not None:
            main.__file__ = file


def _generation_config(folder: str, config: PretrainedConfig) -> GenerationConfig:
    """As in Transformers: from its file, else from the model's configuration."""
    if (Path(folder) / "generation_config.json").is_file():
        return loaded(GenerationConfig, folder)
    return GenerationConfig.from_model_config(config)


def _step(model: VllmModel) -> list[Any]:
    try:
        return model.engine.step()
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"{model.name_or_path} ran out of memory in vLLM: give it a smaller 'batch_size' or "
            "more 'gpus'."
        ) from error


def decode(
    model: VllmModel,
    prompts: Sequence[list[int]],
    ends: Sequence[int],
    stops: StopStrings,
    max_new_tokens: int,
    choose: Draws | None = None,
    copies: int = 1,
    slots: int | None = None,
) -> list[Answer]:
    """As `decoding.decode`, with vLLM's scheduler in place of slots."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    engine, ending = model.engine, AnswerEnd(ends, stops, max_new_tokens)
    answers = [Answer() for _ in range(len(prompts) * copies)]
    for row in range(len(answers)):
        extra = {"trace": str(row)}
        if choose is not None:
            extra |= {"draw": choose.keys[row], "temperature": choose.temperature}
        params = SamplingParams(
            temperature=0,
            max_tokens=max_new_tokens,
            ignore_eos=True,  # only our list of end tokens counts
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args=extra,
        )
        engine.add_request(str(row), {"prompt_token_ids": prompts[row // copies]}, params)
    while engine.has_unfinished_requests():
        over = []
        for output in _step(model):
            answer = answers[int(output.request_id)]
            for token in output.outputs[0].token_ids:
                if answer.finish_reason is None:
                    ending.extend(answer, token, math.nan, math.nan)
            if answer.finish_reason and not output.finished:
                over.append(output.request_id)
        engine.abort_request(over)
    # No later computation may depend on earlier ones.
    engine.reset_prefix_cache()
    traces = engine.collective_rpc("take_traces")[0]
    for row, answer in enumerate(answers):
        values = torch.tensor(traces[str(row)][: len(answer.token_ids)])
        if not bool(values.isfinite().all()):
            where = int((~values.isfinite()).any(1).nonzero()[0])
            raise NotFiniteError(row // copies, f"token {where + 1} of its answer")
        answer.surprisal, answer.entropy = values.T.tolist()
    return answers
