from snakemake.utils import min_version

min_version("9.14.0")  # what `make test-lowest` runs


# Read with --sdm apptainer alone: what Containerfile makes, see docs/cluster.md.
container: "trace.sif"


report: "report/workflow.rst"


include: "rules/start.smk"
include: "rules/common.smk"
include: "rules/world.smk"
include: "rules/models.smk"
include: "rules/stage.smk"
include: "rules/tasks.smk"
include: "rules/answers.smk"
include: "rules/decode.smk"
include: "rules/parts.smk"
include: "rules/ask.smk"
include: "rules/weigh.smk"
include: "rules/label.smk"
include: "rules/features.smk"
include: "rules/learn.smk"
include: "rules/estimate.smk"
include: "rules/calibrate.smk"
include: "rules/subset.smk"
include: "rules/analyse.smk"
include: "rules/tabulate.smk"
include: "rules/draw.smk"
include: "rules/explore.smk"


RENDERED = expand("<results>/tables/{name}.{kind}", name=PLAN.tables, kind=["tex", "csv", "html"])
RENDERED += expand(
    "<results>/tables/{name}_vs_paper.{kind}", name=PLAN.beside, kind=["csv", "html"]
)
RENDERED += ["<results>/tables/references.bib", "<results>/tables/README.md"]
RENDERED += expand("<results>/figures/{name}.{kind}", name=PLAN.figures, kind=["pdf", "svg"])
RENDERED += ["<results>/explorer.html", "<results>/findings.txt"]
CALIBRATORS = [f"<results>/calibrators/{model}/{task}.json" for model, task in PAIRS]
EVERYTHING = ["<results>/config.yaml", CALIBRATORS, RENDERED]


include: "rules/costs.smk"


rule all:
    default_target: True
    input:
        EVERYTHING,


# The same tables and figures, from the finished (model, task) pairs alone.
rule available:
    input:
        finished(RENDERED),
