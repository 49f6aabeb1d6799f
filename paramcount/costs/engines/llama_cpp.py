"""What llama.cpp allocates for the KV cache and the recurrent state.

Source: llama.cpp, commit 0c1e57098, src/llama-context.cpp, llama-kv-cache.cpp, llama-kv-cache-iswa.cpp and
llama-memory-recurrent.cpp. A batch is its -np, and a context the share of -c that each sequence has.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from paramcount.costs.caches import CacheGroup, split_heads
from paramcount.costs.dtypes import KVDtype
from paramcount.costs.engines.engine import F32, Allocation, CacheRequest, Engine, join_command

if TYPE_CHECKING:
    from paramcount.costs.fit import Deployment


class LlamaCppOptions(NamedTuple):
    """Options of the engine."""

    n_ubatch: int = 512
    kv_unified: bool = False  # one cache for all sequences
    swa_full: bool = False  # sliding windows keep all tokens
    padding: int = 256  # cells; 32 in versions before August 2025 without flash attention
    # Versions of April 2025 to January 2026 store the latent as values, too; files converted before that, and -mla 0 of
    # ik_llama.cpp, have keys and values for each head.
    mla: str = "latent"
    n_rs_seq: int = 0  # earlier states that are kept to go back to


class LlamaCpp(Engine):
    """Cells in multiples of 256 for each sequence; sliding windows also hold a micro-batch; states are in FP32."""

    name = "llama.cpp"
    options = MappingProxyType(LlamaCppOptions()._asdict())
    choices = MappingProxyType({"mla": ("latent", "latent-and-values", "expanded")})

    def allocate(self, groups: Sequence[CacheGroup], request: CacheRequest) -> Allocation:
        """Models all of whose layers have a window, such as Mistral 7B v0.1 and Phi-3, keep all tokens.

        llama.cpp knows windows only of architectures that mix layers with and without one (models/*.cpp, swa_type).
        """
        options = LlamaCppOptions(**request.options)
        if all(group.longest is not None for group in groups if group.stream == "tokens"):
            options = options._replace(swa_full=True)
        kv_bytes = sum(
            group.layers * count_cells(group, request, options) * count_cell_bytes(group, request, options.mla)
            for group in groups
            if not group.is_state
        )
        state_bytes = request.batch * (1 + options.n_rs_seq) * self.count_state_bytes(groups, request)
        return Allocation(kv_bytes, state_bytes, describe(groups, options))

    def choose_state_dtype(self, state: CacheGroup, request: CacheRequest) -> KVDtype:
        return F32

    def write_command(self, deployment: Deployment, name: str) -> str:
        """`llama-server`, whose -c is the context of all sequences together. Several GPUs divide rows or layers.

        Source: common/arg.cpp.
        """
        request, options = deployment.request, LlamaCppOptions(**deployment.request.options)
        keys, values = request.kv_dtype.keys.name, request.kv_dtype.values.name
        flags = {
            "-m": name,
            "-c": request.context * request.batch,
            "-np": request.batch,
            "-ngl": 999,
            "-ub": request.options.get("n_ubatch"),
            "-ctk": keys if keys != "f16" else None,
            "-ctv": values if values != "f16" else None,
            "--kv-unified": options.kv_unified,
            "--swa-full": options.swa_full,
            "--split-mode": "row" if deployment.parallel.tp > 1 else None,
        }
        return join_command("llama-server", flags)


def count_cells(group: CacheGroup, request: CacheRequest, options: LlamaCppOptions) -> int:
    """The cells of one layer, for all sequences together."""
    padding, sequences = options.padding, request.batch
    streams, shared = (1, sequences) if options.kv_unified else (sequences, 1)
    tokens = request.context if group.stream == "tokens" else request.source or 0
    cells = round_up(-(-tokens * shared // group.block), padding)
    if group.longest is not None and not options.swa_full:
        cells = round_up(min(cells, (group.longest + 1) * shared + options.n_ubatch), padding)
    return cells * streams


def count_cell_bytes(group: CacheGroup, request: CacheRequest, mla: str) -> int:
    """Bytes of one cell of a layer."""
    dtype = request.kv_dtype
    if not group.expanded or mla == "latent":
        return group.count_bytes(dtype, request.tp)
    if mla == "latent-and-values":
        return group.count_bytes(dtype, request.tp) + dtype.values.count_bytes(prod(group.shapes[0]))
    keys, values = (prod(split_heads(shape, request.tp, False)) for shape in group.expanded)
    return dtype.keys.count_bytes(keys) + dtype.values.count_bytes(values)


def describe(groups: Sequence[CacheGroup], options: LlamaCppOptions) -> tuple[str, ...]:
    each = "" if options.kv_unified else " per sequence"
    notes = [f"llama.cpp allocates multiples of {options.padding:,} cells{each}"]
    if any(group.longest is not None for group in groups) and not options.swa_full:
        notes.append(f"sliding windows hold {options.n_ubatch:,} more cells (n_ubatch)")
    if any(group.expanded for group in groups) and options.mla != "latent":
        what = "keys and values of every head" if options.mla == "expanded" else "the latent as values, too"
        notes.append(f"MLA layers cache {what}")
    return tuple(notes)


def round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


LLAMA_CPP = LlamaCpp()
