"""Exported files: every integer of the zoo comes back, text is never a formula, and nothing is half-written."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.database import export, store, tables
from paramcount.database.export import export_zoo
from paramcount.database.store import read_rows
from paramcount.database.tables import TABLES, find_table
from paramcount.zoo.columns import TableField
from tests.few_models import use_models
from tests.running import Runner
from tests.test_database import FEW

ROOT = Path(__file__).parent.parent
needs_parquet = pytest.mark.skipif(not find_spec("pyarrow"), reason="needs the extra export")
needs_excel = pytest.mark.skipif(not find_spec("openpyxl"), reason="needs the extra export")
LARGE = 2**62 + 1  # no float is equal to it


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A zoo of some models with a large integer and hostile text, without a cache."""
    models = [zoo.load_entry(id) for id in FEW]
    assert models[0].entry is not None
    hostile = models[0].entry.model_copy(update={"name": "=1+1", "publisher": "@SUM(A1)"})
    models[0] = zoo.make_model(hostile)
    large = TableField("large", "integer", "", "Larger than 2^53.", lambda model, count: LARGE)
    specs = tuple(t._replace(fields=(*t.fields, large)) if t.name == "models" else t for t in TABLES)
    monkeypatch.setenv("PARAMCOUNT_CACHE", "")
    use_models(monkeypatch, models)
    for module in (store, tables, export):
        monkeypatch.setattr(module, "TABLES", specs)


def read_back(path: Path) -> dict[str, list[list[Any]]]:
    """{table: rows} of a file, read by another program than the one that wrote it; flags as 0 and 1."""
    match path.suffix:
        case ".sqlite":
            with closing(sqlite3.connect(path)) as connection:
                return {t.name: list(map(list, connection.execute(f"SELECT * FROM {t.name}"))) for t in tables.TABLES}
        case ".json":
            document = json.loads(path.read_text(encoding="utf-8"))
            return {t.name: [list(record.values()) for record in document[t.name]] for t in tables.TABLES}
        case ".jsonl":
            return {"models": [list(json.loads(line).values()) for line in path.read_text("utf-8").splitlines()]}
        case ".xlsx":
            import openpyxl

            workbook = openpyxl.load_workbook(path)
            return {t.name: [list(row) for row in workbook[t.name].values][1:] for t in tables.TABLES}
    frame = pd.read_parquet(path, dtype_backend="numpy_nullable")
    return {"models": [[None if value is pd.NA else to_python(value) for value in row] for row in frame.to_numpy()]}


def to_python(value: Any) -> Any:
    """A value of NumPy as one of Python."""
    return value.item() if hasattr(value, "item") else value


@pytest.mark.parametrize(
    "name",
    [
        "zoo.sqlite",
        "zoo.json",
        "zoo.jsonl",
        pytest.param("zoo.parquet", marks=needs_parquet),
        pytest.param("zoo.xlsx", marks=needs_excel),
    ],
)
def test_every_value_comes_back(few: None, name: str, tmp_path: Path, run: Runner) -> None:
    path = tmp_path / name
    assert run("export", str(path)) == (0, "", f"note: wrote {path}\n")
    for table, rows in read_back(path).items():
        expected = read_rows(find_table(table))
        assert len(rows) == len(expected)
        for row, other in zip(rows, expected):
            for field, value, true in zip(find_table(table).fields, row, other):
                value = str(value)[:10] if field.type == "date" and value is not None else value
                text_of_large = str(true) if path.suffix == ".xlsx" and field.name == "large" else true
                assert value == text_of_large, (table, field.name)
                assert type(value) is type(text_of_large) or field.type in ("flag", "number")
    assert sorted(tmp_path.iterdir()) == [path]


def test_csv_keeps_all_digits_in_pandas(few: None, tmp_path: Path, run: Runner) -> None:
    run("export", str(tmp_path / "zoo.csv"))
    frame = pd.read_csv(tmp_path / "zoo.csv", dtype_backend="numpy_nullable")
    assert str(frame["total"].dtype) == "Int64"
    assert set(frame["large"]) == {LARGE}
    for row, expected in zip(frame.itertuples(index=False), read_rows(find_table("models"))):
        for field, value, true in zip(find_table("models").fields, row, expected):
            assert (None if value is pd.NA else value) == (
                f"'{true}" if isinstance(true, str) and true[:1] in "=@" else true
            ), field.name


@needs_excel
def test_text_that_a_spreadsheet_would_run_is_a_string_in_excel(few: None) -> None:
    import openpyxl

    workbook = openpyxl.load_workbook(io.BytesIO(export_zoo("zoo.xlsx")))
    cells = [cell for row in workbook["models"].iter_rows() for cell in row]
    assert [cell.data_type for cell in cells if cell.value == "=1+1"] == ["s"]
    assert [cell for cell in cells if cell.data_type == "f"] == []


def test_one_table_can_be_exported(few: None) -> None:
    header, first, *_ = export_zoo("parts.csv", "parts").decode().splitlines()
    assert (header, first) == ("model,part,parameters", "gpt2-small,decoder,124439808")
    assert list(json.loads(export_zoo("parts.json", "parts"))) == ["schema_version", "parts"]


def test_the_sqlite_file_describes_itself(few: None, tmp_path: Path) -> None:
    (tmp_path / "zoo.db").write_bytes(export_zoo("zoo.db"))
    with closing(sqlite3.connect(tmp_path / "zoo.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        described = connection.execute('SELECT "table", "column" FROM columns').fetchall()
        for table in TABLES:
            columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table.name})")]
            assert [column for name, column in described if name == table.name] == columns[: len(table.fields)]


def test_the_zoo_is_a_frame_of_exact_integers() -> None:
    frame = pc.zoo(estimates=True)
    assert list(frame["id"]) == list(zoo.list_ids())
    assert list(pc.zoo()["id"]) == [id for id in zoo.list_ids() if not zoo.load_entry(id).estimate]
    for field in find_table("models").fields:
        dtype = {"integer": "Int64", "flag": "boolean", "date": "datetime64"}.get(field.type, "")
        assert str(frame[field.name].dtype).startswith(dtype)
    by_id = frame.set_index("id")
    for id in ("gpt2-small", "deepseek-v3"):
        assert by_id.loc[id, "total"] == pc.count(id).total
        assert by_id.loc[id, "kv_per_token"] == pc.memory(id).kv_bytes_per_token
    assert str(by_id.loc["deepseek-v3", "released"])[:10] == "2024-12-26"
    assert by_id.loc["gpt-4", "total"] is pd.NA


def test_a_query_is_a_frame_of_exact_integers() -> None:
    frame = pc.query(f"SELECT {LARGE} AS large, 1.5 AS half, 'a' AS text UNION ALL SELECT NULL, 2, NULL")
    assert [str(dtype) for dtype in frame.dtypes][:2] == ["Int64", "Float64"]
    assert frame["large"][0] == LARGE
    mixed = pc.query(f"SELECT {LARGE} AS n UNION ALL SELECT 0.5")["n"]
    assert [type(value) for value in sorted(mixed)] == [float, int]
    assert max(mixed) == LARGE
    with pytest.raises(pc.ParamcountError, match="unknown table"):
        pc.query("SELECT * FROM no_table")


def test_the_citation_has_the_version_and_date_of_the_changelog() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version: (.+)$", text, re.MULTILINE)
    (date,) = re.findall(r"^date-released: (.+)$", text, re.MULTILINE)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert version == pc.__version__
    assert re.findall(r"^## (\d\S*) - (\S+)$", changelog, re.MULTILINE)[0] == (version, date)
