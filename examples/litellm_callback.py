"""LiteLLM adds a confidence to every chat answer; in Python, with `litellm.acompletion`:

    litellm.callbacks = [Confidence("C.json", error_rate=0.2)]
    response = await litellm.acompletion(model="hosted_vllm/my-model", messages=messages)
    response.choices[0].confidence["keep"]

and in LiteLLM's proxy, with `callbacks: litellm_callback.confidence` in its `litellm_settings` and
`confidence = Confidence(...)` below. Streamed answers get none.
"""

from dataclasses import asdict
from typing import Any

from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import CallTypes, ModelResponse

import tracecal
from tracecal.errors import WrongRow

CHAT = (CallTypes.acompletion, CallTypes.completion)


class Confidence(CustomLogger):
    """Asks for log-probabilities, and writes into each choice `probability`, its bounds `lower` and
    `upper`, whether to `keep` the answer at the error rate, and the `reason` where there is none.

    `processed="no"`: the server states raw probabilities whatever the request, as vLLM does.
    """

    def __init__(self, calibrator: str, error_rate: float, processed: str = "auto") -> None:
        super().__init__()
        self.calibrator = tracecal.Calibrator.load(calibrator)
        reading = tracecal.Reading(processed=processed)
        self.options: dict[str, Any] = {"error_rate": error_rate, "reading": reading}

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        if call_type not in CHAT:
            return None
        return kwargs | {"logprobs": True, "top_logprobs": self.calibrator.fitted_on.top_k or 20}

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: CallTypes | None
    ) -> Any:
        if isinstance(response, ModelResponse):
            for choice in response.choices:
                alone = response.model_dump() | {"choices": [choice.model_dump()]}
                choice.confidence = self.scored(alone, request_data)
        return response

    def scored(self, response: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
        try:
            found = self.calibrator.score_response(response, request, **self.options)
        except (tracecal.InputError, WrongRow) as error:
            return {"probability": None, "keep": None, "reason": str(error)}
        return asdict(found)
