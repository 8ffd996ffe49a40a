"""Write config/schema.json, config/task.schema.json and config/README.md from the schemas.

python workflow_scripts describe_config
"""

from pathlib import Path

from trace_workflow.commands.reference import markdown, schema_text
from trace_workflow.config.run import Config
from trace_workflow.config.tasks import TaskSpec
from tracecal.io.files import write_text

ROOT = Path(__file__).resolve().parents[3]
README = """# Configuration

A run is one YAML file: `snakemake --cores all --configfile config/mine.yaml`. Start from
`example.yaml`; `config.yaml` is what `make demo` runs, `paper.yaml` the paper's experiment. A wrong
key or value stops the run at the start with a sentence that says what is allowed. Editors that read
the line `# yaml-language-server: $schema=schema.json` complete and check keys as you type.

This page and the two `*.json` files are written from the code by
`python workflow_scripts describe_config`.

## Keys of a run

{run}
## Keys of a task file (`tasks/<slug>.yaml`)

{task}"""


def described() -> dict[Path, str]:
    """Each file's path and text."""
    return {
        ROOT / "config/schema.json": schema_text(Config, "A run of the TRACE workflow"),
        ROOT / "config/task.schema.json": schema_text(TaskSpec, "A task of the TRACE workflow"),
        ROOT / "config/README.md": README.format(run=markdown(Config), task=markdown(TaskSpec)),
    }


if __name__ == "__main__":
    for path, text in described().items():
        write_text(text, path)
