"""The formats of answers, most of them data: where each keeps what an answer needs.

To add a format, add a `Layout` to `LAYOUTS`, in the place at which rows should be recognised, and
a file of rows to tests/tracecal/answers/recorded. Functions before the table are what no path says.
`FORMATS` has all in the order of recognition, with those that compute in modules of their own.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator

from tracecal.answers.formats import columns, decision, lm_eval
from tracecal.answers.formats.layout import Formats, Layout, Row, TokenList, by_ending
from tracecal.answers.formats.stream import Stream, has_no_id
from tracecal.answers.raw_answer import NO_ANSWERS, Known, RawAnswer, split_content
from tracecal.answers.tokens import (
    Step,
    Token,
    infer_stop_token,
    make_step,
    read_step,
    read_steps,
    require_texts,
    spelled,
    step_token_ids,
)
from tracecal.errors import Unanswered, WrongRow

# A text; anything else is none.
AnyText = Annotated[
    str | None, BeforeValidator(lambda value: value if isinstance(value, str) else None)
]
EACH_CHOICE = "choices![+]"
COHERE_FINISHES = ("COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "ERROR_TOXIC")
COHERE_FINISHES += ("TIMEOUT",)
# Of tools that the client runs, or allows.
CLIENT_CALLS = ("function_call", "custom_tool_call", "computer_call", "local_shell_call")
CLIENT_CALLS += ("shell_call", "apply_patch_call", "mcp_approval_request")
END_EVENTS = ("response.completed", "response.incomplete")  # those that hold a whole response
CHUNKS = ("chat.completion.chunk", "text_completion.chunk")
# Fields that distinguish a piece of llama.cpp's from a row with a column `stop`.
LLAMA = {"completion_probabilities", "id_slot", "tokens_predicted", "slot_id"}
# The fields in which LangChain wraps a message: ``dumpd``, ``message_to_dict`` and a generation.
WRAPPINGS = ("kwargs", "data", "message")


def _with_output(row: Row) -> Row:
    """A sample of Inspect. Raises `Unanswered` where the model gave no output."""
    if "output" not in row:
        raise Unanswered("empty")
    return row


def _with_candidates(row: Row) -> Row:
    """A response of Gemini. Raises `Unanswered` where the prompt was blocked."""
    feedback = row.get("promptFeedback", row.get("prompt_feedback"))
    if isinstance(feedback, dict) and not row.get("candidates"):
        raise Unanswered("filtered")
    if row.get("candidates", []) is None:
        raise Unanswered("empty")
    return row


def _with_scores(answer: RawAnswer, sample: Any) -> RawAnswer:
    scores = (sample.scores or {}).items()
    verdicts = {f"scores.{scorer}.value": score.get("value") for scorer, score in scores}
    return replace(answer, verdicts=verdicts)


def _turn(answer: RawAnswer, instance: Any) -> RawAnswer:
    """The response of a single turn, or the last message of the assistant."""
    verdicts = {"evaluation.is_correct": instance.evaluation.get("is_correct")}
    if instance.output is not None:
        if len(instance.output.raw) > 1:
            raise WrongRow(f"its output has {len(instance.output.raw)} responses; expected one")
        thoughts = "".join(instance.output.reasoning_trace or ()) or None
        text = "".join(instance.output.raw)
    else:
        turns = [turn for turn in instance.messages or () if turn.role == "assistant"]
        if not turns:
            raise WrongRow("it has neither an output nor a message of the assistant")
        text, thoughts = turns[-1].content, turns[-1].reasoning_trace or None
    return replace(answer, answer=text, thoughts=thoughts, verdicts=verdicts)


def _output_texts(response: Any) -> list[Any]:
    """The texts of the messages of a response, as the client's `output_text` joins them.

    Messages in the phase 'commentary', which precede calls of tools, are no part of the answer.
    """
    items = (item for item in response.output if item.type == "message")
    parts = (part for item in items if item.phase != "commentary" for part in item.content or ())
    return [part for part in parts if part.type == "output_text"]


def _response_steps(response: Any) -> list[Step]:
    """The steps of texts; a text without log-probabilities becomes one empty step."""
    texts = _output_texts(response)
    if not any(text.logprobs for text in texts):
        return []
    return [
        step
        for text in texts
        if text.text
        for step in read_steps(text.logprobs) or [Step(text.text, None, None)]
    ]


def _response_text(answer: RawAnswer, response: Any) -> RawAnswer:
    text = "".join(text.text for text in _output_texts(response))
    types = [item.type for item in response.output]
    parts = [part for item in response.output for part in item.content or ()]
    refusals = "".join(part.refusal or "" for part in parts)
    finish_reason = (response.incomplete_details or {}).get("reason")
    return replace(
        answer,
        answer=text,
        thoughts="" if "reasoning" in types else answer.thoughts,
        refusal=refusals or None,
        calls_tool=any(
            name in CLIENT_CALLS or (name.endswith("_call") and not text) for name in types
        ),
        finish_reason=finish_reason if finish_reason in NO_ANSWERS else answer.finish_reason,
        stop_token=infer_stop_token(text, answer.steps),
    )


def _message(value: Any) -> Row | None:
    """The fields of LangChain's message, out of what wraps it; None where there is none."""
    for _ in range(len(WRAPPINGS) + 1):
        if not isinstance(value, dict):
            return None
        if isinstance(value.get("response_metadata"), dict):
            return value
        value = next((value[name] for name in WRAPPINGS if name in value), None)
    return None


