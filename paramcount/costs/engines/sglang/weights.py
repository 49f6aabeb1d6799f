"""The weights that SGLang keeps on each device: by tensor parallelism, those of attention by its data-parallel rank.

Source: SGLang 0.5.23, srt/layers/vocab_parallel_embedding.py (padding to 64), srt/models/deepseek_v2.py (embedding, LM
head, shared experts, the copies of kv_b_proj) and qwen2_moe.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paramcount.costs.engines.sglang.pools import SglangOptions
from paramcount.costs.sharding import Parallelism, ShardShape, share_weights
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.formats.packing import Packing
from paramcount.zoo import Model, count_model

VOCABULARY = ("embedding", "lm_head")
PADDING = 64  # rows of the vocabulary
ATTENTION = ("embedding", "qkv", "output_projection", "mixer")
ENCODERS = ("vision", "audio")
VALUE = 2  # bytes of a value in BF16
# Versions that keep experts in FP8 twice on AMD GPUs if they are divided by expert (--enable-ep-moe): EPMoE refers to
# the matrices as loaded (w13_weight_fp8), AITER's kernels take shuffled copies (ep_moe/layer.py of 0.4.8.post1, 0.4.9).
KEEPING_EXPERTS_TWICE = ((4, 8), (4, 9))
LATENT = "qkv.kv_up"  # of MLA: kept as it is for prompts, and as two matrices for decoding


def load_rows(rows: Iterable[StoredTensor], options: SglangOptions, parallel: Parallelism) -> list[StoredTensor]:
    """The tensors with a padded vocabulary and, for MLA, the second form of the up-projection; with the kernels of AWQ,
    which have none for experts, these in BF16."""
    loaded = []
    keeps_twice = parallel.ep > 1 and options.attention_backend == "aiter" and options.release in KEEPING_EXPERTS_TWICE
    for row in rows:
        component, shape = row.tensor.main_component, row.tensor.shape
        if component == "experts" and options.quantization == "awq":
            row = row._replace(bytes=VALUE * row.values)
        if component == "experts" and keeps_twice and row.packing.layout.startswith("fp8"):
            row = row._replace(bytes=2 * row.bytes)
        if component in VOCABULARY and len(shape) == 2 and shape[0] % PADDING:
            row = row._replace(bytes=row.bytes * (-(-shape[0] // PADDING) * PADDING) // shape[0])
        loaded.append(row)
        if row.tensor.component == LATENT and len(shape) == 2:
            loaded.append(row._replace(bytes=VALUE * row.values))
    return loaded


def share_rows(
    rows: Sequence[StoredTensor], shape: ShardShape, parallel: Parallelism, options: SglangOptions
) -> tuple[int, ...]:
    """Bytes on one device of each pipeline stage."""
    by_width: dict[int, list[StoredTensor]] = {}
    for row in rows:
        if row.tensor.part in ENCODERS and row.tensor.layer is not None and not options.mm_enable_dp_encoder:
            row = divide_encoder(row, parallel.tp)
        by_width.setdefault(find_width(row, parallel, options), []).append(row)
    sums = [0] * parallel.pp
    for width, group in by_width.items():
        for i, n in enumerate(share_weights(group, shape, parallel._replace(tp=width))):
            sums[i] += n
    return tuple(sums)


def divide_encoder(row: StoredTensor, tp: int) -> StoredTensor:
    """The share of one device: matrices of an encoder's layers are divided, vectors are not."""
    return row if len(row.tensor.shape) < 2 else row._replace(bytes=-(-row.bytes // tp))


def store_draft(model: Model) -> list[StoredTensor]:
    """The layer that drafts tokens (MTP) in BF16; it shares the embedding and the LM head."""
    rows = [tensor for tensor in count_model(model).tensors if tensor.kind == "mtp"]
    plain = Packing("plain", "BF16")
    return [StoredTensor(tensor, tensor.copies, plain, VALUE * tensor.elements) for tensor in rows]


def find_width(row: StoredTensor, parallel: Parallelism, options: SglangOptions) -> int:
    """The number of devices that share a tensor, if it is one that is divided."""
    component = row.tensor.main_component
    attention = max(1, parallel.tp // options.attention_replicas)
    if component in ATTENTION or (component == "lm_head" and options.enable_dp_lm_head):
        return attention
    if component == "mlp" and options.moe_dense_tp_size:
        return min(parallel.tp, options.moe_dense_tp_size)
    if component == "shared_experts" and options.moe_a2a_backend != "none":
        return 1  # each device computes them for its own tokens
    return parallel.tp
