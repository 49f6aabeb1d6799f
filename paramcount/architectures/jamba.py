"""Jamba: Mamba with norms on step, B and C; every eighth layer is attention without positions.

Every second layer has experts.
"""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def each(js: sizes.ConfigJson, kind: str, period: int, offset: int) -> tuple[int, int]:
    """How often a kind of layer comes, and where first."""
    period, offset = (
        sizes.check_no_types(js, f"{kind}_layer_period", period),
        sizes.check_no_types(js, f"{kind}_layer_offset", offset),
    )
    if offset >= period:
        raise ParamcountError(
            f"= {offset} is not less than {kind}_layer_period = {period}",
            where=f"{kind}_layer_offset",
            expected=f"at most {period - 1}",
        )
    return period, offset


def kinds(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    period, offset = each(js, "attn", 8, 4)
    return tuple("attention" if i % period == offset else "mamba" for i in sizes.per_layer(c))


def dense(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Layers without experts; a single expert is none."""
    period, offset = each(js, "expert", 2, 1)
    return tuple(i for i in sizes.per_layer(c) if i % period != offset or c.get("n_routed_experts", 2) < 2)


def any_without_experts(js: sizes.ConfigJson, c: sizes.FieldValues) -> int | None:
    """The other name of the key is not checked."""
    return 0 if "num_local_experts" in js and len(dense(js, c)) == c["n_layers"] else None


def experts_are_numbered(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """That name counts before num_experts with null too."""
    if "num_local_experts" in js and any_without_experts(js, c) is None:
        sizes.null_counts("num_local_experts")(js, c)


class Jamba(parts.Decoder):
    """Source: arXiv:2403.19887, section 3."""

    reference = "JambaForCausalLM"
    gguf = "jamba"
    gguf_kv_heads_by_layer = True
    is_section_type = True
    task_heads = "SCORED"
    copied_modules = ("modeling_jamba",)
    names = ("embed_tokens", "layers", "final_layernorm")
    conditions = (
        sizes.padding_in_table(0),
        sizes.no_key("layer_types", "layers_block_type", "layers_num_experts"),
        experts_are_numbered,
    )

    layer_types: sizes.Words = sizes.derived(kinds)
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.if_no_attention)
    d_ff: sizes.Natural = sizes.hf()
    d_expert: sizes.Natural = sizes.derived(sizes.equal_to("d_ff"))
    n_routed_experts: sizes.Natural = sizes.hf("num_local_experts", "num_experts", null=any_without_experts)
    n_active_experts: sizes.Natural = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(dense)
    d_inner: sizes.Positive = sizes.derived(sizes.expand_d_model("mamba_expand"))
    d_state: sizes.Positive = sizes.hf()
    d_conv: sizes.Positive = sizes.hf()
    dt_rank: sizes.Positive = sizes.derived(sizes.dt_rank("mamba_dt_rank"))
    conv_bias: sizes.Flag = sizes.hf()
    mixer_bias: sizes.Flag = sizes.hf()

    kinds = parts.layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, density = kind
        h = c.norm(x, "input_layernorm")
        if word == "mamba":
            x = x + parts.mamba(c, h, "mamba.", inner_norm=lambda y, name: c.norm(y, name + "_layernorm"))
        else:
            x = x + c.self_attention(h, prepare=c.normalise_heads)
        h = c.norm(x, "pre_ff_layernorm")
        if density == "dense":
            return x + c.gated_mlp(h, "feed_forward.")
        return x + parts.mixture(c, h, "feed_forward.", router="router", choose=c.choose)

    def choose(c, logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, "softmax")

    def unused_fields(c) -> tuple[str, ...]:
        experts = ("n_active_experts",) if len(c.dense_layers) == len(c.layer_types) else ()
        return (*sizes.list_unused_fields(c.layer_types), *experts)
