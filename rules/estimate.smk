# Confidence scores, one file per family of estimators, and all of them side by side.
# reads   traces/, beams/, weights/, samples/, comparisons/, asked/, work/learned/, features/, tasks/
# writes  estimates/{family}/{model}/{task}.parquet, scores/{model}/{task}.parquet

from tracecal.own import own_code

SCALARS = {
    family: [e.id for e in CHOSEN if e.family == family and not e.features]
    for family in sorted({e.family for e in CHOSEN})
}

# What each family's module is given: `answers(**inputs, **settings)`.
TASK = {"task": questions}
TRACED = {"traces": "<results>/traces/{model}/{task}.arrow"}
WEIGHED = TRACED | TASK | {"weights": "<results>/weights/{family}/{model}/{task}.arrow"}
LEARNED = TASK | {"learned": "<results>/work/learned/scores/{family}/{model}.parquet"}
ASKED = {"asked": "<results>/asked/{family}/{model}/{task}.arrow"}
SAMPLED = {"samples": "<results>/samples/{model}/{task}.arrow"}
# Samples are compared by a model only where the configuration says so.
if CONFIG.sampling.equivalence == "nli":
    SAMPLED["comparisons"] = "<results>/comparisons/{model}/{task}.arrow"
FAMILY_INPUTS = {
    "likelihood": TRACED | TASK,
    "entropy": TRACED | TASK,
    "trajectory": TRACED | TASK,
    "ces": TRACED | TASK,
    "beam": {"beams": "<results>/beams/{model}/{task}.arrow"},
    "token_sar": WEIGHED,
    "mars": WEIGHED,
    "trace": {"features": "<results>/features/{model}/{task}.parquet"},
    "semantic_entropy": SAMPLED,
    "selfcheckgpt": SAMPLED | TRACED,
    "lars": LEARNED,
    "internal_probe": LEARNED,
    "p_true": ASKED,
    "verbalized": ASKED,
    "own": TRACED | TASK | {"features": "<results>/features/{model}/{task}.parquet"},
}
FAMILY_SETTINGS = {
    "own": {
        "file": CONFIG.own_estimators,
        "held": lambda wildcards: own_code(CONFIG.own_estimators),
    },
    "semantic_entropy": {"equivalence": CONFIG.sampling.equivalence},
    "selfcheckgpt": {"equivalence": CONFIG.sampling.equivalence},
    "lars": {"slug": "{task}"},
    "internal_probe": {"slug": "{task}"},
}


localrules:
    estimate_family,
    join_scores,


rule estimate_family:
    input:
        unpack(of_entry(FAMILY_INPUTS, "family")),
    output:
        "<results>/estimates/{family}/{model}/{task}.parquet",
    log:
        "<logs>/estimate_family/{family}/{model}/{task}.log",
    wildcard_constraints:
        family=one_of(FAMILY_INPUTS),
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate/estimate_family.py", "tracecal.estimate.{family}"),
        chosen=lambda wildcards: SCALARS.get(wildcards.family, []),
        settings=of_entry(FAMILY_SETTINGS, "family"),
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
        code=code("estimate/join_scores.py"),
        order=lambda wildcards: [e.id for e in chosen(wildcards) if not e.features],
    message:
        "Joining the scores of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/estimate/join_scores.py"
