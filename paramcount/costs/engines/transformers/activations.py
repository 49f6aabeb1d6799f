"""What transformers takes on a device beside weights and cache: a CUDA context and the activations of a prompt.

Each layer's are freed before the next one, so that the largest count: those of attention, of an MLP, or the logits.

Source: transformers 5.24, models/llama/modeling_llama.py (LlamaRMSNorm, eager_attention_forward, LlamaMLP), the logits
of generation/utils.py (_sample) and cache_utils.py (DynamicLayer.update).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from paramcount.costs.caches import CacheGroup
from paramcount.costs.devices import Overhead
from paramcount.costs.sharding import compute_once, find_decoder

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment

GIB = 2**30
# A CUDA context with the kernels that a model loads: what the logged peaks have more than weights, cache and
# activations (tests/data/logged/transformers.csv), with the spread of GPUs and versions.
CONTEXT = (GIB // 2, GIB // 4, 5 * GIB // 4)
VALUE, SINGLE = 2, 4  # bytes in BF16 and in FP32
LOGITS, LOGITS_COPY = VALUE + SINGLE, SINGLE  # where they are computed, and on the first GPU if that is another one


class TransformersOptions(NamedTuple):
    """Arguments of from_pretrained and of generate."""

    attn_implementation: str = "sdpa"
    device_map: str = "none"  # none: every GPU has the same share of all layers
    max_memory: str = ""  # of weights on each GPU, such as 0:10GiB
    max_new_tokens: int = 0  # of the context; the others are the prompt
    prefill_chunk_size: int = 0  # tokens of a prompt that are read at once; 0: all
    logits_to_keep: int = 1  # of a prompt; 0: of all tokens, as before version 4.45


class Widths(NamedTuple):
    """Values per token."""

    hidden: int
    heads: int  # number
    attention: int  # of all heads together
    inner: int  # of an MLP
    per_expert: int
    active: int  # experts per token
    vocabulary: int


def estimate_activations(
    deployment: Deployment, options: TransformersOptions, logits_bytes: int, *, extra: int = 0
) -> Overhead:
    """The context, the activations of the layer that takes most, and `extra` bytes of a layer that the CPU holds.

    `logits_bytes`: of each logit on this device; 0 if there are none.
    """
    device = deployment.device
    if device.overhead_bytes is not None:
        given = device.overhead_bytes + extra
        return Overhead(given, given, given)
    found = max(measure_layer(deployment, options), measure_logits(deployment, options, logits_bytes))
    usual, least, most = CONTEXT
    items = [("CUDA context", usual), ("activations", found)]
    if extra:
        items.append(("the largest layer of the CPU", extra))
    total = found + extra
    return Overhead(usual + total, least + found // 2 + extra, most + 3 * found // 2 + extra, tuple(items))


def count_prompt(deployment: Deployment, options: TransformersOptions) -> tuple[int, int]:
    """(tokens of all prompts that are read at once, tokens that each of them attends to)."""
    request = deployment.request
    prompt = max(1, request.context - options.max_new_tokens)
    return request.batch * (min(prompt, options.prefill_chunk_size or prompt)), prompt


def measure_layer(deployment: Deployment, options: TransformersOptions) -> int:
    """Bytes of a layer's activations: the residual, its norm in FP32, and attention's or the MLP's values."""
    widths, tp = read_widths(deployment), deployment.parallel.tp
    tokens, length = count_prompt(deployment, options)
    hidden, attention = widths.hidden, widths.attention // tp
    norm = hidden * (VALUE + 2 * SINGLE)
    # queries before and after rotation, keys and values, and the result
    attend = 2 * VALUE * hidden + 5 * VALUE * attention
    if options.attn_implementation == "eager":
        # scores and their softmax in FP32, and keys and values once per head
        attend += widths.heads // tp * length * (VALUE + SINGLE) + 2 * VALUE * attention
    inner = max(3 * widths.inner // tp, widths.active * (3 * widths.per_expert // tp + 2 * hidden))
    return tokens * max(norm, attend, VALUE * (2 * hidden + inner)) + measure_growth(deployment)


def measure_logits(deployment: Deployment, options: TransformersOptions, logits_bytes: int) -> int:
    """Bytes of the last hidden states and of the logits."""
    widths = read_widths(deployment)
    tokens, _ = count_prompt(deployment, options)
    kept = deployment.request.batch * options.logits_to_keep or tokens
    return tokens * VALUE * widths.hidden + min(kept, tokens) * logits_bytes * widths.vocabulary


def measure_growth(deployment: Deployment) -> int:
    """Bytes of one layer's keys, which are copied into a larger tensor for each new token."""
    request = deployment.request
    groups = [group for caches in deployment.caches for group in caches.groups if group.stream == "tokens"]
    return max((count_keys(group, request.context) for group in groups), default=0) * request.batch


def count_keys(group: CacheGroup, context: int) -> int:
    return VALUE * prod(group.shapes[0]) * group.count_tokens(context, None)


def read_widths(deployment: Deployment) -> Widths:
    return Widths(*compute_once(deployment.rows, ("widths",), lambda: tuple(find_widths(deployment))))


def find_widths(deployment: Deployment) -> Widths:
    """The sizes of activations, from the shapes of the matrices."""
    hidden = vocabulary = attention = inner = per_expert = 0
    for row in deployment.rows:
        tensor = row.tensor
        if tensor.part in ("vision", "audio", "projector") or len(tensor.shape) < 2:
            continue
        *_, rows, columns = tensor.shape
        component = tensor.main_component
        if component == "embedding":
            vocabulary, hidden = rows, columns
        elif component == "output_projection":
            attention = max(attention, columns if rows == hidden else rows)
        elif component in ("mlp", "shared_experts"):
            inner = max(inner, rows if columns == hidden else columns)
        elif component == "experts" and hidden:
            per_expert = max(per_expert, min(rows, columns))
    language = find_decoder(deployment.model.sizes)[1]
    active = getattr(language, "n_active_experts", 0)
    heads = max(1, deployment.shape.n_heads)
    return Widths(
        hidden, heads, attention or hidden, inner, per_expert, active if type(active) is int else 0, vocabulary
    )
