"""The second derivation: closed forms typed from papers and modelling code, against the counts of every entry of the
zoo.

Nothing here reads a declaration. A form is plain arithmetic on named sizes, so it also runs on symbols, and there the
declaration has to be the same polynomial: equal for all sizes, not only for those of the zoo.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcount
import paramcount.zoo as zoo
from paramcount import formulas
from paramcount.architectures import architecture
from paramcount.counting.count import count_sizes
from paramcount.flow import given, sum_parameters
from paramcount.sizes import Sizes
from paramcount.sizes.rules import validate_sizes
from paramcount.symbolic.polynomials import decide_by
from tests.batches import in_batches
from tests.comparison import load_reference
from tests.structures import ROWS, ZOO
from tests.symbolic import make_symbolic, replace_sizes
from tests.test_remote_models import MODELS

DATA = Path(__file__).parent / "data"

# ---- parts that papers write once


def lm_head_parameters(c: Any) -> Any:
    """An output matrix [vocab_size, d_model]; the token table's own where tied (arXiv:1608.05859)."""
    return 0 if c.tie_word_embeddings else c.vocab_size * c.d_model


def biased_lm_head_parameters(c: Any) -> Any:
    """The LM head of an encoder, which has a bias of its own also if its matrix is tied."""
    return lm_head_parameters(c) + c.vocab_size


def swiglu_parameters(d: Any, width: Any) -> Any:
    """(Swish(xW) ⊗ xV) W2 without biases: three matrices (arXiv:2002.05202, equation 6)."""
    return 3 * d * width


def grouped_attention(c: Any) -> Any:
    """W_q and W_o over all heads, W_k and W_v over the groups (arXiv:1706.03762, section 3.2.2.

    ArXiv:2305.13245, section 2.2).
    """
    return 2 * c.d_model * c.n_heads * c.d_head + 2 * c.d_model * c.n_kv_heads * c.d_head


def qkv_biases(c: Any) -> Any:
    return c.n_heads * c.d_head + 2 * c.n_kv_heads * c.d_head


def attention_biases(c: Any) -> Any:
    """Of q, k, v and the output, by the flag."""
    return qkv_biases(c) + c.d_model if c.attention_bias else 0


def decoder_parameters(c: Any, layers: Any) -> Any:
    """The token table, the layers, an RMS norm behind the last and the LM head."""
    return c.vocab_size * c.d_model + layers + c.d_model + lm_head_parameters(c)


def expert_parameters(c: Any) -> Any:
    """One layer's router without bias and its routed experts (arXiv:2401.04088, section 2.1)."""
    return c.d_model * c.n_routed_experts + c.n_routed_experts * swiglu_parameters(c.d_model, c.d_expert)


def unvisited(c: Any, n_mixtures: Any, biases: Any = 0) -> Any:
    """What a token does not use in so many layers with experts: all but K of n. `biases`: of one expert."""
    expert = swiglu_parameters(c.d_model, c.d_expert) + biases
    return n_mixtures * (c.n_routed_experts - c.n_active_experts) * expert


# ---- one closed form for each architecture


def gpt2(c: Any) -> Any:
    """Radford et al. 2019, section 2.3: GPT-1's block, norms moved to its input and one more after the last.

    GPT-3 is the same (arXiv:2005.14165, 2.1).

    GPT2LMHeadModel: Conv1D with biases in c_attn, c_proj, c_fc, c_proj; with add_cross_attention also in q_attn, c_attn
    (keys and values alone) and c_proj of crossattention, with ln_cross_attn before.
    """
    d, width, f = c.d_model, c.n_heads * c.d_head, c.d_ff
    block = 4 * d * width + 3 * width + d + 2 * d * f + f + d + 4 * d
    if c.cross_attention:
        block = block + d * width + width + 2 * d * width + 2 * width + width * d + d + 2 * d
    return c.vocab_size * d + c.n_positions * d + c.n_layers * block + 2 * d + lm_head_parameters(c)


def openai_gpt(c: Any) -> Any:
    """Radford et al. 2018, section 4.1: 12 blocks, learned positions, norms behind each half.

    OpenAIGPTLMHeadModel: no norm after the last.
    """
    d, width, f = c.d_model, c.n_heads * c.d_head, c.d_ff
    block = 4 * d * width + 3 * width + d + 2 * d * f + f + d + 4 * d
    return c.vocab_size * d + c.n_positions * d + c.n_layers * block + lm_head_parameters(c)


def llama(c: Any) -> Any:
    """arXiv:2302.13971, section 2.2 (RMSNorm before, SwiGLU, RoPE); arXiv:2307.09288, 2.2 (grouped queries).
    LlamaForCausalLM for the flags.
    """
    d, f = c.d_model, c.d_ff
    block = grouped_attention(c) + swiglu_parameters(d, f) + 2 * d + attention_biases(c)
    if c.mlp_bias:
        block = block + 2 * f + d
    return decoder_parameters(c, c.n_layers * block)


def mllama(c: Any) -> Any:
    """arXiv:2407.21783, section 7.1 to 7.3; MllamaForConditionalGeneration. 8 rows of the token table have no row in
    the head.
    """
    d = c.d_model
    layer = grouped_attention(c) + swiglu_parameters(d, c.d_ff) + 2 * d
    gated_cross_attention = layer + 2 * c.d_head + 2  # a norm of q and of k; a gate for each half
    n_cross = len(c.cross_attention_layers)
    layers = (c.n_layers - n_cross) * layer + n_cross * gated_cross_attention
    decoder = decoder_parameters(c, layers) + 8 * d
    eyes = c.vision
    w = eyes.d_model
    ratios, cells = eyes.n_aspect_ratios + 1, eyes.n_patches + 1  # no image is a ratio too; the class token is a cell
    stem = eyes.n_channels * eyes.patch_size * eyes.patch_size * w + w
    positions = cells * w + ratios * eyes.n_tiles * cells * w + 1  # one gate for both tables
    tiles = 2 * (ratios * eyes.n_tiles * w + 1)  # before and behind the local layers
    local = 4 * w * eyes.n_heads * eyes.d_head + 2 * w * eyes.d_ff + eyes.d_ff + w + 4 * w
    tower = stem + positions + tiles + 4 * w + eyes.n_layers * local + eyes.n_global_layers * (local + 2)
    projector = (1 + len(eyes.intermediate_layers)) * w * d + d
    return decoder + tower + projector


def mistral(c: Any) -> Any:
    """arXiv:2310.06825, section 2. A window changes no weight. MistralForCausalLM: no biases."""
    d = c.d_model
    return decoder_parameters(c, c.n_layers * (grouped_attention(c) + swiglu_parameters(d, c.d_ff) + 2 * d))


def mixtral(c: Any) -> Any:
    """arXiv:2401.04088, section 2.1: Mistral with SwiGLU experts behind Softmax(TopK(x · W_g))."""
    return decoder_parameters(c, c.n_layers * (grouped_attention(c) + expert_parameters(c) + 2 * c.d_model))


def mixtral_unvisited(c: Any) -> Any:
    """arXiv:2401.04088, section 2.1: the parameters of K of n experts are used."""
    return unvisited(c, c.n_layers)


def minimax_text_01(c: Any) -> Any:
    """arXiv:2501.08313, section 2: experts, and softmax attention or lightning attention, which has as many KV heads as
    query heads, an output gate and a norm over all heads. The shared MLP of modeling_minimax_text_01.py of
    MiniMaxAI/MiniMax-Text-01 is as wide as an expert; a vector gives its share.
    """
    d, inner, n_softmax = c.d_model, c.n_heads * c.d_head, count_layers(c, "full_attention")
    lightning = 3 * d * inner + d * inner + inner + inner * d
    shared = swiglu_parameters(d, c.d_expert) + d if c.shared_mlp else 0
    mixers = n_softmax * grouped_attention(c) + (c.n_layers - n_softmax) * lightning
    return decoder_parameters(c, mixers + c.n_layers * (expert_parameters(c) + shared + 2 * d))


def qwen(c: Any) -> Any:
    """arXiv:2309.16609, section 2.3: untied, RMSNorm, SwiGLU, biases on q, k, v alone. QWenLMHeadModel: d_ff is half of
    its intermediate_size.
    """
    d, width = c.d_model, c.n_heads * c.d_head
    block = d * 3 * width + 3 * width + width * d + swiglu_parameters(d, c.d_ff) + 2 * d
    return decoder_parameters(c, c.n_layers * block) + (qwen_vision(c.vision) if c.vision else 0)


def qwen_vision(c: Any) -> Any:
    """arXiv:2308.12966, section 2.1: a ViT whose matrices all have biases, 256 places of patches, and one layer of
    cross-attention whose queries and their places are parameters. VisionTransformer of visual.py.
    """
    d, out = c.d_model, c.d_out
    block = 4 * d * d + 4 * d + 2 * d * c.d_ff + c.d_ff + d + 4 * d
    encoder = 3 * c.patch_size * c.patch_size * d + 256 * d + 2 * d + c.n_layers * block
    attention = 4 * out * out + 4 * out + (d * out if c.widens else 0)
    return encoder + 2 * c.n_queries * out + attention + 3 * 2 * out + out * out


def qwen2(c: Any) -> Any:
    """arXiv:2407.10671, section 2.2.1: grouped queries, biases on q, k, v. Qwen2ForCausalLM."""
    d = c.d_model
    block = grouped_attention(c) + qkv_biases(c) + swiglu_parameters(d, c.d_ff) + 2 * d
    return decoder_parameters(c, c.n_layers * block)


def qwen2_moe(c: Any) -> Any:
    """arXiv:2407.10671, section 2.2.2; Qwen2MoeSparseMoeBlock: one shared expert behind a gate of one row."""
    d = c.d_model
    n_dense = len(c.dense_layers)
    attention = grouped_attention(c) + (qkv_biases(c) if c.qkv_bias else 0) + 2 * d
    mixture = expert_parameters(c) + swiglu_parameters(d, c.d_shared_expert) + d
    feed_forward = n_dense * swiglu_parameters(d, c.d_ff) + (c.n_layers - n_dense) * mixture
    return decoder_parameters(c, c.n_layers * attention + feed_forward)


def qwen2_moe_unvisited(c: Any) -> Any:
    """Qwen2MoeTopKRouter, Qwen3MoeTopKRouter and Qwen3NextTopKRouter: num_experts_per_tok of num_experts, in layers
    that are no MLP.
    """
    return unvisited(c, c.n_layers - len(c.dense_layers))


def qwen3(c: Any) -> Any:
    """arXiv:2505.09388, section 2: QKV bias removed, QK-norm brought in. Qwen3Attention: over d_head, one for all
    heads.
    """
    d = c.d_model
    block = grouped_attention(c) + 2 * c.d_head + swiglu_parameters(d, c.d_ff) + 2 * d + attention_biases(c)
    return decoder_parameters(c, c.n_layers * block)


