"""Ask one model how sure it is of each of its answers to a task."""

from trace_job import job
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models.self_evaluation import ask_about_answers, decoded_answers
from trace_workflow.models.step import DecodingStep
from trace_workflow.models.verbalized import VERBALIZED, confidence_replies, second_turns
from tracecal.io.log import LOGGER

with job(snakemake):
    paths, params = snakemake.input, snakemake.params
    asking = PromptSettings.model_validate_json(params.asking)

    def notes(replies):
        unstated = replies["confidence"].null_count
        LOGGER.info("%d of %d replies state no confidence", unstated, replies.num_rows)
        return {"prompt": params.prompt, "without_confidence": str(unstated)}

    ask_about_answers(
        DecodingStep.of(snakemake),
        decoded_answers(paths.traces, paths.task, asking.stop),
        lambda tokenizer, answers: second_turns(
            tokenizer, answers, asking, params.prompt, params.chat
        ),
        VERBALIZED,
        "greedy",
        confidence_replies,
        asking.stop,
        snakemake.resources.batch_size,
        notes=notes,
    )
