"""paramcount list [FAMILY]..."""

from __future__ import annotations

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import Output, emit, estimates_option, models_argument, output_options
from paramcount.errors import ParamcountError, find_nearest, quote
from paramcount.formats.hub_urls import is_url
from paramcount.output.tables import Table
from paramcount.zoo.names import expand_pattern, find_kind, is_file_name

TERMINAL_COLUMNS = "id,total,released,publisher"
FILE_COLUMNS = "id,total,active,family,publisher,released,hf"


@click.command("list", cls=Command, epilog="Example: paramcount list gpt deepseek")
@models_argument(required=False, metavar="[FAMILY]...")
@estimates_option
@output_options
def command(names: tuple[str, ...], estimates: bool, output: Output) -> None:
    """List the models in the zoo, or those in each FAMILY: id, total, release date, publisher.

    Every format except the terminal table also includes active parameters, family and Hugging Face id.
    """
    from paramcount import zoo
    from paramcount.loading import select_models
    from paramcount.views.compare import build_comparison_table, make_rows

    for name in names:
        check_family(name)
    rows = make_rows(select_models(names or list(zoo.list_families()), estimates=estimates))
    families = list(dict.fromkeys(row["family"] for row in rows))
    rows.sort(key=lambda row: (families.index(row["family"]), row["total"] is None, row["total"]))

    def make_table(format: str) -> Table:
        columns = TERMINAL_COLUMNS if format == "table" else FILE_COLUMNS
        return build_comparison_table(rows, columns=columns, format=format)._replace(wraps=True, drops=True)

    emit(make_table, output)


def check_family(name: str) -> None:
    """Check a name that can only be a family or model of the zoo.

    Raises: ParamcountError if the zoo has neither.
    """
    may_be_elsewhere = is_file_name(name) or is_url(name) or "/" in name  # a file, or a repository in the cache
    if may_be_elsewhere or find_kind(name) or expand_pattern(name) is not None:
        return
    from paramcount import zoo

    nearest = find_nearest(name.casefold(), [*zoo.list_families(), *zoo.list_ids()])
    expected = "a family such as qwen, or a name from `paramcount list`"
    raise ParamcountError(f"unknown family {quote(name)}", expected=expected, nearest=nearest)
