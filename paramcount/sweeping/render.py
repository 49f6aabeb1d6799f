"""A sweep as a table or JSON, the combinations that it skipped, and configurations of a budget as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from paramcount.counting import SCHEMA_VERSION
from paramcount.errors import ParamcountError, count_noun
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table, format_value
from paramcount.sizes.values import format_size, to_json
from paramcount.sweeping.selecting import SweepSelection
from paramcount.sweeping.sweep import REASON, Arrays, Sweep
from paramcount.zoo.columns import HEADINGS

if TYPE_CHECKING:
    from paramcount.sweeping.size import Sizing

MOST_ROWS = 10_000  # of a table; CSV and other files have no limit


class Tally:
    """How many combinations of a sweep were read so far, and how many of them are invalid."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep, self.combinations, self.invalid = sweep, 0, 0

    def read(self, invalid: bool, report: Callable[[int, int], None] | None) -> Iterator[Arrays]:
        """The columns of each chunk that has rows. `report`: called with the combinations done and all.

        Raises: ParamcountError at the end if no combination is valid, unless the invalid ones are read.
        """
        for chunk in self.sweep.chunks(invalid=invalid):
            self.combinations += chunk.combinations
            self.invalid += chunk.invalid
            if invalid or chunk.invalid < chunk.combinations:
                yield chunk.columns
            if report:
                report(self.combinations, self.sweep.combinations)
        if self.invalid == self.combinations and not invalid:
            first = next(self.sweep.chunks(invalid=True, size=1)).columns[REASON][0]
            combinations = count_noun(self.combinations, "combination")
            found = f"none of the {combinations} is valid; the first: {first}"
            raise ParamcountError(found, where=self.sweep.model.id, expected="valid sizes; --invalid lists all reasons")

    def describe(self) -> str:
        """The skipped combinations in words."""
        verb = "is" if self.invalid == 1 else "are"
        return f"{self.invalid:,} of {self.combinations:,} combinations {verb} invalid; --invalid lists them"


def build_sweep_table(sweep: Sweep, chunks: Iterable[Arrays], tally: Tally, selection: SweepSelection) -> Table:
    """The rows of all chunks, which are those of a selection, as a table.

    Raises: ParamcountError if there are more than MOST_ROWS.
    """
    names: tuple[str, ...] = ()
    rows: list[tuple[Any, ...]] = []
    for columns in chunks:
        names = tuple(columns)
        rows += zip(*(array.tolist() for array in columns.values()))
        if len(rows) > MOST_ROWS:
            found = f"{sweep.combinations:,} combinations are too many for a table"
            raise ParamcountError(found, expected=f"at most {MOST_ROWS:,} rows, --csv or -o FILE.csv")
    fields = [
        Column(name, HEADINGS.get(name, name), right=name != REASON, show=str if name == REASON else format_size)
        for name in names
    ]
    records = [{name: to_json(value) for name, value in zip(names, row)} for row in rows]
    data = {
        "schema_version": SCHEMA_VERSION,
        "id": sweep.model.id,
        "combinations": tally.combinations,
        "invalid": tally.invalid,
        "rows": records,
    }
    if selection.matches is not None:
        data["excluded"] = selection.excluded
    none = "no combination is invalid" if selection.matches is None else "no valid combination meets --where"
    below = [] if rows else [none]
    above = [f"{sweep.model.id} with other sizes"]
    return Table(fields, rows, data, above=above, below=below, wraps=REASON in names, keys=list(sweep.axes))


def build_size_table(sizing: Sizing) -> Table:
    """One row per configuration, best first, with the rules below."""
    candidates = sizing.candidates
    names = list(candidates[0].sizes)
    counts = ["total", *(["active"] if any(it.active != it.total for it in candidates) else [])]
    fields = [Column(name, HEADINGS.get(name, name), show=format_size) for name in names]
    fields += [Column(name, name, show=format_value) for name in counts]
    rows = [[*(it.sizes[name] for name in names), *(getattr(it, name) for name in counts)] for it in candidates]
    if candidates[0].memory is not None:
        fields.append(Column("memory", "memory", show=format_bytes))
        rows = [[*row, it.memory] for row, it in zip(rows, candidates)]
    above = [f"configurations like {sizing.like.id}, best first"]
    below = [f"rule: {rule}" for rule in sizing.rules]
    return Table(fields, rows, sizing.to_dict(), above=above, below=below, keys=sizing.varied)
