"""StableLM 3B and Stable Code 3B as first released: StableLM's layers under other keys."""

from paramcount.declare import Data, parts, sizes


class StableLMEpoch(parts.PartlyRotated):
    """Source: configuration_stablelm_epoch.py and modeling_stablelm_epoch.py of stabilityai/stable-code-3b, and of
    stabilityai/stablelm-2-1_6b for use_qkv_bias."""

    reference = "StableLMEpochForCausalLM of stabilityai/stable-code-3b"
    rotated = "d_rope"
    conditions = (sizes.padding_in_table(None),)
    defaults = {"vocab_size": 50304, "d_model": 2560, "n_layers": 32, "n_heads": 32, "n_kv_heads": 32}

    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_rope: sizes.Natural = sizes.derived(
        lambda js, c: sizes.part_of(c["d_head"], js.get("rope_pct", 0.25), "rope_pct")
    )
    d_ff: sizes.Natural = sizes.hf(absent=6912)
    qkv_bias: sizes.Flag = sizes.hf("use_qkv_bias", absent=False)

    norm_eps = sizes.setting("norm_eps", default=1e-5)
    rope = sizes.rotary(positions=4096)
    norm = parts.use_layer_norm

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.qkv_bias, o_bias=False)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_at_most(c, "d_rope", "d_head")
        sizes.check_even(c, "d_rope")
