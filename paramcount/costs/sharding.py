"""The share of a model's weights and cache that one of several GPUs holds.

Tensor parallelism divides heads, MLP columns, mixers and the vocabulary; norms, routers, biases behind a sum over all
GPUs and MLA's down-projections are on every GPU, and KV heads are repeated if there are fewer of them than GPUs. Expert
parallelism divides the experts whole. Pipeline parallelism divides the layers: the token embedding is on the first
stage, the LM head on the last.

Sources: arXiv:1909.08053, section 3 (tensor parallelism); vLLM 0.33.0, distributed/utils.py, get_pp_indices (stages)
and config/model.py, get_num_kv_heads.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from paramcount.costs.caches import CacheGroup, LayerCaches
from paramcount.counting.components import TOWERS
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError, join_words
from paramcount.flow import TensorRow
from paramcount.sizes import Sizes, inner_configs
from paramcount.sizes.layer_types import count_layers

T = TypeVar("T")
REPLICATED = ("norm", "router", "position", "other_embedding", "other", "vision", "audio", "projector")
DIVISIBLE = {
    "n_heads": ("n_decoder_heads", "n_heads"),
    "n_kv_heads": ("n_kv_heads",),
    "n_experts": ("n_routed_experts",),
}
MOST_LAYERS = 10**6
REPLICATED_DETAILS = ("qkv.q_down", "qkv.kv_down")  # MLA's down-projections


class Parallelism(NamedTuple):
    """How a model is divided among GPUs."""

    tp: int = 1  # tensor parallel: GPUs that share every matrix
    pp: int = 1  # pipeline stages
    ep: int = 1  # GPUs that share the experts; 1 if tensor parallelism divides each of them

    @property
    def devices(self) -> int:
        return max(self.tp, self.ep) * self.pp

    def describe(self) -> str:
        """Such as "TP=8, PP=2"."""
        names = [f"{name.upper()}={n}" for name, n in self._asdict().items() if n > 1]
        return ", ".join(names)


class ShardShape(NamedTuple):
    """The sizes of a model that must divide."""

    n_layers: int
    n_heads: int
    n_kv_heads: int  # 0 for MLA, whose latent is not divided
    n_experts: int
    tied: bool = False  # whether the LM head is the token embedding; the last pipeline stage then has a copy


def check_parallelism(shape: ShardShape, parallel: Parallelism) -> None:
    """Raises: ParamcountError if the heads, layers or experts cannot be divided like this."""
    if shape.n_heads and shape.n_heads % parallel.tp:
        found = f"= {parallel.tp} does not divide {shape.n_heads} heads"
        raise ParamcountError(
            found, where="tp", choices=[n for n in range(1, shape.n_heads + 1) if not shape.n_heads % n]
        )
    if parallel.pp > max(shape.n_layers, 1):
        raise ParamcountError(f"= {parallel.pp}, but there are {shape.n_layers} layers", where="pp")
    if parallel.ep > 1 and not shape.n_experts:
        raise ParamcountError(f"= {parallel.ep}, but the model has no experts", where="ep", expected="1")
    if parallel.ep > max(shape.n_experts, 1):
        raise ParamcountError(f"= {parallel.ep}, but there are {shape.n_experts} experts", where="ep")


def find_shape(sizes: Sizes) -> ShardShape:
    """The sizes of a model that must divide."""
    _, language = find_decoder(sizes)
    numbers = {what: getattr(language, name) if name else 0 for what, name in find_size_names(language).items()}
    is_tied = getattr(language, "tie_word_embeddings", False) is True
    return ShardShape(n_layers=count_layers(language), **numbers, tied=is_tied)


def find_decoder(sizes: Sizes) -> tuple[str, Sizes]:
    """(path, sizes) of the decoder's layers: the model's own, or those of the inner config with the most layers."""
    inner = {name: getattr(sizes, name) for name in inner_configs(type(sizes))}
    found = {"": sizes} | {name: part for name, part in inner.items() if isinstance(part, Sizes) and name not in TOWERS}
    if named := next((name for name in ("language", "decoder") if name in found), None):
        return named, found[named]
    return max(found.items(), key=lambda item: (count_layers(item[1]), not item[0]))


def find_size_names(language: Sizes) -> dict[str, str | None]:
    """The names of the sizes that must divide; None for those that a model does not have."""
    return {
        what: next((name for name in names if type(getattr(language, name, None)) is int), None)
        for what, names in DIVISIBLE.items()
    }


def list_uneven(shape: ShardShape, parallel: Parallelism) -> list[str]:
    """What does not divide evenly: repeated KV heads, stages with different numbers of layers, spare experts.

    >>> list_uneven(ShardShape(n_layers=61, n_heads=64, n_kv_heads=8, n_experts=0), Parallelism(tp=16, pp=4))
    ['8 KV heads on 16 GPUs: each is on 2 of them', '61 layers in 4 stages: 15, 15, 16 and 15']
    """
    notes = []
    if 0 < shape.n_kv_heads < parallel.tp:
        copies = parallel.tp // shape.n_kv_heads
        notes.append(f"{shape.n_kv_heads} KV heads on {parallel.tp} GPUs: each is on {copies} of them")
    if parallel.pp > 1 and shape.n_layers % parallel.pp:
        sizes = join_words([len(stage) for stage in split_layers(shape.n_layers, parallel.pp)], "and")
        notes.append(f"{shape.n_layers} layers in {parallel.pp} stages: {sizes}")
    if parallel.ep > 1 and shape.n_experts % parallel.ep:
        most = -(-shape.n_experts // parallel.ep)
        notes.append(f"{shape.n_experts} experts on {parallel.ep} GPUs: up to {most} on each")
    return notes


def split_layers(n_layers: int, stages: int) -> tuple[range, ...]:
    """The layers of each pipeline stage; what does not divide goes to the stages before the last one.

    >>> split_layers(61, 4)
    (range(0, 15), range(15, 30), range(30, 46), range(46, 61))
    """
    sizes = [n_layers // stages] * stages
    for i in range(2, n_layers % stages + 2):
        sizes[-i] += 1
    starts = [sum(sizes[:i]) for i in range(stages)]
    return tuple(range(start, start + n) for start, n in zip(starts, sizes))


def split_stacks(n_layers: int, stages: int) -> tuple[range, ...]:
    """The same for every stack of layers, of which some have more than the decoder (BLT's global transformer): the rest
    is on the last stage."""
    *others, last = split_layers(n_layers, stages)
    return *others, range(last.start, MOST_LAYERS)


class StoredRows(tuple[StoredTensor, ...]):
    """The tensors of a model, with what was computed from them, such as shares."""

    shares: dict[Hashable, Any]

    def __new__(cls, rows: Iterable[StoredTensor]) -> StoredRows:
        made = super().__new__(cls, rows)
        made.shares = {}
        return made


def compute_once(rows: Sequence[StoredTensor], key: Hashable, compute: Callable[[], T]) -> T:
    """Such as shares of some rows: a search for contexts, batches and devices needs the same ones over and over."""
    if not isinstance(rows, StoredRows):
        return compute()
    if key not in rows.shares:
        rows.shares[key] = compute()
    found: T = rows.shares[key]
    return found


def share_weights(rows: Iterable[StoredTensor], shape: ShardShape, parallel: Parallelism) -> tuple[int, ...]:
    """Bytes of the weights on one GPU of each pipeline stage."""
    stages = split_stacks(shape.n_layers, parallel.pp)
    sums = [0] * parallel.pp
    for row in rows:
        size = divide(row, shape, parallel)
        layer = row.tensor.layer
        if layer is None or row.tensor.part in ("encoder", "vision", "audio"):
            for stage in find_stages(row, shape, parallel.pp):
                sums[stage] += size
            continue
        n_layers = sum(length for _, length in layer.runs)
        for i, layers in enumerate(stages):
            sums[i] += -(-size * layer.count_inside(layers) // n_layers)
    return tuple(sums)


def find_stages(row: StoredTensor, shape: ShardShape, pp: int) -> set[int]:
    if shape.tied and row.tensor.component == "embedding":
        return {0, pp - 1}
    if row.tensor.component.startswith("lm_head"):
        return {pp - 1}
    if row.tensor.component.startswith("norm"):
        return {pp - 1}  # the norm before the LM head
    return {0}


def divide(row: StoredTensor, shape: ShardShape, parallel: Parallelism) -> int:
    """Bytes of a tensor's copies on one GPU of its stage."""
    component, tp = row.tensor.component, parallel.tp
    if component.partition(".")[0] == "experts" and parallel.ep > 1:
        per_device = -(-shape.n_experts // parallel.ep)
        return -(-row.bytes * per_device // shape.n_experts)
    if tp == 1 or is_replicated(component, row.tensor.part) or is_row_parallel_bias(row.tensor):
        return row.bytes
    whole = sum(n for _, n in row.tensor.shares)
    return sum(-(-row.bytes * n // (whole * count_divisions(name, shape, tp))) for name, n in row.tensor.shares)


def is_row_parallel_bias(tensor: TensorRow) -> bool:
    """Whether it is added to what all GPUs sum: each of them has the whole bias, as in Megatron-LM."""
    return len(tensor.matrix) == 1 and (
        tensor.component == "output_projection" or tensor.component.endswith((".down", ".output_projection"))
    )


def is_replicated(component: str, part: str) -> bool:
    """Whether each of several tensor-parallel GPUs has whole matrices of a component; a fused one may have others."""
    return part in REPLICATED or component.partition(".")[0] in REPLICATED


def count_divisions(component: str, shape: ShardShape, tp: int) -> int:
    """In how many parts `tp` GPUs divide a matrix."""
    if component in REPLICATED_DETAILS:
        return 1
    return min(tp, shape.n_kv_heads or tp) if component in ("qkv.k", "qkv.v") else tp


def select_layers(caches: Iterable[LayerCaches], layers: range) -> Iterator[CacheGroup]:
    """The caches of some layers, in their order."""
    found = []
    for repeat, groups in caches:
        if repeat and (n := repeat.count_inside(layers)):
            first = min(max(start, layers.start) for start, length in repeat.runs if start + length > layers.start)
            found.append((first, n, groups))
    for _, n, groups in sorted(found, key=itemgetter(0)):
        yield from (group._replace(layers=n * group.layers) for group in groups)


def find_runs(layers: Sequence[int]) -> Iterator[range]:
    """The ranges of consecutive layers.

    >>> list(find_runs((0, 1, 4)))
    [range(0, 2), range(4, 5)]
    """
    for _, run in groupby(enumerate(layers), lambda pair: pair[1] - pair[0]):
        indices = [i for _, i in run]
        yield range(indices[0], indices[-1] + 1)
