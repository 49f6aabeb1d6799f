"""Jamba: Mamba with norms on step, B and C; every eighth layer is attention without positions.

Every second layer has experts.
"""

from paramcount.errors import ParamcountError
from paramcount.flow import Data, route
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import mixture
from paramcount.parts.state_space import mamba
from paramcount.sizes import ConfigJson, FieldValues, Flag, Indices, Natural, Positive, Words, derived, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import d_model_per_head, equal_to, per_layer
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.mixers import dt_rank, expand_d_model, if_no_attention, list_unused_fields, no_key, null_counts


def each(js: ConfigJson, kind: str, period: int, offset: int) -> tuple[int, int]:
    """How often a kind of layer comes, and where first."""
    period, offset = (
        check_no_types(js, f"{kind}_layer_period", period),
        check_no_types(js, f"{kind}_layer_offset", offset),
    )
    if offset >= period:
        raise ParamcountError(
            f"= {offset} is not less than {kind}_layer_period = {period}",
            where=f"{kind}_layer_offset",
            expected=f"at most {period - 1}",
        )
    return period, offset


def kinds(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    period, offset = each(js, "attn", 8, 4)
    return tuple("attention" if i % period == offset else "mamba" for i in per_layer(c))


def dense(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """Layers without experts; a single expert is none."""
    period, offset = each(js, "expert", 2, 1)
    return tuple(i for i in per_layer(c) if i % period != offset or c.get("n_routed_experts", 2) < 2)


def any_without_experts(js: ConfigJson, c: FieldValues) -> int | None:
    """The other name of the key is not checked."""
    return 0 if "num_local_experts" in js and len(dense(js, c)) == c["n_layers"] else None


def experts_are_numbered(js: ConfigJson, c: FieldValues) -> None:
    """That name counts before num_experts with null too."""
    if "num_local_experts" in js and any_without_experts(js, c) is None:
        null_counts("num_local_experts")(js, c)


class Jamba(Decoder):
    """Source: arXiv:2403.19887, section 3."""

    reference = "JambaForCausalLM"
    gguf = "jamba"
    is_section_type = True
    task_heads = "SCORED"
    copied_modules = ("modeling_jamba",)
    names = ("embed_tokens", "layers", "final_layernorm")
    conditions = (
        padding_in_table(0),
        no_key("layer_types", "layers_block_type", "layers_num_experts"),
        experts_are_numbered,
    )

    layer_types: Words = derived(kinds)
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf()
    d_head: Positive = hf(absent=d_model_per_head, null=if_no_attention)
    d_ff: Natural = hf()
    d_expert: Natural = derived(equal_to("d_ff"))
    n_routed_experts: Natural = hf("num_local_experts", "num_experts", null=any_without_experts)
    n_active_experts: Natural = hf()
    dense_layers: Indices = derived(dense)
    d_inner: Positive = derived(expand_d_model("mamba_expand"))
    d_state: Positive = hf()
    d_conv: Positive = hf()
    dt_rank: Positive = derived(dt_rank("mamba_dt_rank"))
    conv_bias: Flag = hf()
    mixer_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    kinds = layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, density = kind
        h = c.norm(x, "input_layernorm")
        if word == "mamba":
            x = x + mamba(c, h, "mamba.", inner_norm=lambda y, name: c.norm(y, name + "_layernorm"))
        else:
            x = x + c.self_attention(h, rotate=False)
        h = c.norm(x, "pre_ff_layernorm")
        if density == "dense":
            return x + c.gated_mlp(h, "feed_forward.")
        return x + mixture(c, h, "feed_forward.", router="router", choose=c.choose)

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax")

    def unused_fields(c) -> tuple[str, ...]:
        experts = ("n_active_experts",) if len(c.dense_layers) == len(c.layer_types) else ()
        return (*list_unused_fields(c.layer_types), *experts)
