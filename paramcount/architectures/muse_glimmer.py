"""Muse Glimmer: gated attention, of which every fourth layer sees all tokens and rotates nothing, and norms before and
after; images through windows of a vision encoder.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, count_noun

COLUMNS_AND_ROWS = ops.Axes((1, 1), "restarted")
VISION_KINDS = ("window_attention", "full_attention")


def every_fourth(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Counted from the last layer."""
    return tuple("sliding_attention" if (c["n_layers"] - 1 - i) % 4 else "full_attention" for i in sizes.per_layer(c))


@sizes.options_first
def unrotated(js: sizes.ConfigJson, c: sizes.FieldValues, absent: sizes.ConfigJson | None = None) -> tuple[int, ...]:
    """The layers without rotary positions. `absent`: the default of rope_parameters."""
    bases = js.get("layer_rope_theta")
    if bases is None:
        theta = (js.get("rope_parameters") or js.get("rope_scaling") or absent or js).get("rope_theta", 10_000.0)
        return tuple(i for i in sizes.per_layer(c) if (c["n_layers"] - 1 - i) % 4 == 0 or not theta)
    if not isinstance(bases, (list, tuple)) or any(type(base) not in (int, float) for base in bases):
        raise sizes.make_value_error(bases, "layer_rope_theta", "a list of numbers")
    if len(bases) < c["n_layers"]:
        found, expected = f"has {count_noun(len(bases), 'entry')}", f"at least {c['n_layers']}, one per layer"
        raise ParamcountError(found, where="layer_rope_theta", expected=expected)
    return tuple(i for i in sizes.per_layer(c) if not bases[i])


