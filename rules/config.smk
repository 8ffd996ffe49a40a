# The configuration, and the run's folder.
#
# resolve_config  the configuration -> config.yaml


rule resolve_config:
    """Write the run's configuration, with all defaults, beside its results."""
    output:
        "<results>/config.yaml",
    log:
        "<logs>/resolve_config.log",
    localrule: True
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "resolve_config.py",
            digest=hash_of(RUN.resolved),
        ),
    script:
        "../workflow_scripts/resolve_config.py"


# A module's `prefix` stands before the paths of its rules. What lies in a bucket has no folder here.
RESOLVED = rules.resolve_config.output[0]
if "storage_object" not in getattr(RESOLVED, "flags", {}):
    FOLDER = str(Path(RESOLVED).parent)
