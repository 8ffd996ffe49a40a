"""Cut the traces of a task's answers into those of their parts."""

from trace_job import job
from trace_workflow.models.part_traces import cut_traces, trace_table
from tracecal.answers.parts.parts import Parts
from tracecal.io.files import read_parquet, write_parquet
from tracecal.io.traces import arrow_metadata, read_traces, write_table

with job(snakemake):
    inputs, params, output = snakemake.input, snakemake.params, snakemake.output
    cut, rows = cut_traces(
        read_traces(inputs.traces),
        read_parquet(inputs.questions, needed=["example_id", "role"]),
        read_parquet(inputs.task, needed=["example_id", "parent_id", "part"]),
        Parts.model_validate_json(params.parts),
        params.stop,
    )
    metadata = arrow_metadata(inputs.traces) | {"parts": params.parts}
    write_table(trace_table(cut), metadata, output.traces)
    write_parquet(rows, output.questions)
