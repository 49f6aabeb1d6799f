"""How GPUs that share every matrix divide a model: the rules of tensor parallelism as trees over numbers of heads."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from paramcount.costs.caches import split_heads
from paramcount.costs.sharding import Parallelism, Shape, check_parallelism, divide_heads
from paramcount.explore.conditions import Run, Symbol, Tree, apply, follow_all, get_tree


def export_sharing(details: Iterable[str]) -> dict[str, Any]:
    """The rules for numbers of "gpus", "n_heads" and "n_kv_heads".

    "check" has an error where the heads cannot be divided, "weights" the divisor of each kind of weight, and "cache"
    what is left of the "first" axis of a cache that is divided.
    """

    def make_sizes(run: Run) -> tuple[Shape, Symbol]:
        gpus, heads, kv_heads = (Symbol(run, name, 1) for name in ("gpus", "n_heads", "n_kv_heads"))
        return Shape(n_layers=1, n_heads=heads, n_kv_heads=kv_heads, n_experts=0), gpus  # type: ignore[arg-type]

    def check(run: Run) -> Tree:
        shape, gpus = make_sizes(run)
        return apply(lambda _: check_parallelism(shape, Parallelism(tp=gpus)), None, run)  # type: ignore[arg-type]

    def divide(detail: str, run: Run) -> Tree:
        _, divisor = divide_heads(detail, *make_sizes(run))  # type: ignore[arg-type]
        return {"value": get_tree(divisor)}

    def divide_cache(run: Run) -> Tree:
        shape: Any = (Symbol(run, "first", 1), 1)
        return {"value": get_tree(split_heads(shape, Symbol(run, "gpus", 1), False)[0])}  # type: ignore[arg-type]

    return {
        "check": follow_all(check),
        "weights": {detail: follow_all(partial(divide, detail)) for detail in sorted(details)},
        "cache": follow_all(divide_cache),
    }


def is_divided(rank: int, is_state: bool) -> bool:
    """Whether GPUs divide the first axis of a cache of so many axes."""
    return split_heads((2,) * rank, 2, is_state)[0] == 1
