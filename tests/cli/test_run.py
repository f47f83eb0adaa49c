from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Parity
from tests.test_golden import write_handler

TWICE = b'[{"x": 1, "n": 1}, {"x": 1, "n": 1, "x": 2}]'
ANSWERS = [{"y": 3.0}, {"y": 2.2}]


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_answers_are_one_object_a_row_and_failed_rows_are_told_apart(
    parity: Parity, scale: str, rows_file: Path
) -> None:
    done = parity("run", scale, rows_file)
    assert done.code == 2
    found = lines(done.out)
    assert found[:2] == ANSWERS
    message = "handler scale: n is needed"
    assert found[2] == {"_error": {"kind": "rejected", "stage": None, "field": None, "message": message}}
    assert "row 2 (rejected): handler scale: n is needed" in done.err
    assert "1 of 3 rows have no answer" in done.err


def test_a_handler_that_always_fails_logs_a_few_tracebacks_and_tells_each_row(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(
        "from parity import Handler, Int64, Schema\n\n\n"
        "class Broken(Handler):\n    inputs = Schema(x=Int64())\n    outputs = Schema(x=Int64())\n\n"
        "    def inference(self, inputs):\n        raise LookupError('no')\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"x": 1}\n' * 50)
    command = [sys.executable, "-m", "parity", "run", "handler.py", "rows.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("event=row_failed") == 3
    assert done.stderr.count("(failed): handler") == 50


def test_rows_that_all_have_answers_are_exit_code_0(parity: Parity, scale: str, rows_file: Path) -> None:
    done = parity("run", scale, rows_file, "--limit", "2")
    assert (done.code, lines(done.out), done.err) == (0, ANSWERS, "")


@pytest.mark.parametrize(
    "text",
    ['[{"x": 1, "n": 1}, {"x": 0.1, "n": 2}]', '{"x": 1, "n": 1}\n\n{"x": 0.1, "n": 2}\n'],
    ids=["array", "lines"],
)
def test_standard_input_may_be_an_array_or_lines(parity: Parity, scale: str, text: str) -> None:
    done = parity("run", scale, "-", input=text)
    assert (done.code, lines(done.out)) == (0, ANSWERS)


def test_one_object_is_one_row(parity: Parity, scale: str) -> None:
    assert lines(parity("run", scale, "-", input='{\n  "x": 1,\n  "n": 1\n}').out) == ANSWERS[:1]


def test_parquet_and_lines_are_read_by_their_suffix(parity: Parity, scale: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, 0.1], "n": [1, 2]}), tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text('{"x": 1, "n": 1}\n{"x": 0.1, "n": 2}', encoding="utf-8")
    for name in ("rows.parquet", "rows.jsonl"):
        assert lines(parity("run", scale, name).out) == ANSWERS


def test_an_invalid_row_does_not_harm_its_neighbours(parity: Parity, scale: str) -> None:
    done = parity("run", scale, "-", input='[{"x": "a", "n": 1}, {"x": 1, "n": 1}]')
    assert done.code == 2
    found = lines(done.out)
    assert found[1] == ANSWERS[0]
    assert "'x'" in done.err
    assert "row 0 (invalid)" in done.err


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
def test_answers_are_written_as_the_suffix_says(
    parity: Parity, scale: str, rows_file: Path, tmp_path: Path, suffix: str
) -> None:
    output = tmp_path / f"answers{suffix}"
    done = parity("run", scale, rows_file, "--output", output)
    assert (done.code, done.out) == (2, "")
    if suffix == ".parquet":
        assert pq.read_table(output).column("y").to_pylist() == [3.0, 2.2, None]
    else:
        text = output.read_text()
        found = json.loads(text) if suffix == ".json" else lines(text)
        assert found[:2] == ANSWERS
        assert len(found) == 3


def test_an_answer_that_json_refuses_is_one_in_parquet(parity: Parity, tmp_path: Path) -> None:
    write_handler(tmp_path / "scale", returned='"y": np.where(outputs == 3, np.inf, outputs)')
    rows = '[{"x": 1, "n": 1}, {"x": 1, "n": 2}, {"x": 1, "n": null}]'
    refused = parity("run", "scale", "-", "-o", "answers.jsonl", input=rows)
    assert "row 0 (failed): field 'y': Infinity" in refused.err
    assert "2 of 3 rows have no answer" in refused.err
    kept = parity("run", "scale", "-", "-o", "answers.parquet", input=rows)
    assert kept.code == 2
    assert kept.err.splitlines()[-1] == "1 of 3 rows have no answer"
    assert pq.read_table(tmp_path / "answers.parquet").column("y").to_pylist() == [float("inf"), 4.0, None]
    whole = parity("run", "scale", "-", "-o", "answers.parquet", "--limit", "2", input=rows)
    assert (whole.code, whole.err) == (0, "")


def test_json_is_one_object_with_everything(parity: Parity, scale: str, rows_file: Path) -> None:
    found = json.loads(parity("run", scale, rows_file, "--json").out)
    assert (found["handler"], found["rows"], found["failed"]) == ("scale", 3, 1)
    assert found["answers"][:2] == ANSWERS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.json"], "no file 'none.json'"),
        (["rows.csv"], "rows are read from .json, .jsonl, .ndjson or .parquet, not from .csv"),
        (["broken.json"], "not JSON"),
        (["broken.jsonl"], "line 2: not JSON"),
        (["rows.json", "--output", "answers.csv"], "answers are written as"),
        (["rows.json", "--output", "nowhere/answers.json"], "does not exist"),
        (["rows.json", "--profile", "fast"], "no profile 'fast'"),
        (["rows.json", "--set", "bucket=[3]"], "did you mean 'buckets'"),
        (["rows.json", "--set", "buckets"], "not of the form KEY=VALUE"),
    ],
)
def test_wrong_usage_is_exit_code_2_with_a_message(
    parity: Parity, scale: str, rows_file: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "rows.csv").write_text("x,n\n", encoding="utf-8")
    (tmp_path / "broken.json").write_text('[{"x": ', encoding="utf-8")
    (tmp_path / "broken.jsonl").write_text('{"x": 1, "n": 1}\n{"x": ', encoding="utf-8")
    done = parity("run", scale, *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.json", b"", "rows.json is empty, so that there is nothing to do; put a JSON object for"),
        ("rows.jsonl", b"\n \n", "rows.jsonl is empty, so that there is nothing to do; put a JSON object"),
        ("rows.json", b"\xef\xbb\xbf", 'for each row into it: {"x": ..., "n": ...}'),
        ("rows.json", b" [ ]", "rows.json is a list without rows, so that there is nothing to do; put an"),
        ("rows.parquet", b"", "rows.parquet is empty, of 0 bytes; write the Parquet file anew"),
        ("rows.parquet", b"PAR1", "rows.parquet: not readable as Parquet: "),
        ("rows.json", b"\xff\xfe[\0]\0", "rows.json is UTF-16, and JSON is UTF-8; save it as UTF-8"),
        ("rows.json", TWICE, "rows.json: not JSON: in item 1 of the list, counted from 0, an object has the"),
        ("rows.jsonl", b'{"x": 1}\n{"x": 1, "x": 1}', "rows.jsonl: line 2: not JSON: an object has the key"),
    ],
)  # fmt: skip
def test_a_file_without_rows_or_of_another_form_is_told_for_what_it_is(
    parity: Parity, scale: str, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    done = parity("run", scale, name)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("text", ["", "[]"])
def test_standard_input_without_rows_is_wrong_usage(parity: Parity, scale: str, text: str) -> None:
    done = parity("run", scale, "-", input=text)
    assert done.code == 2
    assert "standard input is " in done.err


def test_a_table_without_rows_is_wrong_usage(parity: Parity, scale: str, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"x": pa.array([], pa.float64()), "n": pa.array([], pa.int64())}), "empty.parquet"
    )
    done = parity("run", scale, "empty.parquet")
    assert done.code == 2
    assert "empty.parquet holds columns and no row, so that there is nothing to do; put a row" in done.err


