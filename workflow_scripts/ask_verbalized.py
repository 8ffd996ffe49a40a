"""Ask one model how sure it is of each of its answers to a task."""

from trace_job import job
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.self_evaluation import decoded_answers
from trace_workflow.models.step import DecodingStep, record
from trace_workflow.models.verbalized import VERBALIZED, confidence_replies, second_turns
from tracecal.capture.model import load_tokenizer
from tracecal.io.log import LOGGER

with job(snakemake):
    paths, params = snakemake.input, snakemake.params
    asking = PromptSettings.model_validate_json(params.asking)

    def notes(replies):
        unstated = replies["confidence"].null_count
        LOGGER.info("%d of %d replies state no confidence", unstated, replies.num_rows)
        return {"prompt": params.prompt, "without_confidence": str(unstated)}

    tokenizer = load_tokenizer(paths.model)
    answers = decoded_answers(paths.traces, paths.task, asking.stop)
    record(
        DecodingStep.of(snakemake),
        second_turns(tokenizer, answers, asking, params.prompt, params.chat),
        VERBALIZED,
        "greedy",
        confidence_replies,
        tokenizer,
        asking.stop,
        snakemake.resources.batch_size,
        notes=notes,
    )
