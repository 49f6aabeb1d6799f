"""OPT: learned positions with two additional rows, pre-norm or post-norm.

In OPT-350m the token embedding is narrower than the model.
"""

from paramcount.declare import Data, ops, parts, sizes


def narrow_table(js: sizes.ConfigJson, c: sizes.FieldValues) -> int | None:
    """The width of a token, None where it is the model's."""
    width: int | None = js.get("word_embed_proj_dim")
    return None if width == c["d_model"] and type(width) is int else width


class OPT(parts.EqualHeads, parts.Decoder):
    """Source: arXiv:2205.01068, section 2.1; OPTDecoderLayer of the reference."""

    reference = "OPTForCausalLM"
    task_heads = parts.SCORED | {"ForQuestionAnswering": parts.SPAN}
    conditions = (sizes.padding_in_table(1),)

    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    d_token: sizes.Positive | None = sizes.derived(narrow_table)
    d_ff: sizes.Natural = sizes.hf("ffn_dim")
    norm_first: sizes.Flag = sizes.hf("do_layer_norm_before")
    last_norm: sizes.Flag = sizes.derived(
        lambda js, c: c["norm_first"] and not sizes.flag(js, "_remove_final_layer_norm", False)
    )
    norm_weights: sizes.Flag = sizes.hf("layer_norm_elementwise_affine")
    bias: sizes.Flag = sizes.hf("enable_bias")

    prefix = "model.decoder."
    names = ("embed_tokens", "layers", "final_layer_norm")
    activation = sizes.setting("activation_function")
    norm_eps = 1e-5
    rope = None

    def embed(c, tokens: Data) -> Data:
        width = c.d_model if c.d_token is None else c.d_token
        return ops.lookup(tokens, c.prefix + "embed_tokens.weight", "embedding", c.vocab_size, width)

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        """Positions are counted from 2: fairseq counts them from behind its padding token."""
        if c.d_token is not None:
            x = ops.linear(x, c.prefix + "project_in", "other", c.d_model)
        name, rows = c.prefix + "embed_positions.weight", c.n_positions + 2
        return x + ops.lookup_position(tokens, name, rows, c.d_model, offset=2)

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps) if c.norm_weights else ops.plain_norm(x, "layer", c.norm_eps)

    def layer(c, x: Data) -> Data:
        if c.norm_first:
            x = x + c.attention(c.norm(x, "self_attn_layer_norm"))
            return x + c.mlp(c.norm(x, "final_layer_norm"))
        x = c.norm(x + c.attention(x), "self_attn_layer_norm")
        return c.norm(x + c.mlp(x), "final_layer_norm")

    def attention(c, x: Data) -> Data:
        return parts.multi_head(c, x, "self_attn.", bias=c.bias, mix=ops.attend_causally)

    def mlp(c, x: Data) -> Data:
        return parts.plain_mlp(x, ("fc1", "fc2"), "mlp", c.d_ff, activation=c.activation, bias=c.bias)

    def last(c, x: Data) -> Data:
        x = super().last(x) if c.last_norm else x
        return x if c.d_token is None else ops.linear(x, c.prefix + "project_out", "other", c.d_token)
