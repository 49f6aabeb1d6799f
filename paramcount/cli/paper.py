"""Options for tables that go into a paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from paramcount.cli.options import Choice, CommandRequest, option
from paramcount.errors import ParamcountError, quote

LABEL = re.compile(r"[A-Za-z0-9.:_-]{1,100}")
UNITS = ("auto", "T", "B", "M", "K")
F = TypeVar("F", bound=Callable[..., object])


def paper_options(command: F) -> F:
    """--names, --units, --caption and --label, for tables of models."""
    names = option("--names", "Show full names instead of ids.", dest="full_names")
    units = option("--units UNIT", f"Round counts: {', '.join(UNITS)} (671B).", type=Choice(UNITS))
    caption = option("--caption TEXT", "Caption of a LaTeX table.")
    label = option("--label LABEL", "Label of a LaTeX table, such as tab:models.")
    return names(units(caption(label(command))))


def check_paper_options(request: CommandRequest, units: str | None, caption: str | None, label: str | None) -> None:
    """Raises: ParamcountError for an option that the format has no use for."""
    format = request.table_format
    if units is not None and format in ("csv", "json"):
        problem = f"--units cannot be combined with {format.upper()}, whose counts are exact"
        raise ParamcountError(problem, expected="table, markdown, latex or html")
    for name, value in (("--caption", caption), ("--label", label)):
        if value is not None and format != "latex":
            raise ParamcountError(f"{name} requires LaTeX output", expected="--latex or -o FILE.tex")
    if label is not None and not LABEL.fullmatch(label):
        raise ParamcountError(
            f"= {quote(label)}", where="--label", expected="letters, digits and . : - _ only, such as tab:models"
        )
