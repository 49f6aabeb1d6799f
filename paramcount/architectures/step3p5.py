"""Step 3.5's language model: a gate per head, more heads in layers with a window, limited SwiGLU, and experts with a
shared one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from paramcount.architectures.bailing_hybrid import head_gate
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, count_noun


def without_mtp(js: sizes.ConfigJson, n_layers: int, key: str) -> Any:
    """The value of a key; a list of all layers without its last entries, if these are for MTP layers."""
    found, n = js.get(key), js.get("num_nextn_predict_layers", 0)
    return found[:n_layers] if n and isinstance(found, list) and len(found) == n_layers + n else found


def layer_words(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    words = without_mtp(js, c["n_layers"], "layer_types")
    if words is None:
        return tuple(sizes.SLIDING[1] for _ in sizes.per_layer(c))
    return tuple(sizes.SLIDING[1] if word == "attention" else word for word in words)


def mtp_mlps(js: sizes.ConfigJson, n_layers: int, n: int) -> list[str]:
    """What mlp_layer_types or moe_layers_enum say of the layers behind those of the model."""
    words = js.get("mlp_layer_types")
    if words is None:
        return ["sparse" for i in list_moe_layers(js) if n_layers <= i < n_layers + n]
    is_longer = isinstance(words, list) and len(words) == n_layers + n
    found: list[str] = words[n_layers:] if is_longer else js.get("mtp_mlp_layer_types") or []
    return found


def mtp_words(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """The types of the MTP layers: `layer_types` may list them behind those of the model; none if nothing says them, or
    if the layers have experts, which no release has there."""
    words, n = js.get("layer_types"), js.get("num_nextn_predict_layers", 0)
    if not n or "sparse" in mtp_mlps(js, c["n_layers"], n):
        return ()
    if words is None:
        return (sizes.SLIDING[1],) * int(n)
    is_longer = isinstance(words, list) and len(words) == c["n_layers"] + n
    found: Sequence[str] | None = words[c["n_layers"] :] if is_longer else js.get("mtp_layer_types")
    return tuple(sizes.SLIDING[1] if word == "attention" else word for word in found or ())


def without_experts(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """`moe_layers_enum` lists the others."""
    if js.get("moe_layers_enum") is None:
        return tuple(sizes.per_layer(c)[:3])
    moe = list_moe_layers(js)
    return tuple(i for i in sizes.per_layer(c) if i not in moe)


def list_moe_layers(js: sizes.ConfigJson) -> set[int]:
    """Those of `moe_layers_enum`, a list or a string with commas."""
    listed = js.get("moe_layers_enum") or ()
    items = listed.split(",") if isinstance(listed, str) else listed
    return {int(item) for item in items if str(item).strip()}


def heads_in_window(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    return (js.get("attention_other_setting") or {}).get("num_attention_heads", c["n_heads"])


def blocks_by_type(js: sizes.ConfigJson, words: tuple[str, ...]) -> Mapping[str, Mapping[str, Any]]:
    """rope_parameters, if it has a block for each layer type; the reference ignores any other."""
    blocks = js.get("rope_parameters") or {}
    return blocks if all(isinstance(blocks.get(word), Mapping) for word in words) else {}


def find_share(js: sizes.ConfigJson, words: tuple[str, ...], word: str) -> Any:
    """The part of a head that rotates in layers of one type: a list has the share for each layer."""
    if word not in words:
        return 1.0
    outside = js.get("partial_rotary_factor")
    share = 1.0 if outside is None else outside
    if blocks := blocks_by_type(js, words):
        return blocks[word].get("partial_rotary_factor", share)
    if shares := js.get("partial_rotary_factors"):
        share = shares[words.index(word)]
    return (js.get("rope_scaling") or {}).get("partial_rotary_factor", share) if word == sizes.SLIDING[1] else share


def rotary_width(word: str) -> sizes.Derivation:
    """The rotary dimension of heads in layers of one type."""
    return lambda js, c: sizes.in_pairs(c["d_head"], find_share(js, c["layer_types"], word))


def rope_blocks(js: sizes.ConfigJson, c: sizes.FieldValues) -> dict[str, Any]:
    """What the rotary positions of each kind of layer are built from; rope_scaling is added to full attention."""
    words, scaling = sorted(set(c["layer_types"])), js.get("rope_scaling")
    if blocks := blocks_by_type(js, c["layer_types"]):
        filled = {"original_max_position_embeddings": None}
        return {f"rope_parameters.{word}": {**filled, **blocks[word]} for word in words}
    if sizes.SLIDING[1] not in words or not scaling:
        return {}
    added = {"rope_type": "default", "rope_theta": None}
    return {"rope_scaling": {**added, **scaling} if isinstance(scaling, Mapping) else scaling}


def read_ropes(config: Mapping[str, Any], c: Any) -> dict[str, ops.Rope]:
    """The rotary positions of each kind of layer. Only those that see everything are scaled."""
    theta, blocks, ropes = config.get("rope_theta", 10_000.0), blocks_by_type(config, c.layer_types), {}
    for word in set(c.layer_types):
        base = theta[c.layer_types.index(word)] if isinstance(theta, list) else theta
        block = blocks.get(word, (config.get("rope_scaling") or {}) if word == sizes.SLIDING[1] else {})
        kind = block.get("rope_type", blocks.get(word, {}).get("type", "default"))
        base = block.get("rope_theta", 10_000.0 if blocks else base)  # blocks do not read the one beside them
        rope = sizes.read_layer_block({**block, "rope_type": kind, "rope_theta": base}, None, config, 128000)
        ropes[word] = sizes.mark_odd(rope, c.d_head, find_share(config, c.layer_types, word))
    return ropes


@sizes.options_first
def read_limits(config: Mapping[str, Any], c: Any, key: str) -> tuple[float | None, ...]:
    """The limit of each layer; 0 is none."""
    found = config.get(key) or ()
    return tuple((found[i] if i < len(found) else None) or None for i in range(c.n_layers))


def bases_reach_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """A list of rotary bases has one for the first layer of each type."""
    found, words = js.get("rope_theta"), c["layer_types"]
    if isinstance(found, list) and not blocks_by_type(js, words) and len(found) <= max(map(words.index, words)):
        problem = f"has {count_noun(len(found), 'entry')} for {count_noun(c['n_layers'], 'layer')}"
        raise ParamcountError(problem, where="rope_theta", expected="one entry per layer, or a number")


def limits_reach_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Lists of limits have one for each layer that reads it."""
    routed = [i for i in sizes.per_layer(c) if i not in c["dense_layers"]]
    for key, readers in (("swiglu_limits", routed), ("swiglu_limits_shared", sizes.per_layer(c))):
        found = js.get(key)
        if found and readers and len(found) <= readers[-1]:
            problem = f"has {count_noun(len(found), 'entry')} for {count_noun(c['n_layers'], 'layer')}"
            raise ParamcountError(problem, where=key, expected="one entry per layer")


