"""Rows of every kind of file become one table, and what is wrong with them is told."""

import gzip
import json
import os
import random
import zlib
from datetime import date
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.config.row_files import read_rows
from trace_workflow.config.task_tables import SCHEMA, subsample
from trace_workflow.config.task_tables import load as load_rows
from trace_workflow.config.tasks import TaskSpec, local_source
from tracecal.errors import InputError
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import parse

TASK_FILES = Path(__file__).parents[3] / "config" / "tasks"
ROWS = [
    {"id": f"r{n}", "q": f"Question {n}?", "a": {"value": f"A{n}", "aliases": [f"a {n}", f"A{n}"]}}
    for n in range(30)
]


def spec_for(path: str, fields: dict | None = None, source: dict | None = None, **rest) -> TaskSpec:
    return TaskSpec.model_validate(
        {
            "label": "T",
            "source": {"path": str(path)} | (source or {}),
            "fields": fields or {"id": "id", "question": "q", "references": "a.value"},
            "correctness": "alias",
        }
        | rest
    )


def load(spec: TaskSpec, seed: int = 1) -> pl.DataFrame:
    return load_rows(spec, spec.local_files(), seed)


def write_lines(path: Path, rows: list) -> Path:
    path.write_bytes(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
    return path


def shipped(name: str, path: str, **changes) -> TaskSpec:
    """A shipped task file, reading from `path`."""
    value = read_yaml(TASK_FILES / f"{name}.yaml")
    value["source"] = local_source(value["source"], path, trained="{split}" in path)
    for key, change in changes.items():
        if key in value["source"]:
            value["source"][key] = change
        else:
            value[key] = change
    return parse(TaskSpec, value, name)


def test_every_kind_of_file_gives_the_same_rows(tmp_path):
    lines = write_lines(tmp_path / "t.jsonl", ROWS)
    (tmp_path / "t.json").write_text(json.dumps(ROWS))
    pl.DataFrame(ROWS).write_parquet(tmp_path / "t.parquet")
    flat = [row | {"a": json.dumps(row["a"])} for row in ROWS]
    pl.DataFrame(flat).write_csv(tmp_path / "t.csv")
    fields = {"id": "id", "question": "q", "references": ["a.value", "a.aliases"]}
    first = load(spec_for(lines, fields))
    assert first.schema == SCHEMA
    assert first["references"][0].to_list() == ["A0", "a 0"]
    for suffix in ("json", "parquet", "csv"):
        assert load(spec_for(tmp_path / f"t.{suffix}", fields)).equals(first), suffix


def test_texts_keep_separators_that_are_no_line_ends(tmp_path):
    text = "one\u2028two\u2029three\x85four\x0bfive"
    path = write_lines(tmp_path / "t.jsonl", [{"id": 7, "q": f" {text} \u2028", "a": 51.0}])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\n")
    rows = load(spec_for(path, {"id": "id", "question": "q", "references": "a"}))
    assert rows.row(0, named=True) == {
        "example_id": "7",
        "group_id": "7",
        "role": "evaluation",
        "language": "en",
        "question": text,
        "context": None,
        "references": ["51.0"],
        "distractors": [],
    }


def test_blank_references_go_and_rows_without_any_are_dropped(tmp_path, caplog):
    rows = [{"q": "a?", "r": ["", " x "]}, {"q": "b?", "r": [" "]}, {"q": "c?", "r": None}]
    caplog.set_level("INFO", "tracecal")
    frame = load(
        spec_for(
            write_lines(tmp_path / "t.jsonl", rows),
            {"question": "q", "references": "r"},
        )
    )
    assert frame["references"].to_list() == [["x"]]
    assert "dropped 2 row(s) without a reference" in caplog.text
    with pytest.raises(InputError, match="the task is empty"):
        load(
            spec_for(
                write_lines(tmp_path / "u.jsonl", rows[1:]), {"question": "q", "references": "r"}
            )
        )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.jsonl", b"", "holds no rows"),
        ("t.csv", b"", "holds no rows"),
        ("t.parquet", b"", "holds no rows"),
        ("t.json", b"[]", "holds no rows"),
        ("t.json", b'{"a": 1}', "list of objects"),
        ("t.jsonl", b'{"id": 1}\n[1, 2]\n', "row 2 is not an object"),
        ("t.jsonl", b'{"id": 1}\n{"id": \n', "line 2 is not JSON"),
        ("t.jsonl", b'{"q": "\xff"}\n', "line 1"),
        ("t.parquet", b"PAR1 nonsense", "cannot be read"),
        ("t.tsv", b"a\tb", "unknown type"),
    ],
)
def test_unusable_files_are_named_in_one_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said) as error:
        read_rows(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_small_file_that_unpacks_to_billions_is_refused_unread(tmp_path):
    path = tmp_path / "bomb.parquet"
    column = pa.array(["a"]).dictionary_encode().take(pa.nulls(6_000_000, pa.int8()).fill_null(0))
    pq.write_table(pa.table({"q": column}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"bomb.parquet declares 6,000,000 rows"):
        read_rows(path)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, pa.Codec("zstd").compress])
