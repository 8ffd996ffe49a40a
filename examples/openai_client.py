"""A chat answer of the openai package's client, with its confidence:

create = confident(OpenAI().chat.completions.create, "C.json", error_rate=0.2)
create(model="my-model", messages=messages).choices[0].confidence.keep
"""

from collections.abc import Callable
from typing import Any

from tracecal.answers.settings import Reading
from tracecal.calibration.calibrator import load
from tracecal.calibration.score import score_response


def confident(create: Callable[..., Any], calibrator: str, error_rate: float, processed="auto"):
    """`create`, which asks for log-probabilities too and adds to the first choice its confidence.

    `processed="no"`: the server states raw probabilities whatever the request, as vLLM does.
    """
    fitted, reading = load(calibrator), Reading(processed=processed)

    def with_confidence(**request: Any) -> Any:
        asked = {"logprobs": True, "top_logprobs": fitted.fitted_on.top_k or 20}
        response = create(**request | asked)
        found = score_response(fitted, response, request, error_rate, reading)
        response.choices[0].confidence = found
        return response

    return with_confidence
