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


class Upstream:
    """`asked` holds (path, headers, body) of every request; `answer` what a chat is answered."""

    def __init__(self, answer=None, status=200):
        self.asked, self.answer, self.status = [], answer or chat(), status
        routes = [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/models", self._models),
        ]
        self.application = Starlette(routes=routes)

    async def _chat(self, request):
        content = await request.body()
        self.asked.append((request.url.path, dict(request.headers), content))
        if self.status != 200:
            error = {"error": {"message": "wrong key"}}
            return JSONResponse(error, self.status, {"x-request-id": "r1"})
        if json.loads(content).get("stream"):
            return StreamingResponse(self._events(), media_type="text/event-stream")
        return JSONResponse(self.answer, headers={"x-request-id": "r1"})

    async def _events(self):
        whole = "".join(
            f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in CHUNKS
        ).encode()
        whole += b": a comment\n\ndata: [DONE]\n\n"
        for place in range(0, len(whole), 37):  # pieces that end anywhere
            yield whole[place : place + 37]

    async def _models(self, request):
        self.asked.append((request.url.path, dict(request.headers), str(request.query_params)))
        return PlainTextResponse("models", headers={"x-kind": "list"})
