"""Moshi as Kyutai releases it: a token of the text and one of each codebook for a frame, a decoder over frames, and a
smaller one, with matrices of its own for each codebook, over the codebooks of a frame.
"""

from functools import reduce

from paramcount.declare import Data, ops, parts, sizes

EPS = {"rms_norm": 1e-5, "rms_norm_f32": 1e-8}


def count_up(key: str, absent: int, less: int = 0) -> sizes.Derivation:
    """Indices of as many modules as a key says, or `less`."""

    def derive(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
        n = js.get(key, absent)
        if type(n) is not int or not 0 <= n <= 1000:
            raise sizes.make_value_error(n, key, "a number from 0 to 1000")
        return tuple(range(max(n - less, 0)))

    return derive


def gated_width(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    return narrow(sizes.part_of(c["d_model"], js.get("hidden_scale", 4), "hidden_scale"), c["d_model"])


def frame_width(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    d, width = c["d_frame"], js.get("depformer_dim_feedforward")
    if width is None:
        width = sizes.part_of(d, js.get("hidden_scale", 4), "hidden_scale")
    if type(width) is not int:
        raise sizes.make_value_error(width, "depformer_dim_feedforward", "an integer or null")
    return narrow(width, d)


def narrow(d_ff: int, d: int) -> int:
    """Source: ActivationGating in modules/gating.py: a gate takes its share of an MLP's parameters."""
    return 21 * d // 8 if d_ff == 4 * d else 2 * d_ff // 3


def delays_fit(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n, delays = len(c["codebooks"]) + 1, js.get("delays", [0])
    if not isinstance(delays, list) or len(delays) != n:
        raise sizes.make_value_error(delays, "delays", f"a list of {n} delays: of the text and of each codebook")


def has_own_matrices(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Each codebook that is written has matrices of its own, which is not the default."""
    keys = ("depformer_multi_linear", *(["depformer_weights_per_step"] if c["written_codebooks"] else []))
    for key in keys:
        if js.get(key, False) is not True:
            raise sizes.make_key_error(js, key, False, "true")


class MoshiReleased(parts.Decoder):
    """Source: arXiv:2410.00037, section 3.4; LMModel in moshi/moshi/models/lm.py of github kyutai-labs/moshi."""

    reference = "LMModel of kyutai-labs/moshi"
    model_types = ("moshi_released",)
    released_as = dict.fromkeys(("moshi", "hibiki", "stt", "tts"), ("depformer_dim",))
    rotated = "d_head"
    prefix = ""
    tie_word_embeddings = sizes.constant(False)
    unused_keys = ("depformer_context", "depformer_layer_scale", "depformer_max_period", "tts_config", "stt_config")
    conditions = (
        delays_fit, has_own_matrices, parts.only("layer_scale", None), parts.only("kv_repeat", 1),
        parts.only("conditioners", None), parts.only("cross_attention", False),
        parts.only("demux_second_stream", False),
        parts.only("demux_second_text_stream", False), parts.only("norm_emb", False), parts.only("bias_proj", False),
        parts.only("depformer_low_rank_embeddings", None), parts.only("depformer_norm", None),
        parts.only("depformer_weights_per_step_schedule", None), parts.only("lora", False),
        sizes.one_of("gating", ("silu",), "none"), sizes.one_of("norm", tuple(EPS), "layer_norm"),
        sizes.one_of("positional_embedding", ("rope",), "sin"), sizes.one_of("depformer_pos_emb", ("none",), "sin"),
        sizes.one_of("depformer_gating", ("silu",), "silu"), parts.only("quantize", False),
    )  # fmt: skip

    d_model: sizes.Positive = sizes.hf("dim", absent=128)
    vocab_size: sizes.Positive = sizes.hf("text_card", absent=32000)
    n_scored: sizes.Positive = sizes.hf("text_card_out", absent=sizes.equal_to("vocab_size"), null=sizes.ABSENT)
    n_layers: sizes.Natural = sizes.hf("num_layers")
    n_heads: sizes.Positive = sizes.hf("num_heads", absent=8)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Positive = sizes.derived(gated_width)
    window: sizes.Positive | None = sizes.hf("context", absent=None)
    n_codes: sizes.Positive = sizes.hf("card", absent=1024)
    codebooks: sizes.Indices = sizes.derived(count_up("n_q", 8))
    written_codebooks: sizes.Indices = sizes.derived(count_up("dep_q", 8))
    extra_heads: sizes.Indices = sizes.derived(count_up("extra_heads_num_heads", 0))
    d_extra: sizes.Positive = sizes.derived(lambda js, c: js.get("extra_heads_dim", 6))
    d_frame: sizes.Positive = sizes.hf("depformer_dim", absent=256)
    n_frame_layers: sizes.Natural = sizes.hf("depformer_num_layers", absent=sizes.equal_to("n_layers"))
    n_frame_heads: sizes.Positive = sizes.hf("depformer_num_heads", absent=sizes.equal_to("n_heads"))
    d_frame_ff: sizes.Positive = sizes.derived(frame_width)

    activation = "silu"
    norm_eps = sizes.setting(default=lambda config, c: EPS[config["norm"]])
    rope = sizes.setting(default=lambda config, c: ops.Rope(config.get("max_period", 10_000.0)))

    def forward(c, tokens: Data) -> Data:
        x = c.look_up(tokens, "text_emb", c.vocab_size)
        for i in c.codebooks:
            x = x + c.look_up(ops.given(f"tokens of codebook {i + 1}", "tokens"), f"emb.{i}", c.n_codes)
        x = ops.layers(x, "transformer.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        x = c.norm(x, "out_norm")
        heads = [ops.linear(x, "text_linear", "lm_head", c.n_scored)]
        heads += [ops.linear(x, f"extra_heads.{i}", "other", c.d_extra) for i in c.extra_heads]
        return reduce(ops.join, [*heads, *(c.write_codes(x) if c.written_codebooks else ())])

    def look_up(c, tokens: Data, name: str, n: ops.Size, d: ops.Size | None = None) -> Data:
        """A row more than there are tokens is for the start."""
        component = "embedding" if name == "text_emb" else "other_embedding"
        return ops.lookup(tokens, name + ".weight", component, n + 1, c.d_model if d is None else d)

    def norm(c, x: Data, name: str) -> Data:
        return ops.multiply_vector(ops.plain_norm(x, "rms", c.norm_eps), name + ".alpha", "norm", 1, 1, x.shape[-1])

    def layer(c, x: Data) -> Data:
        width, mask = (c.n_heads, c.d_head), ops.Causal()
        qkv = dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), width)
        q, k, v = ops.fused(c.norm(x, "norm1"), "self_attn.in_projs.0", qkv)
        q, k = (ops.rope(y, c.rope, "interleaved") for y in (q, k))
        a = (
            ops.attend_causally(q, k, v, window=c.window)
            if c.window is not None
            else ops.attend(q, ops.cache(k, mask), ops.cache(v, mask), mask=mask)
        )  # [n, n_heads, d_head]
        x = x + ops.linear(a, "self_attn.out_projs.0", "output_projection", c.d_model)
        return x + c.gate(c.norm(x, "norm2"), "gating.", c.d_ff)

    def gate(c, x: Data, prefix: str, d_ff: ops.Size) -> Data:
        return parts.fused_gated_mlp(x, prefix, "mlp", d_ff, activation=c.activation, names=("linear_in", "linear_out"))

    def write_codes(c, x: Data) -> list[Data]:
        """Scores of the codes of each codebook, of which each reads those before it in the frame."""
        read = [c.look_up(ops.given("next tokens", "tokens"), "depformer_text_emb", c.vocab_size, c.d_frame)]
        for i in c.written_codebooks[:-1]:
            codes = ops.given(f"next tokens of codebook {i + 1}", "tokens")
            read.append(c.look_up(codes, f"depformer_emb.{i}", c.n_codes, c.d_frame))
        rows = [
            ops.linear(x, f"depformer_in.{i}", "other", c.d_frame) + code for i, code in zip(c.written_codebooks, read)
        ]
        frame = Data("stack codebooks", tuple(rows), ("tokens", len(rows), c.d_frame))
        kinds = [("layer", c.n_frame_layers)]
        frame = ops.layers(frame, "depformer.layers.{layer}.", kinds, lambda kind, x: c.frame_layer(x))
        return [
            ops.linear(Data(f"codebook {i + 1}", (frame,), ("tokens", c.d_frame)), f"linears.{i}", "lm_head", c.n_codes)
            for i in c.written_codebooks
        ]

    def frame_layer(c, x: Data) -> Data:
        """Each codebook of [n, codebooks, d_frame] has matrices of its own; all have the same norms."""
        x = x + ops.for_each_head(c.norm(x, "norm1"), "self_attn.", c.attend_in_frame)
        return x + ops.for_each_head(c.norm(x, "norm2"), "gating.{head}.", lambda y: c.gate(y, "", c.d_frame_ff))

    def attend_in_frame(c, x: Data) -> Data:
        qkv = ops.fused(x, "in_projs.{head}", dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), c.d_frame))
        a = Data("attend to codebooks before in the frame", qkv, x.shape)
        return ops.linear(a, "out_projs.{head}", "output_projection", c.d_frame)

    def unused_fields(c) -> tuple[str, ...]:
        frames = () if c.written_codebooks else ("d_frame", "n_frame_layers", "n_frame_heads", "d_frame_ff")
        return (*frames, *(() if c.extra_heads else ("d_extra",)))

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_divides(c, "n_frame_heads", "d_frame")
