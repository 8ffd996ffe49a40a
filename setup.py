"""What the wheel holds: the library, the workflow's package, and what its runs are made from."""

from setuptools import find_namespace_packages, setup

# Beside the code of a package.
KINDS = ("csv", "bib", "css", "js", "html", "svg", "json", "yaml", "md", "mplstyle", "pyi")
DATA = [*(f"*.{kind}" for kind in KINDS), "py.typed"]
# Of the checkout; a run from a git URL, or of `python -m trace_workflow init`, reads them here.
CHECKOUT = "trace_workflow.checkout"
FILES = [
    "Snakefile",
    "rules/*.smk",
    "workflow_scripts/[!_]*.py",
    "workflow_scripts/snakemake_*/*.py",
    "config/**/*.yaml",
    "config/*.json",
    "report/*",
    "envs/*",
    "profiles/**/*.yaml",
    "demo/[emr]*/**/*.*",
]
# Snakemake loads every installed logger plugin when it starts. This one would load the package,
# which then hides a checkout's; so it lies beside the scripts, where `run` finds it.
NONE = ["*__pycache__*", "snakemake_*"]
PACKAGES = find_namespace_packages("workflow_scripts", exclude=NONE)

setup(
    packages=[*PACKAGES, CHECKOUT],
    package_dir={"": "workflow_scripts", CHECKOUT: "."},
    package_data={name: DATA for name in PACKAGES} | {CHECKOUT: FILES},
    include_package_data=False,
)
