"""BLOOM: ALiBi instead of positions, a norm right after the token embedding, biases everywhere, tied head."""

from paramcount.flow import Data, alibi, attend, linear
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Flag, Natural, Positive, d_model_per_head, derived, hf, setting
from paramcount.sizes.conditions import not_null
from paramcount.sizes.rules import check_heads_fill


class Bloom(Decoder):
    """Source: arXiv:2211.05100, section 3.2; BloomBlock of the reference."""

    reference = "BloomForCausalLM"
    gguf = "bloom"
    task_heads = "GPT_SPAN"
    conditions = (not_null("hidden_size"),)

    d_model: Positive = hf("n_embed", "hidden_size", null=ABSENT)
    n_layers: Natural = hf("num_hidden_layers", "n_layer")
    n_heads: Positive = hf("num_attention_heads", "n_head")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = derived(lambda js, c: 4 * c["d_model"])
    residual_after_norm: Flag = hf("apply_residual_connection_post_layernorm")
    tie_word_embeddings: Flag = hf()

    prefix = "transformer."
    names = ("word_embeddings", "h", "ln_f")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)
    activation = "gelu_new"
    rope = None
    norm = use_layer_norm
    check = check_heads_fill

    def embed(c, tokens: Data) -> Data:
        return c.norm(super().embed(tokens), "transformer.word_embeddings_layernorm")

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = (h if c.residual_after_norm else x) + c.attention(h, "self_attention.")
        h = c.norm(x, "post_attention_layernorm")
        names = ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        mlp = plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=True)
        return (h if c.residual_after_norm else x) + mlp

    def attention(c, x: Data, prefix: str) -> Data:
        q, k, v = fused_qkv(c, x, prefix + "query_key_value", groups=c.n_heads)
        a = attend(q, k, v, alibi(q, c.n_heads))
        return linear(a, prefix + "dense", "output_projection", c.d_model, bias=True)