def qwen3_moe(c: Any) -> Any:
    """arXiv:2505.09388, section 2: Qwen3's attention, fine-grained experts and no shared one. Qwen3MoeForCausalLM."""
    d = c.d_model
    n_dense = len(c.dense_layers)
    attention = grouped_attention(c) + 2 * c.d_head + attention_biases(c) + 2 * d
    feed_forward = n_dense * swiglu_parameters(d, c.d_ff) + (c.n_layers - n_dense) * expert_parameters(c)
    return decoder_parameters(c, c.n_layers * attention + feed_forward)


def shared_and_routed(c: Any) -> Any:
    """One layer's router, routed experts and shared ones, which are stored as one wide expert (arXiv:2401.06066,
    section 3).
    """
    return expert_parameters(c) + swiglu_parameters(c.d_model, c.n_shared_experts * c.d_expert)


def first_dense(c: Any) -> Any:
    """The MLPs of the first layers, and shared and routed experts in the others (arXiv:2401.06066, section 5.1.2)."""
    n_mixtures = c.n_layers - c.n_dense_layers
    return c.n_dense_layers * swiglu_parameters(c.d_model, c.d_ff) + n_mixtures * shared_and_routed(c)


def deepseek(c: Any) -> Any:
    """arXiv:2401.06066, section 3.2 and 5.1.2: the first layer is dense, the rest hold shared and routed experts.
    DeepseekForCausalLM.
    """
    attention = grouped_attention(c) + attention_biases(c) + 2 * c.d_model
    return decoder_parameters(c, c.n_layers * attention + first_dense(c))


def deepseek_unvisited(c: Any) -> Any:
    """arXiv:2401.06066, equation 9: K of the routed experts, and all shared ones."""
    return unvisited(c, c.n_layers - c.n_dense_layers)


def latent_attention(c: Any) -> Any:
    """arXiv:2405.04434, section 2.1.2, 2.1.3 and equations 37 to 47; norms on both latents. DeepseekV2Attention for the
    flag and absent q latents.
    """
    d, h, qk = c.d_model, c.n_heads, c.d_nope + c.d_rope
    queries = d * h * qk if c.d_q_lora is None else d * c.d_q_lora + c.d_q_lora + c.d_q_lora * h * qk
    keys_and_values = d * (c.d_kv_lora + c.d_rope) + c.d_kv_lora + c.d_kv_lora * h * (c.d_nope + c.d_v)
    matrices = queries + keys_and_values + h * c.d_v * d
    if not c.attention_bias:
        return matrices
    return matrices + (0 if c.d_q_lora is None else c.d_q_lora) + c.d_kv_lora + c.d_rope + d


def deepseek_v2(c: Any) -> Any:
    """arXiv:2405.04434, section 2. DeepseekV2MLP takes `mlp_bias` into dense layers and shared experts, not into routed
    ones.
    """
    d, n_mixtures = c.d_model, c.n_layers - c.n_dense_layers
    biases = c.n_dense_layers * (2 * c.d_ff + d) + n_mixtures * (2 * c.n_shared_experts * c.d_expert + d)
    feed_forward = first_dense(c) + (biases if c.mlp_bias else 0)
    return decoder_parameters(c, c.n_layers * (latent_attention(c) + 2 * d) + feed_forward)


def deepseek_v3(c: Any) -> Any:
    """arXiv:2412.19437, section 2.1: V2's layers, the router's correction bias a buffer. DeepseekV3ForCausalLM has no
    MTP layers.
    """
    return decoder_parameters(c, c.n_layers * (latent_attention(c) + 2 * c.d_model) + first_dense(c))


def deepseek_v3_mtp(c: Any) -> Any:
    """arXiv:2412.19437, section 2.2, equations 21 to 23: M_k [d, 2d] on two norms, a layer, a norm before the head."""
    d = c.d_model
    return c.n_mtp_layers * (2 * d * d + 2 * d + latent_attention(c) + 2 * d + shared_and_routed(c) + d)


def gpt_oss(c: Any) -> Any:
    """arXiv:2508.10925, section 2.1 and 2.2. GptOssExperts and GptOssTopKRouter have biases; GptOssAttention a sink for
    each head, biases by the flag.
    """
    d, n, f = c.d_model, c.n_routed_experts, c.d_expert
    attention = grouped_attention(c) + attention_biases(c) + c.n_heads
    mixture = d * n + n + n * (swiglu_parameters(d, f) + 2 * f + d)
    return decoder_parameters(c, c.n_layers * (attention + mixture + 2 * d))


def gpt_oss_unvisited(c: Any) -> Any:
    """GptOssTopKRouter: num_experts_per_tok of num_local_experts, with their biases."""
    return unvisited(c, c.n_layers, biases=2 * c.d_expert + c.d_model)


def glm4_moe_attention(c: Any) -> Any:
    """arXiv:2508.06471, section 2.1: grouped queries, QK-norm in the larger model. Glm4MoeAttention: no bias on the
    output; norms over d_head.
    """
    return grouped_attention(c) + (qkv_biases(c) if c.attention_bias else 0) + (2 * c.d_head if c.qk_norm else 0)


def glm4_moe(c: Any) -> Any:
    """arXiv:2508.06471, section 2.1: DeepSeek-V3's shared and routed experts behind that attention. Glm4MoeForCausalLM
    has no MTP layers.
    """
    return decoder_parameters(c, c.n_layers * (glm4_moe_attention(c) + 2 * c.d_model) + first_dense(c))


def glm4_moe_mtp(c: Any) -> Any:
    """arXiv:2508.06471, section 2.1: a layer with experts as the MTP layer, joined as in DeepSeek-V3."""
    d = c.d_model
    return c.n_mtp_layers * (2 * d * d + 2 * d + glm4_moe_attention(c) + 2 * d + shared_and_routed(c) + d)


