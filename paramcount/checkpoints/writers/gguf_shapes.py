"""Tensors that have their names of a GGUF file, in the shapes that llama.cpp's converter gives them.

Source: modify_tensors of each model in conversion/ of llama.cpp, as of gguf_tables.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from math import prod
from typing import Any

from paramcount.checkpoints.writers import gguf_tables as tables
from paramcount.checkpoints.writers.rewriting import stack, transpose
from paramcount.counting.tensors import Tensor


def shaped(tensor: Tensor, layout: str, names: Collection[str], sizes: Any) -> list[Tensor]:
    """A tensor in the shape that it is written in; several where it is taken apart. `names`: those of the file, indices folded."""
    tensor = stacked(tensor)
    before, base, ending = split_name(tensor.name)
    if base == "attn_kv_b" and layout not in tables.KEPT_WHOLE and tensor.name not in names:
        return absorbed(tensor, before, sizes)
    for name, layouts, written, whole in tables.APART:
        if base == name and layout in layouts.split() and len(tensor.splits) == len(written.split()):
            pieces = [f"{before}{piece}{ending}" for piece in written.split()]
            kept = f"{before}{whole}{ending}"
            return (
                [tensor._replace(name=kept)] if kept in names and kept not in pieces else split_matrices(tensor, pieces)
            )
    if layout in tables.CONV1D and base in tables.MATRICES and ending == ".weight":
        return [transpose(tensor)]
    return [tensor._replace(shape=reshaped(tensor.shape, base, ending, layout, sizes))]


def split_name(name: str) -> tuple[str, str, str]:
    """A name in GGUF: what stands before the module, the module, its ending.

    >>> split_name("blk.{layer}.indexer.attn_k.weight"), split_name("blk.{layer}.ssm_a")
    (('blk.{layer}.', 'indexer.attn_k', '.weight'), ('blk.{layer}.', 'ssm_a', ''))
    """
    ending = next((ending for ending in (".weight", ".bias") if name.endswith(ending)), "")
    block, layer, base = name.removesuffix(ending).rpartition("{layer}.")
    return block + layer, base, ending


def stacked(tensor: Tensor) -> Tensor:
    """With an axis in front for experts, heads or streams: outputs before inputs where it is of experts."""
    if any(repeat.axis == "expert" for repeat in tensor.repeats):
        return stack(tensor, tensor.name)
    if tensor.stacked and tensor.splits:
        outputs = sum(width for _, width in tensor.splits)
        inputs = prod(tensor.shape) // (tensor.stacked.count * outputs)
        shape = (
            (tensor.stacked.count, outputs)
            if tensor.name.endswith(".bias")
            else (tensor.stacked.count, outputs, inputs)
        )
        return tensor._replace(shape=shape, stacked=tensor.stacked._replace(merged=False))
    others = tuple(repeat for repeat in tensor.repeats if repeat.axis == "layer")
    return tensor._replace(
        shape=(*(repeat.count for repeat in tensor.repeats if repeat not in others), *tensor.shape), repeats=others
    )


def absorbed(tensor: Tensor, before: str, sizes: Any) -> list[Tensor]:
    """The up-projection of latent attention head by head: of keys the other way round, as queries are multiplied with it, and of values.

    Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.2.
    """
    d_latent = tensor.shape[1]
    keys, values = (sizes.n_heads, d_latent, sizes.d_nope), (sizes.n_heads, sizes.d_v, d_latent)
    return [
        tensor._replace(name=f"{before}attn_{name}_b.weight", shape=shape)
        for name, shape in (("k", keys), ("v", values))
    ]


def split_matrices(tensor: Tensor, names: Sequence[str]) -> list[Tensor]:
    """A fused matrix as several. `names`: of each of its parts; those of one name stay together."""
    axis = 1 if tensor.stacked else 0
    found = []
    for name, parts in groupby(zip(names, tensor.splits), key=lambda item: item[0]):
        splits = tuple(split for _, split in parts)
        shape = (*tensor.shape[:axis], sum(width for _, width in splits), *tensor.shape[axis + 1 :])
        found.append(
            tensor._replace(name=name, component=splits[0][0], shape=shape, splits=splits if len(splits) > 1 else ())
        )
    return found


def reshaped(shape: tuple[int, ...], base: str, ending: str, layout: str, sizes: Any) -> tuple[int, ...]:
    """A shape as it is written: convolutions without their axis of 1, what Mamba 2 has of each head or group in rows."""
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
