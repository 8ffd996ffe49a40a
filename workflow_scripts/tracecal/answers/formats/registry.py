"""The formats of answers, in the order of recognition."""

from tracecal.answers.formats import (
    cohere,
    columns,
    decision,
    every_eval_ever,
    gemini,
    inspect,
    langchain,
    llama_cpp,
    lm_eval,
    ollama,
    openai_chat,
    openai_completions,
    openai_responses,
    outputs,
    sglang,
    tgi,
)
from tracecal.answers.formats.format import Format, Row
from tracecal.errors import WrongRow

FORMATS: dict[str, Format] = {
    module.FORMAT.name: module.FORMAT
    for module in (
        inspect,
        lm_eval,
        every_eval_ever,
        openai_chat,
        openai_completions,
        openai_responses,
        gemini,
        langchain,
        outputs,
        llama_cpp,
        sglang,
        tgi,
        cohere,
        ollama,
        decision,
        columns,
    )
}


def recognise(row: Row) -> Format:
    """The first format that recognises a row. Raises `WrongRow` where none does.

    >>> recognise({"choices": [{"message": {"content": "Lima"}}]}).name
    'openai_chat'
    """
    for answer_format in FORMATS.values():
        if answer_format.recognises(row):
            return answer_format
    raise WrongRow(f"its format is unknown; expected one of {', '.join(FORMATS)}")