def count_layers(c: Any, *words: str) -> int:
    """How many layers are of one of these kinds."""
    return sum(word in words for word in c.layer_types)


def selective_scan(c: Any) -> Any:
    """arXiv:2312.00752, section 3.4 and Figure 3: x and z out of one matrix, a convolution for each channel, step, B
    and C out of x, the step through its rank, A and D. JambaMambaMixer: a bias on the step and by flags; norms on
    step, B and C (arXiv:2403.19887, section 6.4).
    """
    d, inner, rank, n = c.d_model, c.d_inner, c.dt_rank, c.d_state
    convolution = inner * c.d_conv + (inner if c.conv_bias else 0)
    inside = inner * (rank + 2 * n) + rank * inner + inner + inner * n + inner + (rank + 2 * n)
    return d * 2 * inner + convolution + inside + inner * d + (2 * inner + d if c.mixer_bias else 0)


def jamba(c: Any) -> Any:
    """arXiv:2403.19887, section 3.1: attention without positions or Mamba, then an MLP or experts, RMSNorm before each.
    JambaForCausalLM.
    """
    d, n_attention, n_dense = c.d_model, count_layers(c, "attention"), len(c.dense_layers)
    mixers = n_attention * grouped_attention(c) + (c.n_layers - n_attention) * selective_scan(c)
    feed_forward = n_dense * swiglu_parameters(d, c.d_ff) + (c.n_layers - n_dense) * expert_parameters(c)
    return decoder_parameters(c, mixers + feed_forward + c.n_layers * 2 * d)


def jamba_unvisited(c: Any) -> Any:
    """arXiv:2403.19887, section 2: K of n experts for a token, in layers that are no MLP."""
    return unvisited(c, c.n_layers - len(c.dense_layers))


def gated_delta_rule(c: Any) -> Any:
    """arXiv:2412.06464, section 3.4: q, k, v through a convolution, a gate as wide as v, two numbers a head (decay and
    writing strength), a norm for each head. Qwen3NextGatedDeltaNet: A_log and dt_bias for the decay, the convolution
    without bias.
    """
    d, k, v = c.d_model, c.n_linear_k_heads * c.d_linear_k, c.n_linear_v_heads * c.d_linear_v
    return (
        d * (2 * k + 2 * v)
        + d * 2 * c.n_linear_v_heads
        + (2 * k + v) * c.d_conv
        + 2 * c.n_linear_v_heads
        + c.d_linear_v
        + v * d
    )


def gated_attention(c: Any) -> Any:
    """arXiv:2505.06708, section 2.2: grouped queries with a gate for each value of each head, out of x.
    Qwen3NextAttention: norms over d_head.
    """
    gate = c.d_model * c.n_heads * c.d_head
    biases = qkv_biases(c) + c.n_heads * c.d_head + c.d_model if c.attention_bias else 0
    return grouped_attention(c) + gate + 2 * c.d_head + biases


def qwen3_next(c: Any) -> Any:
    """Model card of Qwen3-Next-80B-A3B: 12 · (3 · (Gated DeltaNet → MoE) → 1 · (Gated Attention → MoE)).

    Qwen3NextForCausalLM: experts as Qwen 2's.
    """
    d, n_dense = c.d_model, len(c.dense_layers)
    n_attention = count_layers(c, "full_attention", "attention")
    mixers = n_attention * gated_attention(c) + (c.n_layers - n_attention) * gated_delta_rule(c)
    mixture = expert_parameters(c) + swiglu_parameters(d, c.d_shared_expert) + d
    feed_forward = n_dense * swiglu_parameters(d, c.d_ff) + (c.n_layers - n_dense) * mixture
    return decoder_parameters(c, mixers + feed_forward + c.n_layers * 2 * d)


def phi3(c: Any) -> Any:
    """arXiv:2404.14219, section 2: Llama 2's block. Phi3ForCausalLM: no biases; q, k, v in one matrix, gate and up in
    another.
    """
    d = c.d_model
    return decoder_parameters(c, c.n_layers * (grouped_attention(c) + swiglu_parameters(d, c.d_ff) + 2 * d))


def olmo2(c: Any) -> Any:
    """arXiv:2501.00656, section 2.1: no biases, norms behind attention and MLP, QK-norm. Olmo2Attention: over all heads
    together, biases by the flag.
    """
    d = c.d_model
    block = (
        grouped_attention(c)
        + c.n_heads * c.d_head
        + c.n_kv_heads * c.d_head
        + swiglu_parameters(d, c.d_ff)
        + 2 * d
        + attention_biases(c)
    )
    return decoder_parameters(c, c.n_layers * block)


def gemma3(c: Any) -> Any:
    """arXiv:2503.19786, section 2: grouped queries, RMSNorm before and behind each half, QK-norm. Gemma3Attention: over
    d_head, biases by the flag.
    """
    d = c.d_model
    block = grouped_attention(c) + 2 * c.d_head + swiglu_parameters(d, c.d_ff) + 4 * d + attention_biases(c)
    return decoder_parameters(c, c.n_layers * block)


def ernie(c: Any) -> Any:
    """arXiv:1904.09223, section 3.1: BERT; arXiv:1907.12412, section 3.2: and a table of tasks."""
    return bert(c) + (c.n_task_types * c.d_model if c.task_ids else 0)