def test_a_packed_csv_is_refused_unread(tmp_path, pack):
    path = tmp_path / "t.csv"
    path.write_bytes(bytes(pack(b"q,a\n" + b"1,2\n" * 1000)))
    with pytest.raises(InputError, match=r"t.csv is compressed; unpack it first"):
        read_rows(path)


def test_missing_file():
    with pytest.raises(InputError, match="does not exist"):
        read_rows("/nowhere/t.jsonl")


@pytest.mark.parametrize("wrong", ["answer", "a.valeu", "q.text"])
def test_a_wrong_field_is_answered_with_the_fields_there_are(tmp_path, wrong):
    path = write_lines(tmp_path / "t.jsonl", ROWS)
    with pytest.raises(InputError) as error:
        load(spec_for(path, {"id": "id", "question": "q", "references": wrong}))
    for part in (str(path), repr(wrong), "fields.references", "id, q, a.value, a.aliases"):
        assert part in str(error.value)


def test_a_field_may_be_absent_from_some_rows(tmp_path):
    rows = [{"q": "a?", "r": "x", "c": "ctx"}, {"q": "b?", "r": "y"}]
    path = write_lines(tmp_path / "t.jsonl", rows)
    frame = load(spec_for(path, {"question": "q", "references": "r", "context": "c"}))
    assert sorted(frame["context"].to_list(), key=str) == [None, "ctx"]


def test_lists_of_objects_and_list_like_texts(tmp_path):
    rows = [{"q": ["not one text"], "r": [{"text": "x"}, {"text": "y"}], "s": "['a' 'b']"}]
    path = write_lines(tmp_path / "t.jsonl", [rows[0] | {"q": "a?"}])
    frame = load(spec_for(path, {"question": "q", "references": "r.text"}))
    assert frame["references"].to_list() == [["x", "y"]]
    with pytest.raises(InputError, match="JSON"):
        load(spec_for(path, {"question": "q", "references": "s"}))
    with pytest.raises(InputError, match="one text or number"):
        load(spec_for(write_lines(path, rows), {"question": "q", "references": "r.text"}))


def test_ids_survive_reordering_and_duplicates(tmp_path):
    shuffled = random.Random(3).sample(ROWS, len(ROWS)) + ROWS[:4]
    paths = [write_lines(tmp_path / "a.jsonl", ROWS), write_lines(tmp_path / "b.jsonl", shuffled)]
    for fields in ({"id": "id"}, {}):
        named = fields | {"question": "q", "references": "a.value"}
        one, other = (load(spec_for(path, named, limit=11)) for path in paths)
        assert one.equals(other)
        assert one["example_id"].is_sorted()
    assert one["example_id"].str.len_chars().unique().to_list() == [16]