def _generations(row: Row) -> list[Any]:
    """The generations of all prompts of LangChain's ``LLMResult``."""
    listed = row.get("generations")
    batches = listed if isinstance(listed, list) else []
    return [
        generation
        for batch in batches
        for generation in (batch if isinstance(batch, list) else [batch])
        if isinstance(generation, dict)
    ]


def _first_message(row: Row) -> Row:
    message = _message(next(iter(_generations(row)), row))
    if message is None:
        raise WrongRow("its generation holds no message: only those of chat models are read")
    return message


def _messages(row: Row) -> dict[str, Row]:
    """The message that a row wraps, or those of the generations, by the ending of its id."""
    messages = [_message(value) for value in _generations(row) or [row]]
    if None in messages:
        return {"": row}
    if isinstance(output := row.get("llm_output"), dict) and output.get("model_name"):
        messages = [message | {"model": output["model_name"]} for message in messages if message]
    return by_ending(filter(None, messages))


def _without_prompt_of_chat(answer: RawAnswer, row: Any) -> RawAnswer:
    """Of `messages`, the prompt is not what the model was given."""
    return answer if row.messages is None else replace(answer, prompt=None)


def _llama_steps(row: Any) -> list[Step]:
    return spelled([_llama_step(token) for token in row.completion_probabilities or ()])


def _llama_step(token: Token) -> Step:
    """The step of a generated token; old builds write `content` and `probs` instead."""
    try:
        if (probs := token.get("probs")) is None:
            top = token.get("top_logprobs") or token.get("top_probs") or ()
            return read_step(_with_logprob(token), [_with_logprob(candidate) for candidate in top])
        # They state the probability of the generated token only in the list of the likeliest ones.
        top = [(token["tok_str"], None, _log(token["prob"])) for token in probs]
        text = token["content"]
        require_texts([text])
        return make_step(text, None, {name: logprob for name, _, logprob in top}.get(text), top)
    except (AttributeError, KeyError, TypeError) as error:
        raise WrongRow("its probabilities are no objects with 'content' and 'probs'") from error


def _with_logprob(token: Token) -> Token:
    """A token with its log-probability, where it states its probability after sampling instead."""
    prob = token.get("prob")
    return token if prob is None else {**token, "logprob": _log(prob)}


def _log(probability: float) -> float | None:
    """ln p; None for 0, the probability of a token that sampling excludes."""
    if math.isnan(probability) or probability < 0:
        raise WrongRow(f"it has the probability {probability:g}")
    return math.log(probability) if probability > 0 else None


def _llama_kind(answer: RawAnswer, row: Any) -> RawAnswer:
    """`prob` is of the distribution that was sampled, log-probabilities of the raw one."""
    tokens = row.completion_probabilities or []
    is_sampled = any(token.get("prob", token.get("probs")) is not None for token in tokens)
    processed: Known = "unknown" if not tokens else "yes" if is_sampled else "no"
    token_ids = step_token_ids(answer.steps) or answer.token_ids
    return replace(answer, processed=processed, token_ids=token_ids)


def _special_end(answer: RawAnswer, row: Any) -> RawAnswer:
    """A special token at the end is none of the text, though it may have one of its own."""
    tokens = row.details.tokens
    return replace(answer, stop_token="included") if tokens and tokens[-1].special else answer


def _is_cohere(row: Row) -> bool:
    """Whether a row has Cohere's pieces, or a message in parts and its words for the end."""
    pieces = row.get("logprobs")
    if not isinstance(row.get("message"), dict) or not isinstance(row.get("finish_reason"), str):
        return False
    if isinstance(pieces, list) and pieces:
        return all(isinstance(piece, dict) and "token_ids" in piece for piece in pieces)
    return row["finish_reason"] in COHERE_FINISHES


