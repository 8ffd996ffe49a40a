"""Models of lm-evaluation-harness that keep their servers' log-probabilities in the samples.

`python -m tracecal.serving.lm_eval_models` is the harness's own command with these two added.
"""

from operator import itemgetter
from typing import Any

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.registry import register_model
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI

from tracecal.answers.formats.lm_eval import KEPT


class Answer(str):
    """An answer's text, with the response that it came from."""

    response: dict[str, Any]

    @classmethod
    def of(cls, text: str, response: dict[str, Any]) -> "Answer":
        """The text with its response."""
        answer = cls(text)
        answer.response = response
        return answer


class Keeping:
    """An API model of the harness that asks for log-probabilities and keeps them.

    The harness writes an answer as its text. What a request was made with it writes as well, as the
    sample's `arguments`: the response is added there. `top` tokens are asked for at each step.
    """

    def __init__(self, top: int = 20, **settings: Any) -> None:
        super().__init__(**settings)
        self._asked = self._logprobs(int(top))

    def _create_payload(self, *given: Any, generate: bool = False, **more: Any) -> dict[str, Any]:
        payload = super()._create_payload(*given, generate=generate, **more)
        return payload | self._asked if generate else payload

    def parse_generations(self, outputs: Any, **more: Any) -> list[str | None]:
        """The answers' texts, each with its own choice of the response."""
        texts = super().parse_generations(outputs, **more)
        own = [
            {"model": output.get("model"), "choices": [choice]}
            for output in (outputs if isinstance(outputs, list) else [outputs])
            for choice in sorted(output.get("choices") or (), key=itemgetter("index"))
        ]
        if len(own) != len(texts):  # of a response without choices the harness makes an empty text
            return texts
        pairs = zip(texts, own, strict=True)
        return [text if text is None else Answer.of(text, response) for text, response in pairs]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """The harness's, with the first response to each request added to its arguments."""
        answers = super().generate_until(requests, disable_tqdm)
        for request, answer in zip(requests, answers, strict=True):
            kept = any(isinstance(one, dict) and KEPT in one for one in request.arguments)
            if isinstance(answer, Answer) and not kept:
                request.arguments = (*request.arguments, {KEPT: answer.response})
        return answers


@register_model("tracecal-completions")
class Completions(Keeping, LocalCompletionsAPI):
    """`local-completions` that keeps log-probabilities."""

    @staticmethod
    def _logprobs(top: int) -> dict[str, Any]:
        return {"logprobs": top}


@register_model("tracecal-chat-completions")
class ChatCompletions(Keeping, LocalChatCompletion):
    """`local-chat-completions` that keeps log-probabilities."""

    @staticmethod
    def _logprobs(top: int) -> dict[str, Any]:
        return {"logprobs": True, "top_logprobs": top}


if __name__ == "__main__":
    cli_evaluate()
