"""Options for tables that go into a paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.cli.options import Choice, CommandRequest, option
from paramcount.errors import ParamcountError, quote
from paramcount.output.tables import Table

if TYPE_CHECKING:
    from paramcount.views.wording import Wording

LABEL = re.compile(r"[A-Za-z0-9.:_-]{1,100}")
UNITS = ("auto", "T", "B", "M", "K")


class PaperOptions(NamedTuple):
    """How a table of models is worded and captioned."""

    full_names: bool
    units: str | None
    caption: str | None
    label: str | None

    def check(self, request: CommandRequest) -> None:
        """Raises: ParamcountError for an option that the format has no use for."""
        format = request.table_format
        if self.units is not None and format in ("csv", "json"):
            problem = f"--units cannot be combined with {format.upper()}, whose counts are exact"
            raise ParamcountError(problem, expected="table, markdown, latex or html")
        for name, value in (("--caption", self.caption), ("--label", self.label)):
            if value is not None and format != "latex":
                raise ParamcountError(f"{name} requires LaTeX output", expected="--latex or -o FILE.tex")
        if self.label is not None and not LABEL.fullmatch(self.label):
            expected = "letters, digits and . : - _ only, such as tab:models"
            raise ParamcountError(f"= {quote(self.label)}", where="--label", expected=expected)

    @property
    def wording(self) -> Wording:
        from paramcount.views.wording import Wording

        return Wording(self.full_names, self.units)

    def name_table(self, table: Table) -> Table:
        """The table with its caption and label."""
        return table._replace(label=self.label or "", caption=table.caption if self.caption is None else self.caption)


def paper_options(command: Callable[..., None]) -> Callable[..., None]:
    """--names, --units, --caption and --label, for tables of models: the parameter `paper`."""

    @wraps(command)
    def with_paper(*arguments: Any, **options: Any) -> None:
        paper = PaperOptions(*(options.pop(name) for name in PaperOptions._fields))
        command(*arguments, paper=paper, **options)

    names = option("--names", "Show full names instead of ids.", dest="full_names")
    units = option("--units UNIT", f"Round counts: {', '.join(UNITS)} (671B).", type=Choice(UNITS))
    caption = option("--caption TEXT", "Caption of a LaTeX table.")
    label = option("--label LABEL", "Label of a LaTeX table, such as tab:models.")
    return names(units(caption(label(with_paper))))
