"""A server of the OpenAI kind that says what it is told to, and keeps what it was asked."""

import asyncio
import json
import threading

from aiohttp import web

from support.log_rows import END, TWO, chat, token


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


WRONG_KEY = {"error": {"message": "wrong key"}}
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


class Background:
    """An application that serves on a free port of this machine, in a thread of its own."""

    def __init__(self, application, **options):
        self.application, self.options = application, {"shutdown_timeout": 0.1} | options

    def __enter__(self):
        self.loop, started = asyncio.new_event_loop(), threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self.thread.start()
        assert started.wait(30)
        return self

    def _run(self, started):
        self.loop.run_until_complete(self._start())
        started.set()
        self.loop.run_forever()
        self.loop.run_until_complete(self.runner.cleanup())
        self.loop.close()

    async def _start(self):
        self.runner = web.AppRunner(self.application, **self.options)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(30)
        assert not self.thread.is_alive()


class Upstream:
    """`asked` holds (path, headers, body) of every request; `answer` is given to every one.

    `left` counts requests whose client left before the answer.
    """

    def __init__(self, answer=None, status=200):
        self.asked, self.answer, self.status, self.left = [], answer, status, 0
        self.application = web.Application(client_max_size=2**30)
        for path in ANSWERS:
            self.application.router.add_post(path, self._watched)
        for path in ("/v1/models", "/metrics"):
            self.application.router.add_get(path, self._models)

    def serving(self):
        return Background(self.application, handler_cancellation=True, auto_decompress=False)

    async def _watched(self, request):
        content = await request.read()
        self.asked.append((request.raw_path, request.headers.copy(), content))
        try:
            return await self._answered(request, content)
        except asyncio.CancelledError:
            self.left += 1
            raise

    async def _answered(self, request, content):
        if self.status != 200:
            return web.json_response(WRONG_KEY, status=self.status, headers={"x-request-id": "r1"})
        if json.loads(content).get("stream"):
            return await self._stream(request, self._written(ANSWERS[request.path][1]))
        answer = self.answer or ANSWERS[request.path][0]
        return web.json_response(answer, headers={"x-request-id": "r1"})

    def _written(self, chunks):
        """The bytes of a stream of events."""
        events = (f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks)
        return "".join(events).encode() + b": a comment\n\ndata: [DONE]\n\n"

    async def _stream(self, request, content, step=37):
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for place in range(0, len(content), step):  # pieces that end anywhere
            await response.write(content[place : place + step])
        return response

    async def _models(self, request):
        self.asked.append((request.raw_path, request.headers.copy(), request.query_string))
        return web.Response(text="models", headers={"x-kind": "list"})
