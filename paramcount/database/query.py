"""Queries that can only read: one SELECT over the tables, with limits on time, memory, length and recursion.

SQLite asks the authorizer about every access while it compiles a query; whatever is not on the lists is refused. LIKE,
GLOB and printf are replaced, because SQLite's own may take minutes for one row, in which nothing can interrupt them.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from fnmatch import translate
from functools import lru_cache
from typing import Any, NamedTuple

from paramcount.database.store import BY_NAME, Watch, open_database, open_empty
from paramcount.database.tables import TABLES
from paramcount.errors import ParamcountError, find_nearest, join_words, list_names, make_printable
from paramcount.zoo.aliases import find_column

MOST_ROWS = 100_000
LONGEST_QUERY = 20_000  # characters
LONGEST_VALUE = 200_000  # bytes
LONGEST_PATTERN, LONGEST_MATCHED = 100, 10_000  # characters, of LIKE and GLOB
MOST_SECONDS = 10.0
MOST_MEMORY = 1 << 30  # bytes beyond those of the process before
STEPS = 100  # of SQLite's machine between two looks at the clock
ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
READABLE = {*BY_NAME, "sqlite_master", "sqlite_schema", "json_each", "json_tree"}
FUNCTION_NAMES = (
    "abs avg acos acosh asin asinh atan atan2 atanh cast ceil ceiling char coalesce concat concat_ws cos cosh "
    "count cume_dist date datetime degrees dense_rank exp first_value floor format glob group_concat hex ifnull "
    "iif instr json json_array json_array_length json_each json_extract json_group_array json_group_object "
    "json_object json_quote json_tree json_type json_valid julianday lag last_value lead length like ln log log10 "
    "log2 lower ltrim max median min mod nth_value ntile nullif octet_length percent_rank percentile "
    "percentile_cont percentile_disc pi pow power printf quote radians random rank replace round row_number rtrim "
    "sign sin sinh sqrt strftime string_agg substr substring sum tan tanh time timediff total trim trunc typeof "
    "unhex unicode unixepoch upper -> ->>"
)
FUNCTIONS = frozenset(FUNCTION_NAMES.split())
# {limit of SQLite: its value}
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: LONGEST_VALUE,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 * LONGEST_QUERY,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: LONGEST_PATTERN,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
QUOTED_NAME = re.compile(
    r"""(?P<skip>'(?:[^']|'')*'|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/)|"(?P<name>(?:[^"]|"")*)\"""", re.DOTALL
)
UNKNOWN = re.compile(r"no such (table|column|function): ((?:\w+\.)?(.*))", re.DOTALL)
EXPECTED = "one SELECT over the tables of `paramcount sql --schema`"


class Result(NamedTuple):
    """The result of a query."""

    columns: tuple[str, ...]  # unique: the second column named id is id_2
    rows: list[tuple[Any, ...]]


class QueryBudget:
    """The time and memory that a query may take."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.memory = measure_memory() + MOST_MEMORY
        self.problem = ""  # what ended the query
        self.is_interrupted = False  # by Ctrl-C

    def check(self) -> bool:
        """Whether the query must end."""
        if self.is_interrupted:
            return True
        if time.monotonic() > self.end:
            self.problem = "takes too long"
        elif measure_memory() > self.memory:
            self.problem = "takes too much memory"
        return bool(self.problem)

    def guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function for SQLite, which hides what it raises; Ctrl-C ends the query all the same."""

        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except KeyboardInterrupt:
                self.is_interrupted = True
                raise

        return call


