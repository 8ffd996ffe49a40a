"""The jobs that vLLM's tests start, without vLLM: their scripts are there and decode."""

from importlib.util import find_spec

import pytest

from engines.conftest import ROOT, VLLM_MODULES, script_of
from tracecal.io.traces import read_arrow

RULES = ["generate", "draw_samples"]


def test_scripts_modules_and_the_documented_snippet_are_there():
    assert all(script_of(rule).is_file() for rule in RULES)
    assert all(find_spec(module) for module in VLLM_MODULES)
    assert "```python" in (ROOT / "docs/guides/vllm.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("rule", "n_answers"), [*zip(RULES, (2, 6), strict=True)])
def test_a_job_decodes_with_transformers(jobs_of, rule, n_answers):
    job = jobs_of("llama", 2, max_new_tokens=4).decode("ours", rule=rule)
    assert read_arrow(job.file).height == n_answers
