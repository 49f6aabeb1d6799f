"""Command A MoE: parallel attention and experts after one norm.

Three of four layers attend to a sliding window; the fourth has no rotary positions.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, make_choice_error

COMBINED = ("average", "sum")


def patterns(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Two patterns, one for the leading dense layers and one for the rest.

    Each group ends with a full-attention layer.
    """
    n = sizes.check_no_types(js, "first_k_dense_replace", 0)
    front, rest = (
        sizes.check_no_types(js, "prefix_dense_sliding_window_pattern", 1),
        sizes.check_no_types(js, "sliding_window_pattern", 4),
    )
    if n > c["n_layers"]:
        raise ParamcountError(
            f"= {n}, but there are {c['n_layers']} layers",
            where="first_k_dense_replace",
            expected=f"at most {c['n_layers']}",
        )
    return tuple(sizes.SLIDING[(i + 1) % front == 0 if i < n else (i - n + 1) % rest == 0] for i in sizes.per_layer(c))


def rope_blocks(js: sizes.ConfigJson, c: sizes.FieldValues) -> dict[str, Any]:
    """rope_parameters, one object for all layers; rope_scaling is not read."""
    rope = js.get("rope_parameters")
    if not isinstance(rope, Mapping):
        return {"rope_parameters": rope} if rope else {}
    for word in c["layer_types"]:
        if word in rope and not ("rope_type" in rope and "rope_theta" in rope):
            raise ParamcountError(f"has a block for {word}", where="rope_parameters", expected="one for all layers")
    return {"rope_parameters": {"rope_theta": None, **rope}} if rope else {}


def read_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    theta, parameters = config.get("rope_theta", 10_000.0), config.get("rope_parameters") or {}
    kind, base = parameters.get("rope_type", parameters.get("type", "default")), parameters.get("rope_theta")
    return sizes.make_rope(kind, theta if base is None else base, parameters, config, 8192)


def words_are_known(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    read_scoring(js, has_experts=len(c["dense_layers"]) < c["n_layers"])


def read_scoring(js: sizes.ConfigJson, *, has_experts: bool) -> str:
    """The router's function is one of two, where a layer has a router."""
    key, known = "expert_selection_fn", ("softmax", "sigmoid")
    given = js.get(key)
    word: str = "softmax" if given is None else given
    if has_experts and word not in known:
        raise make_choice_error(word, known, where=key)
    return word


class Cohere2Moe(parts.AttentionBias, parts.RoutedExperts, parts.AttentionDecoder):
    """Source: Cohere2MoeDecoderLayer and Cohere2MoeTopKRouter of the reference, modeling_cohere2_moe.py.

    `rotated_prefix`: dense layers are rotated whether they have a window or not.
    """

    reference = "Cohere2MoeForCausalLM"
    gguf = "cohere2moe"
    ignores_rope = True
    adapts_experts = True
    rotated = None
    conditions = (words_are_known, sizes.known_ropes(rope_blocks, filled=False), sizes.padding_in_table(0))
    defaults = {"d_head": 128}

    layer_types: sizes.Words = sizes.hf(absent=patterns, null=sizes.ABSENT)
    rotated_prefix: sizes.Flag = sizes.derived(
        lambda js, c: sizes.check_no_types(js, "prefix_dense_sliding_window_pattern", 1) == 1
    )
    window: sizes.Positive = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.first_dense(0)))
    d_expert: sizes.Natural = sizes.hf("intermediate_size")
    d_ff: sizes.Natural = sizes.hf(
        "prefix_dense_intermediate_size", absent=sizes.equal_to("d_expert"), null=sizes.ABSENT, late=True
    )
    n_shared_experts: sizes.Natural = sizes.hf("num_shared_experts")
    shared: sizes.Flag = sizes.derived(lambda js, c: c["n_shared_experts"] > 0)
    combined: sizes.Word = sizes.hf("shared_expert_combination_strategy")

    rope = sizes.setting(default=read_rope)
    norm_kind = sizes.setting(default=lambda config, c: "layer" if config.get("rms_norm_eps") is None else "rms")
    norm_eps = sizes.setting("rms_norm_eps", "layer_norm_eps")
    scoring = sizes.setting(
        default=lambda config, c: read_scoring(config, has_experts=len(c.dense_layers) < c.n_layers)
    )
    norm_topk_prob = sizes.setting("norm_topk_prob")
    logit_scale = sizes.setting("logit_scale")
    kinds = parts.layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        h = c.norm(x, "input_layernorm")
        window = c.window if word == "sliding_attention" else None
        rotate = rotates(c, kind) and c.rotate
        y = x + c.self_attention(h, bias=c.attention_bias, prepare=c.prepare_by(rotate), window=window)
        return y + (c.moe(h) if mlp == "moe" else c.gated_mlp(h))

    def moe(c, x: Data) -> Data:
        y = parts.mixture(c, x, "mlp.", choose=c.choose)
        if not c.shared:
            return y
        y = y + parts.shared_experts(c, x, "mlp.")
        return ops.scale_by(y, 0.5, "half") if c.combined == "average" else y

    def choose(c, logits: Data) -> Data:
        if c.scoring == "softmax":
            return ops.softmax_of_top(logits, c.n_active_experts)
        normalise = c.norm_topk_prob if c.scoring == "sigmoid" else False
        return ops.route(logits, c.n_active_experts, c.scoring, normalise=normalise)

    def rotate(c, x: Data) -> Data:
        return ops.rope(x, c.rope, "interleaved")

    def norm(c, x: Data, name: str) -> Data:
        return ops.norm(x, name, kind=c.norm_kind, eps=c.norm_eps)

    def head(c, x: Data) -> Data:
        return ops.scale_by(parts.head(c, x, "model.embed_tokens.weight"), c.logit_scale)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)
        turning = any(rotates(c, kind) for kind, _ in parts.typed_layers(c.layer_types, c.dense_layers))
        if c.d_head % 2 and (turning or c.d_head > 4):  # the reference asks it of a wide head even where none is turned
            raise ParamcountError(
                f"= {c.d_head} is odd, but rotary embedding rotates pairs",
                where=FieldName("d_head"),
                expected="an even number",
            )
        if c.shared and len(c.dense_layers) < c.n_layers and c.combined not in COMBINED:
            raise make_choice_error(c.combined, COMBINED, where=FieldName("combined"))


def rotates(c: Any, kind: Any) -> bool:
    word, mlp = kind
    return word == "sliding_attention" or bool(mlp == "dense" and c.rotated_prefix)
