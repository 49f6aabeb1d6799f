"""The names of dtypes: how weights may be stored, and the values of a KV cache."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from paramcount.errors import ParamcountError, describe_value, find_nearest
from paramcount.formats.quantization_config import WeightDtype, find_weight_dtype, list_weight_dtypes
from paramcount.formats.weights.plain import LABELS

KV_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "fp8": 1, "int8": 1}  # {dtype of a cache: bytes per value}
KV_SCALED = {"fp4": (16, 9), "mxfp8": (32, 33)}  # {dtype: (values that share a scale, bytes of both)}, of SGLang
KV_BLOCKS = ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")  # of llama.cpp
KV_ALIASES = {
    "fp32": "f32", "float32": "f32", "bfloat16": "bf16", "fp16": "f16", "float16": "f16", "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8", "fp4_e2m1": "fp4",
}  # fmt: skip


def parse_weight_format(text: object, *, where: str = "dtype") -> WeightDtype:
    """The format with this name.

    >>> parse_weight_format("gptq-4bit-g64").label, parse_weight_format("FP8").label
    ('GPTQ 4-bit (group 64)', 'FP8 (128 × 128 blocks)')

    Raises: ParamcountError for any other name, with the nearest ones.
    """
    name = text.lower() if isinstance(text, str) else ""
    found = find_weight_format(name)
    if found is None:
        nearest = find_nearest(name, list_weight_dtypes())
        expected = "a dtype such as bf16, fp8, int8, int4, gptq, awq, nf4 or q4_k_m"
        raise ParamcountError(f"= {describe_value(text)}", where=where, expected=expected, nearest=nearest)
    return found


find_weight_format = lru_cache(maxsize=64)(find_weight_dtype)


class BlockType(NamedTuple):
    """How values are stored in blocks, or one by one."""

    name: str
    values: int  # per block
    block_bytes: int

    @property
    def label(self) -> str:
        return LABELS.get(self.name.upper(), self.name.upper())

    def count_bytes(self, elements: int) -> int:
        """Bytes of so many elements, in whole blocks."""
        n_blocks = elements if self.values == 1 else -(-elements // self.values)  # the first may be a symbol
        return n_blocks * self.block_bytes


class KVDtype(NamedTuple):
    """The dtypes of cached keys and values; that of keys is the one of latents and states, too."""

    keys: BlockType
    values: BlockType

    @property
    def label(self) -> str:
        return self.keys.label if self.keys == self.values else f"{self.keys.label} keys, {self.values.label} values"


def parse_kv_dtype(text: object, *, where: str = "kv_dtype") -> KVDtype:
    """The dtype of a KV cache with this name; keys and values may have one each.

    >>> parse_kv_dtype("q8_0").keys.count_bytes(1024)
    1088
    >>> parse_kv_dtype("q8_0,f16").label
    'Q8_0 keys, FP16 values'

    Raises: ParamcountError for any other name, with the nearest ones.
    """
    names = text.lower().split(",") if isinstance(text, str) else []
    names = [KV_ALIASES.get(name.strip(), name.strip()) for name in names]
    known = (*KV_BYTES, *KV_SCALED, *KV_BLOCKS)
    wrong = next((name for name in names if name not in known), None)
    if wrong is not None or not 1 <= len(names) <= 2:
        nearest = find_nearest(wrong or "", known)
        raise ParamcountError(
            f"= {describe_value(text)}", where=where, expected="bf16, fp8, int8, q8_0 or q4_0", nearest=nearest
        )
    return KVDtype(*map(make_block_type, (names[0], names[-1])))


def make_block_type(name: str) -> BlockType:
    if name in KV_BYTES:
        return BlockType(name, 1, KV_BYTES[name])
    if name in KV_SCALED:
        return BlockType(name, *KV_SCALED[name])
    from paramcount.formats.weights.gguf import BLOCKS

    values, size, _ = BLOCKS[name.upper()]
    return BlockType(name, values, size)