def test_one_id_for_different_rows_is_refused(tmp_path):
    path = write_lines(tmp_path / "t.jsonl", [ROWS[0], ROWS[1] | {"id": "r0"}])
    with pytest.raises(InputError, match="'r0' is used by different rows"):
        load(spec_for(path))


def test_no_example_has_both_roles(tmp_path):
    write_lines(tmp_path / "test.jsonl", [row | {"g": row["id"]} for row in ROWS[:10]])
    training = [
        ROWS[0] | {"g": "new"},
        ROWS[1] | {"g": "new", "id": "same content"},
        ROWS[20] | {"g": "r2"},
        ROWS[21] | {"g": "fine"},
    ]
    write_lines(tmp_path / "train.jsonl", training)
    fields = {"id": "id", "question": "q", "references": "a.value", "group": "g"}
    spec = spec_for(
        tmp_path / "{split}.jsonl", fields, {"training_split": "train"}, training_limit=9, limit=2
    )
    rows = load(spec)
    assert rows.filter(role="training")["example_id"].to_list() == ["r21"]
    assert rows.filter(role="evaluation").height == 2


def test_languages_of_files_and_fields(tmp_path):
    for language in ("en", "de"):
        write_lines(tmp_path / f"{language}.jsonl", [row | {"l": language} for row in ROWS[:3]])
    by_file = load(spec_for(tmp_path / "{language}.jsonl", source={"languages": ["en", "de"]}))
    assert by_file["example_id"].to_list()[:2] == ["r0-de", "r0-en"]
    assert by_file["group_id"].to_list()[:2] == ["r0", "r0"]
    joined = write_lines(
        tmp_path / "all.jsonl", [ROWS[n] | {"l": x} for n in range(3) for x in ("en", "de")]
    )
    fields = {"id": "id", "question": "q", "references": "a.value", "language": "l"}
    assert load(spec_for(joined, fields)).equals(by_file)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5), st.randoms())
def test_subsamples_nest_in_any_order(small, large, seed, shuffle):
    ids = [f"e{n}" for n in range(35)]
    rows = pl.DataFrame({"example_id": ids})
    mixed = pl.DataFrame({"example_id": shuffle.sample(ids, len(ids))})
    drawn = set(subsample(mixed, "evaluation", max(small, large), seed)["example_id"])
    assert set(subsample(rows, "evaluation", min(small, large), seed)["example_id"]) <= drawn
    assert len(drawn) == min(max(small, large), 35)


def test_real_svamp(shared_data):
    rows = load(shipped("svamp", f"{shared_data}/svamp/{{split}}.jsonl"))
    counts = dict(rows.group_by("role").len().iter_rows())
    assert counts == {"evaluation": 300, "training": 700}
    assert rows.filter(example_id="chal-363")["references"].to_list() == [["1.0"]]


def test_real_truthfulqa(shared_data):
    spec = shipped(
        "truthfulqa", f"{shared_data}/truthfulqa/{{split}}.jsonl", split="generation_817"
    )
    rows = load(spec)
    assert rows.height == rows["example_id"].n_unique() == 817
    texts = rows["references"].explode().to_list() + rows["distractors"].explode().to_list()
    assert all(text and text == text.strip() for text in texts)


def test_real_triviaqa_nests(shared_data):
    path = f"{shared_data}/triviaqa/{{split}}_nocontext.jsonl"
    spec = shipped("triviaqa", path, split="validation_3000", training_split=None, limit=500)
    rows = load(spec)
    fewer = load(spec.model_copy(update={"limit": 200}))
    assert (rows.height, fewer.height) == (500, 200)
    assert set(fewer["example_id"]) < set(rows["example_id"])
    assert load(spec.model_copy(update={"limit": None})).height == 3000


