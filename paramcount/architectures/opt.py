"""OPT: learned positions with two additional rows, pre-norm or post-norm.

In OPT-350m the token embedding is narrower than the model.
"""

from paramcount.flow import Data, layer_norm, linear, lookup, plain_norm
from paramcount.parts.classic import multi_head
from paramcount.parts.decoder import Decoder
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.tasks import SCORED, SPAN
from paramcount.sizes import (
    ConfigJson,
    FieldValues,
    Flag,
    Natural,
    Positive,
    d_model_per_head,
    derived,
    flag,
    hf,
    setting,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


def narrow_table(js: ConfigJson, c: FieldValues) -> int | None:
    """The width of a token, None where it is the model's."""
    width: int | None = js.get("word_embed_proj_dim")
    return None if width == c["d_model"] and type(width) is int else width


class OPT(Decoder):
    """Source: arXiv:2205.01068, section 2.1; OPTDecoderLayer of the reference."""

    reference = "OPTForCausalLM"
    task_heads = SCORED | {"ForQuestionAnswering": SPAN}
    conditions = (padding_in_table(1),)

    n_positions: Positive = hf("max_position_embeddings")
    d_token: Positive | None = derived(narrow_table)
    n_heads: Positive = hf()
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf("ffn_dim")
    norm_first: Flag = hf("do_layer_norm_before")
    last_norm: Flag = derived(lambda js, c: c["norm_first"] and not flag(js, "_remove_final_layer_norm", False))
    norm_weights: Flag = hf("layer_norm_elementwise_affine")
    bias: Flag = hf("enable_bias")
    tie_word_embeddings: Flag = hf()

    prefix = "model.decoder."
    names = ("embed_tokens", "layers", "final_layer_norm")
    activation = setting("activation_function", default="relu")
    norm_eps = 1e-5
    rope = None
    check = check_heads_fill

    def embed(c, tokens: Data) -> Data:
        width = c.d_model if c.d_token is None else c.d_token
        return lookup(tokens, c.prefix + "embed_tokens.weight", "embedding", c.vocab_size, width)

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        """Positions are counted from 2: fairseq counts them from behind its padding token."""
        if c.d_token is not None:
            x = linear(x, c.prefix + "project_in", "other", c.d_model)
        name, rows = c.prefix + "embed_positions.weight", c.n_positions + 2
        return x + lookup(tokens, name, "position", rows, c.d_model, index="positions", offset=2)

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, c.norm_eps) if c.norm_weights else plain_norm(x, "layer", c.norm_eps)

    def layer(c, x: Data) -> Data:
        if c.norm_first:
            x = x + c.attention(c.norm(x, "self_attn_layer_norm"))
            return x + c.mlp(c.norm(x, "final_layer_norm"))
        x = c.norm(x + c.attention(x), "self_attn_layer_norm")
        return c.norm(x + c.mlp(x), "final_layer_norm")

    def attention(c, x: Data) -> Data:
        return multi_head(c, x, "self_attn.", bias=c.bias)

    def mlp(c, x: Data) -> Data:
        return plain_mlp(x, ("fc1", "fc2"), "mlp", c.d_ff, activation=c.activation, bias=c.bias)

    def last(c, x: Data) -> Data:
        x = super().last(x) if c.last_norm else x
        return x if c.d_token is None else linear(x, c.prefix + "project_out", "other", c.d_token)
