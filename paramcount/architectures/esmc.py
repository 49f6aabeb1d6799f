"""ESM C, encoders of proteins: norms of whole queries and keys, and residuals that are scaled by the depth."""

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, layer_norm, lookup, rope, scale_by_root
from paramcount.parts.attentions import attention
from paramcount.parts.encoders import PositionlessEncoder, masked_head
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.tasks import FIRST, TOKEN_SCORES
from paramcount.sizes import ConfigJson, FieldValues, Flag, Positive, d_model_per_head, hf, rotary, setting
from paramcount.sizes.rules import check_heads_fill

HEAD = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "")
USUAL_DEPTH = 36  # of the model whose residuals are not scaled


def as_many_kv_heads(js: ConfigJson, c: FieldValues) -> None:
    n = js.get("num_key_value_heads")
    if n is not None and n != c["n_heads"]:
        raise ParamcountError(f"= {describe_value(n)}", where="num_key_value_heads", expected=f"{c['n_heads']}")


class Esmc(PositionlessEncoder):
    """Source: EsmcLayer of the reference, modeling_esmc.py."""

    reference = "EsmcForMaskedLM"
    task_heads = {"ForSequenceClassification": FIRST, "ForTokenClassification": TOKEN_SCORES}
    rotated = "d_head"
    conditions = (as_many_kv_heads,)
    prefix = "esmc."
    layers_name = "layers"

    d_head: Positive = hf(absent=d_model_per_head, null=d_model_per_head)
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()

    activation = setting("hidden_act", default="silu")
    norm_eps = 1e-5
    rope = rotary(10_000, 2048)

    def inputs(c) -> dict[str, int]:
        return {}

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return lookup(tokens, "esmc.embed_tokens.weight", "embedding", c.vocab_size, c.d_model)

    def encode(c, x: Data, *memory: Data) -> Data:
        return layer_norm(super().encode(x, *memory), "esmc.norm", c.norm_eps, bias=False)

    def layer(c, x: Data) -> Data:
        h, bias = c.norm(x, "input_layernorm"), c.attention_bias
        x = x + c.scale(attention(c, h, "self_attn.", bias=bias, prepare=c.prepare, cached=False))
        h = c.norm(x, "post_attention_layernorm")
        return x + c.scale(gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias))

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        q = layer_norm(q, "self_attn.q_norm", c.norm_eps, bias=False, wide=True)
        k = layer_norm(k, "self_attn.k_norm", c.norm_eps, bias=False, wide=True)
        return rope(q, c.rope), rope(k, c.rope)

    def scale(c, x: Data) -> Data:
        return scale_by_root(x, USUAL_DEPTH, f"divided by √(layers / {USUAL_DEPTH})", over=c.n_layers)

    def head(c, x: Data) -> Data:
        return masked_head(c, x, HEAD, c.d_model, "gelu")

    def check(c) -> None:
        check_heads_fill(c)
