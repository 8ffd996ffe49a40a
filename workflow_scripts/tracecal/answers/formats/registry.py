"""The formats of answers, in the order of recognition."""

from tracecal.answers.formats import columns, decision, lm_eval
from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.layout import Layout
from tracecal.answers.formats.layouts import LAYOUTS
from tracecal.errors import WrongRow

FORMATS: dict[str, Format | Layout] = {
    "inspect": LAYOUTS["inspect"],
    "lm_eval": lm_eval.FORMAT,
    "every_eval_ever": LAYOUTS["every_eval_ever"],
    **LAYOUTS,
    "decision": decision.FORMAT,
    "columns": columns.FORMAT,
}


def recognise(row: Row) -> Format | Layout:
    """The first format that recognises a row. Raises `WrongRow` where none does.

    >>> recognise({"choices": [{"message": {"content": "Lima"}}]}).name
    'openai_chat'
    """
    for answer_format in FORMATS.values():
        if answer_format.recognises(row):
            return answer_format
    raise WrongRow(f"its format is unknown; expected one of {', '.join(FORMATS)}")
