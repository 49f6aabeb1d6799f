"""StableLM: LayerNorms around Llama's layer, a quarter of each head rotated.

The 12B norms every head by itself and runs attention and MLP side by side.
"""

from paramcount.declare import Data, ops, parts, sizes


class StableLm(parts.PartlyRotated):
    """Source: arXiv:2402.17834; for the 12B modeling_stablelm.py of the reference."""

    reference = "StableLmForCausalLM"
    gguf = "stablelm"
    task_heads = "GENERIC"
    rotated = "d_rope"
    conditions = (sizes.padding_in_table(None), sizes.rotates_stated_share(0.25))

    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.25, paired=False))
    qkv_bias: sizes.Flag = sizes.hf("use_qkv_bias")
    qk_norm: sizes.Flag = sizes.hf("qk_layernorm")
    parallel_residual: sizes.Flag = sizes.hf("use_parallel_residual")

    norm_eps = sizes.setting("layer_norm_eps")
    rope = sizes.rotary(share=0.25)
    norm = parts.use_layer_norm

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        a = c.self_attention(h, bias=c.qkv_bias, o_bias=False, prepare=c.prepare)
        return x + a + c.gated_mlp(h if c.parallel_residual else c.norm(x + a, "post_attention_layernorm"))

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """A layer norm of its own for each head if there is any, then the rotation."""
        if c.qk_norm:
            q = ops.for_each_head(q, "self_attn.q_layernorm.norms.{head}", c.normalise_head)
            k = ops.for_each_head(k, "self_attn.k_layernorm.norms.{head}", c.normalise_head)
        return c.turn_heads(q, k)

    def normalise_head(c, x: Data) -> Data:
        return ops.layer_norm(x, "", c.norm_eps, bias=False)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_at_most(c, "d_rope", "d_head")
