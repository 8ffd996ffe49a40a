from snakemake.utils import min_version

min_version("9.14")


# Snakemake would merge a config given with --configfile into a default one, key by key.
if not workflow.config_settings.configfiles:

    configfile: "config/config.yaml"


# Read with --sdm apptainer alone: what Containerfile makes, see docs/cluster.md.
container: "trace.sif"


report: "report/workflow.rst"


include: "rules/start.smk"
include: "rules/common.smk"
# Below ROOT, as scripts are found from where their rules are (rules/start.smk).
include: ROOT / "rules/world.smk"
include: ROOT / "rules/models.smk"
include: ROOT / "rules/stage.smk"
include: ROOT / "rules/tasks.smk"
include: ROOT / "rules/answers.smk"
include: ROOT / "rules/decode.smk"
include: ROOT / "rules/parts.smk"
include: ROOT / "rules/ask.smk"
include: ROOT / "rules/weigh.smk"
include: ROOT / "rules/label.smk"
include: ROOT / "rules/features.smk"
include: ROOT / "rules/learn.smk"
include: ROOT / "rules/estimate.smk"
include: ROOT / "rules/calibrate.smk"
include: ROOT / "rules/subset.smk"
include: ROOT / "rules/analyse.smk"
include: ROOT / "rules/tabulate.smk"
include: ROOT / "rules/draw.smk"
include: ROOT / "rules/explore.smk"


RENDERED = expand("<results>/tables/{name}.{kind}", name=PLAN.tables, kind=["tex", "csv", "html"])
RENDERED += expand(
    "<results>/tables/{name}_vs_paper.{kind}", name=PLAN.beside, kind=["csv", "html"]
)
RENDERED += ["<results>/tables/references.bib", "<results>/tables/README.md"]
RENDERED += expand("<results>/figures/{name}.{kind}", name=PLAN.figures, kind=["pdf", "svg"])
RENDERED += ["<results>/explorer.html", "<results>/findings.txt"]
CALIBRATORS = [f"<results>/calibrators/{model}/{task}.json" for model, task in PAIRS]
EVERYTHING = ["<results>/config.yaml", CALIBRATORS, RENDERED]


include: ROOT / "rules/costs.smk"


rule all:
    default_target: True
    input:
        EVERYTHING,


# The same tables and figures, from the finished (model, task) pairs alone.
rule available:
    input:
        RENDERED,