def measure_memory() -> int:
    """The most bytes that the process has taken; 0 if the system does not tell."""
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return 0
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run_query(sql: str, *, seconds: float = MOST_SECONDS, watch: Watch | None = None) -> Result:
    """The result of one SELECT over the tables. `watch`: as in `open_database`, while tables are filled.

    >>> run_query("SELECT id, total FROM models WHERE id = 'gpt2-small'")
    Result(columns=('id', 'total'), rows=[('gpt2-small', 124439808)])

    Raises: ParamcountError if it is not one, is invalid, or takes too much time or memory.
    """
    if len(sql) > LONGEST_QUERY:
        raise ParamcountError(f"the query has {len(sql):,} characters", expected=f"at most {LONGEST_QUERY:,}")
    budget = QueryBudget(seconds)
    with restrict(open_empty(), budget) as (connection, names), translate_errors(budget, sql):
        # compiles the query, which tells its tables, without running it
        connection.execute(f"EXPLAIN {quote_names(sql)}")
    filled = open_database(names & BY_NAME.keys(), watch=watch)
    budget = QueryBudget(seconds)
    with restrict(filled, budget) as (connection, _), translate_errors(budget, sql):
        cursor = connection.execute(sql)
        rows = []
        for row in cursor:
            rows.append(tuple(map(convert_value, row)))
            if len(rows) > MOST_ROWS:
                raise ParamcountError(f"the query returns more than {MOST_ROWS:,} rows", expected="a smaller LIMIT")
        return Result(make_unique(column[0] for column in cursor.description or ()), rows)


def quote_names(sql: str) -> str:
    """A query with its names in backquotes. SQLite takes an unknown name in double quotes for a string.

    >>> print(quote_names('SELECT "id" FROM models /* the "id" */'))
    SELECT `id` FROM models /* the "id" */
    """
    return QUOTED_NAME.sub(
        lambda match: match["skip"] or "`" + match["name"].replace('""', '"').replace("`", "``") + "`", sql
    )


@contextmanager
def restrict(connection: sqlite3.Connection, budget: QueryBudget) -> Iterator[tuple[sqlite3.Connection, set[str]]]:
    """The connection with all limits, and the set of tables that its queries read; closed afterwards."""
    names: set[str] = set()

    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            names.add(str(first))
            # without a column, the rows of a common table expression are counted
            return sqlite3.SQLITE_OK if first in READABLE or not second else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_OK if str(second).lower() in FUNCTIONS else sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action in ACTIONS else sqlite3.SQLITE_DENY

    try:
        for table in ("json_each", "json_tree"):
            connection.execute(f"SELECT 1 FROM {table}('[]')")  # noqa: S608 SQLite declares them on first use
        for limit, value in LIMITS.items():
            connection.setlimit(limit, value)
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        connection.text_factory = decode_text
        for name, n_arguments, function in REPLACEMENTS:
            connection.create_function(name, n_arguments, budget.guard(function), deterministic=True)
        connection.set_progress_handler(budget.guard(budget.check), STEPS)
        connection.set_authorizer(authorize)
        yield connection, names
    finally:
        connection.close()


@contextmanager
def translate_errors(budget: QueryBudget, sql: str) -> Iterator[None]:
    """Errors of SQLite as ParamcountErrors of one line, and Ctrl-C as KeyboardInterrupt."""
    try:
        yield
    except ParamcountError:
        raise
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        if budget.is_interrupted or (str(error) == "interrupted" and not budget.problem):
            raise KeyboardInterrupt from None
        if budget.problem:
            raise ParamcountError(f"the query {budget.problem}", expected="a smaller query") from None
        raise explain_error(error, sql) from None


def explain_error(error: Exception, sql: str) -> ParamcountError:
    """An error of SQLite, with the nearest name of a table or column."""
    text = make_printable(error, 200) or type(error).__name__
    if unknown := UNKNOWN.fullmatch(str(error)):
        kind, path, name = unknown[1], make_printable(unknown[2], 60), make_printable(unknown[3], 60)
        columns = list(dict.fromkeys(field.name for table in BY_NAME.values() for field in table.fields))
        if kind == "function":
            nearest = [near for near in find_nearest(name.lower(), FUNCTIONS) if near != name.lower()]
            return ParamcountError(f"SQLite {sqlite3.sqlite_version} has no function {name!r}", nearest=nearest)
        if kind == "table":
            names = list(BY_NAME)
            return ParamcountError(
                f"unknown table {path!r}", expected=list_names(names, name), nearest=find_nearest(name, names)
            )
        if owners := [table.name for table in TABLES if name in (field.name for field in table.fields)]:
            verb = "has" if len(owners) == 1 else "have"
            return ParamcountError(
                f"unknown column {path!r}", expected=f"a column of its table; {join_words(owners, 'and')} {verb} {name}"
            )
        hint = f"; a string is in single quotes: '{name}'" if f'"{name}"' in sql else ""
        return ParamcountError(
            f"unknown column {path!r}",
            expected=list_names(columns, name) + hint,
            nearest=find_synonym(name, columns),
        )
    if "user-defined function raised" in text:
        found = "the text, the pattern or the width of a LIKE, GLOB or printf is too long"
        expected = f"at most {LONGEST_MATCHED:,} and {LONGEST_PATTERN} characters, and a width without *"
        return ParamcountError(found, expected=expected)
    if "authoriz" in text or "one statement" in text or "prohibited" in text:
        return ParamcountError(f"the query is refused: {text}", expected=EXPECTED)
    return ParamcountError(f"invalid query: {text}", expected=EXPECTED)


