"""Files of answers: packed, in other encodings, over several lines, under a key, as streams."""

import gzip
import json
import sys
import zipfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.log_rows import token
from tracecal.answers.answers import read_file
from tracecal.answers.labels import read_labels
from tracecal.answers.log_file import parsed_text
from tracecal.answers.reading import Reading
from tracecal.errors import InputError
from tracecal.io.input_files import parsed_json

ROOT = Path(__file__).resolve().parents[3]
ROWS = [{"id": name, "answer": "Lima", "token_logprobs": [-0.5, -0.25]} for name in "ab"]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
CSV = 'id,answer,token_logprobs\na,Lima,"[-0.5, -0.25]"\nb,Lima,"[-0.5, -0.25]"\n'
SEMICOLONS = "id;answer;token_logprobs\na;Lima;[-0.5, -0.25]\nb;Lima;[-0.5, -0.25]\n"


def zipped(text, encoding="utf-8"):
    """The same bytes whenever the tests are collected: gzip writes the time."""
    return gzip.compress(text.encode(encoding), mtime=0)


def zstd(text):
    return pa.compress(text.encode(), codec="zstd", asbytes=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl.gz", zipped(LINES)),
        ("a.json.gz", zipped(json.dumps(ROWS))),
        ("a.jsonl.zst", zstd(LINES)),
        ("a.gz", zipped(LINES, "utf-16")),
        # Two members, as `cat a.gz b.gz` leaves them.
        ("a.jsonl.gz", b"".join(map(zipped, LINES.splitlines(True)))),
        ("a.csv.zst", zstd(CSV)),
        ("a.jsonl", LINES.encode("utf-8-sig")),
        ("a.jsonl", LINES.encode("utf-16")),
        ("a.jsonl", b"\xfe\xff" + LINES.encode("utf-16-be")),
        ("a.jsonl", LINES.encode("utf-32")),
        ("a.jsonl", LINES.replace("\n", "\r\n").encode()),
        ("a.csv", CSV.encode("utf-16")),
        ("a.csv", SEMICOLONS.encode()),
        ("a.tsv", SEMICOLONS.replace(";", "\t").encode()),
        ("a.json", json.dumps(ROWS, indent=1).encode()),
        ("a.json", "\n".join(json.dumps(row, indent=1) for row in ROWS).encode()),
        ("a.json", json.dumps({"responses": ROWS}).encode()),
        ("a.json", json.dumps({"note": "n", "n": 2, "data": ROWS}, indent=1).encode()),
    ],
)
def test_the_same_rows_in_every_file(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    frame = read_file(tmp_path / name).frame
    assert frame["example_id"].to_list() == ["a", "b"]
    assert frame["surprisal"].to_list() == [[0.5, 0.25]] * 2


def test_a_document_may_state_the_model_of_its_rows(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"model": "m", "results": ROWS}))
    assert read_file(tmp_path / "a.json").frame["model"].to_list() == ["m", "m"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.json",
            json.dumps({"good": ROWS, "bad": ROWS}).encode(),
            r"lists under several keys \(good, bad\)",
        ),
        ("a.json", b'{\n "id": "a",\n "answer": Lima\n}\n', r"neither JSON Lines nor JSON \(Expec"),
        ("a.jsonl.gz", b"no gzip", r"a.jsonl.gz cannot be read"),
        ("a.jsonl.gz", zipped(LINES)[:-12], r"a.jsonl.gz cannot be read"),
        ("a.parquet.gz", zipped("x"), r"a packed .parquet file; unpack it first"),
        ("a.txt", b"data: {\n\ndata: [DONE]\n\n", r"cannot be read: event 1 is not JSON"),
        ("a.txt", b'data: {"type": "ping"}\n\n', r"its events hold no answer"),
    ],
)
def test_files_that_cannot_be_read_are_one_sentence(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_file(tmp_path / name)


@pytest.mark.parametrize("pack", [gzip.compress, lambda content: zstd(content.decode())])
def test_a_small_file_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch, pack):
    monkeypatch.setattr("tracecal.answers.log_file.MOST_UNPACKED", 2**20)
    monkeypatch.setattr("tracecal.answers.log_file.LARGEST_RATIO", 1)
    suffix = "gz" if pack is gzip.compress else "zst"
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(pack(b" " * 2**24))
    with pytest.raises(InputError, match="would unpack to more than 1,048,576 bytes"):
        read_file(path)


