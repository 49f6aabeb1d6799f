"""MPT: ALiBi instead of positions, no bias anywhere, tied head."""

from paramcount.errors import make_choice_error
from paramcount.flow import Data, alibi, attend, clip, is_known, layer_norm, linear
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.decoder import Decoder
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, d_model_per_head, derived, hf, setting
from paramcount.sizes.rules import check_heads_fill

ATTENTIONS = ("multihead_attention", "multiquery_attention")  # the reference reads the word and then builds the first


def known_attention(js: ConfigJson, c: FieldValues) -> None:
    word = (js.get("attn_config") or {}).get("attn_type", ATTENTIONS[0])
    if word not in ATTENTIONS:
        raise make_choice_error(word, ATTENTIONS, where="attn_config.attn_type")


class MPT(Decoder):
    """Source: modeling_mpt.py of the reference, which reads neither learned_pos_emb nor no_bias nor expansion_ratio."""

    reference = "MptForCausalLM"
    gguf = "mpt"
    task_heads = "GPT_SPAN"
    conditions = (known_attention,)

    d_model: Positive = hf("hidden_size", "d_model")
    n_layers: Natural = hf("num_hidden_layers", "n_layers")
    n_heads: Positive = hf("num_attention_heads", "n_heads")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = derived(lambda js, c: 4 * c["d_model"])
    tie_word_embeddings: Flag = hf()

    prefix = "transformer."
    names = ("wte", "blocks", "norm_f")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)
    activation = "gelu"
    rope = None
    attention_scale = setting(default=lambda js, c: (js.get("attn_config") or {}).get("softmax_scale"))
    qkv_limit = setting(default=lambda js, c: (js.get("attn_config") or {}).get("clip_qkv"))
    check = check_heads_fill

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, c.norm_eps, bias=False)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "norm_1"))
        h = c.norm(x, "norm_2")
        return x + plain_mlp(h, ("ffn.up_proj", "ffn.down_proj"), "mlp", c.d_ff, activation=c.activation)

    def attention(c, x: Data) -> Data:
        q, k, v = fused_qkv(c, x, "attn.Wqkv", bias=False)
        if is_known(c.qkv_limit) and c.qkv_limit:
            q, k, v = (clip(y, -c.qkv_limit, c.qkv_limit) for y in (q, k, v))
        a = attend(q, k, v, alibi(q, c.n_heads), scale=c.attention_scale)
        return linear(a, "attn.out_proj", "output_projection", c.d_model)