def _cohere_steps(row: Any) -> list[Step]:
    """The steps of pieces of text, whose last token gets the text: a piece splits it no further."""
    steps = []
    for piece in row.logprobs or ():
        n_tokens, logprobs = len(piece.token_ids), piece.logprobs or [None] * len(piece.token_ids)
        if len(logprobs) != n_tokens:
            raise WrongRow(f"it has {n_tokens} token ids and {len(logprobs)} log-probabilities")
        texts: list[Any] = [""] * (n_tokens - 1) + [piece.text]
        steps += map(Step, texts, piece.token_ids, logprobs)
    return steps


def _chat_delta(part: Row) -> Row:
    """A choice whose `delta` has texts, where Mistral has parts."""
    delta = part.get("delta")
    if not isinstance(delta, dict):
        return part
    text, thoughts = split_content(delta.get("content"))
    reasoning = {} if thoughts is None else {"reasoning_content": thoughts}
    return part | {"delta": delta | reasoning | {"content": text or ""}}


def _is_open(row: Row) -> bool:
    """Whether no candidate of Gemini's response has ended, and users gave it no id."""
    candidates = [each for each in row["candidates"] if isinstance(each, dict)]
    return has_no_id(row) and any(
        candidate.get("finishReason") is None and candidate.get("finish_reason") is None
        for candidate in candidates
    )


def _is_unstopped(row: Row) -> bool:
    return not row["stop"] and has_no_id(row) and not LLAMA.isdisjoint(row)


def _join_event(answer: Row, piece: Row) -> bool:
    """Join an event of a response: the last one holds all of it."""
    kind, response = piece["type"], piece.get("response")
    has_ended = kind in END_EVENTS and isinstance(response, dict)
    if has_ended:
        answer.clear()
        answer |= response
    elif isinstance(response, dict):
        answer |= {name: value for name, value in response.items() if name != "output"}
    output = answer.setdefault("output", [])
    if not isinstance(index := piece.get("output_index"), int) or index > len(output):
        return has_ended
    if index == len(output):
        output.append({"type": "message", "content": []})
    if isinstance(piece.get("item"), dict):  # as it begins, or whole
        output[index] = piece["item"] | {"content": piece["item"].get("content") or []}
    elif kind == "response.output_text.delta":
        content = output[index].setdefault("content", [])
        place = piece.get("content_index")
        if not isinstance(place, int) or place >= len(content):
            content.append({"type": "output_text", "text": ""})
            place = -1
        part, delta, logprobs = content[place], piece.get("delta"), piece.get("logprobs")
        part["text"] = (part.get("text") or "") + (delta if isinstance(delta, str) else "")
        if isinstance(logprobs, list):
            part["logprobs"] = [*(part.get("logprobs") or ()), *logprobs]
    return has_ended


def _join_token(answer: Row, piece: Row) -> bool:
    """Join a piece of Text Generation Inference, a token each; the last one has the whole text."""
    token, text, ending = piece["token"], piece["generated_text"], piece.get("details")
    details = answer.setdefault("details", {"tokens": [], "top_tokens": []})
    details["tokens"].append(token)
    details["top_tokens"].append(piece.get("top_tokens") or [])
    joined = answer.setdefault("generated_text", "")
    if not token.get("special") and isinstance(token.get("text"), str):
        joined += token["text"]
    answer["generated_text"] = text if isinstance(text, str) else joined
    if isinstance(ending, dict):
        details["finish_reason"] = ending.get("finish_reason")
    return isinstance(text, str)


