"""GPT-NeoX and Pythia: parallel attention and MLP, each after its own norm.

A quarter of each head has rotary positions.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


def rotary_width(share: float, *, in_pairs: bool = False) -> sizes.Derivation:
    """How much of a head is rotated, None for all of it.

    `share`: where the config does not say. `in_pairs`: an odd width is rounded up.
    """
    find_width = sizes.rotary_dimension(share, key="rotary_pct", paired=in_pairs)

    def width(js: sizes.ConfigJson, c: sizes.FieldValues) -> int | None:
        n: int = find_width(js, c)
        return None if n == c["d_head"] or (n and c["d_head"] == 1) else n

    return width


class GPTNeoX(parts.AttentionBias, parts.Decoder):
    """Source: arXiv:2204.06745, section 2.1; GPTNeoXLayer of the reference."""

    reference = "GPTNeoXForCausalLM"
    gguf = "gptneox"
    task_heads = "GPT_SPAN"
    modules = {"embed_out": ("lm_head",)}

    n_positions: sizes.Positive = sizes.hf(
        "max_position_embeddings"
    )  # no table: only the masks of older files are as large
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_rope: sizes.Natural | None = sizes.derived(rotary_width(0.25, in_pairs=True))
    d_ff: sizes.Natural = sizes.hf()
    parallel_residual: sizes.Flag = sizes.hf("use_parallel_residual")

    prefix = "gpt_neox."
    names = ("embed_in", "layers", "final_layer_norm")
    norm_eps = sizes.setting("layer_norm_eps")
    rope = sizes.rotary(key="rotary_emb_base", share=0.25, share_key="rotary_pct")
    norm = parts.use_layer_norm

    def layer(c, x: Data) -> Data:
        attended = x + c.attention(c.norm(x, "input_layernorm"))
        h = c.norm(x if c.parallel_residual else attended, "post_attention_layernorm")
        names = ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        return attended + parts.plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=True)

    def attention(c, x: Data) -> Data:
        """Each head has its q, k and v side by side in one matrix; its first d_rope dimensions are rotated."""
        q, k, v = parts.fused_qkv(c, x, "attention.query_key_value", bias=c.attention_bias, groups=c.n_heads)
        a = ops.attend_causally(parts.partial_rope(q, c.d_rope, c.rope), parts.partial_rope(k, c.d_rope, c.rope), v)
        return ops.linear(a, "attention.dense", "output_projection", c.d_model, bias=c.attention_bias)

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "gpt_neox.embed_in.weight", "embed_out")

    def legacy_buffers(c) -> sizes.Buffers:
        name, turned = "gpt_neox.layers.{layer}.attention.", c.d_head if c.d_rope is None else c.d_rope
        masks = (name + "bias", (1, 1, c.n_positions, c.n_positions), c.n_layers)
        return (masks, (name + "rotary_emb.inv_freq", (turned // 2,), c.n_layers))

    def check(c) -> None:
        sizes.check_heads_fill(c)
        rotation_fits(c)


def rotation_fits(c: Any) -> None:
    if c.d_rope is not None:
        sizes.check_at_most(c, "d_rope", "d_head")
        sizes.check_even(c, "d_rope")
    elif c.d_head > 1:  # the reference stretches a head of one number instead of turning it
        sizes.check_even(c, "d_head")
