"""Write what docs/ say about every command, public name and format of answers, from the code.

make reference
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import tracecal
from tracecal.answers.formats.layout import Layout, TokenList
from tracecal.answers.formats.layouts import FORMATS
from tracecal.cli.api_source import read_docstring
from tracecal.cli.command import Command
from tracecal.cli.main import COMMANDS
from tracecal.io.regular_files import write_text

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN = "<!-- written by `make reference` -->"
END = "<!-- end -->"


def options() -> str:
    """A section per command, in the order of the help: what it is for, an example, its options."""
    return "\n".join(line for command in COMMANDS.values() for line in command_lines(command))


def command_lines(command: Command) -> Iterator[str]:
    """The section of one command."""
    yield from (f"## {command.name}", "", markdown(command.help()), "")
    yield from ("```bash", command.example, "```", "")
    listed = [option for option in command.build().params if is_listed(option)]
    if listed:
        yield from ("| option | meaning | default |", "|---|---|---|")
    for option in listed:
        flag = option.opts[0] if option.opts[0].startswith("-") else option.name.upper()
        default = "" if option.default in (None, False, [], ()) else f"`{option.default}`"
        default = "required" if option.required else default
        yield f"| `{flag}` | {markdown(option.help)} | {default} |"
    yield ""


def is_listed(option) -> bool:
    """Whether an option is the command's own: not help, nor one of those that read answers."""
    return option.name != "help" and not getattr(option, "hidden", False)


def names() -> str:
    """A row per public name of `tracecal`, with the first sentence of its docstring."""
    rows = ["| name | what it is |", "|---|---|"]
    for name in tracecal.__all__:
        if name != "__version__":
            summary, _, _ = read_docstring(getattr(tracecal, name)).prose.partition("\n\n")
            rows.append(f"| `{name}{signature(name)}` | {markdown(summary)} |")
    return "\n".join(rows)


def formats() -> str:
    """A row per format of answers: who writes it, and where the text and the tokens are."""
    rows = ["| format | written by | the answer | its tokens |", "|---|---|---|---|"]
    for answer_format in FORMATS.values():
        text, tokens = "", ""
        if isinstance(answer_format, Layout):
            steps = answer_format.steps
            text = answer_format.content or answer_format.text
            tokens = steps.path if isinstance(steps, TokenList) else answer_format.logprobs
        paths = (re.sub(r"[!?+]", "", path).replace(" | ", "` or `") for path in (text, tokens))
        cells = [f"`{path}`".replace("`.", "`…") if path else "" for path in paths]
        rows.append(
            "| " + " | ".join([f"`{answer_format.name}`", answer_format.programs, *cells]) + " |"
        )
    return "\n".join(rows)


def signature(name: str) -> str:
    """The parameters of a function, without their types."""
    function = getattr(tracecal, name)
    if not inspect.isfunction(function):
        return ""
    return f"({', '.join(inspect.signature(function).parameters)})"


def markdown(text: str) -> str:
    """A text of a docstring or of help on one line of a table."""
    text = text.replace(r"\[", "[").replace("|", r"\|").replace("\n\n", "\0").replace("\n", " ")
    return re.sub(r"(?<![\w`])(--[a-z][a-z-]+)", r"`\1`", text).replace("\0", "\n\n")


def described() -> dict[Path, str]:
    """The pages of commands, of Python and of formats, with new text between their marks."""
    texts = {
        DOCS / "reference/commands.md": options(),
        DOCS / "guides/python.md": names(),
        DOCS / "reference/formats.md": formats(),
    }
    return {page: between_marks(page.read_text("utf-8"), text) for page, text in texts.items()}


def between_marks(page: str, text: str) -> str:
    """`page` with `text` in place of what stands between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    for path, text in described().items():
        write_text(text, path)
