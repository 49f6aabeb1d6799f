"""What one of several GPUs that share every matrix holds, and whether it fits, as expressions: the functions of
costs/ run on symbols.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, reduce
from typing import Any

from paramcount.costs.caches import CacheGroup, count_growth, list_flow_groups, merge_groups
from paramcount.costs.devices import Overhead, judge
from paramcount.costs.dtypes import BlockType, KVDtype
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.sharding import Parallelism, ShardShape, check_parallelism, divide, find_decoder, find_size_names
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.counting.sum_weights import STRUCTURE_ERRORS, list_flows
from paramcount.explore.conditions import apply, follow_all
from paramcount.explore.flow import CONTEXT
from paramcount.explore.packings import Pool
from paramcount.flow import Size, TensorRow
from paramcount.flow.positions import list_position_limits
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import make_symbols, make_tree
from paramcount.symbolic.trees import Literal, Tree, TreeOperation, add, to_json

ENGINE = ENGINES["minimal"]
CHOICES: Any = make_symbols(f"gpus users kv_bytes bytes {CONTEXT}")  # kv_bytes: of a value in the KV cache
GPUS, USERS, KV_BYTES, BYTES, TOKENS = CHOICES
ON_ALL: Any = Parallelism(tp=GPUS)
KV_DTYPE: Any = KVDtype(*2 * [BlockType("", 1, KV_BYTES)])
REQUEST = CacheRequest(TOKENS, USERS, KV_DTYPE, source=TOKENS, tp=GPUS)


def find_shape(sizes: Sizes, symbolic: Sizes) -> ShardShape:
    """The numbers of heads that the GPUs must divide, from the same sizes with symbols."""
    block, language = find_decoder(sizes)
    names, source = find_size_names(language), getattr(symbolic, block) if block else symbolic
    n_heads, n_kv_heads = (getattr(source, name) if (name := names[what]) else 0 for what in ("n_heads", "n_kv_heads"))
    return ShardShape(n_layers=1, n_heads=n_heads, n_kv_heads=n_kv_heads, n_experts=0)


def derive_check(shape: ShardShape) -> Tree:
    """The error if the heads cannot be divided."""
    any_sizes: dict[str, int] = defaultdict(lambda: 1)  # the error lists divisors, which the page does not show
    return follow_all(lambda run: apply(lambda _: check_parallelism(shape, ON_ALL), None, run), any_sizes)


def share_tensor(row: TensorRow, shape: ShardShape, functions: Pool) -> TreeOperation:
    """The bytes of a tensor on one of the GPUs, from the `bytes` of all its copies.

    It applies a function of the bytes, the GPUs, the KV heads and the sizes of the parts of a fused matrix.
    """
    sizes = (BYTES, GPUS, shape.n_kv_heads, *(size for _, size in row.splits))
    tree = derive_share(row.component, row.part, tuple(name for name, _ in row.splits), len(row.matrix))
    return TreeOperation("apply", (functions.add(to_json(tree)), *map(make_tree, sizes)))


@cache
def derive_share(component: str, part: str, splits: tuple[str, ...], rank: int) -> Tree:
    """The bytes of a tensor on one of the GPUs, as a function of "0", "1", …: see `share_tensor`. A bias has rank 1."""
    n_bytes, gpus, kv_heads, *sizes = make_symbols(" ".join(map(str, range(3 + len(splits)))))
    matrix = (sum(sizes) if sizes else 1, *[1] * (rank - 1))
    tensor = TensorRow("", matrix, component, part, splits=tuple(zip(splits, sizes)))
    stored: Any = StoredTensor(tensor, 1, None, n_bytes)  # type: ignore[arg-type]
    shape: Any = ShardShape(n_layers=1, n_heads=0, n_kv_heads=kv_heads, n_experts=0)  # type: ignore[arg-type]
    return follow_all(lambda run: run.make_tree(divide(stored, shape, Parallelism(tp=gpus))))  # type: ignore[arg-type]


def derive_growth(groups: tuple[CacheGroup, ...]) -> Tree:
    """The bytes that every further token adds to a cache."""
    return follow_all(lambda run: run.make_tree(count_growth(groups, KV_DTYPE)))


def derive_caches(groups: tuple[CacheGroup, ...]) -> dict[str, Tree]:
    """The bytes on one of the GPUs after texts of `context` tokens by `users`: of the KV cache, and of states."""
    return {name: add(*(derive_cache(group, f"{name}_bytes") for group in groups)) for name in ("kv", "state")}


def derive_cache(group: CacheGroup, field: str) -> Tree:
    return follow_all(lambda run: run.make_tree(getattr(ENGINE.allocate([group], REQUEST), field)))


def derive_verdict() -> Tree:
    """{"verdict": whether `needed` bytes fit, beside an overhead that is `least` and `most`, in a `budget`}."""
    needed, least, most, budget = numbers = make_symbols("needed least most budget")
    overhead: Any = Overhead(0, least, most)  # type: ignore[arg-type]
    known = dict.fromkeys(map(str, numbers), 1)
    return follow_all(lambda run: Literal({"verdict": judge(needed, overhead, budget)}), known)  # type: ignore[arg-type]


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
