"""Grok-1: eight experts with GELU gates, pre-norm and post-norm, and a tied LM head."""

from paramcount.flow import Data, Norm, Rope, Weight, route, scale_by
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, derived, equal_to, hf, setting
from paramcount.sizes.rules import check_heads_fill


class Grok1(AttentionDecoder):
    """Source: model.py and run.py of xai-org/grok-1; modeling_grok1.py of hpcai-tech/grok-1, whose names these are."""

    reference = "Grok1ModelForCausalLM of hpcai-tech/grok-1"
    model_types = ("grok-1",)
    base_model = "Grok1Model"
    rotated = "d_head"
    defaults = {"vocab_size": 32000, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: Positive = hf(absent=32, null=equal_to("n_heads"))
    d_head: Positive = derived(d_model_per_head)
    d_expert: Natural = hf("intermediate_size", absent=32768)
    n_routed_experts: Positive = hf("num_experts", "num_local_experts", absent=8)
    n_active_experts: Natural = hf(absent=2)
    tie_word_embeddings: Flag = hf(absent=True)

    activation = "gelu"
    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = Rope(10_000.0)
    attention_scale = setting("attn_output_multiplier", default=1.0)
    soft_cap = setting("max_attn_value", default=1.0)
    embedding_scale = setting("embedding_multiplier_scale", default=1.0)
    logits_scale = setting("output_multiplier_scale", default=1.0)
    check = check_heads_fill

    def embed(c, tokens: Data) -> Data:
        return scale_by(super().embed(tokens), c.embedding_scale)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "pre_attn_norm")
        a = c.self_attention(h, "attn.", scale=c.attention_scale, soft_cap=c.soft_cap)
        x = x + c.norm(a, "post_attn_norm")
        names = ("linear", "linear_v", "linear_1")
        y = mixture(c, c.norm(x, "pre_moe_norm"), "moe_block.", names=names, choose=c.choose)
        return x + c.norm(y, "post_moe_norm")

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax")

    def norm(c, x: Data, name: str) -> Data:
        """The RMS norm whose weight is stored as `scale`."""
        return Data(Norm("rms", c.norm_eps), (x,), x.shape, (Weight(name + ".scale", "norm", x.shape[-1:]),))

    def head(c, x: Data) -> Data:
        return scale_by(super().head(x), c.logits_scale)
