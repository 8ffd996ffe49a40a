"""`tracecal cascade`: what escalating to a large model is worth, by labelled answers of both."""

from typing import Annotated

import typer

from tracecal.cli.options import (
    AsRead,
    Config,
    command,
    ending,
    require_installed,
)
from tracecal.io.log import printable

PRICES = "Prices of a million tokens"
Price = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="PROMPT GENERATED", rich_help_panel=PRICES),
]


@command(
    "know what escalating to a large model is worth",
    "tracecal cascade --small small.jsonl --large large.jsonl --picture cascade.svg",
)
def cascade(
    small: Annotated[str, typer.Option(help="answers of the small model, with traces")],
    large: Annotated[str, typer.Option(help="answers of the large model")],
    reading: AsRead,
    output: Annotated[
        str | None,
        typer.Option(help="the small model's calibrator, with the thresholds: a JSON file"),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(callback=ending(".svg", ".pdf", ".png"), help="a picture: .svg, .pdf or .png"),
    ] = None,
    large_model: Annotated[
        str | None, typer.Option(help="the large model's name; by default as in its file")
    ] = None,
    task: Annotated[str, typer.Option(help="a name for the task")] = "cascade",
    config: Config = None,
    small_price: Price = None,
    large_price: Price = None,
) -> None:
    """Say what escalating a small model's answers to a large one is worth.

    Both files hold labelled answers to the same questions, with the same ids. Prints a table, and
    the thresholds from which the small model's answers are kept, with what each guarantees. How
    files are read, such as where their ids are: 'tracecal reading'.
    """
    if picture:
        require_installed("--picture", "pictures", "matplotlib")
    from tracecal.api import cascade as api

    of_both = {"task": task, "config": config, "large_model": large_model}
    prices = {"small_price": small_price, "large_price": large_price}
    found = api.cascade(small, large, **of_both, **prices, reading=reading)
    if output:
        found.calibrator.save(output)
    if picture:
        found.picture(picture)
    print(printable(f"{found}"))
