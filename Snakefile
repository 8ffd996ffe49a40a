from snakemake.utils import min_version

# What `make test-lowest` runs. Snakemake 10, which moves environments into plugins, is untested.
min_version("9.14.0")


# Read with --sdm apptainer alone: what Containerfile makes, see docs/reference/installation.md.
container: "trace.sif"


report: "report/workflow.rst"


include: "rules/start.smk"
include: "rules/config.smk"
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
    """Make all that the run makes: tables, figures, pages, and a calibrator for each model and task."""
    default_target: True
    input:
        EVERYTHING,


# The same tables and figures, from the finished (model, task) pairs alone.
rule available:
    """Make the tables and figures of the (model, task) pairs that are finished."""
    input:
        results_of_finished_pairs(RENDERED),
