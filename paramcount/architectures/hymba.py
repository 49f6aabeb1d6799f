"""Hymba: attention and Mamba side by side in every layer, out of one projection, and meta tokens before every text.

Groups of layers share keys and values; most layers see a window and the meta tokens.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

NTK_FACTOR = 2  # of LlamaRotaryEmbedding in modeling_hymba.py


def attention_kinds(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    whole = range(c["n_layers"]) if js.get("sliding_window") is None else js.get("global_attn_idx")
    if not isinstance(whole, (list, range)):
        raise sizes.make_value_error(whole, "global_attn_idx", "a list of layers, because sliding_window is given")
    return tuple("full_attention" if i in whole else "sliding_attention" for i in sizes.per_layer(c))


def shared_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Layers that read the keys and values of an earlier one: the last that has some of its own."""
    groups, every = js.get("kv_reuse_group"), js.get("kv_reuse_every_i_layer", -1)
    if groups is None:
        return tuple(i for i in range(c["n_layers"]) if every > 0 and i % every)
    if not isinstance(groups, list) or not all(is_run(group, c["n_layers"]) for group in groups):
        raise sizes.make_value_error(groups, "kv_reuse_group", "lists of layers, each without a gap")
    return tuple(sorted({i for first, *others in groups for i in others}))


def is_run(group: object, n_layers: int) -> bool:
    """Whether these are layers that follow each other."""
    if not isinstance(group, list) or not group or type(group[0]) is not int or not 0 <= group[0] < n_layers:
        return False
    return group == list(range(group[0], min(group[0] + len(group), n_layers)))


