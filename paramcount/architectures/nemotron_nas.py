"""Nemotron-51B, Super-49B and Ultra-253B: a Llama whose layers were searched one by one.

Each may lack its attention or MLP, have a matrix in its place, or be of another width.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value

LayerKind: TypeAlias = tuple[str, int, int, str, int]  # attention, its KV heads and window, MLP, its hidden size
NO_OP, LINEAR = "no_op", "replace_with_linear"
LATER = ("mamba", "llama4", "moe")  # what later modelling code of this model type reads besides


def halves(js: sizes.ConfigJson, c: sizes.FieldValues, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(where, block) of each layer's attention or ffn."""
    blocks = js.get("block_configs")
    if not isinstance(blocks, (list, tuple)) or len(blocks) != c["n_layers"]:
        found = f"has {len(blocks)} blocks" if isinstance(blocks, (list, tuple)) else "is missing"
        raise ParamcountError(
            f"{found} for {c['n_layers']} layers", where="block_configs", expected="one block per layer"
        )
    for i in sizes.per_layer(c):
        half, where = (blocks[i] or {}).get(name), f"block_configs.{i}.{name}"
        if not isinstance(half, Mapping):
            raise ParamcountError(
                "is missing" if half is None else f"= {describe_value(half)}", where=where, expected="a JSON object"
            )
        for key in LATER:
            if half.get(key) is not None:
                raise ParamcountError(
                    "requires later modeling code, which is not supported", where=f"{where}.{key}", expected="null"
                )
        yield where, half


