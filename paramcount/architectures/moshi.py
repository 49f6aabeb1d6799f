"""Moshi's language model: the Llama layout with fused gate and up; the embedding has one row more than the LM head."""

from typing import ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, attend, linear, lookup, rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import fused_gated_mlp
from paramcount.sizes import (
    ABSENT,
    Condition,
    ConfigJson,
    Derivation,
    FieldValues,
    d_model_per_head,
    derived,
    equal_to,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_divides
from paramcount.sizes.types import Natural, Positive


def half_of(absent: int) -> Derivation:
    """config.json gives gate and up together. `absent`: the reference's default."""

    def derive(js: ConfigJson, c: FieldValues) -> int:
        width = js.get("ffn_dim", absent)
        if type(width) is not int or width < 2 or width % 2:
            raise ParamcountError(f"= {describe_value(width)}", where="ffn_dim", expected="an even number")
        return width // 2

    return derive


def codebooks_are_there(js: ConfigJson, c: FieldValues) -> None:
    """As many codebooks as the audio encoder has, or fewer, also where only the language model is built."""
    n, limit = js.get("num_codebooks", 8), (js.get("audio_encoder_config") or {}).get("num_quantizers", 32)
    if n > limit:
        raise ParamcountError(f"= {describe_value(n)}", where="num_codebooks", expected=f"at most {limit}")


class Moshi(AttentionDecoder):
    """Source: arXiv:2410.00037, section 3.2; MoshiDecoderLayer of the reference. The text decoder alone, without codec
    and depth decoder; its head is never tied."""

    reference = "MoshiForCausalLM"
    unused_keys: ClassVar[tuple[str, ...]] = ("depth_decoder_config",)
    larger: ClassVar[tuple[str, ...]] = ("MoshiForConditionalGeneration",)
    rotated = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (codebooks_are_there, padding_in_table(None, more=1))

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_ff: Natural = derived(half_of(22528))
    window: Positive = hf()  # of the KV cache: no mask hides what is outside of it

    norm_eps = setting("rms_norm_eps", default=1e-8)
    rope = rotary(positions=3000)

    def embed(c, tokens: Data) -> Data:
        return lookup(tokens, "model.embed_tokens.weight", "embedding", c.vocab_size + 1, c.d_model)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"), "self_attn.")
        h = c.norm(x, "post_attention_layernorm")
        return x + fused_gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, names=("fc1", "fc2"))

    def attention(c, x: Data, prefix: str) -> Data:
        q = linear(x, prefix + "q_proj.linear", "qkv.q", (c.n_heads, c.d_head))
        k = linear(x, prefix + "k_proj.linear", "qkv.k", (c.n_kv_heads, c.d_head))
        v = linear(x, prefix + "v_proj.linear", "qkv.v", (c.n_kv_heads, c.d_head))
        a = attend(rope(q, c.rope), rope(k, c.rope), v, kept=c.window)
        return linear(a, prefix + "o_proj.linear", "output_projection", c.d_model)

    def check(c) -> None:
        check_divides(c, "n_heads", "d_model")  # the reference requires it although d_head may differ
