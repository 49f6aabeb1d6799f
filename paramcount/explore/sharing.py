"""What one of several GPUs that share every matrix holds, as expressions: costs/sharding.py and costs/caches.py run on
symbols.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

from paramcount.costs.caches import CacheGroup, count_growth
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.sharding import Parallelism, ShardShape, check_parallelism, divide, find_decoder, find_size_names
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.explore.conditions import apply, follow_all
from paramcount.explore.flow import CONTEXT
from paramcount.explore.pools import Pool
from paramcount.flow import Size, TensorRow
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import make_symbols, make_tree
from paramcount.symbolic.trees import Tree, TreeOperation, to_json

BF16 = parse_kv_dtype("bf16")
(GPUS,) = make_symbols("gpus")
ON_ALL: Any = Parallelism(tp=GPUS)  # type: ignore[arg-type]


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


def share_tensor(row: TensorRow, n_bytes: Size, shape: ShardShape, functions: Pool) -> TreeOperation:
    """The bytes of a tensor, of which all copies have `n_bytes`, on one of the GPUs.

    It applies a function of the bytes, the GPUs, the KV heads and the sizes of the parts of a fused matrix.
    """
    sizes = (n_bytes, GPUS, shape.n_kv_heads, *(size for _, size in row.splits))
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
    return follow_all(lambda run: run.make_tree(count_growth(groups, BF16)))


def derive_cache(group: CacheGroup, gpus: Any = 1) -> Tree:
    """The bytes of a cache after a text of `context` tokens, or of a state, on one of the GPUs."""
    context: Any = make_symbols(CONTEXT)[0]
    return follow_all(
        lambda run: run.make_tree(group.layers * group.count_tokens(context, context) * group.count_bytes(BF16, gpus))
    )
