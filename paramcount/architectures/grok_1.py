"""Grok-1: eight experts with GELU gates, pre-norm and post-norm, and a tied LM head."""

from functools import partial

from paramcount.declare import Data, ops, parts, sizes


class Grok1(parts.EqualHeads, parts.MixtureDecoder):
    """Source: model.py and run.py of xai-org/grok-1; modeling_grok1.py of hpcai-tech/grok-1, whose names these are."""

    reference = "Grok1ModelForCausalLM of hpcai-tech/grok-1"
    model_types = ("grok-1",)
    base_model = "Grok1Model"
    defaults = {"vocab_size": 32000, "d_model": 4096, "n_layers": 32, "n_heads": 32}

    n_kv_heads: sizes.Positive = sizes.hf(absent=32, null=sizes.equal_to("n_heads"))
    d_expert: sizes.Natural = sizes.hf("intermediate_size", absent=32768)
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", "num_local_experts", absent=8)
    n_active_experts: sizes.Natural = sizes.hf(absent=2)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=True)

    activation = "gelu"
    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope = ops.Rope(10_000.0)
    attention_scale = sizes.setting("attn_output_multiplier", default=1.0)
    soft_cap = sizes.setting("max_attn_value", default=1.0)
    embedding_scale = sizes.setting("embedding_multiplier_scale", default=1.0)
    logits_scale = sizes.setting("output_multiplier_scale", default=1.0)

    def embed(c, tokens: Data) -> Data:
        return ops.scale_by(super().embed(tokens), c.embedding_scale)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "pre_attn_norm")
        a = c.self_attention(h, "attn.", mix=partial(ops.attend_causally, scale=c.attention_scale, cap=c.soft_cap))
        x = x + c.norm(a, "post_attn_norm")
        names = ("linear", "linear_v", "linear_1")
        y = parts.mixture(c, c.norm(x, "pre_moe_norm"), "moe_block.", names=names, choose=c.choose)
        return x + c.norm(y, "post_moe_norm")

    def choose(c, logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, "softmax")

    def norm(c, x: Data, name: str) -> Data:
        """The RMS norm whose weight is stored as `scale`."""
        return Data(ops.Norm("rms", c.norm_eps), (x,), x.shape, (ops.Weight(name + ".scale", "norm", x.shape[-1:]),))

    def head(c, x: Data) -> Data:
        return ops.scale_by(super().head(x), c.logits_scale)
