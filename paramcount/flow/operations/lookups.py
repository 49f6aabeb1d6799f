"""Lookups of rows of a table: by ids, by positions, by places in a grid, by nearness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight, multiply
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, Unknown, np, require
from paramcount.flow.operations.shapes import join

# How a grid of positions is stretched over an image: corners on corners, or each row at the centre of a square. Its
# border continues outside. Cubics are Keys' with a = -0.75; if the grid shrinks, values may be averaged over as many
# rows as become one. "centres of a square": over a square as large as the longer side of the image.
Stretch: TypeAlias = Literal[
    "corners", "centres", "centres, cubic", "centres, averaged", "centres, zeros outside", "centres of a square",
    "nearest",
]  # fmt: skip


class TableLookup(
    Operation, name="lookup", phrase="row lookup", form=Form.LOOKUP, only_moves=True, named_by_weights=True
):
    """Rows of a table [rows, size]."""

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return 0


class Lookup(TableLookup):
    """Rows by an index per token; further weights are stored with the table, but not looked up."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return take_rows(flatten_rows(weights[0]), inputs[0])


class LookupKnown(TableLookup):
    """Rows by an index per token; ids beyond the table, and placeholders, have the row of an unknown id."""

    unknown_id: int | Unknown
    placeholders: tuple[int | Unknown, ...] = ()
    offset: Size | Unknown = 0  # added to an id

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        table, rows = flatten_rows(weights[0]), inputs[0] + require(self.offset)
        is_known_id = (rows >= 0) & (rows < len(table)) & ~find_placeholders(rows, self.placeholders)
        return take_rows(table, np.where(is_known_id, rows, require(self.unknown_id)))


class LookupPlaceholders(TableLookup):
    """Rows by an index per token; placeholders have the row of an unknown id."""

    unknown_id: int | Unknown
    placeholders: tuple[int | Unknown, ...]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        is_placeholder = find_placeholders(inputs[0], self.placeholders)
        return take_rows(flatten_rows(weights[0]), np.where(is_placeholder, require(self.unknown_id), inputs[0]))


class LookupContinued(TableLookup):
    """Rows by an index per token of a table that a second one continues."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        rows, (table, more) = inputs[0], weights
        check_rows(rows, len(table) + len(more), "token id")
        later = rows >= len(table)
        found = table[np.where(later, 0, rows)], more[np.where(later, rows - len(table), 0)]
        return np.where(later[..., None], found[1], found[0]).astype(np.float32)


class LookupByColumn(TableLookup):
    """Rows by ids [n, columns], of which each column has as many rows of its own."""

    n_rows: Size
    first: Size = 0  # row of the first column's id 0

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        rows = inputs[0] + np.arange(inputs[0].shape[1]) * int(self.n_rows) + self.first
        return take_rows(weights[0], rows)


class LookupMean(TableLookup):
    """Rows by an index per token of a table of means, stored as sums of vectors and their numbers."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return take_rows(divide_sums(weights), inputs[0])


class PositionLookup(TableLookup, phrase="position lookup"):
    """The row of each token's position."""

    offset: Size | Unknown = 0  # added to a position

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return take_rows(flatten_rows(weights[0]), run.positions + require(self.offset), "position")


class AxialLookup(TableLookup, phrase="position lookup in the {axis} of a grid"):
    """The row of the grid's row or column in which each token's position is; the grid's rows one after the other are
    the positions."""

    axis: Literal["rows", "columns"]
    n_columns: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        row, column = np.divmod(run.positions, int(self.n_columns))
        if self.axis == "rows":
            return take_rows(flatten_rows(weights[0]), row, "position")
        return take_rows(flatten_rows(weights[0]), column)


class LearnedRows(TableLookup, phrase="learned vectors"):
    """Rows one after the other, without input."""

    n_rows: Size
    first: Size = 0

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return take_rows(flatten_rows(weights[0]), np.arange(int(self.first), int(self.first + self.n_rows)))


class GridLookup(TableLookup, phrase="interpolated from a grid"):
    """Values at the row and column of each patch, of a grid that is stretched over the image; a square grid unless the
    table has three axes."""

    stretch: Stretch = "corners"
    first: int = 0  # row of the table where the grid begins

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return interpolate(weights[0][self.first :], inputs[0], self.stretch)


