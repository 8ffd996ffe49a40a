"""Ask a large model of a LiteLLM router where a calibrated threshold does not keep the small one's
answer. The threshold stands in the calibrator's file, which is reviewed and versioned:

    escalation = Escalation(router, "C.json", "small", "large", error_rate=0.2)
    response = await escalation.acompletion(messages=messages)
    response.choices[0].confidence["escalated"]

`router` is a `litellm.Router`; "small" and "large" are names of its `model_list`.
"""

from dataclasses import asdict
from typing import Any

import openai
from litellm import Router

import tracecal
from tracecal.errors import WrongRow


class Escalation:
    """Adds to each choice a `confidence`: the small answer's `probability` and `keep`, the `reason`
    where there is none, and whether the answer was `escalated`. Where the large model fails, the
    small one's answer comes back, with the `failure`. `processed` as in litellm_callback.py.
    """

    def __init__(
        self,
        router: Router,
        calibrator: str,
        small: str,
        large: str,
        *,
        error_rate: float,
        processed: str = "auto",
    ) -> None:
        self.router, self.small, self.large = router, small, large
        self.calibrator = tracecal.Calibrator.load(calibrator)
        self.options = {
            "error_rate": error_rate,
            "reading": tracecal.Reading(processed=processed),
        }

    async def acompletion(self, **request: Any) -> Any:
        if request.get("stream") or request.get("n", 1) > 1:
            raise tracecal.InputError("expected a request for one answer, not streamed")
        read = {"logprobs": True, "top_logprobs": self.calibrator.fitted_on.top_k or 20}
        response = await self.router.acompletion(**request | read | {"model": self.small})
        confidence = self.scored(response, request | read)
        if not confidence["keep"]:
            try:
                response = await self.router.acompletion(**request | {"model": self.large})
                confidence["escalated"] = True
            except openai.APIError as error:  # LiteLLM's own errors are such
                confidence["failure"] = str(error)
        for choice in response.choices:
            choice.confidence = confidence
        return response

    def scored(self, response: Any, request: dict[str, Any]) -> dict[str, Any]:
        try:
            confidence = asdict(self.calibrator.score_response(response, request, **self.options))
        except (tracecal.InputError, WrongRow) as error:
            confidence = {"probability": None, "keep": None, "reason": str(error)}
        return confidence | {"escalated": False}
