"""A server of the OpenAI kind that says what it is told to, and keeps what it was asked."""

import json

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from logs.rows import END, TWO, chat, token


def piece(text, logprobs, finish=None):
    """A streamed chunk of an answer."""
    choice = {
        "index": 0,
        "delta": {"content": text},
        "logprobs": {"content": logprobs} if logprobs else None,
        "finish_reason": finish,
    }
    return {"object": "chat.completion.chunk", "model": "m", "choices": [choice]}


CHUNKS = [
    {
        "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}],
    },
    piece("51", [token("51", -0.25, TWO)]),
    piece("", [token("<|im_end|>", -0.01, END)], "stop"),
    {"model": "m", "choices": [], "usage": {"total_tokens": 2}},
]


def completion(texts=("51", "<|im_end|>"), finish="stop", text="51"):
    """A completion of the older interface, whole or a streamed piece of one."""
    told = {"51": (-0.25, dict(TWO)), "<|im_end|>": (-0.01, dict(END))}
    logprobs = {
        "tokens": list(texts),
        "token_logprobs": [told[one][0] for one in texts],
        "top_logprobs": [told[one][1] for one in texts],
        "text_offset": [0] * len(texts),
    }
    choice = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": finish}
    return {"object": "text_completion", "model": "m", "choices": [choice]}


def response():
    """An answer of the Responses interface."""
    logprobs = [token("51", -0.25, TWO), token("<|im_end|>", -0.01, END)]
    part = {"type": "output_text", "text": "51", "annotations": [], "logprobs": logprobs}
    message = {"type": "message", "role": "assistant", "content": [part]}
    return {"object": "response", "model": "m", "status": "completed", "output": [message]}


# What is answered on each path: whole, and as the data of streamed events.
ANSWERS = {
    "/v1/chat/completions": (chat(), CHUNKS),
    "/v1/completions": (
        completion(),
        [completion(["51"], None), completion(["<|im_end|>"], "stop", "")],
    ),
    "/v1/responses": (
        response(),
        [
            {"type": "response.created", "response": {"model": "m", "output": []}},
            {
                "type": "response.output_text.delta",
                "delta": "51",
                "logprobs": [token("51", -0.25, TWO)],
            },
            {"type": "response.completed", "response": response()},
        ],
    ),
}


class Upstream:
    """`asked` holds (path, headers, body) of every request; `answer` is given to every one."""

    def __init__(self, answer=None, status=200):
        self.asked, self.answer, self.status = [], answer, status
        routes = [
            *(Route(path, self._answered, methods=["POST"]) for path in ANSWERS),
            Route("/v1/models", self._models),
        ]
        self.application = Starlette(routes=routes)

    async def _answered(self, request):
        content = await request.body()
        self.asked.append((request.url.path, dict(request.headers), content))
        if self.status != 200:
            error = {"error": {"message": "wrong key"}}
            return JSONResponse(error, self.status, {"x-request-id": "r1"})
        if json.loads(content).get("stream"):
            events = self._events(ANSWERS[request.url.path][1])
            return StreamingResponse(events, media_type="text/event-stream")
        answer = self.answer or ANSWERS[request.url.path][0]
        return JSONResponse(answer, headers={"x-request-id": "r1"})

    async def _events(self, chunks):
        whole = "".join(
            f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks
        ).encode()
        whole += b": a comment\n\ndata: [DONE]\n\n"
        for place in range(0, len(whole), 37):  # pieces that end anywhere
            yield whole[place : place + 37]

    async def _models(self, request):
        self.asked.append((request.url.path, dict(request.headers), str(request.query_params)))
        return PlainTextResponse("models", headers={"x-kind": "list"})
