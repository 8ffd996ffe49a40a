"""Print a finished run's outcome in words, and where to look.

python workflow_scripts/headline.py [--configfile config/mine.yaml]
"""

import argparse
import sys
from pathlib import Path

from tracecal.config.run import load_config
from tracecal.errors import InputError
from tracecal.explore.headline import headline
from tracecal.given import read_yaml
from tracecal.registry import ESTIMATORS
from tracecal.storage.files import read_parquet


def outcome(configfile: str) -> str:
    """The sentences, and the paths of what to open. Raises `InputError`."""
    config = load_config(read_yaml(configfile), configfile)
    folder = Path("results") / config.run
    improvements = folder / "analyses/improvements.parquet"
    if not improvements.exists():
        raise InputError(
            f"{improvements} is not there yet; first run: snakemake --cores all --configfile "
            f"{configfile}"
        )
    labels = {estimator.id: estimator.label for estimator in ESTIMATORS}
    labels |= {model.slug: model.name for model in config.models}
    places = [("every answer", "explorer.html"), ("all estimators", "tables/main_comparison.html"),
              ("figures", "figures/performance_overview.svg")]  # fmt: skip
    look = [f"  {what}: {(folder / path).resolve().as_uri()}" for what, path in places]
    return "\n".join([f"Run {config.run!r}:", *headline(read_parquet(improvements), labels),
                      "Open in a browser:", *look])  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configfile", default="config/config.yaml")
    try:
        print(outcome(parser.parse_args().configfile))
    except InputError as error:
        sys.exit(f"error: {error}")
