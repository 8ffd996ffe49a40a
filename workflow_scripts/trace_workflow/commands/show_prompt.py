"""Print the prompt, chat template included, that a model gets for an example of a task.

Which tokens end an answer, and where they are declared, is printed as an error message is.

python workflow_scripts show_prompt MODEL TASK [EXAMPLE] [--configfile config/mine.yaml]
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from trace_workflow.config.config import load_config
from trace_workflow.config.run import load_tasks
from tracecal.errors import InputError
from tracecal.io.files import read_parquet
from tracecal.io.input_files import read_yaml


def prompt_of(model: str, task: str, example: str | None, configfile: str) -> str:
    """The rendered prompt; `example` defaults to the task's first. Raises `InputError`."""
    config = load_config(read_yaml(configfile), configfile)
    specs = load_tasks(config, Path(__file__).resolve().parents[3])
    models = {model.slug: model for model in config.models}
    for slug, choices in ((model, models), (task, specs)):
        if slug not in choices:
            raise InputError(f"{slug!r} is not in {configfile}; there are {', '.join(choices)}.")
    folder = Path("results") / config.run / "models" / model
    rows = Path("results") / config.run / "tasks" / f"{task}.parquet"
    if missing := [str(path) for path in (folder, rows) if not path.exists()]:
        command = f"snakemake --cores all {' '.join(missing)} --configfile {configfile}"
        raise InputError(f"the prompt needs files that a run makes; first run: {command}")
    examples = read_parquet(rows, needed=["example_id"])
    chosen = examples.head(1) if example is None else examples.filter(example_id=example)
    if chosen.is_empty():
        ids = ", ".join(examples["example_id"].head(3))
        raise InputError(f"task {task!r} has no example {example!r}; its ids begin {ids}.")
    from trace_workflow.models.prompts import ask
    from tracecal.capture.model import load_tokenizer

    tokenizer = load_tokenizer(folder)
    print(describe_ends(folder, tokenizer), file=sys.stderr)
    return ask(tokenizer, chosen, specs[task], models[model].chat)[0]["prompt"]


def describe_ends(folder: Path, tokenizer: Any) -> str:
    """Which tokens end an answer of the model in `folder`, and where each is declared."""
    from transformers import AutoConfig, GenerationConfig

    from tracecal.capture.model import GENERATION_CONFIG, loaded
    from tracecal.capture.tokens import declared_ends

    stated = (folder / GENERATION_CONFIG).is_file()
    generation_config = loaded(GenerationConfig, folder) if stated else None
    ends = declared_ends(generation_config, loaded(AutoConfig, folder), tokenizer)
    tokens = [
        f"{tokenizer.convert_ids_to_tokens(token_id)} ({token_id}: {', '.join(places)})"
        for token_id, places in sorted(ends.items())
    ]
    return f"An answer ends at {' or '.join(tokens) or 'no declared token'}."


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, nargs in (("model", None), ("task", None), ("example", "?")):
        parser.add_argument(name, nargs=nargs)
    parser.add_argument("--configfile", default="config/config.yaml")
    print(prompt_of(**vars(parser.parse_args())))