def kinds_are_stated(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The config class has no default that the code takes for the norm of queries and keys and for the MLP."""
    for key, choices in (("kq_norm", ("none", "rms")), ("mlp_hidden_act", ("silu", "relu2"))):
        if js.get(key) is None:
            raise ParamcountError("is missing", where=key, choices=choices)
        sizes.one_of(key, choices, "")(js, c)


def head_widths(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The heads of its one projection share d_model; the code computes no others."""
    for key, width in (("attn_hidden_size", c["d_model"]), ("kq_head_dim", c["d_head"])):
        if js.get(key, -1) not in (-1, width):
            raise sizes.make_value_error(js[key], key, f"-1 or {width}")


def stretched_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """Source: LlamaRotaryEmbedding of modeling_hymba.py."""
    base, kind = config.get("rope_theta", 10_000.0), config.get("rope_type")
    if kind in (None, "default"):
        return ops.Rope(base)
    before = config.get("orig_max_position_embeddings")
    if kind != "ntk" or not before:
        raise ValueError("the angles depend on the length of the text, or on a length that is missing")
    stretch = c.n_positions / before
    return ops.Rope(base * (NTK_FACTOR * stretch - NTK_FACTOR + 1) ** (c.d_head / (c.d_head - 2)))


class Hymba(parts.Decoder):
    """Source: arXiv:2411.13676; modeling_hymba.py of nvidia/Hymba-1.5B-Base, with the mask of its HymbaFlexAttention.
    It makes one MLP of each layer, whatever num_experts is."""

    reference = "HymbaForCausalLM of nvidia/Hymba-1.5B-Base"
    names = ("embed_tokens", "layers", "final_layernorm")
    rotated = "d_head"
    defaults = {"vocab_size": 65536, "d_model": 4096, "n_layers": 32}
    unused_keys = ("num_experts", "num_experts_per_tok", "num_mamba", "seq_length", "v_head_dim", "layer_type")
    conditions = (
        sizes.padding_in_table(0), head_widths, kinds_are_stated,
        parts.only("memory_tokens_interspersed_every", 0),
    )  # fmt: skip

    n_heads: sizes.Positive = sizes.hf(absent=32)
    n_kv_heads: sizes.Positive = sizes.hf(absent=8, null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_inner: sizes.Positive = sizes.derived(sizes.expand_d_model("mamba_expand"))
    d_head_v: sizes.Positive = sizes.derived(lambda js, c: c["d_inner"] // c["n_heads"])
    d_ff: sizes.Positive = sizes.hf(absent=14336)
    window: sizes.Natural = sizes.hf("sliding_window", absent=0, null=lambda js, c: 0)  # 0: there is none
    layer_types: sizes.Words = sizes.derived(attention_kinds)
    shared_layers: sizes.Indices = sizes.derived(shared_layers)
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings", absent=262_144)  # the base of positions grows
    n_meta_tokens: sizes.Natural = sizes.hf("num_memory_tokens", absent=0)
    has_meta_tokens: sizes.Flag = sizes.derived(lambda js, c: c["n_meta_tokens"] > 0)
    rotates: sizes.Flag = sizes.hf("rope", absent=False)
    qk_norm: sizes.Flag = sizes.derived(lambda js, c: js.get("kq_norm") == "rms")
    gated: sizes.Flag = sizes.derived(lambda js, c: js.get("mlp_hidden_act") == "silu")
    d_state: sizes.Positive = sizes.hf("mamba_d_state", absent=16)
    d_conv: sizes.Positive = sizes.hf("mamba_d_conv", absent=4)
    dt_rank: sizes.Positive = sizes.derived(sizes.dt_rank("mamba_dt_rank"))
    conv_bias: sizes.Flag = sizes.hf("mamba_conv_bias", absent=True)
    mixer_bias: sizes.Flag = sizes.hf("mamba_proj_bias", absent=False)
    inner_norms: sizes.Flag = sizes.hf("mamba_inner_layernorms", absent=True)

    activation = sizes.setting("hidden_act", default="silu", kind=sizes.choice("silu", "swish"))
    mlp_activation = sizes.setting("mlp_hidden_act", default="silu", kind=sizes.choice("silu", "relu2"))
    norm_eps = sizes.setting("rms_norm_eps", default=1e-6)
    rope = sizes.setting(default=stretched_rope)

    def forward(c, tokens: Data) -> Data:
        x = c.embed(tokens)
        if not c.has_meta_tokens:
            return c.decode(x)
        meta = ops.learned_rows("model.memory_tokens", "other_embedding", c.n_meta_tokens, c.d_model)
        return c.head(ops.text_alone(c.transform(ops.put_in_front(meta, x, once=True))))

    def kinds(c) -> parts.Kinds:
        return [((word, i in c.shared_layers), 1) for i, word in enumerate(c.layer_types)]

    def carry(c) -> tuple[ops.Width, ...]:
        """Keys and values of the last layer that has some, of full attention, then of a window."""
        return ((c.n_kv_heads, c.d_head), (c.n_kv_heads, c.d_head_v)) * 2 if c.shared_layers else ()

    def layer(c, x: Data, *passed: Any) -> Any:
        *before, kind = passed
        y, kv = c.mix(c.norm(x, "input_layernorm"), "mamba.", kind, before)
        x = x + y
        h, names = c.norm(x, "pre_moe_layernorm"), ("up_proj", "down_proj")
        if c.gated:
            x = x + c.gated_mlp(h, "moe.experts.0.")
        else:
            paths = [f"moe.experts.0.{name}" for name in names]
            x = x + parts.plain_mlp(h, (paths[0], paths[1]), "mlp", c.d_ff, activation=c.mlp_activation)
        return (x, *kv) if c.shared_layers else x

    def mix(
        c: Any, x: Data, prefix: str, kind: tuple[str, bool], before: Sequence[Data]
    ) -> tuple[Data, Sequence[Data]]:
        """Attention and Mamba of x, and the keys and values that the next layer may read."""
        word, shares = kind
        k, v = ((c.n_kv_heads, width) for width in (c.d_head, c.d_head_v))
        own = {} if shares else {"qkv.k": k, "qkv.v": v}
        widths = {"qkv.q": (c.n_heads, c.d_head), **own, "mixer.x": c.d_inner, "mixer.gate": c.d_inner}
        q, *heads, u, z = ops.fused(x, prefix + "in_proj", widths, bias=c.mixer_bias)
        a, kv = c.attend(q, heads, prefix + "self_attn.", word, tuple(before))
        a = ops.reshape(a, c.d_inner)  # [n, d_inner]
        y = c.scan(u, prefix) * ops.activate(z, "silu")  # [n, d_inner]
        y = c.norm(a, prefix + "pre_avg_layernorm1") + c.norm(y, prefix + "pre_avg_layernorm2")
        y = ops.scale_by(y, 0.5)
        return ops.linear(y, prefix + "out_proj", "mixer.out", c.d_model, bias=c.mixer_bias), kv

    def attend(
        c: Any, q: Data, own: Sequence[Data], prefix: str, word: str, before: tuple[Data, ...]
    ) -> tuple[Data, tuple[Data, ...]]:
        """Attended values, and what is passed on. `own`: keys and values, unless the layer shares those before it."""
        mask: ops.Mask = ops.Causal(hides_front=True)
        if word == "sliding_attention":
            mask = mask & ops.WindowAndFront(c.window + 1, front=c.n_meta_tokens)
        if own:
            heads = (c.prepare_one(own[0], prefix + "k_norm"), own[1])
            k, v = (ops.cache_and_front(y, mask, c.n_meta_tokens) for y in heads)
            before = parts.replace_shared(before, word, k, v)
        else:
            k, v = parts.find_shared(before, word)
        return ops.attend(c.prepare_one(q, prefix + "q_norm"), k, v, mask=mask), before  # [n, n_heads, d_head_v]

    def prepare_one(c, x: Data, norm: str) -> Data:
        """Queries or keys: norms, if there are any, and the rotation."""
        x = ops.rms_norm(x, norm, 1e-6) if c.qk_norm else x
        return c.rotate(x) if c.rotates else x

    def scan(c, u: Data, prefix: str) -> Data:
        """Mamba 1 between its projections, [n, d_inner]."""
        u = ops.activate(ops.convolve(u, prefix + "conv1d", c.d_conv, bias=c.conv_bias), c.activation)
        widths = {"mixer.step": c.dt_rank, "mixer.b": c.d_state, "mixer.c": c.d_state}
        read = ops.fused(u, prefix + "x_proj.0", widths)
        if c.inner_norms:
            read = tuple(c.norm(y, f"{prefix}{name}_layernorm") for y, name in zip(read, ("dt", "B", "C")))
        step = ops.linear(read[0], prefix + "dt_proj.0", "mixer.step", c.d_inner, bias=True)
        state = (
            ops.Weight(prefix + "A_log.0", "mixer.state", (c.d_inner, c.d_state)),
            ops.Weight(prefix + "D.0", "mixer.state", (c.d_inner,)),
        )
        return Data(ops.SelectiveScan(c.d_inner, c.d_state), (u, step, *read[1:]), u.shape, state)

    def unused_fields(c) -> tuple[str, ...]:
        return () if "sliding_attention" in c.layer_types else ("window",)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_divides(c, "n_kv_heads", "n_heads")
        sizes.check_divides(c, "n_heads", "d_inner")
        types = ["" if i in c.shared_layers else word for i, word in enumerate(c.layer_types)]
        for i in c.shared_layers:
            types[i] = types[i - 1] if i else ""
            if types[i] != c.layer_types[i]:
                expected = f"{c.layer_types[i]} in layer {i - 1} too, whose keys and values layer {i} shares"
                raise sizes.make_value_error(types[i] or None, FieldName("layer_types"), expected)