def test_one_bad_row_of_many_is_named_by_its_line(tmp_path):
    (tmp_path / "a.jsonl").write_text("{bad}\n" + LINES)
    found = read_file(tmp_path / "a.jsonl", Reading(wrong_rows="skip"))
    assert found.frame["example_id"].to_list() == ["a", "b"]
    assert found.wrong_rows[0].startswith("line 1: it is not JSON")


OSLO = [token("Oslo", -0.2, [("Oslo", -0.2), ("Rome", -2.0)]), token(".", -0.1, [(".", -0.1)])]


def chunk(delta, logprobs=None, finish=None, id_="c1", **more):
    piece = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": logprobs}
    first = {"id": id_, "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    return first | {"choices": [piece | more]}


def chunks(finish="stop", going_on=None, id_="c1"):
    """The chunks of one answer, and a last one that counts tokens."""
    begin = chunk({"role": "assistant", "content": ""}, None, going_on, id_)
    middle = [
        chunk({"content": each["token"]}, {"content": [each]}, going_on, id_) for each in OSLO
    ]
    usage = {"id": id_, "object": "chat.completion.chunk", "choices": [], "usage": {"n": 2}}
    return [begin, *middle, chunk({}, None, finish, id_), usage]


def events(values, end="\n\n"):
    done = [f"data: {json.dumps(value)}{end}" for value in values] + [f"data: [DONE]{end}"]
    return "".join(done)


def completion_chunk(each):
    lists = {"tokens": [each["token"]], "token_logprobs": [each["logprob"]]}
    tops = [{other["token"]: other["logprob"] for other in each["top_logprobs"]}]
    choice = {"index": 0, "text": each["token"], "logprobs": lists | {"top_logprobs": tops}}
    return {"id": "c1", "object": "text_completion", "model": "m", "choices": [choice]}


RESPONSE = {
    "id": "c1",
    "status": "completed",
    "output": [{"type": "message", "content": [{"text": "Oslo.", "logprobs": OSLO}]}],
}


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        (events(chunks()), "stop"),
        (events(chunks(going_on="")), "stop"),
        (events(chunks(going_on="null")), "stop"),
        (events(chunks(finish=None)), None),
        (events(chunks(), "\r\n\r\n"), "stop"),
        (": OPENROUTER PROCESSING\n\n" + events(chunks()), "stop"),
        ("".join(json.dumps(value) + "\n" for value in chunks()), "stop"),
        (json.dumps(chunks(), indent=1), "stop"),
        (events([completion_chunk(each) for each in OSLO]), None),
        (
            "event: response.completed\n"
            + events([{"type": "response.completed", "response": RESPONSE}]),
            "stop",
        ),
        (json.dumps({"id": "c1", "response": events(chunks())}), "stop"),
    ],
)
def test_a_saved_stream_is_the_answer_that_it_spells(tmp_path, text, finish):
    (tmp_path / "a.txt").write_text(text)
    (row,) = read_file(tmp_path / "a.txt", Reading(vocabulary=1000)).frame.to_dicts()
    assert (row["example_id"], row["answer"], row["finish_reason"]) == ("c1", "Oslo.", finish)
    assert row["surprisal"] == pytest.approx([0.2, 0.1])
    assert row["entropy"] is not None


def test_several_streams_in_a_file_are_several_answers(tmp_path):
    (tmp_path / "a.txt").write_text(events(chunks()) + events(chunks(id_="c2")))
    frame = read_file(tmp_path / "a.txt").frame
    assert frame["example_id"].to_list() == ["c1", "c2"]
    assert frame["answer"].to_list() == ["Oslo."] * 2


