"""Phi-3 and Phi-4: Mistral's layer with q, k and v stored as one matrix, gate and up as another."""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value, make_choice_error

LONG_ROPES = ("default", "longrope", "su", "yarn")


def whole_pairs(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    width: int = sizes.rotary_dimension(1.0, paired=False)(js, c)
    return width if c["d_head"] == 1 else width + width % 2  # a width of 1 meets its pair of angles by broadcasting


def long_rope(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The only scaled rotary positions are LongRoPE's, with a factor for each pair; su and yarn are names of them.

    Source: validate_rope in configuration_phi3.py of the reference.
    """
    key = "rope_scaling" if js.get("rope_scaling") else "rope_parameters"
    rope = js.get(key)
    if not isinstance(rope, Mapping):
        return
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in LONG_ROPES:
        raise make_choice_error(kind, LONG_ROPES, where=f"{key}.rope_type")
    share = rope.get("partial_rotary_factor", js.get("partial_rotary_factor", 1.0))
    n_pairs = int(c["d_model"] // c["n_heads"] * share) // 2
    for name in ("short_factor", "long_factor"):
        factors = rope.get(name)
        if factors is None and kind == "default":
            continue
        if not isinstance(factors, (list, tuple)) or len(factors) != n_pairs or not all(map(is_number, factors)):
            found = "is missing" if factors is None else f"= {describe_value(factors)}"
            raise ParamcountError(found, where=f"{key}.{name}", expected=f"a list of {n_pairs} numbers")


def is_number(value: object) -> bool:
    return isinstance(value, (int, float))


class Phi3(parts.PartlyRotated):
    """Source: arXiv:2404.14219, section 2."""

    reference = "Phi3ForCausalLM"
    gguf = "phi3"
    gguf_rope_factors = "longrope"
    task_heads = "GENERIC"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(32000), sizes.one_mask(), long_rope)

    d_rope: sizes.Natural = sizes.derived(whole_pairs)
    window: sizes.Positive | None = sizes.hf(absent=None)

    rope = sizes.rotary(positions=4096, share=1.0)

    def layer(c, x: Data) -> Data:
        x = x + attention(c, c.norm(x, "input_layernorm"))
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.fused_gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation)


def attention(c: Any, x: Data) -> Data:
    key = (c.n_kv_heads, c.d_head)
    q, k, v = ops.fused(x, "self_attn.qkv_proj", {"qkv.q": (c.n_heads, c.d_head), "qkv.k": key, "qkv.v": key})
    q, k = c.turn_heads(q, k)
    return ops.linear(ops.attend_causally(q, k, v, window=c.window), "self_attn.o_proj", "output_projection", c.d_model)
