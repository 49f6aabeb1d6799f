"""SQL over the zoo: rows or one line, and nothing but the tables is read or written."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from paramcount.database import query, store
from paramcount.database.tables import TABLES
from paramcount.errors import ParamcountError
from tests.fuzz.frame import fuzz, spoil_text
from tests.refusing import assert_one_line

pytestmark = pytest.mark.fuzz

VALID = [
    "SELECT family, count(*), max(total) FROM models GROUP BY family ORDER BY 3 DESC LIMIT 5",
    "SELECT id, 1.0 * active / total FROM models WHERE released >= '2024-01-01' AND NOT estimate",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t LIMIT 9) SELECT x, sum(x) OVER (ORDER BY x) FROM t",
    "SELECT m.id, s.value FROM models m JOIN sizes s ON s.model = m.id WHERE s.name LIKE 'd!_%' ESCAPE '!'",
    "SELECT name, json_extract(shape, '$[0]') FROM tensors WHERE name GLOB '*[wk]*' UNION SELECT part, 1 FROM parts",
    "SELECT printf('%,d %5.2f %s', total, 1.5, hex(id)), CASE WHEN tied THEN 'a' ELSE x'00ff' END FROM models",
    "SELECT group_concat(value, ','), strftime('%Y', '2024-01-01') FROM json_each('[1,2,3]')",
    "SELECT * FROM (SELECT model, bytes FROM memory WHERE what = 'weights') WHERE bytes > 1e9 ORDER BY random()",
]
SCRAPS = [
    "", " ", "(", ")", ",", ";", "'", '"', "`", "[", "]", "--", "/*", "*/", "*", "%", "?", ":a", "@b", "$c", "\0", "\n",
    "\ud800", "\u202e", "x'0", "1e999", "9223372036854775808", "-9223372036854775808", "NULL", "SELECT", "FROM",
    "DELETE FROM models", "INSERT INTO models VALUES (1)", "; DROP TABLE models", "ATTACH 'x.db' AS x",
    "PRAGMA user_version", "EXPLAIN ",
    "VACUUM INTO 'x.db'", "load_extension('x')", "writefile('x', 'y')", "readfile('x')", "zeroblob(1e9)",
    "printf('%.*c', 1e9, 'x')", "pragma_table_info('models')", "sqlite_master", "dbstat", "fts3_tokenizer('x')",
    "total", "models", "a, models b, models c", "UNION ALL SELECT * FROM models", "(" * 60, "NOT " * 60, "x || " * 200,
    "replace(", "LIKE '%%%%%%%%%a'", "GLOB '[[]'", "OVER ()", "CAST(", "AS", "RECURSIVE", "MATCH", "REGEXP",
    "COLLATE x",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _a_small_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tables of some models, in a directory that stays empty."""
    ids = ("gpt2-small", "gpt-oss-20b", "t5-small", "gpt-4")
    connection = store.open_empty()
    connection.execute("BEGIN")
    for table in TABLES:
        store.fill_table(connection, table, ids, {})
    connection.execute("COMMIT")
    data = connection.serialize()
    connection.close()

    def open_database(names: Collection[str] = (), **options: object) -> sqlite3.Connection:
        copy = sqlite3.connect(":memory:", isolation_level=None)
        copy.deserialize(data)
        return copy

    monkeypatch.setattr(query, "open_database", open_database)
    monkeypatch.setattr(query, "MOST_ROWS", 1000)
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


def ask(sql: str) -> str:
    try:
        result = query.run_query(sql, seconds=0.3)
    except ParamcountError as error:
        assert_one_line(str(error))
        return "refused"
    assert len(set(result.columns)) == len(result.columns)
    assert {type(value) for row in result.rows for value in row} <= {int, float, str, type(None)}
    return "read"


def test_any_query_returns_rows_or_is_refused() -> None:
    assert fuzz(lambda rng: spoil_text(rng, VALID, SCRAPS), ask, valid=VALID) == {"read", "refused"}