def gates_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """With another word the reference has a gate for each value of a head, which it multiplies heads by."""
    if not ((gating := js.get("gating", True)) is True or gating == "per-head") and c["d_head"] != 1:
        raise sizes.make_value_error(gating, "gating", "true or per-head")


def scale_is_real(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The scale of attention is a root of this number."""
    if (found := js.get("query_pre_attn_scalar")) is not None and found <= 0:
        raise sizes.make_value_error(found, "query_pre_attn_scalar", "a positive number")


class Step35(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2602.10604; Step3p7TextModel of the reference, modeling_step3p7.py.

    `n_sliding_heads`: of layers with a window, which per_layer_config may give, too.
    """

    unused_keys: ClassVar = ("num_local_experts",)
    own_layer_types = True
    layered: ClassVar = {
        sizes.SLIDING[0]: {"num_attention_heads": "n_sliding_heads", "num_key_value_heads": "n_kv_heads"},
        sizes.SLIDING[1]: {"num_attention_heads": "n_heads", "num_key_value_heads": "n_kv_heads"},
    }
    conditions: ClassVar = (
        bases_reach_layers,
        sizes.known_ropes(rope_blocks, filled=False),
        limits_reach_layers,
        gates_heads,
        scale_is_real,
        sizes.padding_in_table(1),
    )
    defaults = {"d_head": 128}

    n_kv_heads: sizes.Positive = sizes.hf("num_attention_groups", "num_key_value_heads")
    layer_types: sizes.Words = sizes.derived(layer_words)
    n_sliding_heads: sizes.Positive = sizes.hf("num_sliding_attention_heads", absent=heads_in_window, null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()
    d_rope: sizes.Natural = sizes.derived(rotary_width(sizes.SLIDING[1]))
    d_rope_sliding: sizes.Natural = sizes.derived(rotary_width(sizes.SLIDING[0]))
    dense_layers: sizes.Indices = sizes.derived(
        sizes.dense_by_type(without_experts, read=lambda js, c: without_mtp(js, c["n_layers"], "mlp_layer_types"))
    )
    d_expert: sizes.Natural = sizes.hf()
    n_routed_experts: sizes.Positive = sizes.hf("moe_num_experts", "n_routed_experts", null=sizes.unused)
    n_active_experts: sizes.Natural = sizes.hf("moe_top_k", "num_experts_per_tok", null=sizes.unused)
    d_shared_expert: sizes.Natural = sizes.hf("share_expert_dims", "share_expert_dim", null=sizes.unused)
    mlp_bias: sizes.Flag = sizes.hf()
    bidirectional: sizes.Flag = sizes.hf("use_bidirectional_attention", absent=False, null=False, unstated=False)
    n_mtp_layers: sizes.Natural = sizes.hf("num_nextn_predict_layers", absent=0)
    mtp_layer_types: sizes.Words = sizes.derived(mtp_words)

    activation: ClassVar = "silu"
    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope: ClassVar = None
    ropes = sizes.setting(default=read_ropes, kinds={"rope_theta": sizes.BASES})  # of each layer type
    attention_scale = sizes.setting(
        default=lambda config, c: float((config.get("query_pre_attn_scalar") or c.d_head) ** -0.5)
    )
    routed_scale = sizes.setting("moe_router_scaling_factor", default=1.0)
    expert_limits = sizes.setting(default=read_limits("swiglu_limits"))
    mlp_limits = sizes.setting(default=read_limits("swiglu_limits_shared"))

    def kinds(c) -> parts.Kinds:
        """(word, "dense" or "moe", the limit of experts, that of the other MLPs)"""
        dense, n = set(c.dense_layers), c.n_layers
        routed, other = (
            [found] * n if isinstance(found, ops.Unknown) else found for found in (c.expert_limits, c.mlp_limits)
        )
        return [
            ((word, *(("dense", None) if i in dense else ("moe", routed[i])), other[i]), 1)
            for i, word in enumerate(c.layer_types)
        ]

    def layer(c, x: Data, kind: tuple[str, str, Any, Any]) -> Data:
        word, mlp, routed, other = kind
        x = x + c.attention(c.norm(x, "input_layernorm"), sliding=word == sizes.SLIDING[0])
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "dense":
            return x + c.limited_mlp(h, "mlp.", "mlp", c.d_ff, other, bias=c.mlp_bias)
        shared = c.limited_mlp(h, "share_expert.", "shared_experts", c.d_shared_expert, other, bias=c.mlp_bias)
        return x + (c.mixture(h, routed) + shared)

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps, offset=1)

    def attention(c, x: Data, *, sliding: bool) -> Data:
        n_heads, d_rope = (c.n_sliding_heads, c.d_rope_sliding) if sliding else (c.n_heads, c.d_rope)
        turned = c.ropes[sizes.SLIDING[not sliding]] if ops.is_known(c.ropes) else ops.Unknown("rope")

        def prepare(q: Data, k: Data) -> tuple[Data, Data]:
            q, k = c.norm(q, "self_attn.q_norm"), c.norm(k, "self_attn.k_norm")
            return parts.partial_rope(q, d_rope, turned), parts.partial_rope(k, d_rope, turned)

        heads, window, scale = (
            parts.Heads(n_heads, c.n_kv_heads, c.d_head),
            c.window if sliding else None,
            c.attention_scale,
        )
        q, k, v = parts.project_heads(heads, x, "self_attn.", bias=c.attention_bias)  # [n, n_heads, d_head]
        q, k = prepare(q, k)
        if c.bidirectional:  # the window is of tokens on either side, and of the token itself
            a = ops.attend(q, k, v, mask=None if window is None else ops.Window(window, window - 1), scale=scale)
        else:
            a = ops.attend_causally(q, k, v, window=window, scale=scale)  # [n, n_heads, d_head]
        a = head_gate(n_heads, x, a, "self_attn.g_proj")
        return parts.project_output(a, "self_attn.o_proj", c.d_model, bias=c.attention_bias)

    def mixture(c, x: Data, limit: float | ops.Unknown | None) -> Data:
        """Experts stored as one tensor for each projection."""
        logits = ops.linear(x, "moe.gate", "router", c.n_routed_experts)  # [n, experts]
        bias = parts.routing_bias(c, "moe.router_bias")
        weights = ops.route(logits, c.n_active_experts, "sigmoid", bias=bias, normalise=True, factor=c.routed_scale)

        def expert(x: Data) -> Data:
            return c.limited_mlp(x, "", "experts", c.d_expert, limit)

        return ops.experts(x, weights, "moe.", c.n_routed_experts, c.n_active_experts, expert, stored="stacked")

    def limited_mlp(
        c,
        x: Data,
        prefix: str,
        component: str,
        d_ff: ops.Size,
        limit: float | ops.Unknown | None,
        *,
        bias: bool = False,
    ) -> Data:
        """SwiGLU, gates and values of which are limited after the activation."""
        gate = ops.activate(ops.linear(x, prefix + "gate_proj", component + ".gate", d_ff, bias=bias), c.activation)
        up = ops.linear(x, prefix + "up_proj", component + ".up", d_ff, bias=bias)
        if limit is not None:
            gate, up = ops.clip(gate, None, limit), ops.clip(up, -limit, limit)
        return ops.linear(gate * up, prefix + "down_proj", component + ".down", c.d_model, bias=bias)

    def mtp(c, tokens: Data) -> Data | None:
        """Layers without experts, each with an LM head of its own. Source: Step3p5MTP of vLLM, step3p5_mtp.py."""
        if not c.mtp_layer_types:
            return None
        hidden, token = ops.given("hidden", "tokens", c.d_model), ops.given("next token", "tokens", c.d_model)
        kinds = [(word, 1) for word in c.mtp_layer_types]
        predict = lambda word, x, t: c.predict(x, t, word)  # noqa: E731
        return ops.layers(hidden, "model.layers.{layer}.", kinds, predict, reads=(token,), first=c.n_layers)

    def predict(c, x: Data, token: Data, word: str) -> Data:
        both = ops.join(c.norm(token, "enorm"), c.norm(x, "hnorm"))
        x = c.layer(ops.linear(both, "eh_proj", "other", c.d_model), (word, "dense", None, None))
        h = c.norm(x, "transformer.shared_head.norm")
        return ops.bundle(x, ops.linear(h, "transformer.shared_head.output", "lm_head", c.vocab_size))

    def has_unknown_mtp(c) -> bool:
        """The types of its layers say how many heads they have."""
        return c.n_mtp_layers > 0 and not c.mtp_layer_types

    def check(c) -> None:
        sizes.check_sliding_or_full(c)
        if c.mtp_layer_types:
            sizes.check_layer_types(c, "mtp_layer_types", "n_mtp_layers", sizes.SLIDING)
        if sizes.SLIDING[0] in c.layer_types:
            sizes.check_divides(c, "n_kv_heads", "n_sliding_heads")
            sizes.check_at_most(c, "d_rope_sliding", "d_head")
        if sizes.SLIDING[1] in c.layer_types:
            sizes.check_at_most(c, "d_rope", "d_head")

    def unused_fields(c) -> tuple[str, ...]:
        return () if sizes.SLIDING[1] in c.layer_types else ("n_kv_heads",)  # n_heads is of no layer then
