# Confidence scores, one file per family of estimators, and all of them side by side.
# reads   traces/, beams/, weights/, samples/, comparisons/, asked/, work/learned/, features/, tasks/
# writes  estimates/{family}/{model}/{task}.parquet, scores/{model}/{task}.parquet

SCALARS = {
    family: [one.id for one in CHOSEN if one.family == family and not one.features]
    for family in sorted({one.family for one in CHOSEN})
}
# Samples are compared by a model only where the configuration says so.
COMPARISONS = (
    {"comparisons": "<results>/comparisons/{model}/{task}.arrow"}
    if CONFIG.sampling.equivalence == "nli"
    else {}
)


localrules:
    estimate_beam,
    estimate_entropy,
    estimate_internal_probe,
    estimate_lars,
    estimate_likelihood,
    estimate_mars,
    estimate_p_true,
    estimate_selfcheckgpt,
    estimate_semantic_entropy,
    estimate_token_sar,
    estimate_trace,
    estimate_trajectory,
    estimate_verbalized,
    join_scores,


rule estimate_likelihood:
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/estimates/likelihood/{model}/{task}.parquet",
    log:
        "<logs>/estimate_likelihood/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_likelihood.py"),
        chosen=SCALARS.get("likelihood", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: likelihood"
    script:
        "../workflow_scripts/estimate_likelihood.py"


rule estimate_entropy:
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/estimates/entropy/{model}/{task}.parquet",
    log:
        "<logs>/estimate_entropy/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_entropy.py"),
        chosen=SCALARS.get("entropy", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: entropy"
    script:
        "../workflow_scripts/estimate_entropy.py"


rule estimate_trajectory:
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/estimates/trajectory/{model}/{task}.parquet",
    log:
        "<logs>/estimate_trajectory/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_trajectory.py"),
        chosen=SCALARS.get("trajectory", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: trajectory"
    script:
        "../workflow_scripts/estimate_trajectory.py"


rule estimate_beam:
    input:
        beams="<results>/beams/{model}/{task}.arrow",
    output:
        "<results>/estimates/beam/{model}/{task}.parquet",
    log:
        "<logs>/estimate_beam/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_beam.py"),
        chosen=SCALARS.get("beam", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: beam"
    script:
        "../workflow_scripts/estimate_beam.py"


rule estimate_trace:
    input:
        features="<results>/features/{model}/{task}.parquet",
    output:
        "<results>/estimates/trace/{model}/{task}.parquet",
    log:
        "<logs>/estimate_trace/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_trace.py"),
        chosen=SCALARS.get("trace", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: trace"
    script:
        "../workflow_scripts/estimate_trace.py"


rule estimate_internal_probe:
    input:
        learned="<results>/work/learned/scores/internal_probe/{model}.parquet",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/estimates/internal_probe/{model}/{task}.parquet",
    log:
        "<logs>/estimate_internal_probe/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_internal_probe.py"),
        chosen=SCALARS.get("internal_probe", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: internal-state probe"
    script:
        "../workflow_scripts/estimate_internal_probe.py"


rule estimate_lars:
    input:
        learned="<results>/work/learned/scores/lars/{model}.parquet",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/estimates/lars/{model}/{task}.parquet",
    log:
        "<logs>/estimate_lars/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_lars.py"),
        chosen=SCALARS.get("lars", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: LARS"
    script:
        "../workflow_scripts/estimate_lars.py"


rule estimate_p_true:
    input:
        asked="<results>/asked/p_true/{model}/{task}.arrow",
    output:
        "<results>/estimates/p_true/{model}/{task}.parquet",
    log:
        "<logs>/estimate_p_true/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_p_true.py"),
        chosen=SCALARS.get("p_true", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: P(True)"
    script:
        "../workflow_scripts/estimate_p_true.py"


rule estimate_verbalized:
    input:
        asked="<results>/asked/verbalized/{model}/{task}.arrow",
    output:
        "<results>/estimates/verbalized/{model}/{task}.parquet",
    log:
        "<logs>/estimate_verbalized/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_verbalized.py"),
        chosen=SCALARS.get("verbalized", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: verbalised confidence"
    script:
        "../workflow_scripts/estimate_verbalized.py"


rule estimate_token_sar:
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        weights="<results>/weights/token_sar/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/estimates/token_sar/{model}/{task}.parquet",
    log:
        "<logs>/estimate_token_sar/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_token_sar.py"),
        chosen=SCALARS.get("token_sar", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: token_sar"
    script:
        "../workflow_scripts/estimate_token_sar.py"


rule estimate_mars:
    input:
        traces="<results>/traces/{model}/{task}.arrow",
        weights="<results>/weights/mars/{model}/{task}.arrow",
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/estimates/mars/{model}/{task}.parquet",
    log:
        "<logs>/estimate_mars/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_mars.py"),
        chosen=SCALARS.get("mars", []),
    message:
        "Scoring {wildcards.model} on {wildcards.task}: mars"
    script:
        "../workflow_scripts/estimate_mars.py"


rule estimate_semantic_entropy:
    input:
        **COMPARISONS,
        samples="<results>/samples/{model}/{task}.arrow",
    output:
        "<results>/estimates/semantic_entropy/{model}/{task}.parquet",
    log:
        "<logs>/estimate_semantic_entropy/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_semantic_entropy.py"),
        chosen=SCALARS.get("semantic_entropy", []),
        equivalence=CONFIG.sampling.equivalence,
    message:
        "Scoring {wildcards.model} on {wildcards.task}: semantic_entropy"
    script:
        "../workflow_scripts/estimate_semantic_entropy.py"


rule estimate_selfcheckgpt:
    input:
        **COMPARISONS,
        samples="<results>/samples/{model}/{task}.arrow",
        traces="<results>/traces/{model}/{task}.arrow",
    output:
        "<results>/estimates/selfcheckgpt/{model}/{task}.parquet",
    log:
        "<logs>/estimate_selfcheckgpt/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("estimate_selfcheckgpt.py"),
        chosen=SCALARS.get("selfcheckgpt", []),
        equivalence=CONFIG.sampling.equivalence,
    message:
        "Scoring {wildcards.model} on {wildcards.task}: selfcheckgpt"
    script:
        "../workflow_scripts/estimate_selfcheckgpt.py"


rule join_scores:
    input:
        families=scored_families,
        task="<results>/tasks/{task}.parquet",
    output:
        "<results>/scores/{model}/{task}.parquet",
    log:
        "<logs>/join_scores/{model}/{task}.log",
    conda:
        "../envs/analysis.yaml"
    params:
        code=code("join_scores.py"),
        order=lambda wildcards: [one.id for one in chosen(wildcards) if not one.features],
    message:
        "Joining the scores of {wildcards.model} on {wildcards.task}"
    script:
        "../workflow_scripts/join_scores.py"
