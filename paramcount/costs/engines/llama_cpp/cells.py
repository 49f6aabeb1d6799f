"""The options of llama.cpp, and the cells of its KV cache.

Source: llama.cpp, commit 0c1e57098: src/llama-kv-cache.cpp, llama-kv-cache-iswa.cpp and common/arg.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from paramcount.costs.caches import CacheGroup, split_heads
from paramcount.costs.engines.records import CacheRequest

# What changed in the compute buffers and in the order of offloading: before 17 December 2025 the LM head was the last
# layer to go to a GPU (https://github.com/ggml-org/llama.cpp/pull/18148); graphs have an input for embeddings beside
# that for tokens since January 2026 (pull/18550), and masks in F16 and logits of the last tokens alone since May 2026
# (pull/23764, pull/23861).
VERSIONS = ("2025-11", "2026-01", "2026-05", "current")


class LlamaCppOptions(NamedTuple):
    """Options of the engine, as llama-server calls them."""

    ctx_size: int = 0  # of all sequences together; 0: the context of each times their number
    parallel: int = 0  # sequences; 0: the batch
    batch_size: int = 2048
    ubatch_size: int = 512
    n_gpu_layers: int = -1  # layers on GPUs, the LM head included; -1: all
    n_cpu_moe: int = 0  # first layers whose experts stay on the CPU
    tensor_split: str = ""  # such as "3/1": shares of the GPUs; "": equal ones
    flash_attn: str = "auto"
    kv_unified: bool = False  # one cache for all sequences
    no_kv_offload: bool = False  # the cache stays on the CPU
    swa_full: bool = False  # sliding windows keep all tokens
    embeddings: bool = False  # whether requests get the last hidden states
    n_outputs_max: int = 0  # tokens of a micro-batch whose logits are computed; 0: one per sequence, as llama-server
    n_rs_seq: int = 0  # earlier states that are kept to go back to
    # What earlier versions did otherwise:
    padding: int = 256  # cells; 32 before August 2025 without flash attention
    # From April 2025 to January 2026 the latent was stored as values, too; files converted before that, and -mla 0 of
    # ik_llama.cpp, have keys and values for each head.
    mla: str = "latent"
    version: str = "current"  # one of VERSIONS


def count_cells(group: CacheGroup, request: CacheRequest, options: LlamaCppOptions) -> int:
    """The cells of one layer, for all sequences together."""
    padding, sequences = options.padding, request.batch
    streams, shared = (1, sequences) if options.kv_unified else (sequences, 1)
    tokens = request.context if group.stream == "tokens" else request.source or 0
    cells = round_up(-(-tokens * shared // group.block), padding)
    if group.longest is not None and not options.swa_full:
        cells = round_up(min(cells, (group.longest + 1) * shared + options.ubatch_size), padding)
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


def describe(groups: Sequence[CacheGroup], request: CacheRequest, options: LlamaCppOptions) -> tuple[str, ...]:
    each = "" if options.kv_unified else " per sequence"
    total, n = request.context * request.batch, request.batch
    shared = "shared by" if options.kv_unified else "divided among"
    notes = [f"-c is {total:,}: {shared} {n:,} sequences (-np {n})"] if n > 1 else []
    notes.append(f"llama.cpp allocates multiples of {options.padding:,} cells{each}")
    if any(group.longest is not None for group in groups) and not options.swa_full:
        notes.append(f"sliding windows hold {options.ubatch_size:,} more cells (ubatch_size)")
    if any(group.expanded for group in groups) and options.mla != "latent":
        what = "keys and values of every head" if options.mla == "expanded" else "the latent as values, too"
        notes.append(f"MLA layers cache {what}")
    return tuple(notes)


def round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple
