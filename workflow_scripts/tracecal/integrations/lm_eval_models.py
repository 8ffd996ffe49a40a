"""Models of lm-evaluation-harness that keep their servers' log-probabilities in the samples.

`python -m tracecal.integrations.lm_eval_models` is the harness's own command with these two added.
In a program, import this module before ``simple_evaluate``.
"""

from operator import itemgetter
from typing import Any

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.registry import register_model
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI

from tracecal.answers.formats.lm_eval import RESPONSE_ARGUMENT


class AnswerWithResponse(str):
    """An answer's text, with the response that it came from."""

    response: dict[str, Any]

    @classmethod
    def of(cls, text: str, response: dict[str, Any]) -> "AnswerWithResponse":
        """Return the text with its response; the harness calls the class with a text alone."""
        answer = cls(text)
        answer.response = response
        return answer


class LogprobsKeeper:
    """An API model of the harness that requests log-probabilities and keeps them.

    The harness writes an answer as its text, and what its request was made with as the sample's
    `arguments`: the response is added there.

    Parameters
    ----------
    top : int
        Tokens to request at each step.
    **settings
        Of the harness's own model.
    """

    def __init__(self, top: int = 20, **settings: Any) -> None:
        super().__init__(**settings)
        self._additions = self._logprobs(int(top))

    def _create_payload(
        self, *arguments: Any, generate: bool = False, **options: Any
    ) -> dict[str, Any]:
        payload = super()._create_payload(*arguments, generate=generate, **options)
        return payload | self._additions if generate else payload

    def parse_generations(self, outputs: Any, **options: Any) -> list[str | None]:
        """Return the answers' texts, each with its own choice of the response."""
        texts = super().parse_generations(outputs, **options)
        responses = [
            {"model": output.get("model"), "choices": [choice]}
            for output in (outputs if isinstance(outputs, list) else [outputs])
            for choice in sorted(output.get("choices") or (), key=itemgetter("index"))
        ]
        if len(responses) != len(texts):  # the harness makes up a text where there is no choice
            return texts
        return [
            text if text is None else AnswerWithResponse.of(text, response)
            for text, response in zip(texts, responses, strict=True)
        ]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Generate as the harness does, and add each request's first response to its arguments."""
        answers = super().generate_until(requests, disable_tqdm)
        for request, answer in zip(requests, answers, strict=True):
            has_response = any(
                isinstance(argument, dict) and RESPONSE_ARGUMENT in argument
                for argument in request.arguments
            )
            if isinstance(answer, AnswerWithResponse) and not has_response:
                request.arguments = (*request.arguments, {RESPONSE_ARGUMENT: answer.response})
        return answers


@register_model("tracecal-completions")
class CompletionsWithLogprobs(LogprobsKeeper, LocalCompletionsAPI):
    """`local-completions` that keeps log-probabilities."""

    @staticmethod
    def _logprobs(top: int) -> dict[str, Any]:
        return {"logprobs": top}


@register_model("tracecal-chat-completions")
class ChatCompletionsWithLogprobs(LogprobsKeeper, LocalChatCompletion):
    """`local-chat-completions` that keeps log-probabilities."""

    @staticmethod
    def _logprobs(top: int) -> dict[str, Any]:
        return {"logprobs": True, "top_logprobs": top}


if __name__ == "__main__":
    cli_evaluate()