@pytest.mark.parametrize(
    "thought",
    [
        {"reasoning_content": "hm"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    ],
)
def test_choices_and_reasoning_of_a_stream_are_kept_apart(tmp_path, thought):
    values = [
        chunk(thought, token_ids=[1]),
        chunk({"content": "a"}, token_ids=[2], stop_reason=5),
        chunk({"content": "b"}, index=1, token_ids=[3]),
    ]
    (tmp_path / "a.txt").write_text(events(values))
    rows = read_file(tmp_path / "a.txt").frame.to_dicts()
    assert [row["answer"] for row in rows] == ["a", "b"]
    assert [row["reasoning"] for row in rows] == ["apart", "none"]
    assert rows[1]["group_id"] == "c1"


def test_rows_that_a_table_gave_empty_bytes_keep_their_entropies(tmp_path):
    """A frame gives every token all fields, so the bytes of some become None on one side."""
    lines = (ROOT / "examples" / "labelled.jsonl").read_text().splitlines()[120:140]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    pl.read_ndjson(tmp_path / "a.jsonl").write_parquet(tmp_path / "a.parquet")
    reading = Reading(vocabulary=49152)
    plain, table = (
        read_file(tmp_path / f"a.{kind}", reading).frame for kind in ("jsonl", "parquet")
    )
    assert table.equals(plain)
    assert plain["entropy"].null_count() == 0


IDS_THAT_ARE_NONE = {
    "time": pa.array([datetime(2026, 1, 1), datetime(2026, 1, 2)]),
    "decimal": pa.array([Decimal(0), Decimal(1)]),
    "bytes": pa.array([b"a", b"b"]),
    "list": pa.array([[1], [2]]),
}


@pytest.mark.parametrize("ids", IDS_THAT_ARE_NONE.values(), ids=IDS_THAT_ARE_NONE)
def test_an_id_of_another_type_is_named(tmp_path, ids):
    pq.write_table(pa.Table.from_pylist(ROWS).set_column(0, "id", ids), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"its id is a \w+; give a text or a whole number"):
        read_file(tmp_path / "a.parquet")


def test_a_float_that_stands_for_several_ids_is_none(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS[0] | {"id": float(2**53 + 2)}))
    with pytest.raises(InputError, match="may stand for several whole numbers; give a text"):
        read_file(tmp_path / "a.jsonl")
    labels = pa.table({"id": [float(2**53 + 2)], "correct": [True]})
    pq.write_table(labels, tmp_path / "l.parquet")
    with pytest.raises(InputError, match="may stand for several whole numbers; give a text"):
        read_labels(tmp_path / "l.parquet")
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS[0] | {"id": 2**70 + 1}))
    assert read_file(tmp_path / "a.jsonl").frame["example_id"].to_list() == [str(2**70 + 1)]


def test_a_time_that_python_has_not_is_a_sentence(tmp_path):
    times = pa.array([2**62, 0]).cast(pa.timestamp("us"))
    pq.write_table(pa.Table.from_pylist(ROWS).append_column("t", times), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet cannot be read \(year \d+ is out of range"):
        read_file(tmp_path / "a.parquet")


def test_a_type_that_polars_has_not_is_a_sentence(tmp_path):
    numbers = pa.array([Decimal(1), Decimal(2)], pa.decimal256(60, 2))
    table = pa.Table.from_pylist(ROWS).append_column("n", numbers)
    with pa.OSFile(f"{tmp_path}/a.arrow", "wb") as sink, pa.ipc.new_file(sink, table.schema) as new:
        new.write_table(table)
    with pytest.raises(InputError, match=r"a\.arrow cannot be read"):
        read_file(tmp_path / "a.arrow")


def test_labels_without_a_verdict_are_counted(tmp_path):
    (tmp_path / "l.csv").write_text("id,correct\na,NaN\nb,\n")
    with pytest.raises(InputError, match=r"l\.csv holds no verdict\. It has 2 rows without one\."):
        read_labels(tmp_path / "l.csv")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("id;verdict;prüfer\nq1;yes;Prüferin A\nq2;no;\n".encode("cp1252"), "read as cp1252"),
        ("id,verdict,prüfer\rq1,yes,Jörg\rq2,no,\r".encode("mac_roman"), "read as mac_roman"),
        (b"id,verdict\rq1,yes\rq2,no", ""),
        (b"id,verdict\r\nq1,yes\r\nq2,no\r\n", ""),
        (b"sep=;\r\nid;verdict\r\nq1;yes\r\nq2;no\r\n", ""),
        (b'"sep=|"\nid|verdict\nq1|yes\nq2|no\n', ""),
        (b"Review of March,,\n,,\nid,verdict,note\nq1,yes,\nq2,no,\n", ""),
        (b"Labels by Ada\n\nid;verdict\nq1;yes\nq2;no\n", ""),
        (b"id,verdict,,\nq1,yes,,\nq2,no,,\n,,,\n", ""),
        (f"id,verdict,text\nq1,yes,{'x' * 200_000}\nq2,no,\n".encode(), ""),
    ],
)
def test_tables_of_old_programs_and_with_titles(tmp_path, caplog, content, told):
    (tmp_path / "l.csv").write_bytes(content)
    assert read_labels(tmp_path / "l.csv").by_id == {"q1": True, "q2": False}
    assert told in caplog.text