class PlaceTables(TableLookup, phrase="a row for the column plus one for the row of each patch"):
    """The sum of the rows of each patch's column and of its row, of two tables."""

    in_turns: bool = False  # stored [rows, 2, size] rather than [2, rows, size]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        places, (columns, rows) = inputs[0], weights[0].transpose(1, 0, 2) if self.in_turns else weights[0]
        return np.asarray(columns[places[:, 1]] + rows[places[:, 0]], dtype=np.float32)


class NearestRow(TableLookup, name="nearest row"):
    """The index of the row that is nearest to a vector, or the token id that stands for it."""

    token_ids: tuple[int, ...] | Unknown | None = None  # of the rows

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return int(multiply((out[0], *weights[0])))

    def describe(self) -> str:
        return "the index of the nearest row" if self.token_ids is None else "the token id of the nearest row"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        nearest = find_nearest(inputs[0], weights[0])
        if self.token_ids is None:
            return nearest
        ids = np.asarray(require(self.token_ids), np.int64)
        if nearest.max(initial=0) >= len(ids):
            raise ParamcountError(f"code {nearest.max():,} has no token id", expected=f"0 to {len(ids) - 1:,}")
        return np.asarray(ids[nearest])


class NearestMean(NearestRow):
    """The same of a table of means, stored as sums of vectors and their numbers."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return find_nearest(inputs[0], divide_sums(weights))


def take_rows(table: Array, rows: Array, what: str = "token id") -> Array:
    check_rows(rows, len(table), what)
    return np.asarray(table[rows], dtype=np.float32)


def check_rows(rows: Array, n: int, what: str) -> None:
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < n:
        worst = int(rows.max()) if int(rows.max()) >= n else int(rows.min())
        raise ParamcountError(f"unknown {what} {worst:,}", expected=f"0 to {n - 1:,}")


def find_placeholders(ids: Array, placeholders: Sequence[int | Unknown]) -> Array:
    return np.isin(ids, [require(id) for id in placeholders])


def find_nearest(x: Array, table: Array) -> Array:
    return np.asarray(((table * table).sum(1) - 2 * x @ table.T).argmin(1))


def divide_sums(weights: Sequence[Array]) -> Array:
    """Means of vectors from their sums and numbers."""
    return np.asarray(weights[0] / np.maximum(weights[1], 1e-5)[:, None])


def flatten_rows(table: Array) -> Array:
    """A table [..., d] as [rows, d]."""
    return table if table.ndim == 2 else table.reshape(-1, table.shape[-1])


def interpolate(table: Array, places: Array, stretch: Stretch) -> Array:
    """Values at [n, 2] of a table that is stretched over as many rows and columns: [rows, columns, d], [side², d] or
    [1, side², d].
    """
    is_flat, n_rows = table.ndim == 2 or len(table) == 1, table.shape[-2]
    grid = table.reshape(round(n_rows**0.5), -1, table.shape[-1]) if is_flat else table
    sides = places.max(0) + 1
    if stretch == "centres of a square":
        sides = np.full(2, sides.max())
    down, across = (stretch_axis(n, size, stretch) for n, size in zip(sides, grid.shape))
    wide = np.einsum("ri,ijd->rjd", down, grid)
    found: Array = np.einsum("cj,rjd->rcd", across, wide)
    return found[places[:, 0], places[:, 1]]


def stretch_axis(n: int, size: int, stretch: Stretch) -> Array:
    """What each of n values is of `size` given ones, [n, size]."""
    if stretch == "nearest":
        return np.eye(size, dtype=np.float32)[np.arange(n) * size // n]
    if stretch == "corners":
        where, reach = np.arange(n) * ((size - 1) / max(n - 1, 1)), 1.0
    else:
        where, reach = (np.arange(n) + 0.5) * size / n - 0.5, max(size / n, 1.0)
    if stretch == "centres, averaged":
        shares = np.maximum(1 - abs(where[:, None] - np.arange(size)) / reach, 0)
        return (shares / shares.sum(1, keepdims=True)).astype(np.float32)
    low = np.floor(where).astype(np.int64)
    taps = np.arange(-1, 3) if stretch == "centres, cubic" else np.arange(2)
    places = low[:, None] + taps
    distances = abs((where - low)[:, None] - taps)
    shares = weigh_by_cubic(distances) if stretch == "centres, cubic" else np.maximum(1 - distances, 0)
    found = np.zeros((n, size), np.float32)
    if stretch == "centres, zeros outside":
        shares = np.where((places >= 0) & (places < size), shares, 0)
    np.add.at(found, (np.arange(n)[:, None], np.clip(places, 0, size - 1)), shares)
    return found


def weigh_by_cubic(x: Array, a: float = -0.75) -> Array:
    """The share of a value at distance x."""
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    shares: Array = np.where(x <= 1, near, np.where(x < 2, far, 0))
    return shares


def lookup(x: Data, name: str, component: str, *table: Size, tied_to: str | None = None) -> Data:
    """One row of a table per token: [n] to [n, width]. `table`: its sizes, [rows, width]."""
    return Data(Lookup(), (x,), (*x.shape, table[-1]), (Weight(name, component, table, tied_to=tied_to),))


def lookup_position(
    x: Data, name: str, rows: Size, width: Size, *, offset: Size | Unknown = 0, tied_to: str | None = None
) -> Data:
    """The row of each token's position plus an offset: [n] to [n, width]."""
    weight = Weight(name, "position", (rows, width), tied_to=tied_to)
    return Data(PositionLookup(offset), (x,), (*x.shape, width), (weight,))


