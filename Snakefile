from snakemake.utils import min_version

min_version("9.14")


# Snakemake would merge a config given with --configfile into a default one, key by key.
if not workflow.config_settings.configfiles:

    configfile: "config/config.yaml"


# Read with --sdm apptainer alone: what Containerfile makes, see docs/cluster.md.
container: "trace.sif"


report: "report/workflow.rst"


include: "rules/common.smk"


# Below ROOT, as scripts are found from where their rules are (rules/common.smk).
STAGES = """
world stage models tasks answers decode vllm ask weigh label
operate learn estimate calibrate analyses analyse tables tabulate draw explore
""".split()
for stage in STAGES:

    include: ROOT / f"rules/{stage}.smk"


RENDERED = expand("<results>/tables/{name}.{kind}", name=TABLES, kind=["tex", "csv", "html"])
RENDERED += expand("<results>/tables/{name}_vs_paper.{kind}", name=BESIDE, kind=["csv", "html"])
RENDERED += ["<results>/tables/references.bib", "<results>/tables/README.md"]
RENDERED += expand("<results>/figures/{name}.{kind}", name=FIGURES, kind=["pdf", "svg"])
RENDERED += ["<results>/explorer.html", "<results>/findings.txt"]
EVERYTHING = ["<results>/config.yaml", pairs("<results>/calibrators/{model}/{task}.json"), RENDERED]


include: ROOT / "rules/costs.smk"


rule all:
    default_target: True
    input:
        EVERYTHING,


# The same tables and figures, from the finished (model, task) pairs alone.
rule available:
    input:
        RENDERED,