def find_synonym(name: str, columns: list[str]) -> tuple[str, ...]:
    """The column that a config.json key or a heading refers to, else the nearest ones."""
    try:
        return (find_column(name, columns),)
    except ParamcountError as error:
        return tuple(error.nearest)


def make_unique(names: Iterable[str]) -> tuple[str, ...]:
    """Names of columns, of which the second that is called id becomes id_2."""
    unique: dict[str, None] = {}
    for name in names:
        candidate, i = name, 1
        while candidate in unique:
            i += 1
            candidate = f"{name}_{i}"
        unique[candidate] = None
    return tuple(unique)


def convert_value(value: Any) -> Any:
    """A value of SQLite: bytes as hexadecimal text, infinity as text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value


def decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# ---- functions that replace SQLite's own


def match_like(pattern: object, value: object, escape: object = "") -> bool | None:
    """LIKE: % is any text, _ any character, unless `escape` precedes them; ASCII letters match in both cases."""
    if pattern is None or value is None or escape is None:
        return None
    parts, is_escaped = [], False
    for c in str(pattern):
        if not is_escaped and c == escape:
            is_escaped = True
            continue
        wildcard = "" if is_escaped else {"%": "*", "_": "?"}.get(c, "")
        parts.append(wildcard or (f"[{c}]" if c in "*?[" else c))
        is_escaped = False
    return find_matcher(lower_ascii("".join(parts)))(lower_ascii(str(value)))


def match_glob(pattern: object, value: object) -> bool | None:
    """GLOB: * is any text, ? any character, [abc] one of some."""
    if pattern is None or value is None:
        return None
    return find_matcher(str(pattern).replace("[^", "[!"))(str(value))


def lower_ascii(text: str) -> str:
    return text.lower() if text.isascii() else re.sub("[A-Z]", lambda c: c[0].lower(), text)


@lru_cache(maxsize=64)
def find_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text matches a pattern of fnmatch, in time that grows with the product of both lengths at most."""
    if len(pattern) > 3 * LONGEST_PATTERN:
        raise ValueError("the pattern is too long")
    matches = re.compile(translate(pattern)).match

    def check(text: str) -> bool:
        if len(text) > LONGEST_MATCHED:
            raise ValueError("the text is too long")
        return matches(text) is not None

    return check


def format_text(*arguments: str | int | float | bytes | None) -> object:
    """printf of SQLite, without widths that an argument states or that have more than three digits."""
    if arguments and TOO_WIDE.search(str(arguments[0])):
        raise ValueError("the width is too large")
    places = ", ".join("?" * len(arguments))
    with closing(sqlite3.connect(":memory:")) as connection:  # whose printf is SQLite's own
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        ((text,),) = connection.execute(f"SELECT printf({places})", arguments).fetchall()
    return text


TOO_WIDE = re.compile(r"%[^a-zA-Z%]*(\*|\d{4})")
REPLACEMENTS: tuple[tuple[str, int, Callable[..., Any]], ...] = (
    ("like", 2, match_like),
    ("like", 3, match_like),
    ("glob", 2, match_glob),
    ("printf", -1, format_text),
    ("format", -1, format_text),
)
