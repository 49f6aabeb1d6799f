"""Zamba2: Zamba with Mamba 2, several shared blocks used in turn, and low-rank adapters.

Every use of a block has adapters of its own.
"""

from typing import Any

from paramcount.architectures.zamba import KINDS, SharedBlockDecoder, Use, doubled_per_head, owned, use_of, widened
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value

MAMBA, HYBRID = KINDS[0], KINDS[1]
RELEASED = (
    MAMBA,
    *(*(MAMBA,) * 5, HYBRID) * 7,
    *(MAMBA,) * 4,
    HYBRID,
    *(MAMBA,) * 3,
    HYBRID,
    *(MAMBA,) * 2,
)  # of Zamba2-2.7B


def block_count(c: sizes.FieldValues) -> int:
    """How many shared blocks the hybrid layers use in turn."""
    n = c["n_blocks"]
    if type(n) is not int or n < 1:
        raise sizes.make_value_error(n, "num_mem_blocks", "a positive integer")
    return n


def owners(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """For each hybrid layer the layer that owns its block: num_mem_blocks of them in turn."""
    hybrid = [i for i, word in enumerate(c["layer_types"]) if word == "hybrid"]
    n = block_count(c)
    return tuple(hybrid[use % n] for use in range(len(hybrid)))


def hybrid_ids(js: sizes.ConfigJson) -> Any:
    """hybrid_layer_ids as the reference derives them: from layers_block_type.

    This is so even if the other name of that key determines the layers.
    """
    return js.get(
        "hybrid_layer_ids", [i for i, word in enumerate(js.get("layers_block_type") or RELEASED) if word == "hybrid"]
    )


def adapters(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """For each hybrid layer the number of its adapters among those of its block: its place in hybrid_layer_ids."""
    ids = hybrid_ids(js)
    found = []
    for use, i in enumerate(i for i, word in enumerate(c["layer_types"]) if word == "hybrid"):
        if not isinstance(ids, list) or i not in ids:
            raise ParamcountError(
                f"= {describe_value(ids)} does not contain hybrid layer {i}",
                where="hybrid_layer_ids",
                expected="the indices of the hybrid layers",
            )
        place, n = len(ids) - 1 - ids[::-1].index(i), block_count(c)
        if place % n != use % n:
            raise ParamcountError(
                f"= {describe_value(ids)} assigns no adapter of its block to layer {i}",
                where="hybrid_layer_ids",
                expected="the indices of the hybrid layers, in order",
            )
        found.append(place)
    return tuple(found)


class Zamba2(SharedBlockDecoder):
    """Source: arXiv:2411.15242, section 2; Zamba2HybridLayer of the reference."""

    reference = "Zamba2ForCausalLM"
    is_section_type = True
    task_heads = "SCORED"
    rebuilt_blocks = ("shared_transformer",)
    linear_by_component = False
    unused_keys = ("kv_channels", "num_query_groups")
    rotated = "d_head"
    conditions = (
        sizes.padding_in_table(0),
        widened,
        sizes.null_counts("layer_types"),
        lambda js, c: sizes.check_mixer_fills(c, sizes.expand_d_model("mamba_expand")(js, c)),
    )

    layer_types: sizes.Words = sizes.hf("layer_types", "layers_block_type", absent=RELEASED, null=sizes.ABSENT)
    n_blocks: sizes.Positive = sizes.hf("num_mem_blocks")
    owners: sizes.Indices = sizes.derived(owners)
    adapters: sizes.Indices = sizes.derived(adapters)
    n_adapter_places: sizes.Natural = sizes.derived(
        lambda js, c: len(hybrid_ids(js)) if isinstance(hybrid_ids(js), list) else 0
    )
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    # null: any value does where no layer has heads.
    d_head: sizes.Positive = sizes.hf(
        "head_dim",
        "attention_head_dim",
        absent=doubled_per_head,
        null=lambda js, c: None if "hybrid" in c["layer_types"] else 1,
        n_aliases=2,
    )
    d_ff: sizes.Positive = sizes.hf(absent=lambda js, c: 4 * c["d_model"], null=sizes.ABSENT)
    d_adapter: sizes.Positive = sizes.hf("adapter_rank")
    attention_adapters: sizes.Flag = sizes.hf("use_shared_attention_adapter")
    positions: sizes.Flag = sizes.hf("use_mem_rope")
    n_mamba_heads: sizes.Positive = sizes.hf("n_mamba_heads")
    d_mamba_head: sizes.Positive = sizes.hf(
        "mamba_headdim", absent=lambda js, c: sizes.expand_d_model("mamba_expand")(js, c) // c["n_mamba_heads"]
    )
    n_groups: sizes.Positive = sizes.hf("mamba_ngroups")
    d_state: sizes.Positive = sizes.hf()
    d_conv: sizes.Positive = sizes.hf()
    conv_bias: sizes.Flag = sizes.derived(lambda js, c: True)
    mixer_bias: sizes.Flag = sizes.hf("add_bias_linear")  # of the MLP too

    rope = sizes.rotary()
    time_step_limit = sizes.setting(default=sizes.least_time_step("time_step_min"))

    def layer(c, x: Data, embedded: Data, kind: Any) -> Data:
        if kind == "mamba":
            return x + c.mixer(c.norm(x, "input_layernorm"), "mamba.")
        tied_to = None if kind.first else f"model.layers.{kind.owner}.shared_transformer."
        t = ops.tie_weights(
            ops.block(x, "shared_transformer.", lambda x, embedded: c.shared(x, embedded, kind), reads=(embedded,)),
            tied_to,
        )
        t = ops.linear(t, "linear", "other", c.d_model)
        return x + c.mixer(c.norm(x + t, "mamba_decoder.input_layernorm"), "mamba_decoder.mamba.")

    def mixer(c, x: Data, prefix: str) -> Data:
        return parts.mamba2(c, x, prefix, activation="silu", eps=1e-5)

    def shared(c, x: Data, embedded: Data, use: Use) -> Data:
        """Attention and an MLP, one after the other, without residuals.

        Adapters are stored with the block, one for each of its uses.
        """
        h = c.norm(ops.join(x, embedded), "input_layernorm")
        heads = {"q": c.n_heads, "k": c.n_kv_heads, "v": c.n_kv_heads}
        q, k, v = (c.project(h, use, name, n_heads) for name, n_heads in heads.items())
        if c.positions:
            q, k = ops.rope(q, c.rope), ops.rope(k, c.rope)
        a = ops.linear(
            ops.attend_causally(q, k, v, scale=c.attention_scale), "self_attn.o_proj", "output_projection", c.d_model
        )
        return c.mlp(c.norm(a, "pre_ff_layernorm"), use)

    def project(c, h: Data, use: Use, name: str, n_heads: ops.Size) -> Data:
        y = ops.linear(h, f"self_attn.{name}_proj", f"qkv.{name}", (n_heads, c.d_head))
        if not c.attention_adapters:
            return y
        prefix = f"{stored(use)}self_attn.linear_{name}_adapter_list.{c.adapters[use.use]}."
        return y + adapter(c, h, prefix, "qkv.adapter", (n_heads, c.d_head))

    def mlp(c, h: Data, use: Use) -> Data:
        both = ops.fused(h, "feed_forward.gate_up_proj", {"mlp.gate": c.d_ff, "mlp.up": c.d_ff}, bias=c.mixer_bias)
        prefix = f"{stored(use)}feed_forward.gate_up_proj_adapter_list.{c.adapters[use.use]}."
        gate, up = ops.split(ops.join(*both) + adapter(c, h, prefix, "mlp.adapter", 2 * c.d_ff), c.d_ff, c.d_ff)
        y = ops.activate(gate, c.activation) * up
        return ops.linear(y, "feed_forward.down_proj", "mlp.down", c.d_model, bias=c.mixer_bias)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        """Adapters of the shared blocks.

        Zamba2Attention and Zamba2MLP make adapters for every entry of hybrid_layer_ids that fits the number of their
        block; their forward passes index the lists by the position of the layer in hybrid_layer_ids.
        """
        hybrid = [i for i, word in enumerate(c.layer_types) if word == "hybrid"]
        uses = [use_of(c, hybrid, i) for i in hybrid]
        found = []
        for use in uses:
            read = {c.adapters[other.use] for other in uses if other.owner == use.owner}
            places = range(use.use % c.n_blocks, c.n_adapter_places, c.n_blocks) if use.first else ()
            found += [unused_adapters(c, use, place) for place in places if place not in read]
        return tuple(
            ops.Unreachable(flow, "no layer that reads the shared block takes these adapters") for flow in found
        )

    def unused_fields(c) -> tuple[str, ...]:
        return (*(() if c.owners else ("n_kv_heads",)), *(() if c.owners and c.positions else ("d_head",)))

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        owned(c)
        if len(c.adapters) != len(c.owners):
            found, widths = (
                f"has {len(c.adapters)} entries for {len(c.owners)} hybrid layers",
                (len(c.adapters), len(c.owners)),
            )
            raise ParamcountError(found, where=FieldName("adapters"), expected="one per hybrid layer", sizes=widths)
        if c.owners and c.attention_adapters and not c.n_kv_heads * c.d_head == c.n_heads * c.d_head == 2 * c.d_model:
            heads, size = (FieldName("n_kv_heads"), c.n_kv_heads), FieldName("d_head")
            if c.n_heads * c.d_head != 2 * c.d_model:
                heads = FieldName("n_heads"), c.n_heads
            found, where = f"= {heads[1]} × {c.d_head} = {heads[1] * c.d_head}", heads[0] + " × " + size
            values = (c.n_heads, c.n_kv_heads, c.d_head, 2 * c.d_model)
            raise ParamcountError(
                found, where=where, expected="2 × " + FieldName("d_model") + f" = {2 * c.d_model}", sizes=values
            )


def stored(use: Use) -> str:
    return f"/model.layers.{use.owner}.shared_transformer."


def adapter(c: Any, h: Data, prefix: str, component: str, width: Any) -> Data:
    return ops.linear(ops.linear(h, prefix + "0", component, c.d_adapter), prefix + "1", component, width)


def unused_adapters(c: Any, use: Use, place: int) -> Data:
    h, names = ops.given("hidden states", "tokens", 2 * c.d_model), "qkv" if c.attention_adapters else ""
    attention = [
        adapter(c, h, f"{stored(use)}self_attn.linear_{name}_adapter_list.{place}.", "qkv.adapter", 2 * c.d_model)
        for name in names
    ]
    x = ops.given("hidden states", "tokens", c.d_model)
    prefix = f"{stored(use)}feed_forward.gate_up_proj_adapter_list.{place}."
    return ops.bundle(x, *attention, adapter(c, x, prefix, "mlp.adapter", 2 * c.d_ff))
