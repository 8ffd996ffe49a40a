from snakemake.utils import min_version

# What `make test-lowest` runs. Snakemake 10, which moves environments into plugins, is untested.
min_version("9.14.0")


# Read with --sdm apptainer alone: what Containerfile makes, see docs/reference/installation.md.
container: "trace.sif"


report: "report/workflow.rst"


include: "rules/start.smk"
include: "rules/common.smk"
include: "rules/models.smk"
include: "rules/tasks.smk"
include: "rules/generate.smk"
include: "rules/ask.smk"
include: "rules/encoders.smk"
include: "rules/label.smk"
include: "rules/estimate.smk"
include: "rules/calibrate.smk"
include: "rules/analyse.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        EVERYTHING,
    message:
        "All that the run makes is there"


# The same tables and figures, from the finished (model, task) pairs alone.
rule available:
    input:
        results_of_finished_pairs(RENDERED),