def lookup_in_grid(places: Data, name: str, *grid: Size, stretch: Stretch = "corners", first: int = 0) -> Data:
    """Position embeddings at the places of patches, [n, 2] to [n, width]. `grid`: its sizes, [side², width], [rows,
    columns, width] or [1, side², width]."""
    return Data(GridLookup(stretch, first), (places,), (*places.shape[:1], grid[-1]), (Weight(name, "position", grid),))


def lookup_known(
    x: Data,
    name: str,
    component: str,
    *table: Size,
    unknown_id: int | Unknown | None = None,
    placeholders: tuple[int | Unknown, ...] = (),
    offset: Size | Unknown = 0,
) -> Data:
    """One row of a table per token, that of `unknown_id`, if any, for ids beyond the table and for placeholders."""
    if unknown_id is None:
        return lookup(x, name, component, *table)
    operation = LookupKnown(unknown_id, placeholders, offset)
    return Data(operation, (x,), (*x.shape, table[-1]), (Weight(name, component, table),))


def lookup_placeholders(
    x: Data,
    name: str,
    component: str,
    rows: Size,
    width: Size,
    unknown_id: int | Unknown,
    placeholders: tuple[int | Unknown, ...],
) -> Data:
    """One row of a table per token, that of an unknown id for placeholders."""
    operation = LookupPlaceholders(unknown_id, placeholders)
    return Data(operation, (x,), (*x.shape, width), (Weight(name, component, (rows, width)),))


def lookup_continued(x: Data, name: str, component: str, rows: Size, width: Size, more: str, n_more: Size) -> Data:
    """One row per token of a table that another one, `more`, continues with further rows."""
    if type(n_more) is int and n_more == 0:
        return lookup(x, name, component, rows, width)
    weights = (Weight(name, component, (rows, width)), Weight(more, component, (n_more, width)))
    return Data(LookupContinued(), (x,), (*x.shape, width), weights)


def lookup_by_column(x: Data, name: str, component: str, rows: Size, width: Size) -> Data:
    """Of a table, in which each column of the ids x has so many rows: [n, columns] to [n, columns, width]."""
    weight = Weight(name, component, (x.shape[1] * rows, width))
    return Data(LookupByColumn(rows), (x,), (*x.shape, width), (weight,))


def lookup_codes(codes: Data, table: str, n_rows: Size, width: Size, *, first: Size, rows: Size) -> Data:
    """The same in the token embedding `table` of n_rows, behind its `first` rows; each column has `rows` of them."""
    weight = Weight(table, "embedding", (n_rows, width), tied_to=table)
    return Data(LookupByColumn(rows, first), (codes,), (*codes.shape, width), (weight,))


def nearest_row(
    x: Data, name: str, component: str, rows: Size, token_ids: tuple[int, ...] | Unknown | None = None
) -> Data:
    """The number of the row of a table that is nearest to each vector of x, or its token id: [n, d] to [n]."""
    return Data(NearestRow(token_ids), (x,), x.shape[:1], (Weight(name, component, (rows, x.shape[-1])),))