def mamba(c: Any) -> Any:
    """arXiv:2312.00752, section 3.4 and Algorithm 2: x and z, a convolution over x, from it step, B and C, A and D per
    channel, and back. MambaMixer for the flags; MambaForCausalLM: one norm per layer.
    """
    d, inner = c.d_model, c.d_inner
    mixer = 3 * d * inner + inner * c.d_conv + inner * (c.dt_rank + 2 * c.d_state) + c.dt_rank * inner + inner
    mixer = mixer + inner * c.d_state + inner
    if c.conv_bias:
        mixer = mixer + inner
    if c.mixer_bias:
        mixer = mixer + 2 * inner + d
    return decoder_parameters(c, c.n_layers * (mixer + d))


def mamba2(c: Any) -> Any:
    """arXiv:2405.21060, section 7.1 and Figure 6: z, x, B, C and step out of one matrix, a convolution over x, B and C,
    one A, D and step bias a head, a norm before the output. Mamba2Mixer for the flags; Mamba2ForCausalLM: one norm a
    layer.
    """
    d, inner = c.d_model, c.n_mamba_heads * c.d_mamba_head
    convolved = inner + 2 * c.n_groups * c.d_state
    projected = inner + convolved + c.n_mamba_heads
    mixer = d * projected + convolved * c.d_conv + 3 * c.n_mamba_heads + inner + inner * d
    if c.conv_bias:
        mixer = mixer + convolved
    if c.mixer_bias:
        mixer = mixer + projected + d
    return decoder_parameters(c, c.n_layers * (mixer + d))


def t5(c: Any) -> Any:
    """arXiv:1910.10683, section 2.1: encoder and decoder as in arXiv:1706.03762 without biases, norms before each part
    and behind the stack, a number for each head and bucket of distances in both stacks, one table.
    T5ForConditionalGeneration; gated: arXiv:2002.05202, equation 6.
    """
    d, attention = c.d_model, 4 * c.d_model * c.n_heads * c.d_head
    feed_forward = (3 if c.gated else 2) * d * c.d_ff
    encoder = c.n_layers * (attention + feed_forward + 2 * d) + c.n_buckets * c.n_heads + d
    decoder = c.n_decoder_layers * (2 * attention + feed_forward + 3 * d) + c.n_buckets * c.n_heads + d
    return c.vocab_size * d + encoder + decoder + lm_head_parameters(c)


def bert(c: Any) -> Any:
    """arXiv:1810.04805, section 3: tables of tokens, positions and segments, normed; the encoder of arXiv:1706.03762
    with biases. BertForMaskedLM: a square matrix and a norm before the LM head, which has a bias.
    """
    d, heads = c.d_model, c.n_heads * c.d_head
    attention = 4 * d * heads + 3 * heads + d
    block = attention + 2 * d * c.d_ff + c.d_ff + d + 4 * d
    if c.cross_attention:
        block = block + attention + 2 * d
    pooler = d * d + d if c.pooled else 0
    tables = (c.vocab_size + c.n_positions + c.n_token_types) * d + 2 * d
    return tables + c.n_layers * block + pooler + d * d + d + 2 * d + biased_lm_head_parameters(c)


def bloom(c: Any) -> Any:
    """arXiv:2211.05100, section 3.2: a norm behind the embedding, ALiBi and so no positions; BloomForCausalLM for the
    biases.
    """
    d, heads = c.d_model, c.n_heads * c.d_head
    block = 4 * d * heads + 3 * heads + d + 2 * d * c.d_ff + c.d_ff + d + 4 * d
    return c.vocab_size * d + 2 * d + c.n_layers * block + 2 * d + lm_head_parameters(c)


def cohere(c: Any) -> Any:
    """CohereForCausalLM: attention and SwiGLU in parallel after one norm without bias; with qk_norm, each head of the
    queries and keys has a norm of its own.
    """
    d = c.d_model
    block = grouped_attention(c) + swiglu_parameters(d, c.d_ff) + d + attention_biases(c)
    if c.qk_norm:
        block = block + (c.n_heads + c.n_kv_heads) * c.d_head
    return decoder_parameters(c, c.n_layers * block)


def gemma(c: Any, norms: int = 2) -> Any:
    """arXiv:2403.08295, section 2: GeGLU, a norm before attention and MLP. `norms`: 4 per layer in Gemma 2, which also
    has one after each of them (arXiv:2408.00118, section 2).
    """
    d = c.d_model
    block = grouped_attention(c) + swiglu_parameters(d, c.d_ff) + norms * d + attention_biases(c)
    return decoder_parameters(c, c.n_layers * block)


def gemma2(c: Any) -> Any:
    return gemma(c, norms=4)


def gpt_bigcode(c: Any) -> Any:
    """arXiv:2305.06161, section 5.1: GPT-2 with multi-query attention. GPTBigCodeForCausalLM for the biases."""
    d, heads, shared = c.d_model, c.n_heads * c.d_head, c.n_kv_heads * c.d_head
    attention = (d + 1) * (heads + 2 * shared) + heads * d + d
    block = attention + 2 * d * c.d_ff + c.d_ff + d + 4 * d
    return (c.vocab_size + c.n_positions) * d + c.n_layers * block + 2 * d + lm_head_parameters(c)


def gpt_neox(c: Any) -> Any:
    """arXiv:2204.06745, section 2.1: rotary positions, so no table; norms with biases before attention and MLP.

    GPTNeoXForCausalLM for the biases.
    """
    d, heads = c.d_model, c.n_heads * c.d_head
    block = 4 * d * heads + 2 * d * c.d_ff + c.d_ff + d + 4 * d
    if c.attention_bias:
        block = block + 3 * heads + d
    return c.vocab_size * d + c.n_layers * block + 2 * d + lm_head_parameters(c)


