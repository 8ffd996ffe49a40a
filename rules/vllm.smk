# Answers and samples that vLLM decodes, in an environment of its own, for models that ask for it.
# reads   models/{model}/, work/revisions/{model}.txt, tasks/{task}.parquet
# writes  traces/{model}/{task}.arrow, samples/{model}/{task}.arrow

if SERVED:
    logger.warning(
        f"vLLM decodes the answers and samples of {', '.join(SERVED)}; what it does not give stays "
        "with Transformers: the audit, beams, hidden states, P(True) and verbalized confidence"
    )


def by_vllm(script):
    """The parameters of a rule whose `script` decodes with the vLLM of its environment."""
    pinned = re.search(r"vllm==(\S+)", (ROOT / "envs/vllm.yaml").read_text())
    modules = "tracecal.decode.vllm_engine", "tracecal.decode.vllm_capture"
    return {"code": code(script, *modules), "engine": f"vllm {pinned[1]}"}


use rule generate as generate_vllm with:
    wildcard_constraints:
        model=one_of({*WHOLE} & {*SERVED}),
    conda:
        "../envs/vllm.yaml"
    params:
        **by_vllm("decode/generate.py"),


use rule generate_shard as generate_vllm_shard with:
    wildcard_constraints:
        model=one_of({*SHARDED} & {*SERVED}),
    conda:
        "../envs/vllm.yaml"
    params:
        **by_vllm("decode/generate.py"),


use rule draw_samples as draw_samples_vllm with:
    wildcard_constraints:
        model=one_of({*WHOLE} & {*SERVED}),
    conda:
        "../envs/vllm.yaml"
    params:
        **by_vllm("decode/draw_samples.py"),


use rule draw_samples_shard as draw_samples_vllm_shard with:
    wildcard_constraints:
        model=one_of({*SHARDED} & {*SERVED}),
    conda:
        "../envs/vllm.yaml"
    params:
        **by_vllm("decode/draw_samples.py"),
