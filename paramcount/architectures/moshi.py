"""Moshi's language model: the Llama layout with fused gate and up; the embedding has one row more than the LM head."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


@sizes.options_first
def half_of(js: sizes.ConfigJson, c: sizes.FieldValues, absent: int) -> int:
    """config.json gives gate and up together. `absent`: the reference's default."""
    width = js.get("ffn_dim", absent)
    if type(width) is not int or width < 2 or width % 2:
        raise ParamcountError(f"= {describe_value(width)}", where="ffn_dim", expected="an even number")
    return width // 2


def codebooks_are_there(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """As many codebooks as the audio encoder has, or fewer, also where only the language model is built."""
    n, limit = js.get("num_codebooks", 8), (js.get("audio_encoder_config") or {}).get("num_quantizers", 32)
    if n > limit:
        raise ParamcountError(f"= {describe_value(n)}", where="num_codebooks", expected=f"at most {limit}")


class Moshi(parts.AttentionDecoder):
    """Source: arXiv:2410.00037, section 3.2; MoshiDecoderLayer of the reference. The text decoder alone, without codec
    and depth decoder; its head is never tied."""

    reference = "MoshiForCausalLM"
    unused_keys: ClassVar[tuple[str, ...]] = ("depth_decoder_config",)
    larger: ClassVar[tuple[str, ...]] = ("MoshiForConditionalGeneration",)
    rotated = "d_head"
    is_section_type = False
    tie_word_embeddings = sizes.constant(False)
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (codebooks_are_there, sizes.padding_in_table(None, more=1))

    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    d_ff: sizes.Natural = sizes.derived(half_of(22528))
    window: sizes.Positive = sizes.hf()  # of the KV cache: no mask hides what is outside of it

    rope = sizes.rotary(positions=3000)

    def embed(c, tokens: Data) -> Data:
        return ops.lookup(tokens, "model.embed_tokens.weight", "embedding", c.vocab_size + 1, c.d_model)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"), "self_attn.")
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.fused_gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, names=("fc1", "fc2"))

    def attention(c, x: Data, prefix: str) -> Data:
        q = ops.linear(x, prefix + "q_proj.linear", "qkv.q", (c.n_heads, c.d_head))  # [n, n_heads, d_head]
        k = ops.linear(x, prefix + "k_proj.linear", "qkv.k", (c.n_kv_heads, c.d_head))  # [n, n_kv_heads, d_head]
        v = ops.linear(x, prefix + "v_proj.linear", "qkv.v", (c.n_kv_heads, c.d_head))  # [n, n_kv_heads, d_head]
        kept = ops.Window(c.window)  # a prompt's token sees more
        k, v = ops.cache(ops.rope(k, c.rope), kept), ops.cache(v, kept)  # [m, n_kv_heads, d_head]
        a = ops.attend(ops.rope(q, c.rope), k, v, mask=ops.Causal())  # [n, n_heads, d_head]
        return ops.linear(a, prefix + "o_proj.linear", "output_projection", c.d_model)

    def check(c) -> None:
        sizes.check_divides(c, "n_heads", "d_model")  # the reference requires it although d_head may differ
