"""AWQ: integers of 4 bits in words, along the outputs or, for its GEMV kernels, along the inputs.

Source: github casper-hansen/AutoAWQ, awq/modules/linear/gemm.py, gemv.py and gemv_fast.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType

from paramcount.formats.packing import INPUTS, OUTPUTS, WORD, Axis, HiddenAxis, Packing, Shape, Stored, count_blocks
from paramcount.formats.quantization_config import Stated
from paramcount.formats.weights.gptq import ZEROS, Words

LAYOUTS = {"gemm": "awq", "gemv": "awq gemv", "gemv_fast": "awq fast", "llm-awq": "awq fast"}
INTERLEAVED = 4  # rows that the fast layout interleaves


class Awq(Words):
    name = "AWQ"
    methods = ("awq",)
    dtypes = MappingProxyType({"awq": ("AWQ", {})})
    layouts = ("awq", "awq gemv", "awq fast")

    def lay_out(self, packing: Packing) -> Iterable[Stored]:
        bits, group = packing.bits, packing.block[1]
        if packing.layout == "awq":
            words, groups = Axis(OUTPUTS, WORD, bits, is_cut=True), Axis(INPUTS, group)
            yield Stored("packed weights", packing.dtype, (Axis(INPUTS), words))
            yield Stored("scale", packing.scale, (groups, Axis(OUTPUTS)))
            if ZEROS in packing.extras:
                yield Stored(ZEROS, packing.dtype, (groups, words))
            return
        padded = HiddenAxis(INPUTS, lambda inputs: pad_words(inputs, group, bits))
        scales = HiddenAxis(INPUTS, lambda inputs: pad_words(inputs, group, bits) * WORD // bits)
        if packing.layout == "awq gemv":
            yield Stored("packed weights", packing.dtype, (Axis(OUTPUTS), Axis(INPUTS, WORD, bits, is_cut=True)))
            yield Stored("scale", packing.scale, (Axis(OUTPUTS), scales))
            if ZEROS in packing.extras:
                yield Stored(ZEROS, packing.dtype, (Axis(OUTPUTS), padded))
        else:
            rows = Axis(OUTPUTS, INTERLEAVED, is_cut=True)
            yield Stored("packed weights", packing.dtype, (rows, Axis(INPUTS)))
            yield Stored("scale", packing.scale, (scales, Axis(OUTPUTS)))
            if ZEROS in packing.extras:
                yield Stored(ZEROS, packing.scale, (scales, Axis(OUTPUTS)))

    def find_layout(self, form: str | None) -> str | None:
        return self.layouts[0] if form is None else LAYOUTS.get(form)

    def make_packing(self, layout: str, bits: int, group: int) -> Packing:
        return super().make_packing(layout, bits, group)._replace(dtype="I16" if layout == "awq fast" else "I32")

    def list_bits(self, layout: str, dtype: str, stated: Stated) -> Iterable[int]:
        if layout == "awq":
            return super().list_bits(layout, dtype, stated)
        return (4,) if (layout == "awq fast") == (dtype == "I16") else ()

    def list_groups(self, shape: Shape, scales: Shape, layout: str, hints: Sequence[int]) -> Sequence[int]:
        return super().list_groups(shape, scales, layout, hints) if layout == "awq" else hints


def pad_words(inputs: int, group: int, bits: int) -> int:
    """The number of words for the zero points of a row in the GEMV layout.

    >>> pad_words(4096, 128, 4), pad_words(11008, 64, 4)
    (4, 22)
    """
    group = group or inputs or 1
    words_per_read = {64: 2, 32: 4}.get(group, 1)
    return count_blocks(count_blocks(inputs // group, WORD // bits), words_per_read) * words_per_read


FORMAT = Awq()
