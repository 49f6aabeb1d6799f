"""How a weight format stores a matrix: a statement of its tensors, read from shape to pieces and from pieces to shape.

A format states each stored tensor by its axes, and each axis by how many values of the matrix share an element. From
that follow the shapes and bytes of a matrix's pieces, and the matrix that given pieces belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from paramcount.errors import format_shape
from paramcount.formats.tensor_entries import BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from paramcount.formats.compressed_tensors import CompressedGroup
    from paramcount.formats.quantization_config import PackedGroup, Plan, Stated, WeightDtype

    Array: TypeAlias = NDArray[Any]
else:
    Array = Any

Shape: TypeAlias = tuple[int, ...]
Block: TypeAlias = tuple[int, int]  # outputs and inputs that share a scale; 0 for all

OUTPUTS, INPUTS = -2, -1  # axes of a matrix [..., outputs, inputs]
WORD = 32  # bits of the words that some formats fill
SCALES = ("F16", "BF16", "F32", "F8_E8M0", "U8")  # types of scales
UNSHAPED = ("tensor scale", "activation scale")  # pieces that do not depend on the matrix


class StoredPiece(NamedTuple):
    """One of the stored tensors of a packed matrix."""

    what: str  # packed weights | scale | zero point | group index | activation scale | code book | description
    dtype: str
    shape: Shape


Pieces: TypeAlias = tuple[StoredPiece, ...]  # of one matrix, its values first


class Packing(NamedTuple):
    """How a tensor is stored."""

    layout: str  # the format's file, and which of its layouts: "fp8", "awq gemv", "plain"
    dtype: str  # of its values
    bits: int = 0  # of one value in a word
    block: Block = (0, 0)
    scale: str = ""  # type of the scales
    axes: int = 2  # of the scales; one scale for all may have none
    extras: tuple[str, ...] = ()  # zero point | group index
    others: Pieces = ()  # further stored tensors


class Axis(NamedTuple):
    """An axis of a stored tensor: `elements` for every `values` along an axis of the matrix."""

    of: int  # OUTPUTS | INPUTS
    values: int = 1  # 0 for all
    elements: int = 1
    is_cut: bool = False  # whether incomplete words are left out

    def count(self, n: int) -> int:
        """The size of the axis for n values."""
        if self.is_cut:
            return n * self.elements // self.values
        if self.elements > 1:
            return count_blocks(n * self.elements, self.values)
        return n if self.values == 1 else count_blocks(n, self.values or n or 1)

    def restore(self, size: int, exact: bool) -> int | None:
        """The number of values if no block is incomplete; None if it is unknown."""
        n, rest = divmod(size * self.values, self.elements)
        return None if (exact and rest) or not self.values else n


class HiddenAxis(NamedTuple):
    """An axis from which the matrix cannot be inferred."""

    of: int
    count: Callable[[int], int]

    def restore(self, size: int, exact: bool) -> None:
        return None


class Stored(NamedTuple):
    """A stored tensor of matrices [..., outputs, inputs]: the leading axes, and these."""

    what: str
    dtype: str
    axes: tuple[Axis | HiddenAxis | int, ...]
    least: int | None = None  # if the matrix has one scale along an axis, axes of size 1 may be left out, down to these

    def place(self, shape: Shape) -> StoredPiece:
        *before, outputs, inputs = shape
        sizes = [
            axis if isinstance(axis, int) else axis.count(outputs if axis.of == OUTPUTS else inputs)
            for axis in self.axes
        ]
        placed = (*before, *sizes)
        if self.least is not None:
            while len(placed) > self.least and placed[-1] == 1:
                placed = placed[:-1]
            while len(placed) > self.least and placed[0] == 1:
                placed = placed[1:]
        return StoredPiece(self.what, self.dtype, placed)

    def restore(self, shape: Shape, exact: bool = True) -> tuple[Shape, dict[int, int]] | None:
        """The leading axes and {axis of the matrix: size} of a stored tensor; None if it is no such tensor.

        `exact`: whether words must be full.
        """
        n = len(self.axes)
        if len(shape) < n:
            return None
        sizes = {}
        for axis, size in zip(self.axes, shape[len(shape) - n :]):
            if isinstance(axis, int):
                if axis != size:
                    return None
            elif (restored := axis.restore(size, exact)) is not None:
                sizes[axis.of] = restored
        return shape[: len(shape) - n], sizes


class PieceFit(NamedTuple):
    """The shape and packing that fit the pieces of a packed tensor best."""

    shape: Shape | None  # [..., outputs, inputs]
    packing: Packing | None
    faults: tuple[tuple[int, str], ...] = ()  # (index of a piece, problem)


class Companion(NamedTuple):
    """A tensor that belongs to packed values, by the end of its name."""

    ending: str  # in place of the ending of the values
    what: str
    dtypes: tuple[str, ...] = ()  # possible types; () for any
    # When its name tells that values are missing: "found" in such files, "used" if a config says so, "always", or with
    # "any type"
    tells: str = ""


class Pattern(NamedTuple):
    """The names and types of the tensors that represent one matrix."""

    layout: str
    values: str  # the ending of the name of the values; "" for any name
    dtypes: tuple[str, ...]
    companions: tuple[Companion, ...]  # of scales the first that there is, and all others
    name: str = ""  # the ending in an unquantised file
    needs: tuple[str, ...] = ("scale",)  # companions without which the values may be anything
    transposed: bool | None = False  # see LogicalTensor
    family: str = ""  # formats that the names do not tell apart, or that one quant_method mixes

    @property
    def is_shared(self) -> bool:
        """Whether names of several formats have this ending."""
        return self.values in ("", "weight", "weight_packed")


Key: TypeAlias = tuple[str, str, Pieces]  # layout, ending of the name of the scale, pieces
Signature: TypeAlias = tuple[str, tuple[tuple[str, tuple[str | None, ...]], ...]]


class WeightFormat:
    """What paramcount knows of one weight format; each has one instance, FORMAT in its file.

    Without `plan` or `dtypes` its bytes cannot be planned, without `patterns` no file can be verified, and without
    `widen` its values cannot be computed.
    """

    name = ""  # "NVFP4"
    methods: tuple[str, ...] = ()  # values of quant_method that transformers supports
    # {name for --dtype: (label, a config of this format, or the packing of linear layers)}
    dtypes: Mapping[str, tuple[str, Mapping[str, Any] | Packing]] = MappingProxyType({})
    patterns: tuple[Pattern, ...] = ()
    signatures: tuple[Signature, ...] = ()  # of schemes that cannot be verified: their tensors by endings and types
    rate = ""  # of a GPU that multiplies the values as they are, if their dtype does not say
    released: Mapping[str, Any] | None = None  # what release.quantisation of a zoo entry stands for
    compressed: tuple[tuple[str, ...], str, tuple[int, ...], str] | None = (
        None  # formats, type, bits and dtype of values
    )
    modelopt: Mapping[str, Packing] = MappingProxyType({})  # {quant_algo of ModelOpt: the packing of a matrix}
    leaves_unfit = False  # whether writers leave matrices as they are that the format cannot divide
    has_own_files = False  # whether files of their own say how each tensor is stored
    is_padded = False  # whether engines pad the matrices for their kernels
    gguf_mix = ""  # the mix of llama.cpp that keeps the values as they are
    unfit = "is not a matrix"  # of values from whose shape no matrix follows

    # ---- shape and pieces

    def lay_out(self, packing: Packing) -> Iterable[Stored]:
        """The stored tensors, values first."""
        raise NotImplementedError

    def list_pieces(self, shape: Shape, packing: Packing) -> Pieces:
        return (*(stored.place(shape) for stored in self.lay_out(packing)), *packing.others)

    def count_bytes(self, shape: Shape, packing: Packing) -> int:
        return sum(count_blocks(prod(piece.shape) * BITS[piece.dtype], 8) for piece in self.list_pieces(shape, packing))

    def can_store(self, shape: Shape, packing: Packing) -> bool:
        return True

    def restore_values(self, pieces: Pieces, packing: Packing) -> Shape | None:
        """The shape of the matrix with these values; None if it does not follow from them."""
        stored = next(iter(self.lay_out(packing)))
        before, sizes = stored.restore(pieces[0].shape) or ((), {})
        return (*before, sizes[OUTPUTS], sizes[INPUTS]) if len(sizes) == 2 else None

    def restore_others(self, pieces: Pieces, packing: Packing) -> Shape | None:
        """The shape of the matrix with these scales, zero points or group indices; None if it does not follow."""
        shape_of = {piece.what: piece.shape for piece in reversed(pieces[1:])}
        present = [stored for stored in self.lay_out(packing) if stored.what in shape_of]
        whole = next((stored for stored in present if len(stored.axes) == 2), None)
        found = whole and whole.restore(shape_of[whole.what], exact=False)
        if found is None:
            return None
        before, sizes = found
        for stored in present:
            if len(stored.axes) == 1 and (alone := stored.restore(shape_of[stored.what])):
                sizes |= alone[1]
        outputs, inputs = sizes.get(OUTPUTS), sizes.get(INPUTS)
        return (*before, outputs, inputs) if outputs and inputs else None

    # ---- names for people

    def get_label(self, packing: Packing) -> str:
        """The format of one tensor: "GPTQ 4-bit"."""
        return packing.dtype

    def get_short_name(self, packing: Packing) -> str:
        """The format as the name of its scales has it: "GPTQ"."""
        return self.name

    def describe_packing(self, packing: Packing) -> str:
        outputs, inputs = packing.block
        return f"{self.get_label(packing)} with blocks of {outputs or 'all'} × {inputs or 'all'}"

    def describe(self, packings: Sequence[Packing]) -> list[str]:
        """The packings of a file, the most common first: ["FP8 in blocks of 128 × 128"]."""
        return list(dict.fromkeys(map(self.get_label, packings)))

    def name_group(self, dtype: str | None, roles: Sequence[str], stated: Stated) -> str:
        """The format of one matrix of which only names and types are known."""
        return self.name

    # ---- what a config states

    def read(self, method: str, config: Mapping[str, Any]) -> Stated | None:
        """What a `quantization_config` with this quant_method states; None if it names another format."""
        return None

    def plan(self, stated: Stated, config: Mapping[str, Any], dtype: str) -> Plan | None:
        """How a model is stored; None if the size is unknown. `dtype`: of the weights that are not quantised."""
        return None

    def plan_own(self, config: Mapping[str, Any]) -> Plan:
        """The plan of a config of this format, everything else in BF16."""
        stated = self.read(self.methods[0], config)
        plan = stated and self.plan(stated, {"quant_method": self.methods[0], **config}, "BF16")
        if plan is None:
            raise ValueError(f"{self.name} has no plan for {config}")
        return plan

    def read_compressed(self, group: CompressedGroup, dtype: str) -> tuple[str, Packing] | None:
        """(name, packing) of a group of compressed-tensors; None if it is in another format."""
        if self.compressed is None:
            return None
        forms, kind, bits, stored = self.compressed
        if group.form not in forms or group.kind != kind or group.bits not in bits:
            return None
        layout = type(self).__module__.rpartition(".")[2]
        return self.name, group.packing._replace(layout=layout, dtype=stored, bits=group.bits)

    def pack_experts(self, dtype: str, scale: str) -> Packing | None:
        """The packing of experts whose `expert_dtype` beside another format names this one."""
        return None

    def read_scales(self, method: str, config: Mapping[str, Any]) -> PackedGroup | None:
        """The matrices that have scales, as far as they explain a published number; None if their number is unknown."""
        return None

    def find_dtype(self, name: str) -> WeightDtype | None:
        """The format that --dtype names; None if it is another one."""
        from paramcount.formats.quantization_config import WeightDtype, make_linear_dtype

        if name not in self.dtypes:
            return None
        label, stored = self.dtypes[name]
        if isinstance(stored, Packing):
            return make_linear_dtype(name, label, stored)
        return WeightDtype(name, label, self.plan_own(stored))

    def guess(self, names: tuple[str, ...], stated: Stated, scale: str) -> Packing | None:
        """The packing of tensors of which only the ends of their names are known."""
        return None

    # ---- files

    def guess_packing(self, layout: str, pieces: Pieces) -> Packing:
        """The packing of these pieces, if the format leaves no choice."""
        raise NotImplementedError

    def fit(self, counts: Mapping[Key, int], stated: Stated) -> Mapping[Key, PieceFit]:
        """The matrix that each combination of pieces belongs to. `counts`: how often each occurs in the file."""
        return {key: self.choose(key[2], self.guess_packing(key[0], key[2])) for key in counts}

    def choose(self, pieces: Pieces, packing: Packing, missing: tuple[tuple[int, str], ...] = ()) -> PieceFit:
        """The shape that agrees with most of the pieces."""
        shapes = [
            shape for restore in (self.restore_values, self.restore_others) if (shape := restore(pieces, packing))
        ]
        if not shapes:
            return PieceFit(None, None, (*missing, (0, f"shape {format_shape(pieces[0].shape)} {self.unfit}")))
        fits = [(shape, self.find_misfits(pieces, shape, packing)) for shape in shapes]
        shape, faults = min(fits, key=lambda fit: len(fit[1]))
        return PieceFit(shape, packing, (*missing, *faults))

    def find_misfits(self, pieces: Pieces, shape: Shape, packing: Packing) -> list[tuple[int, str]]:
        """The pieces with another shape than the packing implies."""
        values, *others = self.list_pieces(shape, packing)
        expected = {piece.what: piece.shape for piece in reversed(others)}
        faults = []
        for i, piece in enumerate(pieces):
            expected_shape = expected.get(piece.what, piece.shape) if i else values.shape
            if piece.what not in UNSHAPED and piece.shape != expected_shape:
                tensor = f"a {format_shape(shape)} tensor in {self.describe_packing(packing)}"
                problem = f"shape {format_shape(piece.shape)}, expected {format_shape(expected_shape)} for {tensor}"
                faults.append((i, problem))
        return faults

    def describe_contradiction(self, key: Key, fit: PieceFit, stated: Stated) -> str:
        """How the packing of pieces contradicts the config; "" if it does not."""
        return ""

    # ---- values

    def widen(self, packing: Packing, bits: Array, parts: Mapping[str, Array]) -> Array:
        """The values, float32. `bits`: as stored; `parts`: {role: scales and others as floats}."""
        raise NotImplementedError


class ScaledFormat(WeightFormat):
    """Values as they are, with a scale per block, output, or tensor."""

    def lay_out(self, packing: Packing) -> Iterable[Stored]:
        axes = (Axis(OUTPUTS, packing.block[0]), Axis(INPUTS, packing.block[1]))
        least = packing.axes if 0 in packing.block else None
        yield Stored("values", packing.dtype, (Axis(OUTPUTS), Axis(INPUTS)))
        yield Stored("scale", packing.scale, axes, least)
        if "zero point" in packing.extras:
            yield Stored("zero point", packing.dtype, axes, least)


def count_blocks(n: int, size: int) -> int:
    """The number of blocks for n values, rounded up."""
    return -(-n // size)


def list_unshaped(pieces: Pieces) -> Pieces:
    return tuple(piece for piece in pieces if piece.what in UNSHAPED)


def drop_others(packing: Packing) -> Packing:
    return packing._replace(others=())


def spread(factors: Array, block: Block, shape: Shape) -> Array:
    """Scales of blocks as factors that broadcast to the values [..., outputs, inputs]."""
    import numpy as np

    rows, columns = (size or axis for size, axis in zip(block, shape[-2:]))
    factors = factors.reshape(*shape[:-2], -(-shape[-2] // rows), -(-shape[-1] // columns))
    if rows > 1:
        factors = np.repeat(factors, rows, axis=-2)[..., : shape[-2], :]
    if columns > 1 and factors.shape[-1] > 1:
        factors = np.repeat(factors, columns, axis=-1)[..., : shape[-1]]
    return factors
