"""A weighing step goes on where it stopped."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from trace_workflow.models import encoder_step
from trace_workflow.models.encoder_step import write_output
from tracecal.io.traces import read_arrow

SCHEMA = pa.schema({"example_id": pa.string(), "weight": pa.float32()})
METADATA = {"schema_version": "1"}


def test_what_was_weighed_is_not_weighed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(encoder_step, "CHUNK", 4)
    answers = [{"example_id": f"e{index}"} for index in range(10)]
    source = tmp_path / "traces.arrow"
    source.write_bytes(b"traces")
    weighed, fail_at = [], "e5"

    def start():
        def weigh(rows):
            if fail_at in [row["example_id"] for row in rows]:
                raise KeyboardInterrupt
            weighed.extend(row["example_id"] for row in rows)
            return [row | {"weight": 0.5} for row in rows]

        return weigh

    def run(name):
        settings = {"code": "c", "journal": str(tmp_path / "journal")}
        step = SimpleNamespace(params=settings, output=[tmp_path / name], wildcards={})
        write_output(step, answers, SCHEMA, METADATA, [source], start)

    with pytest.raises(KeyboardInterrupt):
        run("out.arrow")
    assert weighed == ["e0", "e1", "e2", "e3"]
    fail_at = "none"
    run("out.arrow")
    assert sorted(weighed) == sorted(row["example_id"] for row in answers)
    assert read_arrow(tmp_path / "out.arrow")["example_id"].to_list() == sorted(weighed)
    run("again/out.arrow")
    assert len(weighed) == 10
    source.write_bytes(b"other traces")
    run("other/out.arrow")
    assert len(weighed) == 20
    assert (tmp_path / "again/out.arrow").read_bytes() == (
        tmp_path / "other/out.arrow"
    ).read_bytes()


def test_shards_weigh_every_answer_once_and_another_number_of_them_weighs_nothing(tmp_path):
    answers = [{"example_id": f"e{index}"} for index in range(10)]
    source, weighed = tmp_path / "traces.arrow", []
    source.write_bytes(b"traces")

    def start():
        def weigh(rows):
            weighed.extend(row["example_id"] for row in rows)
            return [row | {"weight": 0.5} for row in rows]

        return weigh

    settings = {"code": "c", "journal": str(tmp_path / "journal")}
    for count in (3, 2):
        made = []
        for number in range(1, count + 1):
            output, shard = tmp_path / f"{number}-of-{count}.arrow", f"{number}-of-{count}"
            step = SimpleNamespace(params=settings, output=[output], wildcards={"shard": shard})
            write_output(step, answers, SCHEMA, METADATA, [source], start)
            made += read_arrow(output)["example_id"].to_list()
        assert sorted(made) == [row["example_id"] for row in answers]
        assert sorted(weighed) == sorted(made)
