"""RWKV-7: time mixing by a generalised delta rule, whose values the first layer passes on; channel mixing."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

LEAST_DECAY = -0.6065306597126334  # of the logarithm: −exp(−0.5)


def d_values(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """value_dim: the size of the values of all heads, which is d_model by default; a list has one for each layer."""
    found = js.get("value_dim")
    listed = found if isinstance(found, list) else [c["d_model"] if found is None else found]
    if len(set(map(str, listed))) != 1 or type(listed[0]) is not int:
        raise ParamcountError(f"= {describe_value(found)}", where="value_dim", expected="one size for all layers")
    if isinstance(found, list) and len(found) != c["n_layers"]:
        raise ParamcountError(f"has {len(found)} entries", where="value_dim", expected="one per layer")
    if listed[0] % c["d_model"] or listed[0] < 1:
        raise ParamcountError(f"= {listed[0]}", where="value_dim", expected=f"a multiple of {c['d_model']}")
    return listed[0] // c["n_heads"]


class Rwkv7(parts.RwkvDecoder):
    """Source: arXiv:2503.14456, section 4; RWKV7Attention in fla/layers/rwkv7.py and RWKV7FeedForward in
    fla/models/rwkv7/modeling_rwkv7.py of fla-org/flash-linear-attention."""

    reference = "RWKV7ForCausalLM of fla-org/flash-linear-attention"
    conditions = (*parts.RwkvDecoder.conditions, parts.no_hybrid)
    attention_layers = sizes.constant(())
    n_attention_heads = sizes.constant(None)
    n_attention_kv_heads = sizes.constant(None)
    d_attention_head = sizes.constant(None)
    attention_bias = sizes.constant(False)
    window = sizes.constant(None)
    rope = None

    d_ff: sizes.Natural = sizes.hf(absent=parts.rounded_to_32(4), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.hf("head_dim", absent=64, null=lambda js, c: c["d_model"] // js["num_heads"])
    n_heads: sizes.Positive = sizes.derived(lambda js, c: c["d_model"] // c["d_head"])
    d_head_v: sizes.Positive = sizes.derived(d_values)
    decay_rank: sizes.Positive = sizes.hf("decay_low_rank_dim", absent=64, null=lambda js, c: parts.waist(js, c, 2.5))
    gate_rank: sizes.Positive = sizes.hf(
        "gate_low_rank_dim", absent=128, null=lambda js, c: parts.waist(js, c, 5, per_head=False)
    )
    rate_rank: sizes.Positive = sizes.hf("a_low_rank_dim", absent=64, null=lambda js, c: parts.waist(js, c, 2.5))
    value_rank: sizes.Positive = sizes.hf("v_low_rank_dim", absent=16, null=lambda js, c: parts.waist(js, c, 1.7))

    fused = sizes.setting("fuse_norm", default=True)
    head_eps = sizes.setting(default=lambda config, c: c.d_head * config.get("norm_eps", 1e-5))

    def carry(c) -> tuple[ops.Width, ...]:
        return ((c.n_heads, c.d_head_v),)

    def kinds(c) -> parts.Kinds:
        if c.norm_first:
            return parts.first_differs(c.n_layers, "first mixer, norm", "mixer")
        return parts.first_differs(c.n_layers, "first mixer", "mixer")

    def layer(c, x: Data, *reads: Any) -> Any:
        """One layer, and the values of the first one, which it reads."""
        first_values, kind = reads
        if kind.endswith("norm"):
            x = c.norm(x, "pre_norm")
        a, values = c.mix_time(c.norm(x, "attn_norm"), "attn.", None if kind.startswith("first") else first_values)
        x = x + a
        return x + c.mix_channels(c.norm(x, "ffn_norm"), "ffn."), values

    def mix_time(c: Any, x: Data, prefix: str, first_values: Data | None) -> tuple[Data, Data]:
        """x mixed with earlier tokens, and the values of the first layer."""
        heads, width = (c.n_heads, c.d_head), c.n_heads * c.d_head
        difference = parts.difference_to_last(x)
        streams = {
            name: parts.mix_with_last(x, difference, f"{prefix}x_{name}", "mixer.mix", 1, 1) for name in "rwkvag"
        }
        r = ops.linear(streams["r"], prefix + "r_proj", "mixer.r", heads)  # [n, n_heads, d_head]
        decay = parts.low_rank(streams["w"], prefix + "w_lora", "mixer.step", c.decay_rank, width, activation="tanh")
        decay = ops.to_heads(ops.scale_by(ops.activate(decay, "sigmoid"), LEAST_DECAY), *heads)
        k = ops.linear(streams["k"], prefix + "k_proj", "mixer.k", width)
        v = ops.linear(streams["v"], prefix + "v_proj", "mixer.v", (c.n_heads, c.d_head_v))
        if first_values is None:
            first_values = v
        else:
            share = parts.low_rank(streams["v"], prefix + "v_lora", "mixer.v", c.value_rank, c.n_heads * c.d_head_v)
            share = ops.to_heads(ops.activate(share, "sigmoid"), c.n_heads, c.d_head_v)
            v = v + (first_values + ops.scale_by(v, -1.0, "negate")) * share
        rate = parts.low_rank(streams["a"], prefix + "a_lora", "mixer.beta", c.rate_rank, width)
        rate = ops.activate(rate, "sigmoid")
        removed = ops.multiply_vector(k, prefix + "k_k", "mixer.state", width)
        removed = ops.plain_norm(ops.to_heads(removed, *heads), "l2", 1e-6 if c.fused is True else 1e-24)
        less = ops.multiply_vector(
            k * ops.scale_by(rate, 1.0, "x − 1", shift=-1.0), prefix + "k_a", "mixer.state", width
        )
        k, rate = ops.to_heads(k + less, *heads), ops.to_heads(rate, *heads)
        inputs = (r, decay, k, v, ops.scale_by(removed, -1.0, "negate"), removed * rate)
        y = Data(ops.RankOneState(*heads, c.d_head_v), inputs, v.shape)
        y = parts.normalise_heads_apart(y, prefix + "g_norm", c.head_eps)
        bonus = ops.scale_by_sum(v, ops.multiply_vector(r * k, prefix + "r_k", "mixer.state", *heads))
        gate = parts.low_rank(
            streams["g"], prefix + "g_lora", "mixer.gate", c.gate_rank, y.shape[-1], activation="sigmoid", bias=False
        )
        y = (y + ops.reshape(bonus, y.shape[-1])) * gate
        return ops.linear(y, prefix + "o_proj", "mixer.out", x.shape[-1]), first_values

    def mix_channels(c, x: Data, prefix: str) -> Data:
        mixed = parts.mix_with_last(x, parts.difference_to_last(x), prefix + "x_k", "mlp.mix")
        k = c.activate(ops.linear(mixed, prefix + "key", "mlp.up", c.d_ff))
        return ops.linear(k, prefix + "value", "mlp.down", x.shape[-1])

    def check(c) -> None:
        sizes.check_heads_fill(c)
