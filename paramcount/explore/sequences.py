"""What sequences of tokens take, and how long they may be, as expressions of a model's sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

from paramcount.costs.caches import CacheGroup, list_flow_groups, merge_groups
from paramcount.counting.sum_weights import STRUCTURE_ERRORS, list_flows
from paramcount.explore.sharing import derive_caches, derive_growth
from paramcount.flow import Size
from paramcount.flow.positions import list_position_limits
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import make_tree
from paramcount.symbolic.trees import Literal, Tree, TreeOperation, to_json


def list_caches(symbolic: Iterable[Sizes], head: bool) -> tuple[CacheGroup, ...] | None:
    """What layers keep for later tokens, from the first sizes with which it is a polynomial; None if there are none."""
    for sizes in symbolic:
        with suppress(*STRUCTURE_ERRORS):
            return merge_groups(list_flow_groups(sizes, head))
    return None


def list_limits(symbolic: Iterable[Sizes], head: bool) -> list[Size]:
    """The rows of position embeddings that a text looks up, from the first sizes with which they are known."""
    for sizes in symbolic:
        with suppress(*STRUCTURE_ERRORS):
            return list_position_limits(next(iter(list_flows(sizes, head)))[0])
    return []


def export_caches(groups: tuple[CacheGroup, ...]) -> dict[str, Any] | None:
    """The bytes that sequences keep, with `kv_bytes` for each value of the KV cache; None if a length is not known.

    `per_token`: of every further token of one sequence. `kv`, `state`: of texts of `context` tokens by `users`, on one
    of several `gpus`.
    """
    if any(group.stream not in ("tokens", "source", "") for group in groups):
        return None
    trees = {"per_token": derive_growth(groups), **derive_caches(groups)}
    return {name: to_json(tree) for name, tree in trees.items()}


def export_limits(symbolic: Sequence[Sizes], head: bool) -> dict[str, Any]:
    """The most tokens of a text as expressions; null if the sizes do not limit them. `positions`: that have rows in
    position embeddings. `limit`: with those that the model was made for."""
    positions = [make_tree(n) for n in list_limits(symbolic, head)]
    own = getattr(symbolic[0], "n_positions", None)
    limits = [*positions, *([make_tree(own)] if own is not None else [])]
    return {name: to_json(join(trees)) for name, trees in (("positions", positions), ("limit", limits))}


def join(trees: Sequence[Tree]) -> Tree:
    """The least of some numbers; null if there are none."""
    return reduce(lambda a, b: a if a == b else TreeOperation("min", (a, b)), trees) if trees else Literal(None)
