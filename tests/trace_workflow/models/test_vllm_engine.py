"""vLLM's part without vLLM: the processor's arithmetic and bookkeeping, and the loop around it.

That the real one agrees, tests/engines proves.
"""

import importlib
import math
import random
import sys
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from support.served import CONFIG, Engine, FirstRunner, SecondRunner, modules, sampling_params
from trace_workflow.config.prompting import PromptSettings
from trace_workflow.models import vllm_engine as engine
from trace_workflow.models.decoding import answer_task, decode
from trace_workflow.models.parallel import on_model
from trace_workflow.models.sampling import sample_task
from trace_workflow.models.step import engine_of
from tracecal.capture.batches import NotFiniteError
from tracecal.capture.capture import capture
from tracecal.capture.draws import Draws
from tracecal.capture.stop_strings import StopStrings
from tracecal.errors import InputError


@pytest.fixture(scope="module", params=[FirstRunner, SecondRunner])
def make(request):
    """Make a model runner with a processor; vLLM's modules are those of support.served."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules().items():
            patch.setitem(sys.modules, name, module)
        patch.delitem(sys.modules, "tracecal.capture.vllm_capture", raising=False)
        loaded = importlib.import_module("tracecal.capture.vllm_capture")
        yield lambda seed=0: request.param(loaded.Capture, random.Random(seed))
    sys.modules.pop("tracecal.capture.vllm_capture", None)


def traced(key, answer=(), prompt=(1,), **asked):
    params = sampling_params(temperature=0, extra_args={"trace": key, **asked})
    return SimpleNamespace(key=key, params=params, prompt=list(prompt), answer=list(answer))


def read(runner, logits_by_key, lengths_by_key=None):
    """Apply the processor to the logits of the scheduled requests; rows by key."""
    given = torch.stack([logits_by_key[one.key] for one in runner.rows])
    lengths = [
        (lengths_by_key or {}).get(one.key, len(one.prompt + one.answer)) for one in runner.rows
    ]
    applied = runner.apply(given, lengths)
    assert applied is given
    return {one.key: row for one, row in zip(runner.rows, applied, strict=True)}


def test_a_hand_computed_distribution_is_kept_and_passed_on(make):
    runner = make()
    runner.schedule([traced("a")])
    logits = torch.tensor([math.log(0.5), math.log(0.25), math.log(0.25), -math.inf])
    assert torch.equal(read(runner, {"a": logits})["a"], logits)
    [[surprisal, entropy]] = runner.processor.take()["a"]
    assert surprisal == pytest.approx(math.log(2))
    assert entropy == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(4))
    assert runner.processor.take() == {}, "what was fetched is forgotten"
    assert not runner.processor.is_argmax_invariant(), (
        "else it would be left out of greedy decoding"
    )


def test_what_is_computed_again_overwrites(make):
    """A prompt of three tokens is read up to each of them; then the request is begun again."""
    runner, one = make(), traced("a", prompt=[1, 1, 1])
    for chunk in range(3):
        runner.schedule([one])
        read(runner, {"a": torch.tensor([0.0, float(chunk)])}, {"a": chunk + 1})
    one.answer.append(1)
    runner.schedule([])
    runner.leave("a")
    runner.schedule([one])
    read(runner, {"a": torch.tensor([0.0, 0.0])})
    first, second = runner.processor.take()["a"]
    assert first[0] == pytest.approx(math.log1p(math.exp(-2)))
    assert second == pytest.approx([math.log(2)] * 2)


def test_a_part_of_a_prompt_and_its_answer_gives_nothing_in_v2(make):
    """What vLLM throws away after a preemption does not replace what it used."""
    runner, one = make(), traced("a", [5, 5, 5])
    runner.schedule([one])
    read(runner, {"a": torch.tensor([0.0, 9.0])}, {"a": 2})
    assert bool(runner.processor.take()) is isinstance(runner, FirstRunner)


def test_requests_without_a_key_are_left_alone(make):
    runner = make()
    plain = SimpleNamespace(
        key="plain", params=sampling_params(temperature=0.7), prompt=[1], answer=[]
    )
    logits = {"plain": torch.zeros(3), "b": torch.zeros(3)}
    runner.schedule([plain])
    read(runner, logits)
    runner.schedule([plain, traced("b")])
    read(runner, logits)
    assert list(runner.processor.take()) == ["b"]


def test_a_place_that_is_given_again_is_forgotten(make):
    runner = make()
    runner.schedule([traced("a")])
    runner.schedule([])
    runner.leave("a")
    plain = sampling_params(temperature=0)
    runner.schedule([SimpleNamespace(key="plain", params=plain, prompt=[1], answer=[])])
    read(runner, {"plain": torch.zeros(3)})
    assert runner.processor.take() == {}


def test_each_runner_loads_it_as_one_of_its_own(make):
    capture = type(make().processor)
    for name in ("vllm.v1.sample", "vllm.v1.worker.gpu.sample"):
        assert issubclass(capture, sys.modules[f"{name}.logits_processor"].LogitsProcessor)


def test_speculative_decoding_is_refused(make):
    guessing = SimpleNamespace(**vars(CONFIG) | {"speculative_config": object()})
    with pytest.raises(ValueError, match="speculative decoding"):
        type(make().processor)(guessing, None)


@pytest.mark.parametrize(
    "bent",
    [
        {"temperature": 0.5},
        {"repetition_penalty": 1.1},
        {"presence_penalty": 0.1},
        {"frequency_penalty": 0.1},
        {"min_tokens": 3},
        {"logit_bias": {3: 1.0}},
        {"allowed_token_ids": [3]},
        {"bad_words": ["no"]},
        {"structured_outputs": {"choice": ["yes"]}},
        {"thinking_token_budget": 9},
    ],
)
def test_what_would_bend_logits_is_refused(make, bent):
    processor = make().processor
    asked = {"temperature": 0, "extra_args": {"trace": "a"}}
    processor.validate_params(sampling_params(**asked))
    [name] = bent
    with pytest.raises(ValueError, match=f"nothing that changes logits .*; it has {name}"):
        processor.validate_params(sampling_params(**asked | bent))
    processor.validate_params(sampling_params(**bent))


def logits_of(key, position):
    return torch.randn(7, generator=torch.Generator().manual_seed(1000 * key + position)) * 3


@given(seed=st.integers(0, 10**6), count=st.integers(1, 9), most=st.integers(1, 6))
def test_whatever_the_scheduler_does_each_value_is_its_requests_own(make, seed, count, most):
    """Requests come, leave in the middle, move, swap, come back and are computed again."""
    chance, runner = random.Random(seed), make(seed)
    open_ = [traced(str(key), prompt=[1] * chance.randint(1, 3)) for key in range(count)]
    while open_:
        wanted = chance.sample(open_, chance.randint(1, len(open_)))
        runner.schedule(wanted)
        assert len(runner.rows) == len(wanted)
        for _ in range(chance.randint(1, 2)):
            read(runner, {one.key: logits_of(int(one.key), len(one.answer)) for one in wanted})
            runner.schedule(wanted)
        for one in wanted:
            one.answer.append(0)
        open_ = [one for one in open_ if len(one.answer) < most]
    kept = runner.processor.take()
    assert len(kept) == count
    for key in range(count):
        _, *expected = capture(torch.stack([logits_of(key, place) for place in range(most)]))
        torch.testing.assert_close(torch.tensor(kept[str(key)]), torch.stack(expected, 1))


def test_a_drawn_token_is_the_only_one_left_and_its_surprisal_the_models(make):
    runner = make()
    plain, drawn = traced("a"), traced("b", [5, 5], draw="7\x1fe\x1f0", temperature=0.5)
    other = traced("c", draw="7\x1fe\x1f1", temperature=2.0)
    runner.schedule([plain, drawn, other])
    raw = torch.randn(3, 50, generator=torch.Generator().manual_seed(3))
    logits = read(runner, dict(zip("abc", raw.clone(), strict=True)))
    chosen = torch.stack([logits[key] for key in "abc"]).argmax(-1)
    assert torch.equal(logits["a"], raw[0])
    assert chosen[1] == Draws(["7\x1fe\x1f0"], 0.5)(raw[1:2], [0], [2])
    assert chosen[2] == Draws(["7\x1fe\x1f1"], 2.0)(raw[2:], [0], [0])
    assert sum(int(logits[key].isfinite().sum()) for key in "bc") == 2
    kept, (_, *expected) = runner.processor.take(), capture(raw, chosen)
    found = torch.tensor([kept["a"][0], kept["b"][0], kept["c"][0]])
    torch.testing.assert_close(found, torch.stack(expected, 1))


def model_of(make, make_model, seed=0):
    model = make_model("llama")
    served = Engine(model, make(seed), seed)
    return model, engine.VllmModel(served, model.config, model.generation_config, "tiny")


def same(one, other):
    assert [a.token_ids for a in one] == [a.token_ids for a in other]
    assert [a.finish_reason for a in one] == [a.finish_reason for a in other]
    for a, b in zip(one, other, strict=True):
        assert a.surprisal == pytest.approx(b.surprisal, abs=1e-4)
        assert a.entropy == pytest.approx(b.entropy, abs=1e-4)


@pytest.mark.parametrize("strings", [(), ("e", " t")])
@pytest.mark.parametrize("seed", range(3))
def test_the_loop_gives_what_ours_gives(make, make_model, tokenizer, prompts, strings, seed):
    model, served = model_of(make, make_model, seed)
    how = prompts, [1, 2], StopStrings(tokenizer, strings), 12
    expected = decode(model, *how)
    answers = engine.decode(served, *how)
    same(answers, expected)
    assert {a.finish_reason for a in answers} >= ({"stop"} if strings else {"length"})
    draws = Draws([f"1\x1f{index}" for index in range(3 * len(prompts))], 0.8)
    same(engine.decode(served, *how, draws, copies=3), decode(model, *how, draws, copies=3))


def test_numbers_that_are_not_finite_name_the_prompt(make, make_model, tokenizer, prompts):
    _, served = model_of(make, make_model)
    served.engine.runner.processor.take = lambda: {
        str(row): [[0.1, 0.2]] * 2 + [[math.nan, 0.1]] * 99 for row in range(2 * len(prompts))
    }
    with pytest.raises(NotFiniteError, match="token 3 of its answer") as raised:
        engine.decode(served, prompts, [], StopStrings(tokenizer, ()), 5, copies=2)
    assert raised.value.index == 0


def test_memory_that_runs_out_ends_the_job(make, make_model, tokenizer, prompts):
    """It is not tried again with fewer: vLLM shares its memory out when it starts."""
    _, served = model_of(make, make_model)

    def fail():
        raise torch.OutOfMemoryError

    served.engine.step = fail
    with pytest.raises(InputError, match="tiny ran out of memory in vLLM: .*'batch_size'"):
        engine.decode(served, prompts, [], StopStrings(tokenizer, ()), 5)


def test_an_engine_that_is_not_installed_is_named(monkeypatch):
    assert engine_of(None, 1000) is on_model
    for found, told in ((None, "none"), ("0.31.0", "0.31.0")):
        monkeypatch.setattr(engine, "installed", lambda found=found: found)
        with pytest.raises(InputError, match=f"vllm 0.32.0, and {told} is installed: .*envs/vllm"):
            engine_of("vllm 0.32.0", 1000)


def test_tasks_are_done_as_with_the_other_engine(make, make_model, tokenizer, prompts, monkeypatch):
    """Through the door that rules' scripts use: answers and samples, the same rows."""
    model, served = model_of(make, make_model)
    sizes = []
    monkeypatch.setattr(engine, "load", lambda *given: sizes.append(given) or served)
    monkeypatch.setattr(engine, "installed", lambda: "0.32.0")
    rows = [{"example_id": f"e{i}", "prompt_token_ids": ids} for i, ids in enumerate(prompts)]
    given = rows, tokenizer, PromptSettings(max_new_tokens=6), 2
    on_vllm = engine_of("vllm 0.32.0", 1000)
    for work, more in ((answer_task, ()), (sample_task, (3, 0.7, 1))):
        kept = []
        done = on_vllm(work, "m", {"dtype": "float32"}, 4, *given, *more, keep=kept.extend)
        assert kept == done
        longest = max(map(len, prompts)) + 6
        assert sizes.pop() == ("m", "float32", 4, 1000, 2, longest)
        expected = work(model, *given, *more)
        for one, other in zip(done, expected, strict=True):
            assert one["token_ids"] == other["token_ids"]
            assert one["surprisal"] == pytest.approx(other["surprisal"], abs=1e-4)
