"""Operations with a matrix: row lookups, linear layers, and learned vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight, Width, as_axes, last_size, multiply
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, Unknown, np, require
from paramcount.flow.operations.shapes import Split, join

# How a grid of positions is stretched over an image.
Stretch: TypeAlias = Literal[
    "corners", "centres", "centres, cubic", "centres, averaged", "centres, zeros outside", "centres of a square",
    "nearest",
]  # fmt: skip
Index: TypeAlias = Literal[
    "ids", "ids by column", "positions", "places", "rows", "columns, rows", "columns and rows in turns", "nearest",
    "rows of a grid", "columns of a grid",
]  # fmt: skip


class Lookup(Operation):
    """Rows of a table [rows, size] by an index per token, or the index of the row that is nearest to a vector."""

    only_moves: ClassVar[bool] = True
    name: ClassVar[str] = "lookup"
    form: ClassVar[Form] = Form.LOOKUP
    named_by_weights: ClassVar[bool] = True
    # The values of the input, the position of each token in the text, or the row and column of each patch. The table of
    # patches is a grid, a square one unless it has three axes, which is stretched over the image. "rows": one after the
    # other, without input. Or there are two tables, of columns and of rows, whose sum is looked up: one after the
    # other, [2, rows, size], or in turns, [rows, 2, size]. "nearest": the number of the row with the smallest distance
    # from a vector, or the token id that stands for it. "ids by column": each column of ids has `n_rows` of its own.
    index: Index = "ids"
    offset: Size | Unknown = 0  # added to a position or an id, or the first of the rows or of the grid
    n_rows: Size = 0  # or the columns of a grid, whose rows one after the other are the positions
    # Of the grid: corners on corners, or each row at the centre of a square. Its border continues outside. Cubics are
    # Keys' with a = -0.75; if the grid shrinks, values may be averaged over as many rows as become one. "centres of a
    # square": the grid is stretched over a square as large as the longer side of the image.
    stretch: Stretch = "corners"
    unknown_id: int | Unknown | None = None  # row of the ids that are beyond the table, and of placeholders
    placeholders: tuple[int | Unknown, ...] = ()
    placeholders_only: bool = False  # have that row; other ids beyond the table have none
    token_ids: tuple[int, ...] | Unknown | None = None  # of the rows
    averages: bool = False  # the table has sums of vectors, and the second weight says of how many
    n_tables: int = 1  # a second one continues the first; further weights are stored with them, but not looked up

    @property
    def label(self) -> str:
        return "nearest row" if self.index == "nearest" else self.name

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return int(multiply((out[0], *weights[0]))) if self.index == "nearest" else 0

    def describe(self) -> str:
        if self.index == "nearest":
            return "the index of the nearest row" if self.token_ids is None else "the token id of the nearest row"
        if self.index in ("columns, rows", "columns and rows in turns"):
            return "a row for the column plus one for the row of each patch"
        if self.index.endswith("of a grid"):
            return f"position lookup in the {self.index}"
        names = {
            "ids": "row lookup",
            "ids by column": "row lookup",
            "positions": "position lookup",
            "places": "interpolated from a grid",
        }
        return names.get(self.index, "learned vectors")

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        if self.index == "places":
            return interpolate(weights[0][int(require(self.offset)) :], inputs[0], self.stretch)
        table, first = weights[0], require(self.offset)
        if self.averages:
            table = table / np.maximum(weights[1], 1e-5)[:, None]
        if self.index == "nearest":
            nearest: Array = ((table * table).sum(1) - 2 * inputs[0] @ table.T).argmin(1)
            ids = nearest if self.token_ids is None else np.asarray(require(self.token_ids), np.int64)
            if self.token_ids is not None and nearest.max(initial=0) >= len(ids):
                raise ParamcountError(f"code {nearest.max():,} has no token id", expected=f"0 to {len(ids) - 1:,}")
            return nearest if self.token_ids is None else ids[nearest]
        if self.index in ("columns, rows", "columns and rows in turns"):
            places, (columns, rows) = inputs[0], table if self.index == "columns, rows" else table.transpose(1, 0, 2)
            return np.asarray(columns[places[:, 1]] + rows[places[:, 0]], dtype=np.float32)
        if self.index.endswith("of a grid"):
            table, side = list_rows(table), int(self.n_rows)
            rows = run.positions // side if self.index == "rows of a grid" else run.positions % side
        elif self.index == "rows":
            table = list_rows(table)
            rows = np.arange(int(first), int(first + self.n_rows))
        elif self.index == "ids by column":
            rows = inputs[0] + np.arange(inputs[0].shape[1]) * int(self.n_rows) + first
        else:
            table = list_rows(table)
            rows = (run.positions if self.index == "positions" else inputs[0]) + first
        if self.unknown_id is not None:
            is_known_id = ~np.isin(rows, [require(id) for id in self.placeholders])
            if not self.placeholders_only:
                is_known_id &= (rows >= 0) & (rows < len(table))
            rows = np.where(is_known_id, rows, require(self.unknown_id))
        n_rows = len(table) + sum(map(len, weights[1 : self.n_tables]))
        if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < n_rows:
            worst = int(rows.max()) if int(rows.max()) >= n_rows else int(rows.min())
            what = "position" if self.index in ("positions", "rows of a grid") else "token id"
            raise ParamcountError(f"unknown {what} {worst:,}", expected=f"0 to {n_rows - 1:,}")
        if self.n_tables > 1:
            later = rows >= len(table)
            found = [table[np.where(later, 0, rows)], weights[1][np.where(later, rows - len(table), 0)]]
            return np.where(later[..., None], *found[::-1]).astype(np.float32)
        return np.asarray(table[rows], dtype=np.float32)


def list_rows(table: Array) -> Array:
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


def lookup(
    x: Data,
    name: str,
    component: str,
    *table: Size,
    tied_to: str | None = None,
    index: Index = "ids",
    offset: int | Unknown = 0,
    unknown_id: int | Unknown | None = None,
    placeholders: tuple[int | Unknown, ...] = (),
    placeholders_only: bool = False,
    stretch: Stretch = "corners",
    more: tuple[str, Size] | None = None,
) -> Data:
    """One row of a table per token: [n] to [n, width]. `table`: its sizes, [rows, width]. `more`: name and rows of a
    second table, which continues the first.
    """
    weights: tuple[Weight, ...] = (Weight(name, component, table, tied_to=tied_to),)
    if more is not None and not (type(more[1]) is int and more[1] == 0):
        weights += (Weight(more[0], component, (more[1], *table[1:])),)
    shape = x.shape[:1] if index == "places" else x.shape
    operation = Lookup(
        index,
        offset,
        stretch=stretch,
        unknown_id=unknown_id,
        placeholders=placeholders,
        placeholders_only=placeholders_only,
        n_tables=len(weights),
    )
    return Data(operation, (x,), (*shape, table[-1]), weights)


def lookup_by_column(x: Data, name: str, component: str, rows: Size, width: Size) -> Data:
    """Of a table, in which each column of the ids x has so many rows: [n, columns] to [n, columns, width]."""
    weight = Weight(name, component, (x.shape[1] * rows, width))
    return Data(Lookup("ids by column", n_rows=rows), (x,), (*x.shape, width), (weight,))


def lookup_codes(codes: Data, table: str, n_rows: Size, width: Size, *, first: Size, rows: Size) -> Data:
    """The same in the token embedding `table` of n_rows, behind its `first` rows; each column has `rows` of them."""
    weight = Weight(table, "embedding", (n_rows, width), tied_to=table)
    return Data(Lookup("ids by column", first, n_rows=rows), (codes,), (*codes.shape, width), (weight,))


def nearest_row(
    x: Data, name: str, component: str, rows: Size, token_ids: tuple[int, ...] | Unknown | None = None
) -> Data:
    """The number of the row of a table that is nearest to each vector of x, or its token id: [n, d] to [n]."""
    operation = Lookup("nearest", token_ids=token_ids)
    return Data(operation, (x,), x.shape[:1], (Weight(name, component, (rows, x.shape[-1])),))


def nearest_mean(x: Data, name: str, component: str, rows: Size) -> Data:
    """The number of the row of a codebook that is nearest to each vector: [n, d] to [n]. Nothing is learned: a row is
    the mean of the vectors that were nearest to it, stored as their sum and their number.
    """
    return Data(Lookup("nearest", averages=True), (x,), x.shape[:1], store_means(name, component, rows, x.shape[-1]))


def lookup_mean(ids: Data, name: str, component: str, rows: Size, width: Size, tied_to: str) -> Data:
    """Rows of a codebook, by their numbers [n]: [n, width]. `tied_to`: its name in the model."""
    weights = tie_codes(store_means(name, component, rows, width), name, tied_to)
    return Data(Lookup("ids", averages=True), (ids,), (*ids.shape, width), weights)


def nearest_code(x: Data, name: str, component: str, rows: Size) -> Data:
    """The number of the row of a codebook that is nearest to each vector: [n, d] to [n]. Nothing is learned: beside the
    rows are stored the sums that they are means of, and of how many vectors.
    """
    weights = store_codes(name, component, rows, x.shape[-1])
    return Data(Lookup("nearest"), (x,), x.shape[:1], weights)


def lookup_code(ids: Data, name: str, component: str, rows: Size, width: Size, tied_to: str | None) -> Data:
    """Rows of a codebook, by their numbers [n]: [n, width]. `tied_to`: its name in the model, if it was read before."""
    weights = store_codes(name, component, rows, width)
    weights = weights if tied_to is None else tie_codes(weights, name, tied_to)
    return Data(Lookup("ids"), (ids,), (*ids.shape, width), weights)


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
    index: Index = "columns and rows in turns" if in_turns else "columns, rows"
    return Data(Lookup(index), (places,), (places.shape[0], width), (Weight(name, "position", shape),))


def axial_positions(x: Data, name: str, grid: Sequence[Size], widths: Sequence[Size]) -> Data:
    """The row and the column of each position in a grid, side by side: [n, sum of widths]. Source: arXiv:2001.04451,
    AxialPositionEmbeddings of the reference.
    """
    found = []
    for axis, width in enumerate(widths):
        shape = (grid[0], 1, width) if axis == 0 else (1, grid[1], width)
        operation = Lookup("rows of a grid" if axis == 0 else "columns of a grid", n_rows=grid[1])
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
    return Data(Lookup("rows", first, n_rows=count), (), (count, width), (weight,))


def position_table(x: Data, name: str, rows: Size) -> Data:
    """The row of each position of x, [n, d]."""
    return Data(Lookup("positions"), (x,), x.shape, (Weight(name, "position", (rows, x.shape[-1])),))


class Linear(Operation):
    """x · W + b over all axes but the first. W is stored [out, in], or [in, out] if `transposed`."""

    name: ClassVar[str] = "linear"
    form: ClassVar[Form] = Form.LINEAR
    named_by_weights: ClassVar[bool] = True
    transposed: bool = False

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return out[0] * multiply(weights[0]) if weights else 0

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, matrix = inputs[0], weights[0]
        rows = x.reshape(len(x), -1)
        if matrix.ndim != 2:  # an expert may be one vector
            matrix = matrix.reshape((rows.shape[1], -1) if self.transposed else (-1, rows.shape[1]))
        y = rows @ (matrix if self.transposed else matrix.T)
        if len(weights) > 1:
            y = y + weights[1]
        return y.reshape(len(x), *shape[1:])


def linear(
    x: Data,
    name: str,
    component: str,
    width: Width,
    *,
    bias: bool = False,
    transposed: bool = False,
    tied_to: str | None = None,
) -> Data:
    """A linear layer over all axes but the first: [n, …] to [n, *width]."""
    out = as_axes(width)
    n, d_in = multiply(out), last_size(x)
    weight = Weight(name + ".weight", component, (d_in, n) if transposed else (n, d_in), (), 0, tied_to)
    weights = (weight, Weight(name + ".bias", component, (n,))) if bias else (weight,)
    return Data(Linear(transposed), (x,), x.shape[:1] + out, weights)


def fused(
    x: Data,
    name: str,
    parts: Mapping[str, Width],
    *,
    bias: bool = False,
    transposed: bool = False,
    suffixes: tuple[str, str] = (".weight", ".bias"),
    groups: Size = 1,
) -> tuple[Data, ...]:
    """The outputs of one fused linear layer, split into `parts` of {component: size}.

    `groups`: how often the sequence of parts recurs: 1 if each part is contiguous, the number of heads if every head
    has its own q, k and v, the size of a part if single values alternate.
    """
    splits = tuple((component, multiply(as_axes(width))) for component, width in parts.items())
    n = splits[0][1]
    for _, width in splits[1:]:
        n = n + width
    d_in, first = last_size(x), splits[0][0]
    weights: tuple[Weight, ...] = (
        Weight(name + suffixes[0], first, (d_in, n) if transposed else (n, d_in), splits, int(transposed)),
    )
    if bias:
        weights += (Weight(name + suffixes[1], first, (n,), splits),)
    y = Data(Linear(transposed), (x,), (*x.shape[:1], n), weights)
    widths = tuple(width for _, width in splits)
    return tuple(
        Data(Split(widths, i, groups, component), (y,), x.shape[:1] + as_axes(width))
        for i, (component, width) in enumerate(parts.items())
    )


class HeadLinear(Operation):
    """One matrix per head or group of heads, or for all heads: [n, heads, d_in] to [n, heads, d_out].

    Stored [heads, out, in] or [heads · out, in], or [heads, in, out] if `transposed`; without heads if for all. Of
    "keys", it is [out, heads, in], and its rows are learned or the second input.
    """

    form: ClassVar[Form] = Form.LINEAR_PER_HEAD
    named_by_weights: ClassVar[bool] = True
    transposed: bool = False
    of: Literal["head", "group", "all heads", "keys"] = "head"

    @property
    def label(self) -> str:
        if self.of == "keys":
            return "q · k"
        return "linear per head" if self.of == "head" else "grouped linear"

    def describe(self) -> str:
        if self.of == "keys":
            return "product of each query with position or segment vectors"
        return "one matrix for all heads" if self.of == "all heads" else f"one matrix per {self.of}"

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        if self.of == "keys":
            return multiply(out) * inputs[0][-1]
        return out[0] * multiply(weights[0]) * (out[1] if self.of == "all heads" else 1)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        heads, d_in = inputs[0].shape[1:]
        if self.of == "keys":
            keys = (*inputs[1:], *weights)[0]
            return (inputs[0].transpose(1, 0, 2) @ keys.transpose(1, 2, 0)).transpose(1, 0, 2)
        if self.of == "all heads":
            return inputs[0] @ (weights[0] if self.transposed else weights[0].T)
        matrices = weights[0] if self.transposed else weights[0].reshape(heads, -1, d_in).transpose(0, 2, 1)
        y = (inputs[0].transpose(1, 0, 2) @ matrices).transpose(1, 0, 2)
        return y + weights[1] if len(weights) > 1 else y


def linear_by_head(
    x: Data,
    d_out: Size,
    weight: Weight,
    *bias: Weight,
    transposed: bool = False,
    of: Literal["head", "group", "all heads"] = "head",
) -> Data:
    return Data(HeadLinear(transposed, of), (x,), (*x.shape[:2], d_out), (weight, *bias))


def score_keys(q: Data, keys: Data | Weight) -> Data:
    """Products of queries [n, heads, d] with keys that are no tokens, [m, heads, d]: [n, heads, m]."""
    inputs, weights = ((q, keys), ()) if isinstance(keys, Data) else ((q,), (keys,))
    return Data(HeadLinear(of="keys"), inputs, (*q.shape[:2], keys.shape[0]), weights)


from paramcount.flow.operations.scaling import add_positions, add_vector, multiply_vector  # noqa: E402, F401
