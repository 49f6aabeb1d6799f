"""What the reference does while tokens go through it: what its modules read and give, its experts' products, what its
caches hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.oracle import flaws

Shape = tuple[int, ...]


class Call(NamedTuple):
    """What a module read and gave when it was last called."""

    reads: Shape | None  # None where that is no tensor
    gives: Shape


class Cached(NamedTuple):
    """What one layer keeps, for one text: tokens first, then heads."""

    what: str  # keys and values, last inputs, state
    shapes: tuple[Shape, ...]


@contextmanager
def watch_modules(model: Any) -> Iterator[dict[str, Call]]:
    """{module: its last call}, filled while the model runs: of every module that holds a weight of its own, under the
    name that the weight is saved by.
    """
    import torch

    found: dict[str, Call] = {}

    def hook(name: str) -> Any:
        def seen(module: Any, args: tuple[Any, ...], named: Mapping[str, Any], output: Any) -> None:
            reads = next((x for x in (*args, *named.values()) if isinstance(x, torch.Tensor)), None)
            gives = output[0] if isinstance(output, tuple) else output
            if isinstance(gives, torch.Tensor):
                is_causal = isinstance(module, torch.nn.Conv1d) and module.groups > 1 and module.kernel_size[0] > 1
                if is_causal and reads is not None:
                    gives = reads  # a causal convolution: what it adds in front, it cuts off behind
                found[name] = Call(None if reads is None else tuple(reads.shape), tuple(gives.shape))

        return seen

    whole = flaws.revert_names(model, dict(model.named_parameters()))
    handles = []
    for name, module in model.named_modules():
        held = dict(module.named_parameters(prefix=name, recurse=False))
        tied = any(weight in model.all_tied_weights_keys for weight in held)
        if held and not tied and not list(module.children()):
            saved = flaws.revert_names(model, {weight: held[weight] for weight in list(held)[:1]})
            (weight, tensor), *others = saved.items()
            is_whole = weight not in whole or whole[weight].shape == tensor.shape  # not one of several that are fused
            if not others and weight.endswith(".weight") and is_whole:
                handles.append(module.register_forward_hook(hook(weight.rpartition(".")[0]), with_kwargs=True))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watch_experts(model: Any) -> Iterator[dict[str, list[Shape]]]:
    """{a weight of experts: (rows, width in, width out) of each product with one expert's share of it}, filled while
    the model runs.
    """
    from torch.overrides import TorchFunctionMode

    found: dict[str, list[Shape]] = {}
    names = {
        weight.untyped_storage().data_ptr(): name
        for name, weight in model.named_parameters()
        if ".experts." in name and weight.dim() == 3
    }

    class Products(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
            out = function(*args, **(kwargs or {}))
            if getattr(function, "__name__", "") in ("linear", "matmul", "__matmul__"):
                x, weight = (*args, *(kwargs or {}).values())[:2]
                if name := names.get(weight.untyped_storage().data_ptr()):
                    found.setdefault(name, []).append((x.numel() // x.shape[-1], x.shape[-1], out.shape[-1]))
            return out

    with Products():
        yield found


def list_cached(model: Any, output: Mapping[str, Any]) -> list[Cached]:
    """What the reference keeps for later tokens, layer by layer."""
    found = []
    cache = output.get("past_key_values", None) or output.get("cache_params", None)
    for each in (
        []
        if cache is None
        else [cache.self_attention_cache, cache.cross_attention_cache]
        if hasattr(cache, "self_attention_cache")
        else [cache]
    ):
        for layer in each.layers:
            held = [x for name, x in vars(layer).items() if name in ("keys", "values") or name.endswith("_keys")]
            if pair := tuple(shape_per_text(x) for x in held if x is not None and x.numel()):
                found.append(Cached("keys and values", pair))
            for what, states in (("last inputs", "conv_states"), ("state", "recurrent_states")):
                found += [
                    Cached(what, (tuple(x.shape[1:]),)) for x in getattr(layer, states, {}).values() if x is not None
                ]
    found += [
        Cached("vectors", (tuple(x[:, 0].shape),)) for x in output.get("mems") or ()
    ]  # XLNet's stand [tokens, texts, width]
    if "state" in output:  # RWKV's, of all layers together
        before_mlp, before, *sums = output["state"]
        for i in range(before.shape[-1]):
            found += [Cached("state", (tuple(x[..., i].shape[1:]),)) for x in (before_mlp, before)]
            found.append(Cached("state", ((len(sums), *sums[0][..., i].shape[1:]),)))
    for module in model.modules():  # RecurrentGemma's states stand in its modules
        for what, name in (("last inputs", "conv1d_state"), ("state", "recurrent_states")):
            if getattr(module, name, None) is not None:
                found.append(Cached(what, (tuple(getattr(module, name).shape[1:]),)))
    return found


def shape_per_text(x: Any) -> Shape:
    """The shape for one text.

    Keys of every head stand [heads, tokens, width]; one for all heads is written without them.
    """
    _, *heads, tokens, width = x.shape
    return (tokens, width) if heads in ([], [1]) else (tokens, *heads, width)
