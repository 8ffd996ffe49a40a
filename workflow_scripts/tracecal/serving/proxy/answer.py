"""A server's whole answer with confidence."""

from tracecal.serving.proxy.endpoints import (
    Endpoint,
    drop_confidence,
    may_need_changes,
    require_opaque,
    trim,
)
from tracecal.serving.proxy.json_bodies import Object, parse_json, write_json
from tracecal.serving.proxy.scorer import Unscored


def score_body(
    content: bytes, status: int, scorer: Unscored, request: Object, endpoint: Endpoint
) -> bytes:
    """Return an answer's body with confidence and the requested log-probabilities alone; an error's
    body without any.

    Raises `UnreadableError` where the body is no JSON and might hold log-probabilities that the
    client did not request, or a confidence.
    """
    top = endpoint.client_top(request)
    try:
        answer = parse_json(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict | list):
        return require_opaque(content, top)
    is_answer = is_success(status) and isinstance(answer, dict)
    if not (is_answer or may_need_changes(content)):
        return content
    drop_confidence(answer)
    if is_answer:
        scorer.add_confidence(answer, request)
    trim(answer, top)
    return write_json(answer)


def is_success(status: int) -> bool:
    """Return whether clients take a response of this status as an answer."""
    return status // 100 == 2