def nearest_mean(x: Data, name: str, component: str, rows: Size) -> Data:
    """The number of the row of a codebook that is nearest to each vector: [n, d] to [n]. Nothing is learned: a row is
    the mean of the vectors that were nearest to it, stored as their sum and their number.
    """
    return Data(NearestMean(), (x,), x.shape[:1], store_means(name, component, rows, x.shape[-1]))


def lookup_mean(ids: Data, name: str, component: str, rows: Size, width: Size, tied_to: str) -> Data:
    """Rows of a codebook, by their numbers [n]: [n, width]. `tied_to`: its name in the model."""
    weights = tie_codes(store_means(name, component, rows, width), name, tied_to)
    return Data(LookupMean(), (ids,), (*ids.shape, width), weights)


def nearest_code(x: Data, name: str, component: str, rows: Size) -> Data:
    """The number of the row of a codebook that is nearest to each vector: [n, d] to [n]. Nothing is learned: beside the
    rows are stored the sums that they are means of, and of how many vectors.
    """
    weights = store_codes(name, component, rows, x.shape[-1])
    return Data(NearestRow(), (x,), x.shape[:1], weights)


def lookup_code(ids: Data, name: str, component: str, rows: Size, width: Size, tied_to: str | None) -> Data:
    """Rows of a codebook, by their numbers [n]: [n, width]. `tied_to`: its name in the model, if it was read before."""
    weights = store_codes(name, component, rows, width)
    weights = weights if tied_to is None else tie_codes(weights, name, tied_to)
    return Data(Lookup(), (ids,), (*ids.shape, width), weights)


def store_codes(name: str, component: str, rows: Size, width: Size) -> tuple[Weight, ...]:
    stored: list[tuple[str, tuple[Size, ...]]] = [
        ("embed", (rows, width)), ("embed_avg", (rows, width)), ("cluster_size", (rows,)), ("inited", (1,))
    ]  # fmt: skip
    return tuple(Weight(f"{name}.{end}", component, shape, role="buffer") for end, shape in stored)


def tie_codes(weights: tuple[Weight, ...], name: str, tied_to: str) -> tuple[Weight, ...]:
    return tuple(weight._replace(tied_to=tied_to + weight.name.removeprefix(name)) for weight in weights)


def store_means(name: str, component: str, rows: Size, width: Size) -> tuple[Weight, ...]:
    stored: list[tuple[str, tuple[Size, ...]]] = [("embed_sum", (rows, width)), ("cluster_usage", (rows,))]
    return tuple(
        Weight(f"{name}.{end}", component, shape, role="buffer") for end, shape in (*stored, ("initialized", (1,)))
    )


def place_tables(places: Data, name: str, rows: Size, width: Size, *, in_turns: bool = False) -> Data:
    """The sum of the rows of each patch's column and of its row, of two tables: [patches, width]."""
    shape = (rows, 2, width) if in_turns else (2, rows, width)
    return Data(PlaceTables(in_turns), (places,), (places.shape[0], width), (Weight(name, "position", shape),))


def axial_positions(x: Data, name: str, grid: Sequence[Size], widths: Sequence[Size]) -> Data:
    """The row and the column of each position in a grid, side by side: [n, sum of widths]. Source: arXiv:2001.04451,
    AxialPositionEmbeddings of the reference.
    """
    found = []
    for axis, width in enumerate(widths):
        shape = (grid[0], 1, width) if axis == 0 else (1, grid[1], width)
        operation = AxialLookup("rows" if axis == 0 else "columns", grid[1])
        found.append(Data(operation, (x,), (x.shape[0], width), (Weight(f"{name}.{axis}", "position", shape),)))
    return found[0] if len(found) == 1 else join(*found)


def learned_rows(
    name: str,
    component: str,
    rows: Size,
    width: Size,
    *,
    n: Size | None = None,
    first: Size = 0,
    stored: tuple[Size, ...] | None = None,
) -> Data:
    """The n rows of a table from one on; all, unless n is given. `stored`: its shape, default [rows, width]."""
    count = rows if n is None else n
    weight = Weight(name, component, stored or (rows, width), tied_to=None if n is None else name)
    return Data(LearnedRows(count, first), (), (count, width), (weight,))


def position_table(x: Data, name: str, rows: Size) -> Data:
    """The row of each position of x, [n, d]."""
    return Data(PositionLookup(), (x,), x.shape, (Weight(name, "position", (rows, x.shape[-1])),))
