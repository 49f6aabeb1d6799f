"""FlexOlmo: experts trained apart from each other in the layers of OLMo 2, with norms behind attention and experts."""

from paramcount.flow import Data, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import ABSENT, Flag, Natural, Positive, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table


class FlexOlmo(AttentionDecoder):
    """Source: arXiv:2507.07024; FlexOlmoDecoderLayer of the reference."""

    reference = "FlexOlmoForCausalLM"
    is_section_type = True
    adapts_experts = True
    rotated = "d_head"
    conditions = (padding_in_table(100277),)

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Positive = hf("num_local_experts", "num_experts")
    n_active_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(500_000, positions=4096)
    norm_topk_prob = setting("norm_topk_prob", default=False)

    def layer(c, x: Data) -> Data:
        a = c.self_attention(x, bias=c.attention_bias, qk_norm="wide")
        x = x + c.norm(a, "post_attention_layernorm")
        return x + c.norm(mixture(c, x, "mlp.", choose=c.choose), "post_feedforward_layernorm")

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)
