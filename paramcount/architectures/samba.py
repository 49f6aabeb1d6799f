"""Samba: Mamba and attention in a sliding window in turn, each followed by a gated MLP."""

from typing import Any

from paramcount.declare import Data, parts, sizes

ATTENTION = {"num_heads": 18, "num_kv_heads": 18, "window_size": 2048}  # of a config without the key


def by_default(key: str) -> sizes.Derivation:
    """What the reference's attn has if config.json has no such key."""
    return lambda js, c: None if "attn" in js else ATTENTION[key]


def odd_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    return () if "attn" in js else tuple(range(1, min(c["n_layers"], 18), 2))


class Samba(parts.FlaDecoder):
    """Source: arXiv:2406.07522, section 2; SambaBlock in fla/models/samba/modeling_samba.py of
    fla-org/flash-linear-attention. hidden_ratio alone decides the size of the MLP."""

    reference = "SambaForCausalLM of fla-org/flash-linear-attention"
    prefix = "backbone."
    names = ("embeddings", "layers", "norm_f")
    layer_norms = ("mixer_norm", "mlp_norm")
    mixer_prefix = "mixer."
    not_adapted = ("out_proj", "conv1d")
    defaults = {"d_model": 2304, "n_layers": 18}
    conv_bias = True

    d_ff: sizes.Natural = sizes.derived(parts.gated_width_by(4))
    attention_layers: sizes.Indices = sizes.hf("attn.layers", absent=odd_layers, unstated=())
    n_attention_heads: sizes.Positive | None = sizes.hf("attn.num_heads", absent=by_default("num_heads"), unstated=None)
    n_attention_kv_heads: sizes.Positive | None = sizes.hf(
        "attn.num_kv_heads", absent=sizes.equal_to("n_attention_heads"), null=sizes.ABSENT, unstated=None
    )
    window: sizes.Positive | None = sizes.hf("attn.window_size", absent=by_default("window_size"), unstated=None)
    d_inner: sizes.Positive = sizes.hf("intermediate_size", absent=sizes.expand_d_model("expand"))
    d_state: sizes.Positive = sizes.hf("state_size", absent=16)
    d_conv: sizes.Positive = sizes.hf("conv_kernel", absent=4)
    dt_rank: sizes.Positive = sizes.derived(sizes.dt_rank("time_step_rank"))
    mixer_bias: sizes.Flag = sizes.hf("use_bias", absent=False)

    norm_eps = sizes.setting("norm_eps", default=1e-5)

    def mixer(c: Any, x: Data, prefix: str, *reads: Data) -> Data:
        return parts.mamba(c, x, prefix)