def test_a_table_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "l.csv").write_bytes(b"id,verdict\n\x00\xff\xfe\x01,yes\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_labels(tmp_path / "l.csv")


CELLS = {
    "titled": [["Review of March"], [], ["id", "verdict"], [1, True], [2, False]],
    "plain": [["id", "verdict", "at"], ["1", "yes", 45000.5], ["2", "❌ wrong", None]],
    "gaps": [[None, "id", "verdict"], [None, 1.0, 1], [None, None, None], [None, 2.0, 0]],
}


@pytest.mark.parametrize("name", CELLS)
def test_workbooks_of_excel(tmp_path, name):
    pytest.importorskip("python_calamine", reason="the extra 'excel' is not installed")
    path = workbook(tmp_path / "l.xlsx", CELLS[name])
    assert read_labels(path).by_id == {"1": True, "2": False}


def test_workbooks_need_a_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    path = workbook(tmp_path / "l.xlsx", CELLS["plain"])
    with pytest.raises(
        InputError, match=r"Excel workbook.*pip install 'tracecal\[excel\]', or save"
    ):
        read_labels(path)


def workbook(path, rows):
    """A workbook of one sheet, by hand."""
    cells = [
        f"<row>{''.join(cell(value, f'{chr(65 + x)}{y}') for x, value in enumerate(row))}</row>"
        for y, row in enumerate(rows, 1)
    ]
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"

    def relationship(kind, target):
        place = f'Id="r1" Type="{office}/{kind}" Target="{target}"'
        return f'<Relationships xmlns="{package}/relationships"><Relationship {place}/></Relationships>'

    sheets = '<sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets>'
    content = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": relationship("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}">{sheets}</workbook>',
        "xl/_rels/workbook.xml.rels": relationship("worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{"".join(cells)}'
        "</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w") as parts:
        for name, text in content.items():
            parts.writestr(name, text)
    return path


def cell(value, place):
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    kind = "b" if isinstance(value, bool) else "n"
    return "" if value is None else f'<c r="{place}" t="{kind}"><v>{value + 0}</v></c>'


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a" : {"b": 1, "b": 2}, "c\t:": 3}',
        '[5, {"a": 1, "a": 2}]',
        '{"a": "\\":", "b": [[{"c": -0}]]}',
        '{"text": "\\ud800", "other": NaN}',
        "[18446744073709551616, 0.12345678901234567890123, 1234567890123456789]",
        "[1e400, 5e-324, 1E5, -1.0]",
        "[" * 700 + "]" * 700,
        "\ufeff{}",
        "{} {}",
        "01",
    ],
)
def test_the_quick_parser_reads_what_the_strict_one_reads(text):
    try:
        expected = repr(parsed_json(text))
    except ValueError:
        expected = repr(text)
    assert repr(parsed_text(text)) == expected
