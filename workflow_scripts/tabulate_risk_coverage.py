"""Write the thresholds with a guarantee as LaTeX, CSV and HTML."""

from tracecal.files import read_json
from tracecal.job import job
from tracecal.render.risk_coverage import risk_coverage
from tracecal.render.write import write_table

with job(snakemake.log[0]):
    params = snakemake.params
    controls = {
        (model, task): read_json(path)["trace_plus"]["risk_control"]
        for (model, task), path in zip(params.pairs, snakemake.input, strict=True)
    }
    table = risk_coverage(controls, params.models, params.tasks)
    write_table(table, snakemake.output.tex, snakemake.output.csv, snakemake.output.html)