@pytest.mark.parametrize("folder", ["rows", "rows.json"])
def test_a_folder_is_a_parquet_dataset_or_told_for_what_it_holds(
    parity: Parity, scale: str, tmp_path: Path, folder: str
) -> None:
    place = tmp_path / folder
    place.mkdir()
    empty = parity("run", scale, folder)
    assert empty.code == 2
    assert f"{folder} is a folder without files; give a file, .json, .jsonl" in empty.err
    for name in ("a.json", "b.json"):
        (place / name).write_text('[{"x": 1, "n": 1}]')
    other = parity("run", scale, folder)
    assert other.code == 2
    assert f"{folder} is a folder, which is read as a Parquet dataset, and holds no Parquet file" in other.err
    assert "(it has 'a.json' and 1 more); name one of its files" in other.err
    for name in ("a.json", "b.json"):
        (place / name).unlink()
    pq.write_table(pa.table({"x": [1.0, 0.1], "n": [1, 2]}), place / "part-0")
    assert lines(parity("run", scale, folder).out) == ANSWERS


def test_a_folder_is_no_place_for_answers(parity: Parity, scale: str, rows_file: Path) -> None:
    for folder in ("answers", "answers.json"):
        Path(folder).mkdir()
        done = parity("run", scale, rows_file, "-o", folder)
        assert done.code == 2
        assert f"--output {folder} is a folder; name a file, such as {folder}/answers.jsonl" in done.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.json", '[{"x": 1, "n": 1}, {"x": 0.1, "n": 2}]'),
        ("rows.jsonl", '{"x": 1, "n": 1}\n{"x": 0.1, "n": 2}\n'),
        ("-", '{"x": 1, "n": 1}\n{"x": 0.1, "n": 2}\n'),
    ],
)
def test_the_byte_order_mark_of_some_editors_is_passed_over(
    parity: Parity, scale: str, tmp_path: Path, name: str, text: str
) -> None:
    data = text.encode("utf-8-sig")
    (tmp_path / name).write_bytes(data)
    assert lines(parity("run", scale, name, input=data).out) == ANSWERS


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl", "-"])
@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_of_nothing_but_the_mark_is_empty(
    parity: Parity, scale: str, tmp_path: Path, name: str, text: str
) -> None:
    data = text.encode("utf-8-sig")
    (tmp_path / name).write_bytes(data)
    done = parity("run", scale, name, input=data)
    assert (done.code, done.out) == (2, "")
    assert "is empty, so that there is nothing to do" in done.err


