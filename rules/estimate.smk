# Confidence scores, one file per family of estimators, and all of them side by side. What each family
# is computed from stands in the package's room `plan`.
# reads   traces/, beams/, weights/, samples/, comparisons/, asked/, work/learned/, features/, tasks/
# writes  estimates/{family}/{model}/{task}.parquet, scores/{model}/{task}.parquet


localrules:
    estimate_family,
    join_scores,


rule estimate_family:
    input:
        unpack(inputs_of(PLAN.families, "family")),
    output:
        "<results>/estimates/{family}/{model}/{task}.parquet",
    log:
        "<logs>/estimate_family/{family}/{model}/{task}.log",
    wildcard_constraints:
        family=one_of(PLAN.families),
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "estimate/estimate_family.py",
            loads=modules_of(PLAN.families, "family"),
            chosen=lambda wildcards: PLAN.families[wildcards.family].scores,
            settings=lambda wildcards: PLAN.families[wildcards.family].settings_of(wildcards.task),
        ),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: {wildcards.family}"
    script:
        "../workflow_scripts/estimate/estimate_family.py"


rule join_scores:
    input:
        families=lambda wildcards: expand(
            "<results>/estimates/{family}/{{model}}/{{task}}.parquet",
            family=sorted({e.family for e in chosen(wildcards) if not e.features}),
        ),
        task=questions,
    output:
        "<results>/scores/{model}/{task}.parquet",
    log:
        "<logs>/join_scores/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        **settings(
            "estimate/join_scores.py",
            order=lambda wildcards: [e.id for e in chosen(wildcards) if not e.features],
        ),
    message:
        "Joining the scores of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/estimate/join_scores.py"
