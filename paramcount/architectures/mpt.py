"""MPT: ALiBi instead of positions, no bias anywhere, tied head."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import make_choice_error

ATTENTIONS = ("multihead_attention", "multiquery_attention")  # the reference reads the word and then builds the first


def known_attention(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    word = (js.get("attn_config") or {}).get("attn_type", ATTENTIONS[0])
    if word not in ATTENTIONS:
        raise make_choice_error(word, ATTENTIONS, where="attn_config.attn_type")


class MPT(parts.EqualHeads, parts.Decoder):
    """Source: modeling_mpt.py of the reference, which reads neither learned_pos_emb nor no_bias nor expansion_ratio."""

    reference = "MptForCausalLM"
    gguf = "mpt"
    task_heads = "GPT_SPAN"
    conditions = (known_attention,)

    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_heads")
    d_ff: sizes.Natural = sizes.derived(lambda js, c: 4 * c["d_model"])

    prefix = "transformer."
    names = ("wte", "blocks", "norm_f")
    norm_eps = sizes.setting("layer_norm_epsilon")
    activation = "gelu"
    rope = None
    attention_scale = sizes.setting(default=lambda js, c: (js.get("attn_config") or {}).get("softmax_scale"))
    qkv_limit = sizes.setting(default=lambda js, c: (js.get("attn_config") or {}).get("clip_qkv"))

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps, bias=False)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "norm_1"))
        h = c.norm(x, "norm_2")
        return x + parts.plain_mlp(h, ("ffn.up_proj", "ffn.down_proj"), "mlp", c.d_ff, activation=c.activation)

    def attention(c, x: Data) -> Data:
        q, k, v = parts.fused_qkv(c, x, "attn.Wqkv", bias=False)  # [n, n_heads, d_head]
        if ops.is_known(c.qkv_limit) and c.qkv_limit:
            q, k, v = (ops.clip(y, -c.qkv_limit, c.qkv_limit) for y in (q, k, v))
        a = ops.attend_causally(q, k, v, ops.alibi(q, c.n_heads), scale=c.attention_scale)  # [n, n_heads, d_head]
        return ops.linear(a, "attn.out_proj", "output_projection", c.d_model)
