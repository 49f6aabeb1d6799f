"""Tensors with GGUF names in the shapes that llama.cpp's converter writes.

Source: modify_tensors of each model in conversion/ of llama.cpp, as for gguf_tables.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from math import prod
from typing import Protocol

from paramcount.checkpoints.writers import gguf_tables as tables
from paramcount.checkpoints.writers.rewriting import split_ending, stack, transpose
from paramcount.flow import TensorRow


class ShapeSizes(Protocol):
    """The sizes that some shapes depend on; a config has those of its architecture."""

    n_heads: int
    d_nope: int  # non-rotary part of a key head in MLA
    d_v: int
    n_groups: int  # of Mamba 2


def write_shape(tensor: TensorRow, layout: str, names: Collection[str], sizes: ShapeSizes) -> list[TensorRow]:
    """A tensor in the shape that the converter writes, or several if it is split.

    `names`: names in the file, without indices.
    """
    tensor = stack_axes(tensor)
    before, base, ending = split_name(tensor.name)
    if base == "attn_kv_b" and layout not in tables.WHOLE_KV_B and tensor.name not in names:
        return split_kv_b(tensor, before, sizes)
    for name, layouts, parts, whole in tables.SPLIT:
        if base == name and layout in layouts.split() and len(tensor.splits) == len(parts.split()):
            part_names = [f"{before}{part}{ending}" for part in parts.split()]
            whole_name = f"{before}{whole}{ending}"
            if whole_name in names and whole_name not in part_names:
                return [tensor._replace(name=whole_name)]
            return split_matrices(tensor, part_names)
    if layout in tables.CONV1D and base in tables.CONV1D_MATRICES and ending == ".weight":
        return [transpose(tensor)]
    return [tensor.with_shape(compute_shape(tensor.shape, base, ending, layout, sizes))]


def split_name(name: str) -> tuple[str, str, str]:
    """A GGUF name as block, module and ending.

    >>> split_name("blk.{layer}.indexer.attn_k.weight"), split_name("blk.{layer}.ssm_a")
    (('blk.{layer}.', 'indexer.attn_k', '.weight'), ('blk.{layer}.', 'ssm_a', ''))
    """
    path, ending = split_ending(name)
    block, layer, base = path.rpartition("{layer}.")
    return block + layer, base, ending


def stack_axes(tensor: TensorRow) -> TensorRow:
    """The tensor with leading axes for experts, heads or streams; of experts, outputs come before inputs."""
    if any(repeat.axis == "expert" for repeat in tensor.repeats):
        return stack(tensor, tensor.name)
    if tensor.stacked and tensor.splits:
        outputs = sum(width for _, width in tensor.splits)
        others = () if tensor.name.endswith(".bias") else (prod(tensor.matrix) // outputs,)
        return tensor._replace(matrix=(outputs, *others), axis=0, stacked=tensor.stacked._replace(stored="stacked"))
    layers = tuple(repeat for repeat in tensor.repeats if repeat.axis == "layer")
    leading = [repeat.count for repeat in tensor.repeats if repeat not in layers]
    return tensor._replace(matrix=(*leading, *tensor.matrix), axis=tensor.axis + len(leading), repeats=layers)


def split_kv_b(tensor: TensorRow, before: str, sizes: ShapeSizes) -> list[TensorRow]:
    """MLA's up-projection kv_b as one tensor for keys and one for values, per head.

    The keys are transposed, because queries are multiplied with them.

    Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.2.
    """
    d_latent = tensor.shape[1]
    keys, values = (sizes.n_heads, d_latent, sizes.d_nope), (sizes.n_heads, sizes.d_v, d_latent)
    return [
        tensor._replace(name=f"{before}attn_k_b.weight", matrix=keys),
        tensor._replace(name=f"{before}attn_v_b.weight", matrix=values),
    ]


def split_matrices(tensor: TensorRow, names: Sequence[str]) -> list[TensorRow]:
    """A fused matrix split. `names`: one per part; adjacent parts with the same name stay together."""
    result = []
    for name, parts in groupby(zip(names, tensor.splits), key=lambda item: item[0]):
        splits = tuple(split for _, split in parts)
        matrix = (sum(width for _, width in splits), *tensor.matrix[1:])
        split = tensor._replace(name=name, component=splits[0][0], matrix=matrix)
        result.append(split._replace(splits=splits if len(splits) > 1 else ()))
    return result


def compute_shape(shape: tuple[int, ...], base: str, ending: str, layout: str, sizes: ShapeSizes) -> tuple[int, ...]:
    """The written shape: convolutions without their axis of 1, Mamba 2's vectors as one row per head or group."""
    match base:
        case "ssm_conv1d" | "shortconv.conv" if ending == ".weight":
            return (shape[0], shape[-1])
        case "ssm_conv1d_q" | "ssm_conv1d_k" | "ssm_conv1d_v":
            return (1, shape[0], 1, shape[-1])
        case "ssm_a" if layout == "kimi-linear":
            return (1, 1, shape[-1], 1) if len(shape) == 1 else shape
        case "ssm_a" | "ssm_d" if layout in tables.MAMBA2:
            return (*shape, 1)
        case "ssm_norm" if layout in tables.MAMBA2:
            return (sizes.n_groups, shape[0] // sizes.n_groups)
    return shape
