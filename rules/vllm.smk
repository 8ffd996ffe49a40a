# Answers and samples that vLLM decodes, in an environment of its own, for models that ask for it.
# reads   models/{model}/, work/revisions/{model}.txt, tasks/{task}.parquet
# writes  traces/{model}/{task}.arrow, samples/{model}/{task}.arrow

if SERVED:
    logger.warning(
        f"vLLM decodes the answers and samples of {', '.join(SERVED)}; what it does not give stays "
        "with Transformers: the audit, beams, hidden states, P(True) and verbalized confidence"
    )


ENGINE = "vllm " + re.search(r"vllm==(\S+)", (ROOT / "envs/vllm.yaml").read_text())[1]
ITS_MODULES = "tracecal.decode.vllm_engine", "tracecal.decode.vllm_capture"


use rule generate as generate_vllm with:
    wildcard_constraints:
        model=one_of({*WHOLE} & {*SERVED}),
    conda:
        "../envs/vllm.yaml"
    params:
        code=code("decode/generate.py", *ITS_MODULES),
        engine=ENGINE,


use rule generate_shard as generate_vllm_shard with:
    wildcard_constraints:
        model=one_of({*SHARDED} & {*SERVED}),
    conda:
        "../envs/vllm.yaml"
    params:
        code=code("decode/generate.py", *ITS_MODULES),
        engine=ENGINE,


use rule draw_samples as draw_samples_vllm with:
    wildcard_constraints:
        model=one_of({*WHOLE} & {*SERVED}),
    conda:
        "../envs/vllm.yaml"
    params:
        code=code("decode/draw_samples.py", *ITS_MODULES),
        engine=ENGINE,


use rule draw_samples_shard as draw_samples_vllm_shard with:
    wildcard_constraints:
        model=one_of({*SHARDED} & {*SERVED}),
    conda:
        "../envs/vllm.yaml"
    params:
        code=code("decode/draw_samples.py", *ITS_MODULES),
        engine=ENGINE,
