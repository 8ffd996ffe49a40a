"""The lowest supported version of Snakemake makes the smoke run, and plans and watches it alike."""

import re

import pytest
import snakemake

from support.checkout import REPOSITORY

pytestmark = pytest.mark.lowest


def test_it_is_the_version_that_the_snakefile_asks_for():
    text = (REPOSITORY / "Snakefile").read_text(encoding="utf-8")
    assert f'min_version("{snakemake.__version__}")' in text


def test_a_finished_run_has_nothing_to_do_and_every_result_is_sound(finished):
    assert finished.scheduled() == {}
    assert finished.doubted() == set()


def test_an_edit_reruns_what_follows_from_it_alone(finished):
    operators = "workflow_scripts/tracecal/estimators/features.py"
    old = "LOW_PROBABILITY, HIGH_PROBABILITY = 0.1"
    with finished.edited(operators, old, old.replace("0.1", "0.2")):
        scheduled = finished.scheduled()
    assert scheduled["compute_features"] == 3
    assert not {"generate", "search_beams", "label_answers"} & set(scheduled)


def test_a_result_that_is_gone_is_found_and_made_again_with_the_same_bytes(finished):
    table = finished.root / "results/smoke/analyses/averages.parquet"
    before = table.read_bytes()
    table.unlink()
    assert finished.doubted() == {"analyses/averages.parquet"}
    said = finished.run("--verify").stdout
    assert "results/smoke/analyses/averages.parquet is made again" in said
    assert table.read_bytes() == before


def test_available_plans_what_is_finished_alone(finished):
    smoke = finished.smoke()
    third = smoke["models"][0] | {"slug": "third", "label": "Third"}
    smoke["study"]["cross"]["models"].append("third")
    config = finished.variant("third", models=[*smoke["models"], third], study=smoke["study"])
    planned = finished.snakemake("available", "--dry-run", config=config).stdout
    rules = {*re.findall(r"^(\w+) +\d+$", planned, re.MULTILINE)}
    assert "write_table" in rules
    assert "generate" not in rules
    assert finished.scheduled(config)["generate"] == 1