CHAT_STREAM = Stream(  # of older completions too
    marks=("choices[]",),
    is_piece=lambda row: row.get("object") in CHUNKS,
    each="choices",
    prepare=_chat_delta,
    texts=(
        "delta.content > message.content",
        "delta.reasoning_content > message.reasoning_content",
        "delta.reasoning > message.reasoning",
        "delta.refusal > message.refusal",
        "text",
    ),
    lists=("delta.tool_calls > message.tool_calls", "token_ids", "logprobs.*"),
    stated=("finish_reason", "stop_reason"),
)
LAYOUTS: Mapping[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout(
            name="inspect",
            programs="samples of Inspect AI's logs",
            marks=(
                "output{}.choices epoch",
                # Inspect calls the end `stop_reason`.
                "output{}.choices !output.choices.0.finish_reason",
                "epoch input messages !output",
            ),
            unwrap=_with_output,
            each="output!.choices![+]",
            of_first=("scores",),
            content=".message.content",
            tool_calls=".message.tool_calls",
            logprobs=".logprobs",
            finish_reason=".stop_reason",
            model="output!.model",
            usage="output!.usage",
            also={"scores": dict[str, dict[str, Any]]},
            last_touch=_with_scores,
        ),
        Layout(
            name="every_eval_ever",
            programs="instance files of Every Eval Ever, which hold no log-probabilities",
            marks=("evaluation_id sample_id interaction_type evaluation",),
            prompt="input!.formatted",
            model="model_id!",
            also={
                "interaction_type!": str,
                "input!.raw!": str,
                "output?.raw!": list[str],
                "output?.reasoning_trace": list[str],
                "messages?[].role!": str,
                "messages?[].content": str,
                "messages?[].reasoning_trace": str,
                "evaluation!": dict[str, Any],
            },
            last_touch=_turn,
        ),
        Layout(
            name="openai_chat",
            programs="OpenAI's chat completions; vLLM, SGLang, llama.cpp, LiteLLM and others",
            marks=("choices.0.message", "choices[] object !choices.0"),
            each=EACH_CHOICE,
            content=".message!.content",
            thoughts=".message!.reasoning_content | .message!.reasoning",
            refusal=".message!.refusal",
            tool_calls=".message!.tool_calls | .message!.function_call",
            logprobs=".logprobs",
            token_ids=".token_ids",
            prompt_token_ids="prompt_token_ids",
            finish_reason=".finish_reason",
            stop_reason=".stop_reason",
            model="model",
            usage="usage",
            also={".index": (int, 0)},
            stream=CHAT_STREAM,
        ),
        Layout(
            name="openai_completions",
            programs="OpenAI's older completions; vLLM, SGLang, llama.cpp and others",
            marks=("choices.0.text",),
            each=EACH_CHOICE,
            text=".text!",
            logprobs=".logprobs",
            token_ids=".token_ids",
            prompt_token_ids=".prompt_token_ids",
            finish_reason=".finish_reason",
            stop_reason=".stop_reason",
            model="model",
            usage="usage",
            also={".index": (int, 0)},
        ),
        Layout(
            name="openai_responses",
            programs="OpenAI's Responses",
            marks=("output[]",),
            finish_reason="status",
            model="model",
            usage="usage",
            also={
                "output![].type": (str, "message"),
                "output![].phase": str,
                "output![].content?[].type": (str, "output_text"),
                "output![].content?[].text": (str, ""),
                "output![].content?[].refusal": str,
                "incomplete_details": dict[str, Any],
                "output![].content?[].logprobs": list[Token],
            },
            steps=_response_steps,
            last_touch=_response_text,
            stream=Stream(
                marks=lambda event: str(event.get("type")).startswith("response."),
                is_piece=lambda event: True,
                begins=lambda event: event["type"] == "response.created",
                join=_join_event,
            ),
        ),
        Layout(
            name="gemini",
            programs="responses of Gemini's generateContent, in either case of names",
            marks=(
                *("candidates[{}]", "promptFeedback{}", "prompt_feedback{}"),
                *("candidates modelVersion", "candidates model_version"),
            ),
            unwrap=_with_candidates,
            in_camel_case=True,
            each="candidates![+]",
            content=".content?.parts",
            finish_reason=".finish_reason",
            model="model_version",
            usage="usage_metadata",
            also={".content?.parts": list[dict[str, Any]], ".index": Any},
            steps=TokenList(
                path=".logprobs_result?.chosen_candidates?[]",
                text="token",
                token_id="token_id",
                logprob="log_probability",
                top=".logprobs_result?.top_candidates?[].candidates?[]",
            ),
            stream=Stream(
                marks=("candidates[]",),
                is_piece=_is_open,
                each="candidates",
                lists=("content.parts", "logprobsResult.*", "logprobs_result.*"),
                stated=("finishReason", "finish_reason"),
                ends_with_choices=True,
            ),
        ),
        Layout(
            name="langchain",
            programs="LangChain's AIMessage, as model_dump, dumpd, message_to_dict or LLMResult",
            marks=lambda row: bool(_generations(row)) or _message(row) is not None,
            unwrap=_first_message,
            splitter=_messages,
            content="content",
            thoughts="additional_kwargs.reasoning_content",
            refusal="additional_kwargs.refusal",
            tool_calls="tool_calls | invalid_tool_calls | additional_kwargs.tool_calls | "
            "additional_kwargs.function_call",
            logprobs="response_metadata!.logprobs",
            finish_reason="response_metadata!.finish_reason | response_metadata!.stop_reason | "
            "response_metadata!.done_reason",
            model="response_metadata!.model_name | response_metadata!.model | model",
            usage="usage_metadata | response_metadata!.token_usage",
            also={
                "additional_kwargs.reasoning_content": AnyText,
                "response_metadata!.finish_reason": AnyText,
                "response_metadata!.stop_reason": AnyText,
                "response_metadata!.done_reason": AnyText,
                "response_metadata!.model_name": AnyText,
                "response_metadata!.model": AnyText,
            },
        ),
        Layout(
            name="outputs",
            programs="vLLM's RequestOutput offline, and the history of dspy's LM",
            marks=("outputs.0 outputs[{}].text",),
            each="outputs![+]",
            text=".text",
            thoughts=".reasoning_content",
            tool_calls=".tool_calls",
            logprobs=".logprobs",
            token_ids=".token_ids",
            prompt_token_ids="prompt_token_ids",
            finish_reason=".finish_reason",
            stop_reason=".stop_reason",
            model="response_model | model",
            usage="usage",
            prompt="prompt",
            also={".index": Any, "messages": Any},
            last_touch=_without_prompt_of_chat,
        ),
        Layout(
            name="llama_cpp",
            programs="llama.cpp's /completion",
            marks=("completion_probabilities", "generation_settings"),
            text="content!",
            token_ids="tokens",
            finish_reason="stop_type",
            model="model",
            also={"completion_probabilities": list[Token]},
            steps=_llama_steps,
            last_touch=_llama_kind,
            stream=Stream(
                marks=("content:text stop:bool",),
                is_piece=_is_unstopped,
                prepare=lambda piece: {"completion_probabilities": [], **piece},
                texts=("content",),
                lists=("tokens", "completion_probabilities"),
                ends=lambda piece: piece["stop"],
            ),
        ),
        Layout(
            name="sglang",
            programs="SGLang's /generate",
            marks=("meta_info{}",),
            text="text",
            token_ids="output_ids",
            finish_reason="meta_info!.finish_reason?.type",
            usage="meta_info!.reasoning_tokens",
            steps=TokenList(
                path="meta_info!.output_token_logprobs?[?]",
                text="2",
                token_id="1!",
                logprob="0",
                top="meta_info!.output_top_logprobs?[?][]",
            ),
        ),
        Layout(
            name="tgi",
            programs="Text Generation Inference's /generate with details",
            marks=("generated_text details{}",),
            text="generated_text!",
            finish_reason="details!.finish_reason",
            also={
                "details!.tokens[].special": (bool, False),
                "details!.top_tokens?[][].special": (bool, False),
                "details!.best_of_sequences": list[Any],
            },
            steps=TokenList(
                path="details!.tokens[]",
                text="text!",
                token_id="id!",
                logprob="logprob",
                top="details!.top_tokens?[][]",
            ),
            last_touch=_special_end,
            stream=Stream(marks=("token{} generated_text",), join=_join_token),
        ),
        Layout(
            name="cohere",
            programs="Cohere's /v2/chat, which gives no other tokens",
            marks=_is_cohere,
            content="message!.content",
            tool_calls="message!.tool_calls",
            finish_reason="finish_reason!",
            model="model",
            usage="usage",
            also={
                "logprobs?[].text": str,
                "logprobs?[].token_ids!": list[int],
                "logprobs?[].logprobs": list[float | None],
            },
            steps=_cohere_steps,
        ),
        Layout(
            name="ollama",
            programs="Ollama's /api/generate and /api/chat",
            marks=("done", "message{} logprobs[]"),
            text="message?.content | response",
            thoughts="message?.thinking | thinking",
            tool_calls="message?.tool_calls",
            logprobs="logprobs",
            finish_reason="done_reason",
            model="model",
            stream=Stream(
                marks=("done:bool message", "done:bool response"),
                is_piece=lambda row: not row["done"] and "created_at" in row and has_no_id(row),
                texts=("message.content", "message.thinking", "response", "thinking"),
                lists=("logprobs",),
                ends=lambda piece: piece["done"],
            ),
        ),
    )
}
FORMATS = Formats(
    {
        "inspect": LAYOUTS["inspect"],
        "lm_eval": lm_eval.sample_format(LAYOUTS["openai_chat"], LAYOUTS["openai_completions"]),
        "every_eval_ever": LAYOUTS["every_eval_ever"],
        **LAYOUTS,
        "decision": decision.FORMAT,
        "columns": columns.FORMAT,
    }
)
