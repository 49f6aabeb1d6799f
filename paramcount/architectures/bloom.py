"""BLOOM: ALiBi instead of positions, a norm right after the token embedding, biases everywhere, tied head."""

from paramcount.declare import Data, ops, parts, sizes


class Bloom(parts.EqualHeads, parts.Decoder):
    """Source: arXiv:2211.05100, section 3.2; BloomBlock of the reference."""

    reference = "BloomForCausalLM"
    gguf = "bloom"
    task_heads = "GPT_SPAN"
    conditions = (sizes.not_null("hidden_size"),)

    d_model: sizes.Positive = sizes.hf("n_embed", "hidden_size", null=sizes.ABSENT)
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head")
    d_ff: sizes.Natural = sizes.derived(lambda js, c: 4 * c["d_model"])
    residual_after_norm: sizes.Flag = sizes.hf("apply_residual_connection_post_layernorm")

    prefix = "transformer."
    names = ("word_embeddings", "h", "ln_f")
    norm_eps = sizes.setting("layer_norm_epsilon")
    activation = "gelu_new"
    rope = None
    norm = parts.use_layer_norm

    def embed(c, tokens: Data) -> Data:
        return c.norm(super().embed(tokens), "transformer.word_embeddings_layernorm")

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = (h if c.residual_after_norm else x) + c.attention(h, "self_attention.")
        h = c.norm(x, "post_attention_layernorm")
        names = ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        mlp = parts.plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=True)
        return (h if c.residual_after_norm else x) + mlp

    def attention(c, x: Data, prefix: str) -> Data:
        q, k, v = parts.fused_qkv(c, x, prefix + "query_key_value", groups=c.n_heads)  # [n, n_heads, d_head]
        a = ops.attend_causally(q, k, v, ops.alibi(q, c.n_heads))  # [n, n_heads, d_head]
        return ops.linear(a, prefix + "dense", "output_projection", c.d_model, bias=True)
