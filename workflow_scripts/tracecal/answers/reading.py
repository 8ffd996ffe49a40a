"""Options for reading files of answers, where the files do not say it themselves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    PositiveInt,
    ValidationError,
)
from pydantic.json_schema import SkipJsonSchema

from tracecal.answers.formats.layouts import FORMATS
from tracecal.errors import OF_READING
from tracecal.io.settings import Strict, parse, with_parameters

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal["auto", *FORMATS]
LARGEST_VOCABULARY = 10**9  # tokens

OF_VERDICTS = ("labels", "question", "right_from", "right", "wrong", "who", "contested")
OF_LABELLED = ("label", *OF_VERDICTS, "requests")
UNTYPED = ("greedy", "rounding")  # keys that commands have no option for
Words = Annotated[  # a list, or texts with commas between words
    list[str], AfterValidator(lambda texts: [word for text in texts for word in text.split(",")])
]


def _require_labels(value: Any) -> Any:
    if value is None or isinstance(value, str | Path) or hasattr(value, "__arrow_c_stream__"):
        return value
    raise ValueError("must be a path, or a frame with a column of ids and one of verdicts")


# A path or, in Python, a frame.
LabelSource = Annotated[str | Path | SkipJsonSchema[Any] | None, BeforeValidator(_require_labels)]


class OfPython(type(BaseModel)):  # type: ignore[misc]
    """The class of settings that people make in Python: errors are `InputError`, help is short."""

    def __call__(cls, **options: Any) -> Any:
        try:
            return super().__call__(**options)
        except ValidationError:
            return parse(cls, options, cls.__name__)  # raises the sentence

    def __dir__(cls) -> list[str]:
        return [name for name in vars(cls) if not name.startswith(("_", "model_"))]


@with_parameters
class Reading(Strict, metaclass=OfPython):
    """How answers are read, where their source does not say it itself.

    Every function that reads answers takes it as `reading`. In Python `labels` may be a frame, too.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.Reading(vocabulary=151936, label="judged.correct").vocabulary
    151936
    """

    format: FormatName = Field(default="auto", description="auto: recognise each row")
    vocabulary: PositiveInt | None = Field(
        default=None,
        le=LARGEST_VOCABULARY,
        description="size of the model's vocabulary, for entropies from top-k; by default as its "
        "name or folder says, else 200,000",
    )
    greedy: bool = Field(default=False, description="the answers were decoded greedily")
    rounding: NonNegativeFloat | None = Field(
        default=None, le=1, description="largest log-probability error in nats, detected by default"
    )
    stop_token: Literal["auto", "included", "absent"] = Field(
        default="auto",
        description="whether traces include the stop token; auto: infer it from each row",
    )
    processed: Literal["auto", "yes", "no"] = Field(
        default="auto", description="whether sampling settings changed the probabilities"
    )
    reasoning: Literal["apart", "within", "alone"] = Field(
        default="apart",
        description="where an answer follows reasoning, trace the answer (apart), the "
        "reasoning (alone) or both (within)",
    )
    model: str | None = Field(
        default=None, description="the model's name; read from the file by default"
    )
    id: str | None = Field(default=None, description="path of a row's id, such as doc.ID")
    group: str | None = Field(
        default=None,
        description="path of what makes answers count as one question, such as a conversation, a "
        "document or a user",
    )
    label: str | None = Field(default=None, description="path of a row's verdict: correct or not")
    labels: LabelSource = Field(
        default=None,
        description="a file of verdicts by id, in place of the rows' own; also "
        "FILE:custom_id:verdict, which names its columns",
    )
    question: str | None = Field(
        default=None, description="which question of a labelling tool asks for the verdict"
    )
    right_from: float | None = Field(
        default=None, description="smallest number of a right answer, where verdicts are scores"
    )
    right: Words = Field(default=[], description="further words for right, such as ok,great")
    wrong: Words = Field(default=[], description="further words for wrong, such as poor")
    who: str | None = Field(
        default=None,
        description="path of the person who judged, in a table of several people's verdicts",
    )
    contested: Literal["majority", "wrong", "leave-out"] = Field(
        default="majority",
        description="answers on which people disagree: take the majority of three or more, and "
        "wrong where there is none; count all as wrong; or leave them out",
    )
    requests: str | Path | None = Field(
        default=None, description="the file that was sent as a batch: its prompts and settings"
    )
    columns: dict[str, str] = Field(
        default={}, description="a column and its path, such as surprisal: output.nll"
    )
    also: dict[str, str] = Field(
        default={}, description="a further number (larger: more trusted) and its path"
    )
    options: list[str] = Field(
        default=[],
        max_length=100,
        description="an answer's options, such as A B C D: the chosen one's share of their "
        "probability is a further number",
    )
    filter: str | None = Field(
        default=None, description="read only this filter of lm-evaluation-harness"
    )
    choices: Literal["all", "first"] = Field(
        default="all",
        description="choices of a request to read: all, as one question, or the first",
    )
    failed: Literal["unlabelled", "incorrect", "skip", "stop"] = Field(
        default="unlabelled",
        description="count answers that were not given and have no verdict as unlabelled or "
        "incorrect; skip failed requests, or stop at them",
    )
    wrong_rows: Literal["stop", "skip"] = Field(
        default="stop", description="stop at invalid rows, or skip them"
    )

    def for_new_answers(self) -> Self:
        """These options without those that say where verdicts and requests of the labelled are."""
        unset = {name: None for name in OF_LABELLED}
        return self.model_copy(update=unset | {"failed": "unlabelled"})

    def with_defaults(self, **defaults: Any) -> Self:
        """These options, with `defaults` for those that were not stated."""
        unstated = {
            name: value for name, value in defaults.items() if name not in self.model_fields_set
        }
        return self.model_copy(update=unstated)


USUAL_READING = Reading()  # without any option
OF_READING.update(Reading.model_fields)
