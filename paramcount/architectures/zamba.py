"""Zamba: Mamba layers and one attention and MLP block whose weights several layers share.

The block reads the token embedding beside the hidden state.
"""

from typing import Any, NamedTuple

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

KINDS = ("linear_attention", "hybrid", "mamba")  # the last is the older word for the first


class Use(NamedTuple):
    """A layer that uses a shared block."""

    use: int  # how many stand before it
    owner: int  # the layer under whose name the block's weights are stored
    first: bool  # it is the owner itself


def periodic(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    period, offset = sizes.check_no_types(js, "attn_layer_period", 6), sizes.check_no_types(js, "attn_layer_offset", 4)
    later = tuple("hybrid" if i % period == offset else "mamba" for i in range(len(sizes.per_layer(c)) - 3))
    return ("mamba", "mamba", "hybrid", *later)


def owners(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """For each hybrid layer the layer that owns its block: the first one's."""
    hybrid = [i for i, word in enumerate(c["layer_types"]) if word == "hybrid"]
    return tuple(hybrid[0] for _ in hybrid)


def widened(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The shared block reads hidden state and embedding side by side and nothing else."""
    width = js.get("attention_hidden_size") or 2 * c["d_model"]
    if width != 2 * c["d_model"] and "hybrid" in c["layer_types"]:
        raise sizes.make_value_error(width, "attention_hidden_size", f"{2 * c['d_model']}")


def doubled_per_head(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The width of a head where the heads share out 2 · d_model."""
    d_head: int = 2 * c["d_model"] // c["n_heads"]
    return d_head


class SharedBlockDecoder(parts.Decoder):
    """A decoder whose hybrid layers share blocks; every layer also reads the embedded tokens."""

    names = ("embed_tokens", "layers", "final_layernorm")

    activation = sizes.setting("hidden_act", default="gelu")
    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    # Half of each head's input is the token embedding. Source: ZambaAttention of the reference.
    attention_scale = sizes.setting(default=lambda config, c: float((c.d_head / 2) ** -0.5))

    def decode(c, x: Data) -> Data:
        x = ops.layers(x, "model.layers.{layer}.", c.kinds(), lambda kind, *inputs: c.layer(*inputs, kind), reads=(x,))
        return c.head(c.norm(x, "model.final_layernorm"))

    def kinds(c: Any) -> parts.Kinds:
        hybrid = [i for i, word in enumerate(c.layer_types) if word == "hybrid"]
        return [(use_of(c, hybrid, i) if word == "hybrid" else "mamba", 1) for i, word in enumerate(c.layer_types)]


class Zamba(SharedBlockDecoder):
    """Source: arXiv:2405.16712, section 2; ZambaHybridLayer of the reference."""

    reference = "ZambaForCausalLM"
    is_section_type = True
    task_heads = "SCORED"
    linear_by_component = False
    conditions = (
        sizes.padding_in_table(0),
        widened,
        sizes.null_counts("layer_types"),
        sizes.null_counts("head_dim", "hybrid"),
    )

    layer_types: sizes.Words = sizes.hf("layer_types", "layers_block_type", absent=periodic, null=sizes.ABSENT)
    owners: sizes.Indices = sizes.derived(owners)
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf("head_dim", "attention_head_dim", absent=doubled_per_head, null=sizes.ABSENT)
    d_ff: sizes.Natural = sizes.hf()
    n_mamba_heads: sizes.Positive = sizes.hf("n_mamba_heads")
    d_inner: sizes.Positive = sizes.derived(sizes.expand_d_model("mamba_expand"))
    d_mamba_head: sizes.Positive = sizes.derived(lambda js, c: c["d_inner"] // c["n_mamba_heads"])
    d_state: sizes.Positive = sizes.hf()
    d_conv: sizes.Positive = sizes.hf()
    dt_rank: sizes.Positive = sizes.derived(sizes.dt_rank("mamba_dt_rank"))
    conv_bias: sizes.Flag = sizes.hf()
    mixer_bias: sizes.Flag = sizes.hf()

    mixer_activation = sizes.setting("hidden_mamba_act")

    def layer(c, x: Data, embedded: Data, kind: Any) -> Data:
        if kind == "mamba":
            return x + c.mixer(c.norm(x, "input_layernorm"), "mamba.")
        tied_to = None if kind.first else f"model.layers.{kind.owner}.shared_transf."
        t = ops.tie_weights(ops.block(x, "shared_transf.", c.shared, reads=(embedded,)), tied_to)
        t = ops.linear(t, "linear", "other", c.d_model)
        return x + c.mixer(c.norm(x + t, "mamba_decoder.input_layernorm"), "mamba_decoder.mamba.")

    def shared(c, x: Data, embedded: Data) -> Data:
        """Attention without positions and an MLP, one after the other, without residuals."""
        h = c.norm(ops.join(x, embedded), "input_layernorm")
        q = ops.linear(h, "self_attn.q_proj", "qkv.q", (c.n_heads, c.d_head))  # [n, n_heads, d_head]
        k = ops.linear(h, "self_attn.k_proj", "qkv.k", (c.n_kv_heads, c.d_head))  # [n, n_kv_heads, d_head]
        v = ops.linear(h, "self_attn.v_proj", "qkv.v", (c.n_kv_heads, c.d_head))  # [n, n_kv_heads, d_head]
        a = ops.linear(
            ops.attend_causally(q, k, v, scale=c.attention_scale), "self_attn.o_proj", "output_projection", c.d_model
        )
        return c.gated_mlp(c.norm(a, "pre_ff_layernorm"), "feed_forward.")

    def mixer(c, x: Data, prefix: str) -> Data:
        """Mamba 1 reshaped to heads, each with matrices of its own for step, B and C.

        The rows of in_proj alternate: one of x, one of the gate.
        """
        n, d = c.n_mamba_heads, c.d_mamba_head
        halves = {"mixer.x": c.d_inner, "mixer.gate": c.d_inner}
        u, z = ops.fused(x, prefix + "in_proj", halves, bias=c.mixer_bias, groups=c.d_inner)
        u = ops.activate(ops.convolve(u, prefix + "conv1d", c.d_conv, bias=c.conv_bias), c.mixer_activation)
        u, z = ops.to_heads(u, n, d), ops.to_heads(z, n, d)
        shares = (("mixer.step", c.dt_rank), ("mixer.b", c.d_state), ("mixer.c", c.d_state))
        d_out = c.dt_rank + 2 * c.d_state
        by_head = ops.Weight(prefix + "x_proj_weight", "mixer.step", (n, d_out, d), shares, 1)
        dt, b, out = ops.split(ops.linear_by_head(u, d_out, by_head), c.dt_rank, c.d_state, c.d_state)
        step = ops.Weight(prefix + "dt_proj_weight", "mixer.step", (n, d, c.dt_rank))
        dt = ops.linear_by_head(dt, d, step, ops.Weight(prefix + "dt_proj_bias", "mixer.step", (n, d)))
        state = (
            ops.Weight(prefix + "A_log", "mixer.state", (n, d, c.d_state)),
            ops.Weight(prefix + "D", "mixer.state", (n, d)),
        )
        y = Data(ops.SelectiveScan((n, d), c.d_state), (u, dt, b, out), u.shape, state) * ops.activate(z, "silu")
        return ops.linear(y, prefix + "out_proj", "mixer.out", c.d_model, bias=c.mixer_bias)

    def unused_fields(c) -> tuple[str, ...]:
        return () if c.owners else ("n_kv_heads",)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        owned(c)
        sizes.check_divides(c, "n_mamba_heads", "d_inner")
        if len(c.owners) == 1 and c.tie_word_embeddings:  # it finds nothing to tie and stops
            raise ParamcountError(
                "has one hybrid layer, so tied weights have nothing to share",
                where=FieldName("layer_types"),
                expected="no hybrid layer, or several",
            )


def owned(c: Any) -> None:
    """Every hybrid layer has the block of one that is no later."""
    hybrid = [i for i, word in enumerate(c.layer_types) if word == "hybrid"]
    if len(c.owners) != len(hybrid):
        raise ParamcountError(
            f"has {len(c.owners)} entries for {len(hybrid)} hybrid layers",
            where=FieldName("owners"),
            expected="one per hybrid layer",
        )
    for use, (i, owner) in enumerate(zip(hybrid, c.owners)):
        if owner > i or owner not in hybrid:
            raise ParamcountError(
                f"= {owner}",
                where=FieldName("owners") + f".{use}",
                expected=f"the index of a hybrid layer, at most {i}",
            )


def use_of(c: Any, hybrid: list[int], i: int) -> Use:
    use = hybrid.index(i)
    owner = c.owners[use] if c.tie_word_embeddings else i  # untied blocks are not shared either
    return Use(use, owner, owner == i)
