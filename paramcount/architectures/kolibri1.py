"""Kolibri-1: 384 small experts and a shared one, pre-norm and post-norm.

Four of five layers attend to a sliding window; the others have no positions.
"""

from paramcount.flow import Data, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type
from paramcount.parts.feed_forward import gated_mlp, mixture, routing_bias
from paramcount.sizes import ABSENT, SLIDING, Flag, Natural, Positive, Words, full_every, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_sliding_or_full


class Kolibri1(AttentionDecoder):
    """Source: Kolibri1DecoderLayer and Kolibri1TopKRouter of the reference, modeling_kolibri1.py."""

    reference = "Kolibri1ForCausalLM"
    is_section_type = True
    rotated = "d_head"
    conditions = (padding_in_table(None),)
    defaults = {"d_head": 128}

    layer_types: Words = hf(absent=full_every(5), null=ABSENT)
    window: Positive = hf()
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_local_experts", "num_experts")
    n_active_experts: Natural = hf()
    d_shared_expert: Natural = hf("shared_expert_intermediate_size")
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=262144)
    norm_topk_prob = setting("norm_topk_prob", default=False)
    kinds = layers_by_type
    check = check_sliding_or_full

    def layer(c, x: Data, kind: str) -> Data:
        sliding = kind == SLIDING[0]
        window = c.window if sliding else None
        h = c.norm(x, "input_layernorm")
        x = x + c.norm(c.self_attention(h, qk_norm=True, rotate=sliding, window=window), "post_attn_norm")
        h = c.norm(x, "post_attention_layernorm")
        shared = gated_mlp(h, "mlp.shared_experts.", "shared_experts", c.d_shared_expert, activation=c.activation)
        return x + c.norm(mixture(c, h, "mlp.", choose=c.choose) + shared, "post_ffn_norm")

    def choose(c, logits: Data) -> Data:
        bias = routing_bias(c, "moe.router.expert_bias")
        return route(logits, c.n_active_experts, "sigmoid", bias=bias, biased="logits", normalise=c.norm_topk_prob)
