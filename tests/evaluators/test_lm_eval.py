"""lm-evaluation-harness itself before a server with log-probabilities: make test-evaluators."""

import json

import pytest
from aiohttp import web

from evaluators.conftest import chat_logprobs, made
from support.upstream import Background
from tracecal.answers.answers import read_file
from tracecal.answers.reading import Reading

pytestmark = pytest.mark.evaluators
TASK = """
task: questions
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{input}}}}"
doc_to_target: "yes"
generation_kwargs: {{until: ["\\n"], max_gen_toks: 8}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


def old_logprobs(steps):
    """Steps as in OpenAI's older format of completions."""
    return {
        "tokens": ["token_id:0"] * len(steps),
        "token_logprobs": [step[0] for step in steps],
        "top_logprobs": [
            {f"token_id:{k}": value for k, value in enumerate(step)} for step in steps
        ],
    }


class Server:
    """Answers the questions of `answers`; `asked` holds the bodies of requests."""

    def __init__(self, answers):
        self.answers, self.asked = {one["input"]: one for one in answers}, []
        self.application = web.Application()
        self.application.router.add_post("/v1/chat/completions", self._chat)
        self.application.router.add_post("/v1/completions", self._completion)

    async def _chat(self, request):
        body = await request.json()
        self.asked.append(body)
        one = self.answers[body["messages"][-1]["content"]]
        choice = {"message": {"role": "assistant", "content": one["text"]}}
        if body.get("logprobs"):
            choice["logprobs"] = chat_logprobs(one["steps"])
        return self._answered(choice)

    async def _completion(self, request):
        body = await request.json()
        self.asked.append(body)
        prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
        told = [self.answers[prompt] for prompt in prompts]
        with_logprobs = body.get("logprobs")
        return self._answered(
            *(
                {"text": one["text"]}
                | ({"logprobs": old_logprobs(one["steps"])} if with_logprobs else {})
                for one in told
            )
        )

    def _answered(self, *choices):
        told = [
            {"index": place, "finish_reason": "stop"} | choice
            for place, choice in enumerate(choices)
        ]
        return web.json_response({"model": "m", "choices": told[::-1]})  # the index says the order


@pytest.fixture(scope="module")
def harness(run, tmp_path_factory):
    """Run the harness on answers with a model of this name; its samples' file, and what was asked."""

    def evaluate(name, answers, more="", task="", command=False):
        folder = tmp_path_factory.mktemp("harness")
        rows = [{"input": one["input"]} for one in answers]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "task.yaml").write_text(TASK.format(path=folder / "rows.jsonl") + task)
        server = Server(answers)
        with Background(server.application) as serving:
            path = "chat/completions" if "chat" in name else "completions"
            settings = f"model=m,base_url={serving.url}/v1/{path},tokenizer_backend=None{more}"
            if command:
                where = ["--include_path", folder, "--output_path", folder / "out", "--log_samples"]
                asked = ["--model", name, "--model_args", settings, "--tasks", "questions"]
                run(folder, "lm_eval_models", "run", *asked, *where)
            else:
                run(folder, "harness", name, settings, folder)
        (samples,) = (folder / "out").rglob("samples_questions_*.jsonl")
        return samples, server.asked

    return evaluate


@pytest.mark.parametrize(
    ("model", "more", "top"),
    [
        ("tracecal-chat-completions", "", {"logprobs": True, "top_logprobs": 20}),
        ("tracecal-chat-completions", ",num_concurrent=4,top=3", {"top_logprobs": 3}),
        ("tracecal-completions", "", {"logprobs": 20}),
        ("tracecal-completions", ",num_concurrent=2", {"logprobs": 20}),
    ],
)
def test_samples_hold_the_answers_log_probabilities(harness, model, more, top):
    answers = made(12, 4)
    samples, asked = harness(model, answers, more)
    assert all(top.items() <= body.items() for body in asked)
    found = read_file(samples, Reading(vocabulary=1000)).frame.sort("example_id")
    told = sorted(enumerate(answers), key=lambda one: str(one[0]))
    assert found["example_id"].to_list() == [str(place) for place, _ in told]
    assert found["correct"].to_list() == [one["text"] == "yes" for _, one in told]
    assert found["answer"].to_list() == [one["text"] for _, one in told]
    assert found["model"].unique().to_list() == ["m"]
    assert found["entropy"].null_count() == 0
    for row, (_, one) in zip(found["surprisal"], told, strict=True):
        assert row.to_list() == pytest.approx([-step[0] for step in one["steps"]], rel=1e-6)


def test_confidence_is_written_beside_the_samples(harness, run):
    """From an evaluation with labels to confidences in another one's samples."""
    samples, _ = harness("tracecal-chat-completions", made(600, 5))
    folder = samples.parent
    calibrate = ["--task", "questions", "--vocabulary", "1000", "--output", folder / "C.json"]
    run(folder, "tracecal", "calibrate", "--answers", samples, *calibrate)
    new, _ = harness("tracecal-chat-completions", made(20, 6))
    given = ["--calibrator", folder / "C.json", "--error-rate", "0.3"]
    run(folder, "tracecal", "score", "--answers", new, *given, "--output", folder / "plain.jsonl")
    beside = ["--beside", new, "--output", folder / "beside.jsonl"]
    run(folder, "tracecal", "score", "--answers", new, *given, *beside)

    def read(path):
        return [json.loads(line) for line in path.read_text().split("\n") if line]

    rows, plain = read(folder / "beside.jsonl"), read(folder / "plain.jsonl")
    confidences = [row.pop("confidence") for row in rows]
    assert rows == read(new)
    for row, confidence, scored in zip(rows, confidences, plain, strict=True):
        assert scored.pop("example_id") == str(row["doc_id"])
        assert confidence == scored
        assert 0 < confidence["probability"] < 1
    assert {one["keep"] for one in confidences} == {True, False}


def test_the_harness_own_models_leave_nothing_to_score(harness, run):
    samples, _ = harness("local-chat-completions", made(3, 7))
    assert read_file(samples).frame["surprisal"].null_count() == 3


def test_repeats_keep_the_log_probabilities_of_the_first_answer(harness):
    samples, asked = harness("tracecal-chat-completions", made(3, 8), task="repeats: 2\n")
    assert len(asked) == 6
    # The harness keeps what our model says of the first response alone.
    frame = read_file(samples).frame
    assert frame.height == 6 and frame["surprisal"].null_count() == 3
    assert frame["group_id"].n_unique() == 3
    first = read_file(samples, Reading(choices="first")).frame
    assert first.height == 3 and first["surprisal"].null_count() == 0


def test_the_harness_own_command_runs_with_the_models_added(harness):
    samples, _ = harness("tracecal-completions", made(3, 9), command=True)
    assert read_file(samples).frame["surprisal"].null_count() == 0
