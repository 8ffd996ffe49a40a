"""A chat answer of the openai package's client, with its confidence:

create = confident(OpenAI().chat.completions.create, "C.json", error_rate=0.2)
create(model="my-model", messages=messages).choices[0].confidence.keep
"""

from collections.abc import Callable
from typing import Any

import tracecal


def confident(create: Callable[..., Any], calibrator: str, error_rate: float, processed="auto"):
    """`create`, which asks for log-probabilities too and adds to the first choice its confidence.

    `processed="no"`: the server states raw probabilities whatever the request, as vLLM does.
    """
    fitted = tracecal.Calibrator.load(calibrator)
    options = {"error_rate": error_rate, "reading": tracecal.Reading(processed=processed)}

    def with_confidence(**request: Any) -> Any:
        asked = {"logprobs": True, "top_logprobs": fitted.fitted_on.top_k or 20}
        response = create(**request | asked)
        response.choices[0].confidence = fitted.score_response(response, request, **options)
        return response

    return with_confidence