def test_real_xquad_and_mlqa(shared_data):
    path = f"{shared_data}/xquad/xquad.{{language}}/{{split}}.jsonl"
    spec = shipped("mlqa", path, split="validation", training_split=None, limit=None)
    rows = load(spec)
    assert rows.height == 7 * 240
    assert rows["group_id"].n_unique() == 240
    single = shipped(
        "mlqa",
        f"{shared_data}/mlqa/mlqa.{{language}}.{{language}}/{{split}}.jsonl",
        languages=["en"],
    )
    assert load(single)["role"].to_list() == ["evaluation"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.jsonl", b'{"q": "a", "q": "b"}\n', "line 1.*the key 'q' is given twice"),
        ("t.json", b'[{"q": {"a": 1, "a": 2}}]', "the key 'a' is given twice"),
        ("t.csv", b"q,a,q\n1,2,3\n", "two columns 'q'"),
        ("t.json", b"[" * 100_000, "cannot be read as .json"),
        ("t.jsonl", b'{"q": ' + b"[" * 100_000 + b"\n", "line 1 is not JSON"),
    ],
)
def test_json_that_says_two_things_or_nests_without_end_is_refused(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_rows(tmp_path / name)


def test_texts_that_are_stored_as_bytes_are_read_as_text_or_refused(tmp_path):
    path = tmp_path / "t.parquet"
    fields = {"question": "q", "references": "a"}
    pl.DataFrame({"q": ["Où?".encode()], "a": [b"51"]}).write_parquet(path)
    assert load(spec_for(path, fields))["question"].to_list() == ["Où?"]
    assert load(spec_for(path, fields))["references"].to_list() == [["51"]]
    pl.DataFrame({"q": [b"\xff\xfe"], "a": [b"51"]}).write_parquet(path)
    with pytest.raises(InputError, match=r"t\.parquet: row 1: .*is not text"):
        load(spec_for(path, fields))


def test_half_a_character_is_refused_with_its_row(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"q": "a?", "a": "1"}\n{"q": "b\\ud800?", "a": "1"}\n')
    with pytest.raises(InputError, match=r"t\.jsonl: row 2: .*is not text \(surrogates"):
        load(spec_for(path, {"question": "q", "references": "a"}))


def test_a_date_inside_a_reference_is_written_out(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pl.DataFrame({"q": ["When?"], "a": [{"day": date(2024, 5, 1)}]})
    frame.write_parquet(path)
    rows = load(spec_for(path, {"question": "q", "references": "a"}))
    assert rows["references"].to_list() == [['{"day": "2024-05-01"}']]
    with pytest.raises(InputError, match="must hold one text or number"):
        load(spec_for(path, {"question": "a", "references": "q"}))


def test_pipes_and_devices_are_no_rows_and_nobody_waits_for_them(tmp_path):
    os.mkfifo(tmp_path / "t.jsonl")
    (tmp_path / "z.jsonl").symlink_to("/dev/zero")
    for name in ("t.jsonl", "z.jsonl"):
        with pytest.raises(InputError, match=rf"{name} is not a file"):
            read_rows(tmp_path / name)
        with pytest.raises(InputError, match=rf"{name} is not a file"):
            read_yaml(tmp_path / name)


def test_a_field_that_is_not_there_is_said_in_a_sentence_however_many_there_are(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{f"f{n}": 1 for n in range(100_000)}]))
    with pytest.raises(InputError) as error:
        load(spec_for(path))
    assert len(str(error.value)) < 500
    assert "(100000 in all)" in str(error.value)


def test_long_rows_are_left_out_and_counted_where_the_task_says_so(tmp_path, caplog):
    caplog.set_level("INFO", "tracecal")
    rows = [{"q": "x" * n, "c": "y" * n, "a": "1"} for n in (1, 2, 3)]
    path = write_lines(tmp_path / "t.jsonl", rows)
    fields = {"question": "q", "references": "a", "context": "c"}
    assert load(spec_for(path, fields)).height == 3
    with pytest.raises(InputError, match="task is empty: no evaluation rows are left"):
        load(spec_for(path, fields, max_characters=1))
    kept = load(spec_for(path, fields, max_characters=4))
    assert sorted(kept["question"]) == ["x", "xx"]
    assert "left out 1 row(s) of more than 4 characters" in caplog.text