def nemotron(c: Any) -> Any:
    """arXiv:2402.16819, section 2.1: squared ReLU, so two matrices; norms with biases. NemotronForCausalLM."""
    d = c.d_model
    block = grouped_attention(c) + 2 * d * c.d_ff + 4 * d + attention_biases(c)
    if c.mlp_bias:
        block = block + c.d_ff + d
    return c.vocab_size * d + c.n_layers * block + 2 * d + lm_head_parameters(c)


def olmo(c: Any) -> Any:
    """arXiv:2402.00838, section 2.1: SwiGLU, no biases, norms without weights. OlmoForCausalLM: biases are possible."""
    d = c.d_model
    block = grouped_attention(c) + swiglu_parameters(d, c.d_ff) + attention_biases(c)
    return c.vocab_size * d + c.n_layers * block + lm_head_parameters(c)


def opt(c: Any) -> Any:
    """arXiv:2205.01068, section 2.1: GPT-3's decoder. OPTForCausalLM: two positions more than the longest text, and a
    matrix after the token embedding and one before the LM head if the embedding is narrower than d_model.
    """
    d, heads, norm = c.d_model, c.n_heads * c.d_head, 2 * c.d_model if c.norm_weights else 0
    block = 4 * d * heads + 2 * d * c.d_ff + 2 * norm
    if c.bias:
        block = block + 3 * heads + d + c.d_ff + d
    total = embedding_parameters("opt", c) + position_parameters("opt", c) + c.n_layers * block
    if c.d_token:
        total = total + 2 * c.d_token * d
    if c.last_norm:
        total = total + norm
    return total if c.tie_word_embeddings else total + embedding_parameters("opt", c)


def starcoder2(c: Any) -> Any:
    """arXiv:2402.19173, section 6.1: grouped-query attention, rotary positions. Starcoder2ForCausalLM: two matrices in
    the MLP, norms with biases.
    """
    d = c.d_model
    block = grouped_attention(c) + 2 * d * c.d_ff + 4 * d
    if c.bias:
        block = block + qkv_biases(c) + d + c.d_ff + d
    return c.vocab_size * d + c.n_layers * block + 2 * d + lm_head_parameters(c)


TOTAL: dict[str, Callable[[Any], Any]] = {
    "bert": bert,
    "bloom": bloom,
    "cohere": cohere,
    "deepseek": deepseek,
    "deepseek_v2": deepseek_v2,
    "deepseek_v3": deepseek_v3,
    "ernie": ernie,
    "gemma": gemma,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "glm4_moe": glm4_moe,
    "gpt2": gpt2,
    "gpt_bigcode": gpt_bigcode,
    "gpt_neox": gpt_neox,
    "gpt_oss": gpt_oss,
    "jamba": jamba,
    "llama": llama,
    "mamba": mamba,
    "mamba2": mamba2,
    "minimax_text_01": minimax_text_01,
    "mistral": mistral,
    "mixtral": mixtral,
    "mllama": mllama,
    "nemotron": nemotron,
    "olmo": olmo,
    "olmo2": olmo2,
    "olmo3": olmo2,
    "openai-gpt": openai_gpt,
    "opt": opt,
    "phi3": phi3,
    "qwen": qwen,
    "qwen2": qwen2,
    "qwen2_moe": qwen2_moe,
    "qwen3": qwen3,
    "qwen3_moe": qwen3_moe,
    "qwen3_next": qwen3_next,
    "starcoder2": starcoder2,
    "t5": t5,
}
ENTRIES = [id for id in ZOO if ROWS[id]["architecture"] in TOTAL]
# Weights of the routed experts that one token does not visit: total less these is active.
UNVISITED: dict[str, Callable[[Any], Any]] = {
    "deepseek": deepseek_unvisited,
    "deepseek_v2": deepseek_unvisited,
    "deepseek_v3": deepseek_unvisited,
    "glm4_moe": deepseek_unvisited,
    "gpt_oss": gpt_oss_unvisited,
    "jamba": jamba_unvisited,
    "minimax_text_01": mixtral_unvisited,
    "mixtral": mixtral_unvisited,
    "qwen2_moe": qwen2_moe_unvisited,
    "qwen3_moe": qwen2_moe_unvisited,
    "qwen3_next": qwen2_moe_unvisited,
}
MTP: dict[str, Callable[[Any], Any]] = {"deepseek_v3": deepseek_v3_mtp, "glm4_moe": glm4_moe_mtp}


def total_parameters(name: str, c: Any) -> Any:
    return TOTAL[name](c)


def active_parameters(name: str, c: Any) -> Any:
    return total_parameters(name, c) - UNVISITED[name](c) if name in UNVISITED else total_parameters(name, c)


def embedding_parameters(name: str, c: Any) -> Any:
    if name == "opt" and c.d_token:
        return c.vocab_size * c.d_token
    return (c.vocab_size + 8 if name == "mllama" else c.vocab_size) * c.d_model


def position_parameters(name: str, c: Any) -> Any:
    if name == "gpt_neox":  # rotary: n_positions has no table
        return 0
    if name == "opt":
        return (c.n_positions + 2) * c.d_model
    if hasattr(c, "n_buckets"):
        return 2 * c.n_buckets * c.n_heads
    return c.n_positions * c.d_model if hasattr(c, "n_positions") else 0


def segment_parameters(c: Any) -> Any:
    tasks = c.n_task_types * c.d_model if getattr(c, "task_ids", False) else 0
    return tasks + (c.n_token_types * c.d_model if hasattr(c, "n_token_types") else 0)


