"""Ways in which writers change tensors: fuse, split, stack, unstack and transpose."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.errors import ParamcountError
from paramcount.flow import TensorRow


def fuse(name: str, tensors: Sequence[TensorRow]) -> TensorRow:
    """Several tensors of the same layers, concatenated along the first axis of each expert.

    >>> from paramcount.api import count
    >>> q, k, v = (t for t in count("llama-3.1-8b").tensors if t.component.startswith("qkv"))
    >>> fuse("model.layers.{layer}.self_attn.qkv_proj.weight", [q, k, v]).shape
    (6144, 4096)
    """
    first = tensors[0]
    if any(t.repeats != first.repeats or t.stacked != first.stacked for t in tensors):
        raise ParamcountError("belong to different layers", where=", ".join(t.name for t in tensors))
    splits = tuple(split for t in tensors for split in t.splits or ((t.component, t.matrix[0]),))
    matrix = (sum(t.matrix[0] for t in tensors), *first.matrix[1:])
    return first._replace(name=name, matrix=matrix, splits=splits, axis=0)


def split_tensor(tensor: TensorRow, pieces: Sequence[tuple[str, str, int]]) -> list[TensorRow]:
    """A tensor split along its first axis. `pieces`: the name, component and size of each piece.

    >>> from paramcount.api import count
    >>> qkv = next(t for t in count("phi-3-mini").tensors if t.name.endswith("qkv_proj.weight"))
    >>> [t.shape for t in split_tensor(qkv, [(f"{name}_proj", f"qkv.{name}", 3072) for name in "qkv"])]
    [(3072, 3072), (3072, 3072), (3072, 3072)]
    """
    size, total = tensor.matrix[0], sum(width for _, _, width in pieces)
    if total != size:
        raise ParamcountError(f"has size {size}, but its pieces add up to {total}", where=tensor.name)
    return [
        tensor._replace(name=name, component=component, matrix=(width, *tensor.matrix[1:]), splits=())
        for name, component, width in pieces
    ]


def stack(tensor: TensorRow, name: str) -> TensorRow:
    """One tensor per layer, with the experts as its leading axis, for a tensor per expert.

    >>> from paramcount.api import count
    >>> w1 = next(t for t in count("mixtral-8x7b").tensors if t.name.endswith("w1.weight"))
    >>> stack(w1, "blk.{layer}.ffn_gate_exps.weight").shape
    (8, 14336, 4096)
    """
    experts = next(repeat for repeat in tensor.repeats if repeat.axis == "expert")
    others = tuple(repeat for repeat in tensor.repeats if repeat is not experts)
    return tensor._replace(name=name, repeats=others, stacked=experts._replace(stored="stacked"))


def unstack(tensor: TensorRow, name: str) -> TensorRow:
    """A tensor per expert, for one tensor per layer with the experts as its leading axis.

    >>> from paramcount.api import count
    >>> down = next(t for t in count("gpt-oss-20b").tensors if t.name.endswith("down_proj"))
    >>> unstack(down, "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight").shape
    (2880, 2880)
    """
    experts = tensor.stacked
    if experts is None or experts.merged:
        raise ParamcountError("has no leading expert dimension", where=tensor.name)
    repeat = experts._replace(stored="apart", runs=((0, experts.count),))
    return tensor._replace(name=name, repeats=(*tensor.repeats, repeat), stacked=None)


def transpose(tensor: TensorRow) -> TensorRow:
    """A matrix with its last two axes swapped; a vector is unchanged."""
    *before, rows, columns = range(max(2, len(tensor.matrix)))
    if columns >= len(tensor.matrix):
        return tensor
    axes = (*before, columns, rows)
    return tensor._replace(matrix=tuple(tensor.matrix[axis] for axis in axes), axis=axes.index(tensor.axis))


def split_ending(name: str) -> tuple[str, str]:
    """A name without .weight or .bias, and that ending.

    >>> split_ending("lm_head.weight"), split_ending("blk.{layer}.ssm_a")
    (('lm_head', '.weight'), ('blk.{layer}.ssm_a', ''))
    """
    ending = next((ending for ending in (".weight", ".bias") if name.endswith(ending)), "")
    return name.removesuffix(ending), ending
