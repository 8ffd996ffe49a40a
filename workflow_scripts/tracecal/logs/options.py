"""How files of answers are to be read, where they do not say it themselves."""

from typing import Literal

from pydantic import Field, PositiveInt

from tracecal.schema import Strict

Format = Literal[
    "auto",
    "columns",
    "openai_chat",
    "openai_completions",
    "openai_responses",
    "llama_cpp",
    "ollama",
    "sglang",
    "inspect",
    "lm_eval",
]


class Reading(Strict):
    """How files of answers are to be read."""

    format: Format = Field("auto", description="auto: seen from each row")
    vocabulary: PositiveInt | None = Field(
        None, description="the model's number of tokens: entropies from top-k need it"
    )
    greedy: bool = Field(False, description="the answers were decoded greedily")
    stop_token: Literal["auto", "included", "absent"] = Field(
        "auto", description="whether traces hold the token that ends the answer; auto: as seen"
    )
    processed: Literal["auto", "yes", "no"] = Field(
        "auto", description="whether a temperature or penalty bent the probabilities; auto: as seen"
    )
    model: str | None = Field(None, description="the model's name; null: as the file has it")
    id: str | None = Field(None, description="where a row's id is, such as doc.ID; null: as usual")
    label: str | None = Field(None, description="where a row says whether it is right")
    filter: str | None = Field(None, description="of an lm-evaluation-harness file")
    wrong_rows: Literal["stop", "skip"] = Field(
        "stop", description="what to do where rows are wrong; skip: go on without them"
    )
