"""SQL over the zoo: every integer arrives, only the needed tables are filled, and a query can only read."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.database import query, store, tables
from paramcount.database.query import run_query
from paramcount.database.tables import TABLES
from paramcount.zoo import cache
from paramcount.zoo.what_if import get_size, list_paths
from tests.conftest import forget_zoo
from tests.few_models import use_models
from tests.refusing import assert_one_line
from tests.running import Runner

FEW = (
    "gpt2-small",
    "gpt-oss-20b",
    "deepseek-v3",
    "llama-3.2-11b-vision",
    "t5-small",
    "jamba-v0.1",
    "gpt-4",
)  # one of each kind


@pytest.fixture(scope="module")
def cache_of_few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("few")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, cache_of_few: Path) -> list[pc.Model]:
    """A zoo of some models, whose tables are filled once."""
    models = [zoo.load_entry(id) for id in FEW]
    monkeypatch.setenv("PARAMCOUNT_CACHE", str(cache_of_few))
    use_models(monkeypatch, models)
    return models


def ask(sql: str) -> list[tuple[Any, ...]]:
    return run_query(sql).rows


def ask_columns(sql: str) -> list[str]:
    return list(run_query(sql).columns)


# ---- every integer of the zoo


def check_models(models: list[pc.Model]) -> None:
    """Every integer of these models in every table, compared with the functions that compute it."""
    rows = run_query("SELECT * FROM models")
    by_id = {row[0]: dict(zip(rows.columns, row)) for row in rows.rows}
    components = {(id, name): (n, active) for id, name, n, active in ask("SELECT * FROM components")}
    parts = {(id, name): n for id, name, n in ask("SELECT * FROM parts")}
    sizes = {(id, name): (value, text) for id, name, value, text in ask("SELECT model, name, value, text FROM sizes")}
    tensor_sums = dict(ask("SELECT model, sum(parameters) FROM tensors WHERE part != 'mtp' GROUP BY 1"))
    explained = dict(ask("SELECT model, sum(parameters) FROM explanations WHERE included GROUP BY 1"))
    for model in models:
        row = by_id[model.id]
        if model.estimate:
            assert row["total"] is None and row["estimate"] == 1
            continue
        count = pc.count(model)
        expected = {"total", "active", "non_embedding", "active_non_embedding", "language_model", "buffers", "mtp"}
        assert {name: row[name] for name in expected} == {name: getattr(count, name) for name in expected}
        assert {name: row[name] for name in count.components} == count.components
        for name, n in count.components.items():
            assert components[model.id, name] == (n, count.active_components[name])
        assert {name: parts[model.id, name] for name in count.parts} == count.parts
        for path in list_paths(model.sizes):
            size = get_size(model.sizes, path)
            value, text = sizes[model.id, path]
            assert value == (int(size) if isinstance(size, int) else None)
            assert json.loads(text if type(size) is not str else json.dumps(text)) == json.loads(
                json.dumps(size, default=list)
            )
        assert tensor_sums[model.id] == explained[model.id] == count.total


def test_every_integer_of_some_models_comes_back(few: list[pc.Model]) -> None:
    check_models(few)


@pytest.mark.exhaustive
def test_every_integer_of_the_zoo_comes_back() -> None:
    check_models([zoo.load_entry(id) for id in zoo.list_ids()])


def test_memory_and_published_figures_are_those_of_the_api(few: list[pc.Model]) -> None:
    found = ask("SELECT what, dtype, bytes FROM memory WHERE model = 'gpt-oss-20b'")
    for what, dtype, n in found:
        if what == "weights":
            assert n == pc.memory("gpt-oss-20b", dtype=dtype).weights_bytes
        elif what == "kv_per_token":
            assert n == pc.memory("gpt-oss-20b", kv_dtype=dtype).kv_bytes_per_token
    assert {what for what, _, _ in found} == {"weights", "kv_per_token", "state"}
    figures = ask("SELECT what, printed, figure, counted, verdict FROM published WHERE model = 'deepseek-v3' LIMIT 2")
    assert figures == [
        ("total", "671B", 671 * 10**9, 671_026_404_352, "rounded"),
        ("active", "37B", 37 * 10**9, 37_552_282_624, "truncated"),
    ]
    ((claimed,),) = ask("SELECT count(*) FROM published WHERE model = 'gpt-4' AND claimed_by IS NOT NULL")
    assert claimed == len(zoo.load_entry("gpt-4").claims)


def test_every_column_can_be_named_without_quotes(few: list[pc.Model]) -> None:
    for table in TABLES:
        names = ", ".join(field.name for field in table.fields)
        assert ask_columns("SELECT " + names + " FROM " + table.name) == names.split(", ")


def test_values_have_the_declared_types(few: list[pc.Model]) -> None:
    types: dict[str, set[type]] = {"integer": {int}, "number": {float}, "flag": {int}, "text": {str}, "date": {str}}
    for table in TABLES:
        for field, values in zip(table.fields, zip(*ask("SELECT * FROM " + table.name))):
            assert {type(value) for value in values} - {type(None)} <= types[field.type], (table.name, field.name)
            if field.type == "flag":
                assert set(values) <= {0, 1, None}
            if field.type == "date":
                assert all(value is None or re.fullmatch(r"\d{4}-\d\d-\d\d", value) for value in values)


def test_an_integer_beyond_63_bits_is_refused(few: list[pc.Model], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAMCOUNT_CACHE", "")
    few[:] = [pc.what_if("llama-3.1-8b", d_model=2**30, d_ff=2**30, n_layers=2**20)]
    with pytest.raises(pc.ParamcountError, match=r"llama-3.1-8b: total is 2⁶³ or more \(expected smaller sizes\)"):
        run_query("SELECT total FROM models")


# ---- only what a query reads


def test_only_the_tables_that_a_query_reads_are_filled(few: list[pc.Model], monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[str] = []
    fill = store.fill_table

    def fill_table(connection: sqlite3.Connection, table: tables.TableSpec, *others: Any) -> None:
        filled.append(table.name)
        fill(connection, table, *others)

    monkeypatch.setenv("PARAMCOUNT_CACHE", "")
    monkeypatch.setattr(store, "fill_table", fill_table)
    assert ask("SELECT 1") == [(1,)]
    assert filled == []
    ask("WITH big AS (SELECT model FROM parts) SELECT (SELECT count(*) FROM sources) FROM big")
    assert filled == ["parts", "sources"]


def test_a_filled_table_is_kept_until_the_zoo_changes(
    few: list[pc.Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARAMCOUNT_CACHE", str(tmp_path / "a" / "cache"))
    monkeypatch.setattr(store, "hash_sources", lambda **_: b"1" * 32)
    expected = ask("SELECT * FROM parts ORDER BY 1, 2")
    assert ask("SELECT count(*) FROM sources") != [(0,)]
    (path,) = (tmp_path / "a" / "cache").iterdir()
    if hasattr(os, "geteuid"):
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    with monkeypatch.context() as patch:
        patch.setattr(store, "load_entry", lambda id: pytest.fail("the zoo is read again"))
        assert ask("SELECT * FROM parts ORDER BY 1, 2") == expected
        patch.setattr(store, "hash_sources", lambda **_: b"2" * 32)
        with pytest.raises(pytest.fail.Exception):
            ask("SELECT * FROM parts")
    content = path.read_bytes()
    for damaged in (b"", content[:-1], content[:100] + b"x" + content[101:], b"x" + content[1:], b"x" * 5000):
        path.write_bytes(damaged)
        assert ask("SELECT * FROM parts ORDER BY 1, 2") == expected


def test_another_entry_of_the_user_computes_no_built_in_model_again(
    own_zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARAMCOUNT_CACHE", str(tmp_path / "cache"))
    built_in = [zoo.load_entry(id) for id in ("gpt2-small", "llama-3.1-8b", "gpt-4")]
    use_models(monkeypatch, built_in)
    figures = "SELECT * FROM components ORDER BY rowid"
    expected = ask(figures)
    (own_zoo / "llama").mkdir(parents=True)
    text = (zoo.CONFIGS / "llama" / "llama-3.1-8b.yaml").read_text(encoding="utf-8")
    (own_zoo / "llama" / "mine.yaml").write_text(text.replace("id: llama-3.1-8b", "id: mine"), encoding="utf-8")
    forget_zoo()
    models = [*built_in[:2], zoo.load_entry("mine"), *built_in[2:]]
    use_models(monkeypatch, models)
    computed: list[str] = []

    def list_rows(table: tables.TableSpec, models: list[pc.Model]) -> Iterator[list[Any]]:
        computed.extend(model.id for model in models)
        return tables.list_rows(table, models)

    monkeypatch.setattr(store, "list_rows", list_rows)
    rows = ask(figures)
    assert set(computed) - {"mine"} == set()
    assert rows == [*expected, *(("mine", *row[1:]) for row in expected if row[0] == "llama-3.1-8b")]
    assert [id for (id,) in ask("SELECT id FROM models ORDER BY rowid")] == [model.id for model in models]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs permissions of Unix")
def test_a_cache_that_others_can_write_is_not_read(
    few: list[pc.Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARAMCOUNT_CACHE", str(tmp_path))
    monkeypatch.setattr(store, "hash_sources", lambda **_: b"1" * 32)
    ask("SELECT * FROM parts")
    (path,) = tmp_path.iterdir()
    assert cache.read_cache(b"1" * 32) is not None
    path.chmod(0o622)
    assert cache.read_cache(b"1" * 32) is None
    path.chmod(0o600)
    path.rename(tmp_path / "other")
    path.symlink_to(tmp_path / "other")
    assert cache.read_cache(b"1" * 32) is None
    path.unlink()
    tmp_path.chmod(0o777)
    ask("SELECT * FROM parts")
    assert not path.exists()


def test_files_of_other_zoos_are_removed_if_they_are_many_large_or_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARAMCOUNT_CACHE", str(tmp_path))
    now = time.time()

    def write_others(days: dict[str, float], n_bytes: int = 10) -> set[str]:
        for name, age in days.items():
            (tmp_path / name).write_bytes(b"x" * n_bytes)
            os.utime(tmp_path / name, times=(now - age * 24 * 3600,) * 2)
        cache.write_cache(b"1" * 32, b"data")
        left = {path.name for path in tmp_path.iterdir()} - {f"zoo-{(b'1' * 16).hex()}.cache"}
        for name in left:
            (tmp_path / name).unlink()
        return left

    many = {f"zoo-{i}.cache": i / 10 for i in range(5)} | {"explore-1.cache": 0.45, "notes.txt": 400}
    assert write_others(many) == {"zoo-0.cache", "zoo-1.cache", "zoo-2.cache", "notes.txt"}
    assert write_others({"zoo-0.cache": 1, "zoo-1.cache": cache.MOST_DAYS + 1}) == {"zoo-0.cache"}
    monkeypatch.setattr(cache, "MOST_BYTES", 100)
    assert write_others({"zoo-0.cache": 1, "zoo-1.cache": 2}, n_bytes=40) == {"zoo-0.cache"}
    assert cache.read_cache(b"1" * 32) == b"data"


def test_the_cache_depends_on_every_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").mkdir()
    entry = tmp_path / "f" / "a.yaml"
    entry.write_text("id: a\n", encoding="utf-8")
    monkeypatch.setattr(cache, "list_paths", lambda **_: [entry])
    digests = set()
    for text in ("id: a\n", "id: b\n", "id: a\n"):
        entry.write_text(text, encoding="utf-8")
        digests.add(cache.hash_sources())
    assert len(digests) == 2


# ---- read-only


HOSTILE = [
    "INSERT INTO models (id) VALUES ('x')", "UPDATE models SET total = 1", "DELETE FROM models", "DROP TABLE models",
    "CREATE TABLE x (y)", "CREATE TEMP TABLE x (y)", "CREATE VIRTUAL TABLE x USING fts5(y)",
    "ALTER TABLE models RENAME TO x", "ATTACH 'x.db' AS x", "DETACH main", "VACUUM", "VACUUM INTO 'x.db'",
    "PRAGMA user_version", "PRAGMA query_only = OFF", "SELECT * FROM pragma_table_info('models')",
    "SELECT * FROM pragma_database_list", "SELECT load_extension('x')", "SELECT writefile('x', 'y')",
    "SELECT readfile('/etc/passwd')", "SELECT edit('x')", "SELECT fts3_tokenizer('x')", "SELECT randomblob(10)",
    "SELECT zeroblob(10)", "SELECT sqlite_version()", "SELECT * FROM dbstat", "BEGIN", "COMMIT", "SAVEPOINT x",
    "REINDEX", "ANALYZE", "EXPLAIN SELECT 1", "SELECT 1; DROP TABLE models", "SELECT 1; SELECT 2",
    "WITH x AS (SELECT 1) DELETE FROM models", "REPLACE INTO models (id) VALUES ('x')", "", ";", "--", "SELECT",
    "\x00", "SELECT '\0'", "\ud800", "SELECT * FROM models INTO OUTFILE 'x'", ".shell ls", ".import x models",
]  # fmt: skip


@pytest.mark.parametrize("sql", HOSTILE)
def test_a_query_can_only_read(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pc.ParamcountError) as caught:
        run_query(sql)
    assert_one_line(str(caught.value))
    assert list(tmp_path.iterdir()) == []


def test_only_declared_tables_are_readable() -> None:
    connection = store.open_empty()
    connection.execute("CREATE TABLE secret (word)")
    with query.restrict(connection, query.QueryBudget(1)) as (restricted, _):
        assert restricted.execute("SELECT id FROM models").fetchall() == []
        with pytest.raises(sqlite3.DatabaseError, match=r"access to secret\.word is prohibited"):
            restricted.execute("SELECT word FROM secret")


def test_what_the_authorizer_does_not_know_it_refuses() -> None:
    """Every action of SQLite but four."""
    actions = {
        value
        for name, value in vars(sqlite3).items()
        if re.fullmatch(
            r"SQLITE_(CREATE|DROP|ALTER|INSERT|UPDATE|DELETE|ATTACH|DETACH|PRAGMA|REINDEX|ANALYZE|TRANSACTION|SAVEPOINT).*",
            name,
        )
    }
    assert len(actions) > 20
    assert not actions & query.ACTIONS


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t",
        "SELECT count(*) FROM components a, components b, components c, components d, components e, components f, "
        "components g, components h",
        "WITH RECURSIVE t(x) AS (SELECT 'a' UNION ALL SELECT replace(x || x, 'a', 'b') FROM t LIMIT 1000000) "
        "SELECT sum(length(x)) FROM t",
    ],
)
def test_a_query_ends_after_its_time_or_its_length(few: list[pc.Model], sql: str) -> None:
    with pytest.raises(pc.ParamcountError, match=r"takes too long|string or blob too big"):
        run_query(sql, seconds=0.2)


def test_a_query_ends_when_it_takes_too_much_memory(few: list[pc.Model], monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter(range(0, 10**15, 2**20))
    monkeypatch.setattr(query, "measure_memory", lambda: next(taken))
    with pytest.raises(pc.ParamcountError, match="takes too much memory"):
        ask("WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t")


def test_a_query_returns_a_limited_number_of_rows(few: list[pc.Model], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MOST_ROWS", 6)
    with pytest.raises(pc.ParamcountError, match=r"returns more than 6 rows \(expected a smaller LIMIT\)"):
        ask("SELECT id FROM models")
    assert len(ask("SELECT id FROM models LIMIT 6")) == 6


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT format('%1000000000d', 1)",
        "SELECT '" + "a" * 5000 + "' || '" + "a" * 6000 + "' LIKE '" + "%a" * 40 + "b'",
        "SELECT 'a' GLOB '" + "*a" * 200 + "'",
    ],
)
def test_no_function_takes_minutes_for_one_row(sql: str) -> None:
    with pytest.raises(pc.ParamcountError, match="of a LIKE, GLOB or printf is too long"):
        run_query(sql)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'ABC' LIKE 'a_c'", 1), ("'abc' LIKE 'a%'", 1), ("'abc' LIKE 'b'", 0), ("'É' LIKE 'é'", 0),
        ("'a_c' LIKE 'a!_c' ESCAPE '!'", 1), ("'abc' LIKE 'a!_c' ESCAPE '!'", 0), ("'[x' LIKE '[_'", 1),
        ("'*' LIKE '?'", 0), ("NULL LIKE 'a'", None), ("12 LIKE '1%'", 1), ("'abc' GLOB 'a[a-c]?'", 1),
        ("'abc' GLOB 'A*'", 0), ("'b' GLOB '[^a]'", 1), ("printf('%,d|%5.2f|%%', 1234567, 1.5)", "1,234,567| 1.50|%"),
        ("printf(NULL)", None), ("json_extract('[1,2]', '$[1]')", 2),
        ("(SELECT group_concat(value) FROM json_each('[1,2]'))", "1,2"),
    ],
)  # fmt: skip
def test_the_replaced_functions_answer_as_those_of_sqlite(expression: str, value: object) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        own = connection.execute(f"SELECT {expression}").fetchone()[0]
    assert ask(f"SELECT {expression}") == [(value,)] == [(own,)]


# ---- the command


def test_an_unknown_name_in_double_quotes_is_no_string(few: list[pc.Model]) -> None:
    assert ask("""SELECT "id", '"total"' FROM models WHERE "total" = 124439808 -- "x" """) == [
        ("gpt2-small", '"total"')
    ]
    with pytest.raises(pc.ParamcountError, match=r"unknown column 'gpt' .*; a string is in single quotes: 'gpt'\)"):
        ask('SELECT id FROM models WHERE family = "gpt"')


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t",
        "SELECT id LIKE 'gpt%' FROM models",
    ],
)
def test_an_interrupted_query_is_not_an_invalid_one(
    few: list[pc.Model], sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> int:
        raise KeyboardInterrupt

    looks = iter(range(10**9))
    monkeypatch.setattr(query, "measure_memory", lambda: 0 if next(looks) < 100 else interrupt())
    monkeypatch.setattr(query, "REPLACEMENTS", [("like", 2, interrupt)])
    with pytest.raises(KeyboardInterrupt):
        run_query(sql)


def test_headings_contain_no_control_characters(run: Runner) -> None:
    assert run("sql", 'SELECT 1 AS "a\x1b[31m\nb"', "--color", "always").out.splitlines()[0].endswith("a\\x1b[31m\\nb")


def test_every_format_has_the_rows(few: list[pc.Model], run: Runner) -> None:
    sql = "SELECT id, id, total, 0.5 AS half, NULL AS missing FROM models WHERE id = 'deepseek-v3'"
    assert run("sql", sql, "--csv").out == "id,id_2,total,half,missing\ndeepseek-v3,deepseek-v3,671026404352,0.5,\n"
    row = {"id": "deepseek-v3", "id_2": "deepseek-v3", "total": 671_026_404_352, "half": 0.5, "missing": None}
    assert json.loads(run("sql", sql, "--json").out) == {"schema_version": 2, "rows": [row]}
    for format in ("table", "markdown", "latex", "html"):
        assert "671,026,404,352" in run("sql", sql, "--format", format).out


def test_the_schema_has_every_column_with_its_meaning(run: Runner) -> None:
    listed = json.loads(run("sql", "--schema", "--json").out)["tables"]
    assert [(t["name"], [c["name"] for c in t["columns"]]) for t in listed] == [
        (table.name, [field.name for field in table.fields]) for table in TABLES
    ]
    for table in listed:
        for column in table["columns"]:
            assert column["meaning"].endswith((".", "…")), column
            assert column["unit"] or column["type"] != "integer" or column["name"] == "value", column


def test_the_guide_has_a_section_per_table() -> None:
    guide = (Path(pc.__file__).parent / "docs" / "data.md").read_text(encoding="utf-8")
    for table in TABLES:
        assert f"\n## {table.name}\n\n{table.meaning}\n\n<!-- shows: columns of {table.name} -->" in guide