# ---- the zoo and every structure an architecture can have


# Compared name by name with a transcription of their authors' code (tests/oracle/test_drafts.py, test_logits.py,
# test_remote_code.py, test_remote_mixers.py, test_llava_released.py), and three with loaded checkpoints
# (tests/test_recurrent_models.py).
TRANSCRIBED = {
    "blip_bert", "delta_net", "eagle", "eagle3", "gated_deltanet", "gla", "gsa", "hgrn2", "hymba", "llava_llama",
    "rwkv5", "rwkv6.Rwkv6ForCausalLM", "rwkv7", "samba", "stripedhyena", "transformer",
}  # fmt: skip


def test_every_entry_has_a_closed_form_or_another_independent_total() -> None:
    """Without a closed form: as the reference builds it, or as a release of this architecture with remote code."""
    remote = {paramcount.load(model["config"]).architecture for model in MODELS.values()}
    derived = set(TOTAL) | remote | TRANSCRIBED
    models = [zoo.load_entry(id) for id in zoo.list_ids()]
    assert set(TOTAL) <= {model.architecture for model in models}
    assert [
        model.id
        for model in models
        if not model.estimate and model.architecture not in derived and model.id not in load_reference()
    ] == []


def test_exactly_the_mixtures_have_a_closed_form_of_inactive_experts() -> None:
    assert set(UNVISITED) == {name for name in TOTAL if "n_active_experts" in architecture(name).fields}


@in_batches("id", ENTRIES, size=80)
def test_every_entry_of_the_zoo_equals_its_closed_form(id: str) -> None:
    model = zoo.load_entry(id)
    name, count = str(model.architecture), paramcount.count(id)
    c: Any = model.sizes
    head = biased_lm_head_parameters(c) if name in ("bert", "ernie") else lm_head_parameters(c)
    missing = 0
    if "lm_head" in count.not_counted:  # released as an encoder: a BERT has no transform before the head either
        transform = c.d_model * c.d_model + 3 * c.d_model if name == "bert" else 0
        missing, head = transform + head, 0
    tables = embedding_parameters(name, c) + position_parameters(name, c) + segment_parameters(c) + head
    total, active = total_parameters(name, c) - missing, active_parameters(name, c) - missing
    assert count.total == total
    assert count.active == active
    assert (count.embedding, count.components["position"], count.lm_head) == (
        embedding_parameters(name, c),
        position_parameters(name, c),
        head,
    )
    assert count.non_embedding == total - tables
    assert count.active_non_embedding == active - tables


def example_sizes(name: str) -> Sizes:
    return next(zoo.load_entry(id).sizes for id in ENTRIES if zoo.load_entry(id).architecture == name)


