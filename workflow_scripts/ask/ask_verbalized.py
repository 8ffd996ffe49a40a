"""Ask one model how sure it is of each of its answers to a task."""

from tracecal.decode.model import load_tokenizer
from tracecal.decode.record import record
from tracecal.decode.self_evaluation import decoded_answers
from tracecal.decode.verbalized import VERBALIZED, confidence_replies, second_turns
from tracecal.jobs.job import job
from tracecal.jobs.progress import LOGGER
from tracecal.jobs.step import Step
from tracecal.tasks.asking import Asking

with job(snakemake):
    paths, params, resources = snakemake.input, snakemake.params, snakemake.resources
    step = Step.of(snakemake)
    asking = Asking.model_validate_json(params.asking)
    tokenizer = load_tokenizer(paths.model)
    answers = decoded_answers(paths.traces, paths.task, asking.stop)

    def notes(replies):
        unstated = replies["confidence"].null_count
        LOGGER.info("%d of %d replies state no confidence", unstated, replies.num_rows)
        return {"prompt": params.prompt, "without_confidence": str(unstated)}

    prompts = second_turns(tokenizer, answers, asking, params.prompt, params.chat)
    arguments = tokenizer, asking.stop, resources.batch_size
    record(step, prompts, VERBALIZED, "greedy", confidence_replies, *arguments, notes=notes)
