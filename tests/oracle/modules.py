"""What the reference's modules read and give while tokens go through, by the names that their weights are saved under."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from tests.oracle import flaws

Shape = tuple[int, ...]


class Call(NamedTuple):
    """One module's last call."""

    reads: Shape | None
    gives: Shape


@contextmanager
def watching(model: Any) -> Iterator[dict[str, Call]]:
    """{module: its last call}, filled while the model runs: of every module that holds a weight of its own."""
    from transformers.core_model_loading import revert_weight_conversion

    found: dict[str, Call] = {}

    def hook(name: str) -> Any:
        def seen(module: Any, args: tuple[Any, ...], given: Mapping[str, Any], output: Any) -> None:
            reads = next((x for x in (*args, *given.values()) if hasattr(x, "shape")), None)
            gives = output[0] if isinstance(output, tuple) else output
            if hasattr(gives, "shape"):
                padded = reads is not None and isinstance(module, torch.nn.Conv1d) and module.groups > 1  # a causal convolution: what it adds in front, it cuts off behind
                found[name] = Call(None if reads is None else tuple(reads.shape), tuple((reads if padded else gives).shape))

        return seen

    handles = []
    for name, module in model.named_modules():
        held = dict(module.named_parameters(prefix=name, recurse=False))
        tied = any(weight in model.all_tied_weights_keys for weight in held)
        if held and not tied and not list(module.children()):
            saved = list(revert_weight_conversion(model, {weight: held[weight] for weight in list(held)[:1]}))
            if len(saved) == 1 and saved[0].endswith(".weight") and not flaws.left_out(model, saved[0].removeprefix(f"{model.base_model_prefix}.")):
                handles.append(module.register_forward_hook(hook(saved[0].rpartition(".")[0]), with_kwargs=True))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


class Products(TorchFunctionMode):
    """The matrix products with a weight whose name has "experts" in it: {name: [(rows, in, out)]}."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.names = {p.untyped_storage().data_ptr(): name for name, p in model.named_parameters() if ".experts." in name}
        self.found: dict[str, list[Shape]] = {}

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if len(args) > 1 and getattr(func, "__name__", "") in ("linear", "matmul", "__matmul__", "mm", "bmm", "einsum"):
            tensors = [x for x in args if isinstance(x, torch.Tensor)]
            if len(tensors) > 1:
                name = self.names.get(tensors[1].untyped_storage().data_ptr())
                if name:
                    self.found.setdefault(name, []).append((tensors[0].numel() // tensors[0].shape[-1], tensors[0].shape[-1], out.shape[-1]))
        return out


def cached(cache: Any, batch: int) -> Counter[tuple[Shape, ...]]:
    """What a cache holds of each layer for one text: tokens first, as the trace has them."""
    found: Counter[tuple[Shape, ...]] = Counter()
    if cache is None: return found
    caches = [cache.self_attention_cache, cache.cross_attention_cache] if hasattr(cache, "self_attention_cache") else [cache]
    for layer in (layer for each in caches for layer in each.layers):
        held = [getattr(layer, name, None) for name in ("keys", "values", "indexer_keys")]
        pair = tuple(by_token(x, batch) for x in held if x is not None and x.numel())
        if pair:
            found[pair] += 1
        for states in (getattr(layer, "conv_states", None), getattr(layer, "recurrent_states", None)):
            for x in (states or {}).values():
                if x is not None:
                    found[(tuple(x.shape[1:]),)] += 1
    return found


def by_token(x: Any, batch: int) -> Shape:
    assert x.shape[0] == batch, x.shape
    if x.dim() == 3:
        return tuple(x.shape[1:])
    _, heads, n, width = x.shape
    return (n, heads, width)
