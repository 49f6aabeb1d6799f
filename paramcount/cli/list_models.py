"""paramcount list [WORD]..."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from paramcount.cli.options import (
    CommandRequest,
    column_options,
    complete_names,
    define_command,
    estimates_option,
    option,
)
from paramcount.cli.paper import PaperOptions, paper_options
from paramcount.errors import ParamcountError, describe_value, find_nearest, join_words, quote
from paramcount.output.tables import Table
from paramcount.symbolic.quantities import parse_quantity

TERMINAL_COLUMNS = "id,total,released,publisher"
FILE_COLUMNS = "id,total,active,family,publisher,released,hf"


@define_command("list", "qwen coder --sort -total")
@click.argument("words", nargs=-1, metavar="[WORD]...", shell_complete=complete_names)
@option("--where CONDITION", "Keep models for which CONDITION holds: 'total < 9e9 and tied'.")
@column_options
@option("--limit N", "List at most N models.", type=str)
@paper_options
@estimates_option
def command(
    request: CommandRequest,
    words: tuple[str, ...],
    where: str | None,
    columns: str | None,
    sort: str | None,
    limit: str | None,
    paper: PaperOptions,
    estimates: bool,
) -> None:
    """List the models in the zoo whose id, name, family, publisher, Hugging Face id or an alias contains every WORD.

    CONDITION compares columns, sizes or config.json keys with < <= > >= = !=, joined by and, or, not and parentheses;
    see `paramcount docs commands`. Every format except the terminal table also includes active parameters, family and
    Hugging Face id. A narrow terminal shows fewer columns.
    """
    from paramcount.cli.progress import progress_callback
    from paramcount.database.listing import list_model_rows, search_rows, select_rows
    from paramcount.tiny import NAMES
    from paramcount.views.compare import build_comparison_table
    from paramcount.zoo.names import matches_name

    paper.check(request)
    most = None if limit is None else parse_quantity(limit) if len(limit) <= 18 else 0
    if limit is not None and not (most and most > 0):
        raise ParamcountError(f"= {describe_value(limit)}", where="--limit", expected="a positive integer")
    with progress_callback("counting models") as watch:
        found = search_rows(list_model_rows(estimates=estimates, watch=watch), words)
    is_tiny = any(word.casefold().startswith("tiny") for word in words)
    examples = [name for name in NAMES if is_tiny and all(matches_name(word, name) for word in words)]
    if words and not found:
        raise make_search_error(words, examples)
    if examples and request.table_format != "json":
        click.echo(f"note: {describe_examples(examples)}", sys.stderr)
    with progress_callback("reading models") as watch:
        rows, columns, sort = select_rows(found, where, columns, sort, watch)
    if sort is None:
        families = list(dict.fromkeys(row["family"] for row in rows))
        rows.sort(key=lambda row: (families.index(row["family"]), row["total"] is None, row["total"]))

    def make_table(format: str) -> Table:
        shown = columns or (TERMINAL_COLUMNS if format == "table" else FILE_COLUMNS)
        table = build_comparison_table(rows, columns=shown, sort=sort, limit=most, format=format, wording=paper.wording)
        return paper.name_table(table._replace(drops=True, wraps=columns is None))

    request.emit(make_table)


def describe_examples(names: Sequence[str]) -> str:
    """Why tiny models are not listed, and how they are shown."""
    verb = "is a trained example" if len(names) == 1 else "are trained examples"
    return f"{join_words(names, 'and')} {verb} outside the zoo; run `paramcount {names[0]}`"


def make_search_error(words: tuple[str, ...], examples: Sequence[str]) -> ParamcountError:
    """The error for words that no model contains, with the nearest names to a single one, or with tiny models."""
    import paramcount.zoo as zoo

    names = [*zoo.list_families(), *zoo.list_ids()]
    nearest = find_nearest(words[0].casefold(), names) if len(words) == 1 else ()
    shown = " and ".join(map(quote, words[:3])) + (" and …" if len(words) > 3 else "")
    if examples:
        return ParamcountError(f"no model in the zoo matches {shown}; {describe_examples(examples)}")
    return ParamcountError(f"no model matches {shown}", expected="part of a name, such as qwen", nearest=nearest)
