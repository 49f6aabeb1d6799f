"""OLMo Hybrid: three layers of gated delta net with norms before to one of attention with norms behind."""

from typing import Any

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, Unknown, activate, linear, rms_norm, rope, scale_by, to_heads
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import layers_by_type
from paramcount.parts.linear_attention import decay, delta_rule, gated_output, streams_apart
from paramcount.sizes import (
    ABSENT,
    ConfigJson,
    FieldValues,
    Flag,
    Natural,
    Positive,
    Words,
    derived,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.conditions import known_ropes, padding_in_table
from paramcount.sizes.derivations import d_model_per_head, equal_to, per_layer
from paramcount.sizes.mixers import list_unused_fields
from paramcount.sizes.rules import check_layer_types
from paramcount.sizes.setting_kinds import ABOVE_ZERO

KINDS = ("linear_attention", "full_attention", "mamba", "attention")  # the last two are the older words


def three_to_one(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    words = [KINDS[i % 4 == 3] for i in per_layer(c)]
    if KINDS[1] not in words:
        words[-1] = KINDS[1]
    return tuple(words)


def rotates(js: ConfigJson, c: FieldValues) -> bool:
    """rope_theta null is attention without positions; the reference looks for it outside of blocks for layer types."""
    rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
    if any(word in rope for word in c["layer_types"]):
        return rope.get("rope_theta") is not None
    return rope.get("rope_theta", js.get("rope_theta", 10000.0)) is not None


ROPE_PATHS = ("", "rope_parameters.", "rope_scaling.")  # in which rope_theta may be null


def rope_blocks(js: ConfigJson, c: FieldValues) -> dict[str, Any]:
    key = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
    return {key: js[key]} if js.get(key) and c["positions"] else {}


def d_linear_k(js: ConfigJson, c: FieldValues) -> int:
    return int(0.75 * c["d_model"] / c["n_linear_k_heads"])


class OlmoHybrid(Decoder):
    """Source: modeling_olmo_hybrid.py of the reference; for the delta net arXiv:2412.06464."""

    reference = "OlmoHybridForCausalLM"
    rotated = "d_head"
    conditions = (padding_in_table(100277), known_ropes(rope_blocks))

    layer_types: Words = hf(absent=three_to_one, null=ABSENT)
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    positions: Flag = derived(rotates)
    n_linear_k_heads: Positive = hf("linear_num_key_heads", absent=equal_to("n_heads"), null=ABSENT)
    n_linear_v_heads: Positive = hf("linear_num_value_heads", absent=equal_to("n_heads"), null=ABSENT)
    d_linear_k: Positive = hf("linear_key_head_dim", absent=d_linear_k, null=ABSENT)
    d_linear_v: Positive = hf("linear_value_head_dim", absent=lambda js, c: 2 * c["d_linear_k"], null=ABSENT)
    d_conv: Positive = hf("linear_conv_kernel_dim")
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=65536, checked=False, kinds={f"{path}rope_theta": ABOVE_ZERO for path in ROPE_PATHS})
    allow_negative = setting("linear_allow_neg_eigval", default=True)  # eigenvalues of the state's update
    kinds = layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        """One layer.

        The checkpoint calls the norm before the MLP in linear-attention layers and the one after the attention in the
        others `feedforward_layer_norm`.
        """
        if kind in ("linear_attention", "mamba"):
            x = x + c.delta_net(c.norm(x, "attention_layer_norm"), "linear_attn.")
            return x + c.mlp(c.norm(x, "feedforward_layer_norm"))
        a = c.self_attention(x, bias=c.attention_bias, prepare=c.prepare)
        x = x + c.norm(a, "feedforward_layer_norm")
        return x + c.norm(c.mlp(x), "post_feedforward_layernorm")

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        """Norms over all heads together, then the rotation, unless rope_theta is null."""
        q, k = (rms_norm(y, f"self_attn.{name}_norm", c.norm_eps, wide=True) for y, name in ((q, "q"), (k, "k")))
        return (rope(q, c.rope), rope(k, c.rope)) if c.positions else (q, k)

    def mlp(c, x: Data) -> Data:
        return c.gated_mlp(x)

    def delta_net(c, x: Data, prefix: str) -> Data:
        n_v, d_v = c.n_linear_v_heads, c.d_linear_v
        q, k, v = streams_apart(c, x, prefix, (c.n_linear_k_heads, c.d_linear_k), (n_v, d_v))
        step = linear(x, prefix + "a_proj", "mixer.step", n_v)
        beta = activate(linear(x, prefix + "b_proj", "mixer.beta", n_v), "sigmoid")
        if c.allow_negative is not False:
            beta = scale_by(beta, 2.0 if c.allow_negative is True else Unknown("allow_negative"))
        y = delta_rule(q, k, v, step, beta, *decay(prefix, n_v))
        z = to_heads(linear(x, prefix + "g_proj", "mixer.gate", n_v * d_v), n_v, d_v)
        return gated_output(y, z, prefix + "o_norm", prefix + "o_proj", c.d_model, eps=1e-5)

    def unused_fields(c) -> tuple[str, ...]:
        return (*list_unused_fields(c.layer_types), *(() if c.positions else ("d_head",)))

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        if len({word in ("linear_attention", "mamba") for word in c.layer_types}) < 2:
            raise ParamcountError(
                "contains only one type of layer",
                where=FieldName("layer_types"),
                expected="both linear_attention and full_attention",
            )