def words(name: str, own: str) -> sizes.Derivation:
    """What stands in each layer: no_op, replace_with_linear, or `own`."""

    def found(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
        return tuple(word(where, half) for where, half in halves(js, c, name))

    def word(where: str, half: Mapping[str, Any]) -> str:
        gone, matrix = sizes.flag(half, NO_OP, False), sizes.flag(half, LINEAR, False)
        if gone and matrix:
            raise ParamcountError(
                "= true, but no_op is also true", where=f"{where}.{LINEAR}", expected="at most one of the two"
            )
        return NO_OP if gone else LINEAR if matrix else own

    return found


def kv_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Of each layer's attention; 0 where it has none."""
    found = []
    for word, (where, half) in zip(c["layer_types"], halves(js, c, "attention")):
        group = sizes.check_no_types(half, "n_heads_in_group", 0) if word == "full_attention" else 0
        if word == "full_attention" and (not group or c["n_heads"] % group):
            raise ParamcountError(
                f"= {group} for {c['n_heads']} heads",
                where=f"{where}.n_heads_in_group",
                expected="a divisor of num_attention_heads",
            )
        found.append(c["n_heads"] // group if group else 0)
    return tuple(found)


def windows(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """How far each layer looks back; 0 for all the way. Empty where all do."""
    found = tuple(
        0 if half.get("window_length") is None else sizes.check_no_types(half, "window_length", 0)
        for _, half in halves(js, c, "attention")
    )
    return found if any(found) else ()


def widths(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Of each layer's MLP, ffn_mult · 2/3 of the model, rounded up to 256; 0 where it has none."""
    found = []
    for word, (where, half) in zip(c["mlp_types"], halves(js, c, "ffn")):
        share: Any = half.get("ffn_mult") if word == "gated" else 0
        if word == "gated" and (type(share) not in (int, float) or not 0 < share < 1e6):
            raise ParamcountError(
                "is missing" if share is None else f"= {describe_value(share)}",
                where=f"{where}.ffn_mult",
                expected="a positive number",
            )
        found.append(-(-int(2 * round(share, 6) * c["d_model"] / 3) // 256) * 256)
    return tuple(found)


class NemotronNAS(parts.Decoder):
    """Source: arXiv:2411.19146; modeling_decilm.py and block_config.py of nvidia/Llama-3_3-Nemotron-Super-49B-v1. A
    part that is left out takes its norm with it.
    """

    reference = "DeciLMForCausalLM of nvidia/Llama-3_3-Nemotron-Super-49B-v1"
    model_types = ("nemotron-nas",)
    gguf = "deci"
    gguf_rope_factors = "llama3"
    rotated = "d_head"
    defaults = {"vocab_size": 32000, "d_model": 4096, "n_layers": 32}

    n_heads: sizes.Positive = sizes.hf(absent=32)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    layer_types: sizes.Words = sizes.derived(words("attention", "full_attention"))
    n_kv_heads_by_layer: sizes.Indices = sizes.derived(kv_heads)
    window_by_layer: sizes.Indices = sizes.derived(windows)
    mlp_types: sizes.Words = sizes.derived(words("ffn", "gated"))
    d_ff_by_layer: sizes.Indices = sizes.derived(widths)
    attention_bias: sizes.Flag = sizes.hf(absent=False)
    mlp_bias: sizes.Flag = sizes.hf(absent=False)

    def kinds(c) -> parts.Kinds:
        windows = c.window_by_layer or (0,) * len(c.layer_types)
        kinds = zip(c.layer_types, c.n_kv_heads_by_layer, windows, c.mlp_types, c.d_ff_by_layer)
        return [(kind, 1) for kind in kinds]

    def layer(c, x: Data, kind: LayerKind) -> Data:
        attends, n_kv_heads, window, feeds, d_ff = kind
        if attends == LINEAR:
            x = x + ops.linear(c.norm(x, "input_layernorm"), "self_attn.linear_attn", "other", c.d_model)
        elif attends != NO_OP:
            heads, h = parts.Heads(c.n_heads, n_kv_heads, c.d_head), c.norm(x, "input_layernorm")
            x = x + parts.attentions.attention(
                heads,
                h,
                "self_attn.",
                bias=c.attention_bias,
                prepare=parts.turn_by(c.rope),
                mix=partial(ops.attend_causally, window=window or None),
            )
        if feeds == LINEAR:
            x = x + ops.linear(c.norm(x, "post_attention_layernorm"), "mlp.linear_mlp", "mlp", c.d_model)
        elif feeds != NO_OP:
            h = c.norm(x, "post_attention_layernorm")
            x = x + parts.gated_mlp(h, "mlp.", "mlp", d_ff, activation=c.activation, bias=c.mlp_bias)
        return x

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_layer_types(c, "layer_types", "n_layers", ("full_attention", NO_OP, LINEAR))
        sizes.check_layer_types(c, "mlp_types", "n_layers", ("gated", NO_OP, LINEAR))
        for i, (word, n) in enumerate(zip(c.layer_types, listed(c, "n_kv_heads_by_layer"))):
            if (word == "full_attention") != bool(n) or (n and c.n_heads % n):
                found, expected = (
                    f"= {n} for {word} with " + FieldName("n_heads") + f" = {c.n_heads}",
                    "a divisor of n_heads if the layer has attention, else 0",
                )
                raise ParamcountError(
                    found, where=FieldName("n_kv_heads_by_layer") + f".{i}", expected=expected, sizes=(n, c.n_heads)
                )
        for i, (word, n) in enumerate(zip(c.mlp_types, listed(c, "d_ff_by_layer"))):
            if (word == "gated") != bool(n):
                expected = "a positive integer if the layer has an MLP, else 0"
                raise ParamcountError(
                    f"= {n} for {word}", where=FieldName("d_ff_by_layer") + f".{i}", expected=expected, sizes=(n,)
                )
        if c.window_by_layer:
            listed(c, "window_by_layer")


def listed(c: Any, field: str) -> tuple[int, ...]:
    found: tuple[int, ...] = getattr(c, field)
    if len(found) != c.n_layers:
        problem, widths = (
            f"has {len(found)} entries for " + FieldName("n_layers") + f" = {c.n_layers}",
            (len(found), c.n_layers),
        )
        raise ParamcountError(problem, where=FieldName(field), expected="one number per layer", sizes=widths)
    return found
