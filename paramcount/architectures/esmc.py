"""ESM C, encoders of proteins: norms of whole queries and keys, and residuals that are scaled by the depth."""

from paramcount.declare import Data, ops, parts, sizes

HEAD = ("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "")
USUAL_DEPTH = 36  # of the model whose residuals are not scaled


def as_many_kv_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n = js.get("num_key_value_heads")
    if n is not None and n != c["n_heads"]:
        raise sizes.make_value_error(n, "num_key_value_heads", f"{c['n_heads']}")


class Esmc(parts.PositionlessEncoder):
    """Source: EsmcLayer of the reference, modeling_esmc.py."""

    reference = "EsmcForMaskedLM"
    task_heads = {"ForSequenceClassification": parts.tasks.FIRST, "ForTokenClassification": parts.TOKEN_SCORES}
    rotated = "d_head"
    conditions = (as_many_kv_heads,)
    prefix = "esmc."
    layers_name = "layers"
    head_names = HEAD
    head_activation = "gelu"

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.d_model_per_head)
    attention_bias: sizes.Flag = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()

    norm_eps = 1e-5
    rope = sizes.rotary(10_000, 2048)

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return ops.lookup(tokens, "esmc.embed_tokens.weight", "embedding", c.vocab_size, c.d_model)

    def encode(c, x: Data, *memory: Data) -> Data:
        return ops.layer_norm(super().encode(x, *memory), "esmc.norm", c.norm_eps, bias=False)

    def layer(c, x: Data) -> Data:
        h, bias = c.norm(x, "input_layernorm"), c.attention_bias
        x = x + c.scale(parts.attentions.attention(c, h, "self_attn.", bias=bias, prepare=c.prepare, mix=ops.attend))
        h = c.norm(x, "post_attention_layernorm")
        return x + c.scale(parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias))

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        q = ops.layer_norm(q, "self_attn.q_norm", c.norm_eps, bias=False, wide=True)
        k = ops.layer_norm(k, "self_attn.k_norm", c.norm_eps, bias=False, wide=True)
        return ops.rope(q, c.rope), ops.rope(k, c.rope)

    def scale(c, x: Data) -> Data:
        return ops.scale_by_root(x, USUAL_DEPTH, f"divided by √(layers / {USUAL_DEPTH})", over=c.n_layers)
