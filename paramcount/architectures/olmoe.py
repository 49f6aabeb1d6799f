"""OLMoE: many small experts, a norm over all queries and one over all keys."""

from paramcount.flow import Data, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import ABSENT, Flag, Natural, Positive, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


class Olmoe(AttentionDecoder):
    """Source: arXiv:2409.02060, section 2; OlmoeAttention of the reference."""

    reference = "OlmoeForCausalLM"
    gguf = "olmoe"
    is_section_type = True
    adapts_experts = True
    rotated = "d_head"
    conditions = (padding_in_table(1),)

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Positive = hf("num_local_experts", "num_experts")
    n_active_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=4096)
    clip_qkv = setting("clip_qkv", default=None)
    norm_topk_prob = setting("norm_topk_prob", default=False)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, qk_norm="wide", clip_qkv=c.clip_qkv)
        return x + mixture(c, c.norm(x, "post_attention_layernorm"), "mlp.", choose=c.choose)

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)

    def check(c) -> None:
        check_heads_fill(c)  # the norm of the queries is as wide as d_model
