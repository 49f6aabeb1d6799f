"""Weights of a model: tensors of a checkpoint on disk, read when they are needed, or a mapping of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from paramcount.checkpoints.checkpoint import Checkpoint, FileTensor
from paramcount.checkpoints.opening.locate import open_checkpoint
from paramcount.checkpoints.packed.quantised import unpack
from paramcount.errors import ParamcountError, format_shape, join_words, make_printable
from paramcount.execution.narrow import DTYPES as NARROW
from paramcount.execution.narrow import NarrowMatrix
from paramcount.execution.sources import Shape, TensorPlace, find_sources, list_places
from paramcount.flow import TensorRow
from paramcount.flow.operation import Array
from paramcount.formats.files import check_unchanged, open_regular
from paramcount.formats.safetensors import NUMPY, widen_bf16
from paramcount.formats.small_floats import DTYPES as FLOAT8
from paramcount.formats.small_floats import widen_float8
from paramcount.formats.weights import describe_abilities, get_abilities, get_format, list_abilities

FLOATS = ("F64", "F32", "F16", "BF16")
IDS = "I64"  # of tables of ids, such as the experts of each token; no quantised weight is that wide
MOST_NAMED = 3  # tensors in an error


class StoredWeights:
    """Tensors by name, stored under the names and in the layout of some writer."""

    def __init__(self, tensors: Sequence[TensorRow], names: Iterable[str], where: str) -> None:
        self.sources = find_sources(tensors, list(names))
        self.where = where
        self.finite: set[TensorPlace] = set()  # tensors whose values have been checked

    def get_shape(self, name: str) -> Shape | None:
        """The shape of a stored tensor; None if there is none of this name."""
        raise NotImplementedError

    def load(self, place: TensorPlace, shape: Shape) -> Array:
        """A stored tensor as floats, or the part of one expert. `shape`: of a part, except for its first axis."""
        raise NotImplementedError

    def read(self, name: str, shape: Shape, index: int | None) -> Array:
        """A declared tensor, float32.

        Raises: ParamcountError if it is missing, has another shape, or has values that are no finite numbers.
        """
        if 0 in shape:
            return np.zeros(shape, np.float32)
        places, source = list_places(self.sources, name, index)
        self.check_presence([place.name for place in places], name, shape)
        parts = [self.load(place, shape) for place in places]
        array = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if source.rows:
            array = array[slice(*source.rows)]
        if array.shape != shape:
            raise self.make_error(places[0].name, f"has shape {format_shape(array.shape)}", format_shape(shape))
        with np.errstate(over="ignore"):
            array = array.astype(np.float32, copy=False)
        if places[0] not in self.finite:
            self.check_finite(array, places[0])
            self.finite.add(places[0])
        return array

    def read_matrix(self, name: str, shape: Shape, index: int | None) -> Array | NarrowMatrix:
        """A declared matrix that is only multiplied or looked up: as `read`, or as it is stored if that is smaller."""
        return self.read(name, shape, index)

    def check(self, name: str, shape: Shape, index: int | None) -> None:
        """Raises: ParamcountError if a tensor is missing or has another shape, as far as its header says."""
        if 0 in shape:
            return
        places, source = list_places(self.sources, name, index)
        self.check_presence([place.name for place in places], name, shape)
        found = self.get_shape(places[0].name)
        if len(places) > 1 or source.rows or places[0].expert is not None or found is None:
            return
        if found != shape:
            order = ", transposed" if found == shape[::-1] else ""
            raise self.make_error(places[0].name, f"has shape {format_shape(found)}", f"{format_shape(shape)}{order}")

    def check_presence(self, names: Sequence[str], declared: str, shape: Shape) -> None:
        for name in names:
            if self.get_shape(name) is None:
                found = f"has no tensor {make_printable(declared, 80)}"
                raise ParamcountError(found, where=self.where, expected=f"shape {format_shape(shape)}")

    def check_finite(self, array: Array, place: TensorPlace) -> None:
        if not np.isfinite(array).all():
            kind = "NaN" if np.isnan(array).any() else "infinite"
            raise self.make_error(place.name, f"has {kind} values", "finite weights")

    def make_error(self, name: str, problem: str, expected: str) -> ParamcountError:
        where = f"{self.where}: tensor {make_printable(name, 80)}"
        return ParamcountError(problem, where=where, expected=expected)


def select_expert(array: Array, index: int, shape: Shape) -> Array:
    """One expert of a tensor [experts, …], or of one whose experts are concatenated along the first axis."""
    rows = slice(index * shape[0], (index + 1) * shape[0]) if array.ndim == len(shape) else index
    return np.asarray(array[rows])


class MappedWeights(StoredWeights):
    """Weights from a mapping of names to arrays."""

    def __init__(self, arrays: Mapping[str, Any], tensors: Sequence[TensorRow]) -> None:
        super().__init__(tensors, arrays, "the weights mapping")
        self.arrays = arrays

    def get_shape(self, name: str) -> Shape | None:
        return tuple(self.arrays[name].shape) if name in self.arrays else None

    def load(self, place: TensorPlace, shape: Shape) -> Array:
        array = np.asarray(self.arrays[place.name])
        if array.dtype.kind not in "fiub":
            raise self.make_error(place.name, f"has the dtype {array.dtype}", "numbers")
        return array if place.expert is None else select_expert(array, place.expert, shape)


class CheckpointWeights(StoredWeights):
    """Weights from safetensors files. Values are mapped into memory and widened one tensor at a time."""

    def __init__(self, checkpoint: Checkpoint, tensors: Sequence[TensorRow]) -> None:
        where = make_printable(checkpoint.path)
        if checkpoint.format != "safetensors":
            raise ParamcountError(f"is a {checkpoint.format} checkpoint", where=where, expected="safetensors files")
        if checkpoint.faults:
            raise ParamcountError(checkpoint.faults[0], where=where, expected="a complete checkpoint")
        self.checkpoint, self.content = checkpoint, unpack(checkpoint)
        if self.content.faults:
            raise ParamcountError(self.content.faults[0], where=where, expected="a complete checkpoint")
        self.files = {file.name: file for file in checkpoint.files}
        super().__init__(tensors, self.content.tensors, where)

    def get_shape(self, name: str) -> Shape | None:
        tensor = self.content.tensors.get(name)
        return None if tensor is None else tensor.shape

    def load(self, place: TensorPlace, shape: Shape) -> Array:
        logical = self.content.tensors[place.name]
        values, *others = (self.checkpoint.tensors[name] for name in logical.list_file_names(place.name))
        bits = self.map_values(values)
        if logical.packing is not None and others:
            format = get_format(logical.packing.layout)
            if not get_abilities(format).run or values.dtype not in (*NUMPY, *FLOAT8):
                problem = f"is stored as {logical.format}; {describe_abilities(format)}"
                raise self.make_error(place.name, problem, describe_supported())
            roles = [self.content.auxiliary[name] for name in logical.file_names[1:]]
            parts = {role: self.widen_part(part, role) for role, part in zip(roles, others)}
            if place.expert is not None:  # one scale may be of all experts
                parts = {role: part[place.expert] if part.size > 1 else part for role, part in parts.items()}
                bits = bits[place.expert]
            array = format.widen(logical.packing, bits, parts)
            return array.swapaxes(-1, -2) if logical.transposed else array
        if values.dtype not in (*FLOATS, *FLOAT8, IDS):
            raise self.make_error(place.name, f"is stored as {logical.format or values.dtype}", describe_supported())
        return widen(bits if place.expert is None else select_expert(bits, place.expert, shape), str(values.dtype))

    def read_matrix(self, name: str, shape: Shape, index: int | None) -> Array | NarrowMatrix:
        places, source = list_places(self.sources, name, index)
        stored = self.checkpoint.tensors.get(places[0].name)
        is_whole = len(places) == 1 and places[0].expert is None and source.rows is None
        is_matrix = len(shape) == 2 and 0 not in shape
        if stored is None or not is_matrix or not is_whole or stored.shape != shape or stored.dtype not in NARROW:
            return self.read(name, shape, index)
        matrix = NarrowMatrix(self.map_values(stored), stored.dtype)
        if places[0] not in self.finite:
            for rows in matrix.list_blocks():
                self.check_finite(matrix[rows], places[0])
            self.finite.add(places[0])
        return matrix

    def widen_part(self, tensor: FileTensor, role: str) -> Array:
        """Scales and other tensors of a packed matrix, as floats. Scales of bytes are powers of two."""
        is_power = role == "scale" and tensor.dtype == "U8"
        return widen(self.map_values(tensor), "F8_E8M0" if is_power else str(tensor.dtype))

    def map_values(self, tensor: FileTensor) -> Array:
        """The stored values of a tensor as a read-only memory map."""
        file = self.files[tensor.file]
        if file.state is None or tensor.shape is None or tensor.start is None or tensor.dtype is None:
            raise ParamcountError("has no values", where=make_printable(file.path), expected="a safetensors file")
        dtype = NUMPY.get(tensor.dtype, "u1")
        if not prod(tensor.shape):
            return np.empty(tensor.shape, dtype)
        with open_regular(file.path, "a safetensors file") as opened:
            check_unchanged(file.path, opened, file.state)
            return np.memmap(opened, dtype, "r", tensor.start, tensor.shape).view(np.ndarray)


def describe_supported() -> str:
    return join_words((*FLOATS, IDS, *(abilities.name for abilities in list_abilities() if abilities.run)))


def widen(bits: Array, dtype: str) -> Array:
    return widen_float8(bits, dtype) if dtype in FLOAT8 else widen_bf16(bits, dtype)


def open_weights(weights: str | Path | Mapping[str, Any], tensors: Sequence[TensorRow]) -> StoredWeights:
    """Weights at a path, or in a mapping of arrays.

    Raises: ParamcountError if there is no checkpoint, or if it is incomplete.
    """
    if isinstance(weights, Mapping):
        return MappedWeights(weights, tensors)
    return CheckpointWeights(open_checkpoint(weights), tensors)