def list_structures(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Every combination of an architecture's flags, with and without what may be missing."""
    fields = architecture(name).fields
    choices: list[list[tuple[str, Any]]] = [
        [(field, False), (field, True)] for field, info in fields.items() if info.annotation is bool
    ]
    if "d_q_lora" in fields:
        choices.append([("d_q_lora", None), ("d_q_lora", 24)])
    if "dense_layers" in fields:
        choices.append([("dense_layers", ()), ("dense_layers", (0, 3))])
    return [(name, dict(chosen)) for chosen in itertools.product(*choices)]


STRUCTURES = [
    pytest.param(*case, id=" ".join([case[0], *(f"{field}={value}" for field, value in case[1].items())]))
    for name in sorted(TOTAL)
    for case in list_structures(name)
]


@in_batches(("name", "structure"), STRUCTURES, size=20)
def test_a_declaration_and_its_closed_form_are_the_same_polynomial(name: str, structure: dict[str, Any]) -> None:
    cls = architecture(name)
    c, _ = make_symbolic(example_sizes(name).replace(**structure))
    with decide_by(None):  # without layers T5 has another form
        out = cls.forward(c, given("tokens", "tokens"))
    assert sum_parameters(out) == total_parameters(name, c)
    assert sum_parameters(out, active=True) == active_parameters(name, c)


@in_batches(("name", "structure"), STRUCTURES, size=20)
def test_a_declaration_and_its_closed_form_agree_on_every_point_of_a_sweep(
    name: str, structure: dict[str, Any]
) -> None:
    cls = architecture(name)
    c = replace_sizes(
        example_sizes(name).replace(**structure), lambda name, size: np.array([size, size + 3, 2 * size], dtype="int64")
    )
    out = cls.forward(c, given("tokens", "tokens"))
    found = sum_parameters(out)
    assert found.dtype == np.int64
    assert found.tolist() == total_parameters(name, c).tolist()
    assert sum_parameters(out, active=True).tolist() == active_parameters(name, c).tolist()


@pytest.mark.parametrize("name", [name for name in sorted(TOTAL) if "n_dense_layers" in architecture(name).fields])
@pytest.mark.parametrize("n_shared_experts", [0, 3])
@pytest.mark.parametrize("n_dense_layers", [0, 1, 4])
def test_none_and_all_layers_dense_and_no_shared_experts_are_counted_right(
    name: str, n_dense_layers: int, n_shared_experts: int
) -> None:
    changes = {"n_layers": 4, "n_dense_layers": n_dense_layers, "n_shared_experts": n_shared_experts}
    sizes = validate_sizes(architecture(name), example_sizes(name).to_dict() | changes)
    count = count_sizes(sizes)
    assert (count.total, count.active) == (total_parameters(name, sizes), active_parameters(name, sizes))


@pytest.mark.parametrize("id", [id for id in ENTRIES if ROWS[id]["architecture"] in MTP])
def test_buffers_and_mtp_layers_equal_their_closed_forms(id: str) -> None:
    count, c = paramcount.count(id), zoo.load_entry(id).sizes
    n, n_mixtures = c.n_mtp_layers, c.n_layers - c.n_dense_layers  # type: ignore[attr-defined]
    assert count.buffers == n_mixtures * c.n_routed_experts  # type: ignore[attr-defined]
    assert count.mtp == MTP[count.architecture](c)
    assert count.mtp_buffers == n * c.n_routed_experts  # type: ignore[attr-defined]
    assert count.mtp_copies == n * 2 * c.vocab_size * c.d_model  # type: ignore[attr-defined]


# ---- known figures


def test_gpt2_small_with_a_vocabulary_of_50000_has_the_seeds_matrices() -> None:
    table = formulas.embedding(vocab_size=50_000, d_model=768)
    three = 12 * formulas.qkv(d_model=768, n_heads=12, d_head=64)
    projection = 12 * formulas.output_projection(d_model=768, n_heads=12, d_head=64)
    mlp = 12 * formulas.mlp(d_model=768, d_ff=3072)
    assert (table, three, projection, mlp) == (38_400_000, 21_233_664, 7_077_888, 56_623_104)
    assert table + three + projection + mlp == 50_000 * 768 + (768 * 768 * 3 + 768 * 768 + 768 * 3072 * 2) * 12


def test_gpt3_has_the_seeds_attention() -> None:
    one_matrix = formulas.output_projection(d_model=12_288, n_heads=1, d_head=128)
    assert one_matrix == 1_572_864
    assert formulas.qkv(d_model=12_288, n_heads=1, d_head=128) == 3 * 1_572_864
    assert formulas.attention(d_model=12_288, n_heads=1, d_head=128) == 6_291_456
    assert formulas.attention(d_model=12_288, n_heads=96, d_head=128) == 603_979_776
    all_blocks = 96 * formulas.attention(d_model=12_288, n_heads=96, d_head=128)
    assert all_blocks == 57_982_058_496
    count = paramcount.count("gpt-3")
    assert count.total == 174_604_259_328
    assert f"{all_blocks / count.total:.1%}" == "33.2%"
    matrices = [
        t
        for t in count.tensors
        if len(t.shape) == 2 and t.component.partition(".")[0] in ("qkv", "output_projection") and t.role == "parameter"
    ]
    assert sum(t.parameters for t in matrices) == 57_982_058_496


GPT_3 = {
    "gpt-3-small": 125_226_240,
    "gpt-3-medium": 355_871_744,
    "gpt-3-large": 760_300_032,
    "gpt-3-xl": 1_315_723_264,
    "gpt-3-2.7b": 2_651_553_280,
    "gpt-3-6.7b": 6_658_404_352,
    "gpt-3-13b": 12_853_386_240,
    "gpt-3": 174_604_259_328,
}


@pytest.mark.parametrize(("id", "expected"), GPT_3.items())
def test_the_eight_sizes_of_gpt3_have_the_totals_of_table_d1(id: str, expected: int) -> None:
    assert paramcount.count(id).total == expected


def printed_row(d_model: int, n_layers: int, n_heads: int, d_head: int) -> int:
    """A row of arXiv:2005.14165, Table 2.1, as printed.

    No reference builds it, so it is no entry: heads do not fill d_model.
    """
    sizes = {
        "vocab_size": 50257,
        "n_positions": 2048,
        "d_model": d_model,
        "n_layers": n_layers,
        "n_heads": n_heads,
        "d_head": d_head,
    }
    flags = {"tie_word_embeddings": True, "cross_attention": False}
    c = architecture("gpt2").make({**sizes, "d_ff": 4 * d_model, **flags})
    found: int = sum_parameters(architecture("gpt2").forward(c, given("tokens", "tokens")))
    assert found == gpt2(c)
    return found


def test_the_printed_row_of_gpt3_xl_contradicts_the_total_of_table_d1() -> None:
    assert printed_row(2048, 24, 24, 128) == 1_517_123_584
    assert printed_row(2048, 24, 16, 128) == GPT_3["gpt-3-xl"]


def test_the_printed_row_of_gpt3_13b_contradicts_the_total_of_table_d1() -> None:
    assert printed_row(5140, 40, 40, 128) == 12_936_488_380
    assert printed_row(5120, 40, 40, 128) == GPT_3["gpt-3-13b"]


# ---- published figures that are no parameter count: tests/data/published_totals.csv lists the causes of every unit of
# the difference, which tests/test_why.py compares one by one

with (DATA / "published_totals.csv").open(encoding="utf-8", newline="") as file:
    PUBLISHED: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(file):
        PUBLISHED.setdefault(row["model"], []).append(row)


@pytest.mark.parametrize(
    "model", [model for model, rows in PUBLISHED.items() if "released" in rows[0]["what_was_published"]]
)
def test_the_contents_of_a_release_equal_the_published_figure(model: str) -> None:
    count, published = paramcount.count(model), PUBLISHED[model][0]
    scales = sum(n for item, n in count.release.items() if item.endswith("scales"))
    assert count.checkpoint == int(published["published"]) + (
        scales if "without FP8 scales" in published["what_was_published"] else 0
    )


def test_every_published_figure_is_tested() -> None:
    models = "gpt2 llama-2-7b deepseek-r1 deepseek-v3 gpt-oss-20b gpt-oss-120b qwen3-0.6b gpt-3"
    assert set(PUBLISHED) == set(models.split())
