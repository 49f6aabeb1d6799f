"""The tensors of a model in the modules of its reference, which may fuse or divide what checkpoints store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcount.counting import Count
from paramcount.counting.quantisation.storage import merge_facts
from paramcount.flow import TensorRow

Modules = Mapping[str, tuple[str, ...]]  # see `Sizes.modules`


def list_reference_tensors(count: Count) -> list[TensorRow]:
    """The tensors of a model with the names and shapes that they have in the reference."""
    modules = merge_facts(count.sizes).modules
    found: dict[tuple[object, ...], TensorRow] = {}
    for tensor in count.tensors:
        for part in divide(tensor, modules):
            key = (part.name, part.repeats, part.tied_to, len(found) if part.name == tensor.name else "renamed")
            if first := found.get(key):  # both on top of each other, of each expert if they are stacked
                part = first._replace(matrix=(first.matrix[0] + part.matrix[0], *first.matrix[1:]))
            found[key] = part
    return list(found.values())


def divide(tensor: TensorRow, modules: Modules) -> Iterator[TensorRow]:
    """The tensor of each module that a tensor belongs to."""
    names = name_in_reference(tensor.name, modules)
    parts = tensor.share_shapes if len(names) > 1 else ((tensor.component, tensor.matrix),)
    for name, (component, matrix) in zip(names, parts, strict=True):
        tied_to = name if tensor.tied_to == tensor.name else tensor.tied_to
        splits = tensor.splits if len(names) == 1 else ()
        yield tensor._replace(name=name, component=component, matrix=matrix, splits=splits, tied_to=tied_to)


def name_in_reference(name: str, modules: Modules) -> tuple[str, ...]:
    """The names that a tensor has in the reference: several if it is divided.

    >>> name_in_reference("layers.{layer}.Wqkv.weight", {".Wqkv": (".q", ".k", ".v")})
    ('layers.{layer}.q.weight', 'layers.{layer}.k.weight', 'layers.{layer}.v.weight')
    >>> name_in_reference("attn.in_proj_bias", {".in_proj": (".q", ".k")})  # of a module without a name of its own
    ('attn.q.bias', 'attn.k.bias')
    """
    for separator in "._":
        module, _, leaf = name.rpartition(separator)
        if "." in leaf:  # the underscore is inside of a module's name
            break
        for stored, renamed in modules.items():
            if module.endswith(stored) and (stored[0] == "." or f".{module}".endswith(f".{stored}")):
                return tuple(f"{module.removesuffix(stored)}{new}.{leaf}" for new in renamed)
    return (name,)


def rename(name: str, renamed: Mapping[str, str]) -> str:
    """A name in the reference. `renamed`: as in `Sizes`.

    >>> rename("model.layers.0.ffn.up", {"model.": "model.language_model.", "": "model.", ".ffn.": ".mlp."})
    'model.language_model.layers.0.mlp.up'
    """
    start = max((start for start in renamed if start[:1] != "." and name.startswith(start)), key=len, default=None)
    if start is not None:
        name = renamed[start] + name.removeprefix(start)
    for part, new in renamed.items():
        if part[:1] == ".":
            name = name.replace(part, new)
    return name
