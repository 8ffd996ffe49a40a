"""Ask one model how sure it is of each of its answers to a task."""

from tracecal.decode.asked import answered
from tracecal.decode.model import load_tokenizer
from tracecal.decode.record import Step
from tracecal.decode.verbalized import VERBALIZED, confidence_replies, second_turns
from tracecal.job import job
from tracecal.progress import LOGGER
from tracecal.tasks.asking import Asking

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step(snakemake)
    asking = Asking.model_validate_json(params.asking)
    tokenizer = load_tokenizer(paths.model)
    answers = answered(paths.traces, paths.task, asking.stop)

    def reply(prompts, keep):
        given = tokenizer, prompts, asking.stop, resources.batch_size
        step.on_model(confidence_replies, *given, keep=keep)

    def notes(replies):
        unstated = replies["confidence"].null_count
        LOGGER.info("%d of %d replies state no confidence", unstated, replies.num_rows)
        return {"prompt": params.prompt, "without_confidence": str(unstated)}

    step.record(
        second_turns(tokenizer, answers, asking, params.prompt, params.chat),
        VERBALIZED,
        "greedy",
        reply,
        notes,
    )
