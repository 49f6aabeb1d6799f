"""What writers do to tensors: one of several, several of one, experts together or apart, a matrix the other way round."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.counting.tensors import Tensor
from paramcount.errors import ParamcountError


def fuse(name: str, tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Several tensors of the same layers as one, side by side along an axis.

    >>> from paramcount.api import count
    >>> q, k, v = (t for t in count("llama-3.1-8b").tensors if t.component.startswith("qkv"))
    >>> fuse("model.layers.{layer}.self_attn.qkv_proj.weight", [q, k, v]).shape
    (6144, 4096)
    """
    first = tensors[0]
    if any(t.repeats != first.repeats or t.stacked != first.stacked for t in tensors):
        raise ParamcountError("belong to different layers", where=", ".join(t.name for t in tensors))
    width = sum(t.shape[axis] for t in tensors)
    splits = tuple(split for t in tensors for split in iterate_parts(t, axis))
    at = axis % len(first.shape)
    return first._replace(name=name, shape=(*first.shape[:at], width, *first.shape[at + 1 :]), splits=splits)


def iterate_parts(tensor: Tensor, axis: int) -> tuple[tuple[str, int], ...]:
    """What a tensor is made of along an axis."""
    return tensor.splits or ((tensor.component, tensor.shape[axis]),)


def split_tensor(tensor: Tensor, pieces: Sequence[tuple[str, str, int]], axis: int = 0) -> list[Tensor]:
    """A tensor as several along an axis. `pieces`: the name, component and width of each.

    >>> from paramcount.api import count
    >>> c_attn = next(t for t in count("gpt2-small").tensors if t.name.endswith("c_attn.weight"))
    >>> [t.shape for t in split_tensor(c_attn, [("q", "qkv.q", 768), ("k", "qkv.k", 768), ("v", "qkv.v", 768)], axis=1)]
    [(768, 768), (768, 768), (768, 768)]
    """
    at = axis % len(tensor.shape)
    if sum(width for _, _, width in pieces) != tensor.shape[at]:
        raise ParamcountError(
            f"has size {tensor.shape[at]}, but its pieces add up to {sum(width for _, _, width in pieces)}",
            where=tensor.name,
        )
    before, behind = tensor.shape[:at], tensor.shape[at + 1 :]
    return [
        tensor._replace(name=name, component=component, shape=(*before, width, *behind), splits=())
        for name, component, width in pieces
    ]


def stack(tensor: Tensor, name: str) -> Tensor:
    """The experts of a layer, which are stored one by one, as one tensor with their axis in front.

    >>> from paramcount.api import count
    >>> w1 = next(t for t in count("mixtral-8x7b").tensors if t.name.endswith("w1.weight"))
    >>> stack(w1, "blk.{layer}.ffn_gate_exps.weight").shape
    (8, 14336, 4096)
    """
    experts = next(repeat for repeat in tensor.repeats if repeat.axis == "expert")
    others = tuple(repeat for repeat in tensor.repeats if repeat is not experts)
    return tensor._replace(
        name=name, shape=(experts.count, *tensor.shape), repeats=others, stacked=experts._replace(stacked=True)
    )


def unstack(tensor: Tensor, name: str) -> Tensor:
    """The experts of a layer, which are stored as one tensor, one by one. Their axis stands in front.

    >>> from paramcount.api import count
    >>> down = next(t for t in count("gpt-oss-20b").tensors if t.name.endswith("down_proj"))
    >>> unstack(down, "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight").shape
    (2880, 2880)
    """
    experts = tensor.stacked
    if experts is None or experts.merged:
        raise ParamcountError("has no leading expert dimension", where=tensor.name)
    repeat = experts._replace(stacked=False, runs=((0, experts.count),))
    return tensor._replace(name=name, shape=tensor.shape[1:], repeats=(*tensor.repeats, repeat), stacked=None)


def transpose(tensor: Tensor) -> Tensor:
    """A matrix with its last two axes the other way round; a vector as it is."""
    if len(tensor.shape) < 2:
        return tensor
    return tensor._replace(shape=(*tensor.shape[:-2], tensor.shape[-1], tensor.shape[-2]))
