"""ERNIE 4.5 VL: experts of their own for tokens of texts and of images, positions in time, height and width, and a
vision encoder like Qwen 2 VL's.
"""

from typing import Any

from paramcount.architectures.ernie4_5_moe import Ernie45Moe
from paramcount.architectures.qwen2_vl import Qwen2VLVision
from paramcount.declare import Data, ops, parts, sizes

SECTIONS = (22, 22, 20)  # the reference's default of mrope_section: pairs of height, width and time


@sizes.options_first
def expert_size(js: sizes.ConfigJson, c: sizes.FieldValues, i: int) -> int:
    """The hidden size of experts for texts (0) or for images (1), without a default if it is not a list of both."""
    found = js.get("moe_intermediate_size")
    if found is None:
        found = (1536, 512)
    if not isinstance(found, (list, tuple)) or not all(type(n) is int and n >= 0 for n in found):
        raise sizes.make_value_error(found, "moe_intermediate_size", "two non-negative integers")
    if len(found) > i:
        return int(found[i])
    if len(c["dense_layers"]) < c["n_layers"]:
        raise sizes.make_value_error(found, "moe_intermediate_size", "two non-negative integers")
    return 0


def plain_angles(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Rotary positions are not scaled, and height and width have equally many pairs."""
    rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise sizes.make_value_error(kind, "rope_parameters.rope_type", "default")
    sections = tuple(rope.get("mrope_section", SECTIONS))
    if len(sections) != len(SECTIONS) or sections[0] != sections[1] or not sections[2]:
        raise sizes.make_value_error(
            list(sections),
            "rope_parameters.mrope_section",
            "pairs of height, as many of width, and at least one of time",
        )


def mark_images() -> Data:
    """The input that says which tokens stand for images."""
    return ops.given("tokens of images", "tokens", default=0)


class Ernie45VLText(Ernie45Moe):
    """Source: ERNIE 4.5 technical report, section 2.1; Ernie4_5_VLMoeDecoderLayer of the reference."""

    reference = "Ernie4_5_VLMoeForConditionalGeneration"
    model_types = ("ernie4_5_vl_moe_text",)
    reference_names = {"model.": ""}
    base_model = "Ernie4_5_VLMoeTextModel"
    adapts_experts = False
    is_section_type = False
    conditions = (
        sizes.padding_in_table(None),
        sizes.not_null("num_key_value_heads"),
        sizes.sections_fill(*SECTIONS),
        plain_angles,
    )

    dense_layers: sizes.Indices = sizes.derived(
        sizes.dense_by_type(lambda js, c: tuple(sizes.per_layer(c)[:1]), checked=False)
    )
    d_expert: sizes.Natural = sizes.derived(expert_size(0))
    d_vision_expert: sizes.Natural = sizes.derived(expert_size(1))
    n_shared_experts: sizes.Natural = sizes.hf("moe_num_shared_experts", null=sizes.needed("moe_num_shared_experts"))

    least_sum = sizes.setting("moe_norm_min")
    axes = sizes.setting(default=parts.mrope_axes("in turns, time last", *SECTIONS))

    def transform(c, x: Data, *reads: Data) -> Data:
        """`reads`: the places of the tokens and which of them stand for images, if there may be images."""
        return super().transform(x, *(reads or (mark_images(),)))

    def layer(c, x: Data, *reads: Any) -> Data:
        *places, marks, kind = reads

        def rotate(y: Data) -> Data:
            return ops.rope_at(y, places[0], c.rope, c.axes, "interleaved") if places else c.rotate(y)

        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.bias, prepare=c.prepare_by(rotate))
        h = c.norm(x, "post_attention_layernorm")
        if kind == "dense":
            return x + c.gated_mlp(h, bias=c.bias)
        y = c.mixture(h, "text_moe", c.d_expert, c.n_active_experts)
        y = ops.select(marks, y, c.mixture(h, "vision_moe", c.d_vision_expert, 0))
        return x + (y + parts.shared_experts(c, h, "mlp.", bias=c.bias) if c.shared else y)

    def mixture(c, x: Data, name: str, d_expert: ops.Size, n_active: ops.Size) -> Data:
        """The experts for one kind of tokens. Those for images, of which a token of a text uses none, are as many."""
        prefix, n = f"mlp.{name}.", c.n_routed_experts
        bias = ops.Weight(prefix + "gate.moe_statics.e_score_correction_bias", "router", (1, n))
        chosen = ops.route(
            ops.linear(x, prefix + "gate", "router", n), c.n_active_experts, "softmax", bias=bias, normalise=True,
        )  # fmt: skip

        def expert(x: Data) -> Data:
            return parts.packed_mlp(x, "experts", d_expert, activation=c.activation)

        return ops.experts(x, chosen, prefix + "experts.", n, n_active, expert, stored="stacked")

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "model.embed_tokens.weight")


class Ernie45VLVision(Qwen2VLVision):
    """`n_frames`: those of a video that become one."""

    config_class = "Ernie4_5_VLMoeVisionConfig"

    d_model: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf("intermediate_size")
    n_frames: sizes.Positive = sizes.hf("temporal_merge_size")
    d_out: sizes.Positive = sizes.derived(
        lambda js, c: c["d_model"] * sizes.check_no_types(js, "spatial_merge_size", 2) ** 2
    )

    norm_eps = sizes.setting("rms_norm_eps")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, square by square."""
        patches = ops.cut(pixels, c.patch_size, c.patch_size, square=c.merge_size)
        x = ops.linear(patches, "patch_embed.proj", "embedding", c.d_model)
        return c.norm(parts.encode(c, x, parts.places_of(c, pixels)), "ln")


class Ernie45VL(parts.PlacedImages):
    """Source: modeling_ernie4_5_vl_moe.py of the reference. An image is as two equal frames; images fit if two frames
    become one.
    """

    reference = "Ernie4_5_VLMoeForConditionalGeneration"
    sections = sizes.Sections("ernie4_5_vl_moe_text", default_tie=True, ignores_model_type=True)
    equivalent_classes = ("Ernie4_5_VL_MoeForConditionalGeneration",)
    encoder_prefix = "model.vision_tower."
    projector_prefix = "model.resampler_model."

    vision: Ernie45VLVision

    def marks(c, tokens: Data) -> tuple[Data, ...]:
        return (mark_images(),)

    def project(c: Any, x: Data, *places: Data) -> Data:
        d, n = c.vision.d_out, c.vision.n_frames
        x = ops.merge_rows(x, c.vision.merge_size * c.vision.merge_size)
        x = c.mlp(ops.linear(x, "spatial_linear.fc1", "projector", d, bias=True), "spatial_linear.")
        weights = (
            ops.Weight("temporal_linear.fc1.weight", "projector", (d, d * n)),
            ops.Weight("temporal_linear.fc1.bias", "projector", (d,)),
        )
        both = ops.join(x, x)
        x = c.mlp(Data(ops.Linear(), (both,), (both.shape[0], d), weights), "temporal_linear.")
        return ops.rms_norm(
            ops.linear(x, "mlp", "projector", c.language.d_model, bias=True), "after_norm", c.language.norm_eps
        )

    def mlp(c: Any, h: Data, prefix: str) -> Data:
        """What follows the first matrix of a resampler's MLP."""
        y = ops.linear(ops.activate(h, "gelu"), prefix + "fc2", "projector", c.vision.d_out, bias=True)
        return ops.layer_norm(y, prefix + "ln", c.vision.norm_eps)