def test_a_first_line_of_nothing_but_the_mark_is_no_row(parity: Parity, scale: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes('\n{"x": 1, "n": 1}\n'.encode("utf-8-sig"))
    assert lines(parity("run", scale, "rows.jsonl").out) == ANSWERS[:1]


@pytest.mark.parametrize(
    ("name", "text"),
    [("rows.csv", "x,n\n1,1\n0.1,2\n"), ("rows.jsonl", '{"x": 1, "n": 1}\n{"x": 0.1, "n": 2}\n')],
)
def test_a_batch_passes_it_over_too_from_files_and_pipes(
    parity: Parity, scale: str, tmp_path: Path, name: str, text: str
) -> None:
    data = text.encode("utf-8-sig")
    (tmp_path / name).write_bytes(data)
    assert parity("batch", scale, name, "out").code == 0
    assert pq.read_table(tmp_path / "out").column("y").to_pylist() == [3.0, 2.2]
    form = name.rpartition(".")[2]
    piped = parity("batch", scale, "-", "-", "--input-format", form, input=data)
    assert [row["y"] for row in lines(piped.out)] == [3.0, 2.2]


def test_a_setting_reaches_the_engine(parity: Parity, scale: str, rows_file: Path) -> None:
    assert lines(parity("run", scale, rows_file, "--set", "buckets=[16]").out)[:2] == ANSWERS


def test_more_rows_than_a_batch_keep_their_order(parity: Parity, scale: str) -> None:
    text = "\n".join(f'{{"x": {row % 7}, "n": {row if row % 3 else "null"}}}' for row in range(2500))
    found = lines(parity("run", scale, "-", input=text).out)
    assert [row.get("y") for row in found] == [
        2.0 * (row % 7) + row if row % 3 else None for row in range(2500)
    ]


def test_a_file_of_another_kind_is_one_row_of_a_handler_that_takes_files(
    parity: Parity, scale: str, tmp_path: Path
) -> None:
    (tmp_path / "size.py").write_text(
        "from parity import Bytes, Handler, Int64, Schema\n\n\n"
        "class Size(Handler):\n    inputs = Schema(file=Bytes())\n    outputs = Schema(size=Int64())\n\n"
        "    def preprocess(self, batch):\n        return list(map(len, batch['file'].to_pylist()))\n\n"
        "    def inference(self, inputs):\n        return inputs\n\n"
        "    def postprocess(self, outputs, batch):\n        return {'size': outputs}\n"
    )
    for name, data in (("a.JPG", b"\xff\xd8\xff\x00"), ("none", b"")):
        (tmp_path / name).write_bytes(data)
        done = parity("run", str(tmp_path / "size.py"), tmp_path / name)
        assert (done.code, lines(done.out)) == (0, [{"size": len(data)}])
    refused = parity("run", scale, tmp_path / "a.JPG")
    assert refused.code == 2
    assert "not from .jpg" in refused.err
    assert "one required input is Bytes" in refused.err


def test_an_error_of_half_a_surrogate_pair_costs_its_row_only(parity: Parity, tmp_path: Path) -> None:
    (tmp_path / "tag.py").write_text(
        "import json\n\nfrom parity import Handler, Int64, Schema, String\n\n\n"
        "class Tag(Handler):\n    inputs = Schema(doc=String())\n    outputs = Schema(size=Int64())\n\n"
        "    def preprocess(self, batch):\n        tags = list(map(json.loads, batch['doc'].to_pylist()))\n"
        "        for row, tag in enumerate(tags):\n            if not tag.isascii():\n"
        "                batch.reject(row, f'unknown tag {tag}')\n            elif not tag:\n"
        "                raise ValueError('\\udc00')\n        return list(map(len, tags))\n\n"
        "    def inference(self, inputs):\n        return inputs\n\n"
        "    def postprocess(self, outputs, batch):\n        return {'size': outputs}\n"
    )
    docs = ['"red"', '"\\ud83d"', '""']
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"doc": doc}) + "\n" for doc in docs))
    done = parity("run", "tag.py", "rows.jsonl")
    good, rejected, failed = lines(done.out)
    assert (done.code, good) == (2, {"size": 3})
    told = [json.dumps(rejected), json.dumps(failed)]
    assert ["unknown tag \\\\ud83d" in told[0], "ValueError: \\\\udc00" in told[1]] == [True, True]
    scored = parity("batch", "tag.py", "rows.jsonl", "out")
    assert scored.code == 0
    errors = list(map(str, pq.read_table(tmp_path / "out" / "_errors").column("_message").to_pylist()))
    assert ["unknown tag \\ud83d" in errors[0], "ValueError: \\udc00" in errors[1]] == [True, True]
