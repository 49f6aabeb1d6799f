"""OLMo Hybrid: three layers of gated delta net with norms before to one of attention with norms behind."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

KINDS = ("linear_attention", "full_attention", "mamba", "attention")  # the last two are the older words


def three_to_one(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    words = [KINDS[i % 4 == 3] for i in sizes.per_layer(c)]
    if KINDS[1] not in words:
        words[-1] = KINDS[1]
    return tuple(words)


def rotates(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """rope_theta null is attention without positions; the reference looks for it outside of blocks for layer types."""
    rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
    if any(word in rope for word in c["layer_types"]):
        return rope.get("rope_theta") is not None
    return rope.get("rope_theta", js.get("rope_theta", 10000.0)) is not None


ROPE_PATHS = ("", "rope_parameters.", "rope_scaling.")  # in which rope_theta may be null


def rope_blocks(js: sizes.ConfigJson, c: sizes.FieldValues) -> dict[str, Any]:
    key = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
    return {key: js[key]} if js.get(key) and c["positions"] else {}


def d_linear_k(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    return int(0.75 * c["d_model"] / c["n_linear_k_heads"])


class OlmoHybrid(parts.AttentionBias, parts.Decoder):
    """Source: modeling_olmo_hybrid.py of the reference; for the delta net arXiv:2412.06464."""

    reference = "OlmoHybridForCausalLM"
    rotated = "d_head"
    conditions = (sizes.padding_in_table(100277), sizes.known_ropes(rope_blocks))

    layer_types: sizes.Words = sizes.hf(absent=three_to_one, null=sizes.ABSENT)
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head)
    positions: sizes.Flag = sizes.derived(rotates)
    n_linear_k_heads: sizes.Positive = sizes.hf(
        "linear_num_key_heads", absent=sizes.equal_to("n_heads"), null=sizes.ABSENT
    )
    n_linear_v_heads: sizes.Positive = sizes.hf(
        "linear_num_value_heads", absent=sizes.equal_to("n_heads"), null=sizes.ABSENT
    )
    d_linear_k: sizes.Positive = sizes.hf("linear_key_head_dim", absent=d_linear_k, null=sizes.ABSENT)
    d_linear_v: sizes.Positive = sizes.hf(
        "linear_value_head_dim", absent=lambda js, c: 2 * c["d_linear_k"], null=sizes.ABSENT
    )
    d_conv: sizes.Positive = sizes.hf("linear_conv_kernel_dim")
    d_ff: sizes.Natural = sizes.hf()

    rope = sizes.unchecked(
        sizes.rotary(positions=65536), {f"{path}rope_theta": sizes.ABOVE_ZERO for path in ROPE_PATHS}
    )
    allow_negative = sizes.setting("linear_allow_neg_eigval")  # eigenvalues of the state's update
    kinds = parts.layers_by_type

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
        q, k = (ops.rms_norm(y, f"self_attn.{name}_norm", c.norm_eps, wide=True) for y, name in ((q, "q"), (k, "k")))
        return (ops.rope(q, c.rope), ops.rope(k, c.rope)) if c.positions else (q, k)

    def mlp(c, x: Data) -> Data:
        return c.gated_mlp(x)

    def delta_net(c, x: Data, prefix: str) -> Data:
        n_v, d_v = c.n_linear_v_heads, c.d_linear_v
        q, k, v = parts.streams_apart(c, x, prefix, (c.n_linear_k_heads, c.d_linear_k), (n_v, d_v))
        step = ops.linear(x, prefix + "a_proj", "mixer.step", n_v)
        beta = ops.activate(ops.linear(x, prefix + "b_proj", "mixer.beta", n_v), "sigmoid")
        if c.allow_negative is not False:
            beta = ops.scale_by(beta, 2.0 if c.allow_negative is True else ops.Unknown("allow_negative"))
        y = parts.delta_rule(q, k, v, step, beta, *parts.decay(prefix, n_v))
        z = ops.to_heads(ops.linear(x, prefix + "g_proj", "mixer.gate", n_v * d_v), n_v, d_v)
        return parts.gated_output(y, z, prefix + "o_norm", prefix + "o_proj", c.d_model, eps=1e-5)

    def unused_fields(c) -> tuple[str, ...]:
        return (*sizes.list_unused_fields(c.layer_types), *(() if c.positions else ("d_head",)))

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        if len({word in ("linear_attention", "mamba") for word in c.layer_types}) < 2:
            raise ParamcountError(
                "contains only one type of layer",
                where=FieldName("layer_types"),
                expected="both linear_attention and full_attention",
            )
