"""Matrices of 16-bit floats, which are widened to float32 in blocks while a product or a lookup reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from paramcount.flow.operation import Array
from paramcount.formats.safetensors import widen_bf16

BLOCK = 1 << 22  # elements; a block stays in the CPU's cache and takes little memory
DTYPES = ("F16", "BF16")


class NarrowMatrix:
    """A stored matrix [rows, columns]. `x @ matrix`, `x @ matrix.T` and `matrix[rows]` are float32 arrays.

    For one token, the product with a large matrix takes a third of the time that widening the matrix at once does.
    """

    __array_ufunc__ = None  # so that x @ matrix is computed here
    ndim = 2

    def __init__(self, bits: Array, dtype: str, *, is_transposed: bool = False) -> None:
        self.bits, self.dtype, self.is_transposed = bits, dtype, is_transposed

    @property
    def T(self) -> NarrowMatrix:
        return NarrowMatrix(self.bits, self.dtype, is_transposed=not self.is_transposed)

    def __len__(self) -> int:
        return len(self.bits)

    def __getitem__(self, rows: Any) -> Array:
        return widen_bf16(self.bits[rows], self.dtype).astype(np.float32, copy=False)

    def list_blocks(self) -> Iterator[slice]:
        """The rows of each block."""
        step = max(1, BLOCK // self.bits.shape[1])
        return (slice(start, start + step) for start in range(0, len(self.bits), step))

    def __rmatmul__(self, x: Array) -> Array:
        if self.is_transposed:
            return np.concatenate([x @ self[rows].T for rows in self.list_blocks()], axis=-1)
        y: Array = np.sum([x[..., rows] @ self[rows] for rows in self.list_blocks()], axis=0)
        return y