def heads_fill(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["d_model"] % c["n_heads"]:
        raise sizes.make_value_error(c["d_model"], "hidden_size", f"a multiple of {c['n_heads']}")


class MuseGlimmerVision(parts.VisionEncoder):
    """`n_rows`, `n_columns`: of the grid of learned positions, which is also the size of a window in patches."""

    config_class = "MuseGlimmerVisionConfig"

    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_frames: sizes.Positive = sizes.hf("patch_temporal")
    n_rows: sizes.Positive = sizes.hf("pos_emb_height")
    n_columns: sizes.Positive = sizes.hf("pos_emb_width")
    merge_size: sizes.Positive = sizes.hf("merge_size")
    layer_types: sizes.Words = sizes.hf(
        absent=lambda js, c: tuple(
            VISION_KINDS[(i + 1) % 4 == 0 or i == c["n_layers"] - 1] for i in sizes.per_layer(c)
        ),
        null=sizes.ABSENT,
    )

    rope = sizes.rotary()

    def forward(c, pixels: Data) -> Data:
        """One image to squares of patches side by side, channel by channel."""
        side, name = c.patch_size, "patch_embedder.position_embedding_table.weight"
        patches = ops.cut(pixels, side, side, frames=c.n_frames, axes="fchw")
        x = ops.linear(patches, "patch_embedder.patch_embedding", "embedding", c.d_model)
        shape = (c.n_rows * c.n_columns, c.d_model)
        x = x + ops.lookup_in_grid(c.places_in_grid(pixels), name, *shape, stretch="centres, zeros outside")
        x = ops.layer_norm(x, "ln_pre", c.norm_eps)
        turned = ops.other_tokens(ops.patch_places(pixels, side, side, class_place="last"), last=True)
        reads = (turned, ops.patch_windows(pixels, side, c.n_rows * side))
        kinds = [(word, 1) for word in c.layer_types]
        x = ops.layers(x, "layers.{layer}.", kinds, lambda kind, *x: c.layer_of(kind, *x), reads=reads)
        merged, places = c.merge_size * c.merge_size, ops.patch_places(pixels, side, side)
        return ops.merge_squares(ops.layer_norm(x, "ln_post", c.norm_eps), merged, places, channels_first=True)

    def places_in_grid(c, pixels: Data) -> Data:
        """Where each patch has its learned position, in a grid that is stretched over the image."""
        return ops.patch_places(pixels, c.patch_size, c.patch_size)

    def layer_of(c, kind: str, x: Data, places: Data, windows: Data) -> Data:
        h, heads = ops.layer_norm(x, "norm1", 1e-5), (c.n_heads, c.d_head)
        q, k, v = (ops.linear(h, f"attn.{name}_proj", f"qkv.{name}", heads, bias=True) for name in "qkv")
        q, k = (ops.rope_at(y, places, c.rope, COLUMNS_AND_ROWS) for y in (q, k))
        a = ops.attend(q, k, v, mask=ops.Groups(windows) if kind == "window_attention" else None)
        x = x + ops.linear(a, "attn.proj", "output_projection", c.d_model, bias=True)
        return x + parts.encoder_mlp(c, ops.layer_norm(x, "norm2", 1e-5))


class Muse(parts.SeeingDecoder, parts.AttentionDecoder):
    """What Muse Glimmer and Muse Spark share: all but the layers. `d_merged`: what the adapter reads; images fit if it
    is the size of a square of patches.
    """

    prefix = "model.language_model."
    rotated = "d_head"
    conditions = (heads_fill, sizes.padding_in_table(None))

    d_ff: sizes.Natural = sizes.hf()
    window: sizes.Positive = sizes.hf()
    layer_types: sizes.Words = sizes.hf(absent=every_fourth, null=sizes.ABSENT)
    unrotated_layers: sizes.Indices = sizes.derived(unrotated())
    attention_bias: sizes.Flag = sizes.hf()
    d_merged: sizes.Positive = sizes.hf("/out_hidden_size", absent=6144)
    d_projector: sizes.Positive = sizes.hf("/projector_hidden_size", absent=4096)
    vision: MuseGlimmerVision

    image_token = sizes.setting("/image_token_id", default=200092)
    video_token = sizes.setting("/video_token_id", default=200091)
    projector_activation = sizes.setting("/projector_hidden_act", default="gelu")
    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    post_norm_eps = sizes.setting("post_norm_eps", default=1e-8)
    qk_scale: ClassVar = sizes.setting("qk_scale_factor", usual=3.87)
    logit_scale: ClassVar = sizes.setting("output_multiplier", usual=0.19611613513818404)
    logit_cap = sizes.setting("final_logit_softcapping", default=20.0)

    def see(c) -> Data:
        """An image to vectors of the language model's size."""
        image = ops.block(c.vision.image(), "model.vision_tower.", c.vision.forward, part="vision")
        image = ops.block(image, "model.vision_adapter.", c.adapt, part="projector")
        return ops.block(image, "model.", c.project, part="projector")

    def adapt(c, x: Data) -> Data:
        weight = ops.Weight("fc1.weight", "projector", (c.d_projector, c.d_merged))
        h = ops.activate(Data(ops.Linear(), (x,), ("image", c.d_projector), (weight,)), c.projector_activation)
        return ops.activate(ops.linear(h, "fc2", "projector", c.d_projector), c.projector_activation)

    def project(c, x: Data) -> Data:
        return ops.plain_norm(ops.linear(x, "vision_projection", "projector", c.d_model), "rms", c.norm_eps)

    def embed(c, tokens: Data) -> Data:
        name, ids = f"{c.prefix}{c.names[0]}.weight", c.placeholders()
        x = ops.lookup_placeholders(tokens, name, "embedding", c.vocab_size, c.d_model, 0, ids)
        return ops.plain_norm(x, "rms", c.norm_eps)

    def placeholders(c) -> tuple[int | ops.Unknown, ...]:
        """Ids of tokens that stand for an image or a video, which are looked up like the token 0."""
        return c.image_token, c.video_token

    def attend(c, x: Data, word: str, *, rotated: bool, gate: Callable[[Data, Data], Data]) -> Data:
        """Queries and keys under a norm without weights; a window in sliding layers."""

        def prepare(q: Data, k: Data) -> tuple[Data, Data]:
            q, k = (ops.plain_norm(y, "rms", c.norm_eps) for y in (q, k))
            q = ops.scale_by(q, c.qk_scale)
            return (ops.rope(q, c.rope), ops.rope(k, c.rope)) if rotated else (q, k)

        def mix(q: Data, k: Data, v: Data) -> Data:
            window = c.window if word == "sliding_attention" else None
            return gate(x, ops.attend_causally(q, k, v, window=window))  # [n, n_heads, d_head]

        return c.self_attention(x, bias=c.attention_bias, prepare=prepare, mix=mix)

    def centred(c, x: Data, name: str, eps: Any) -> Data:
        return ops.rms_norm(x, name, eps, offset=1.0)

    def head(c, x: Data) -> Data:
        return ops.soft_cap(ops.scale_by(super().head(x), c.logit_scale, "times output_multiplier"), c.logit_cap)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)


class MuseGlimmer(Muse):
    """Source: modeling_muse_glimmer.py of the reference."""

    reference = "MuseGlimmerForConditionalGeneration"
    defaults = {"d_head": 128}  # fmt: skip

    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=False, null=False)

    activation = sizes.setting("hidden_activation")
    rope = sizes.rotary(positions=131072)

    def kinds(c) -> parts.Kinds:
        unrotated = set(c.unrotated_layers)
        return [((word, i not in unrotated), 1) for i, word in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: tuple[str, bool]) -> Data:
        word, rotated = kind
        h = c.centred(x, "input_layernorm", c.norm_eps)
        a = c.attend(h, word, rotated=rotated, gate=parts.sigmoid_gate("self_attn.gate_proj"))
        x = x + c.centred(a, "post_attention_layernorm", c.post_norm_eps)
        h = c.gated_mlp(c.centred(x, "pre_feedforward_layernorm", c.norm_eps))
        return x + c.centred(h, "post_feedforward_layernorm", c.post_norm_eps)
