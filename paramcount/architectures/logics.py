"""Logics-Thinking: ConvNeXt and SigLIP 2 side by side, a projector, and Qwen3."""

from typing import Any

from paramcount.architectures.llava_released import LlavaQwen
from paramcount.declare import Data, ops, parts, sizes

STAGES = ((384, 3), (768, 4), (1536, 30), (3072, 3))  # channels and blocks of convnext_xxlarge in convnext_encoder.py
D_CONVNEXT, N_CLASSES, EPS = STAGES[-1][0], 1024, 1e-5


def both_fit(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The projector reads the vectors of both encoders side by side."""
    width = D_CONVNEXT + c["vision"]["d_model"]
    if js.get("mm_hidden_size") != width:
        raise sizes.make_value_error(js.get("mm_hidden_size"), "mm_hidden_size", f"{width}, as of both encoders")


class LogicsSiglip(parts.SiglipVision):
    """Without its last layer and its head. Source: siglip_encoder.py of github alibaba/Logics-Thinking."""

    model_types = ()  # type: ignore[assignment]
    is_section_type = False
    config_class = "SiglipVisionConfig"
    section = "siglip_config"

    n_layers: sizes.Natural = sizes.derived(lambda js, c: js.get("num_hidden_layers", 27) - 1)
    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 384) // c["patch_size"]) ** 2)
    pooling_head = sizes.constant(False)


class Logics(LlavaQwen):
    """Source: modeling_logics.py of github alibaba/Logics-Thinking, whose encoders have these sizes whatever
    mm_vision_tower names. ConvNeXt: arXiv:2201.03545, section 2.
    """

    reference = "LogicsForConditionalGeneration of alibaba/Logics-Thinking"
    model_types = ("logics",)
    released_as = {}
    sections = sizes.Sections("qwen3", ignores_model_type=True, is_flat=True, other_sections=("siglip_config",))
    named_sections = {}
    conditions = (both_fit, sizes.one_of("mm_projector_type", ("mlp2x_gelu",), "linear"))
    unused_keys = ("mm_vision_tower", "mm_vision_select_layer", "mm_vision_select_feature")
    encoder_prefix = "model.vision_tower.vision_towers.1.vision_tower.vision_model."
    convnext_prefix = "model.vision_tower.vision_towers.0.vision_tower."

    projector = ("mm_projector.0", "mm_projector.2")

    vision: LogicsSiglip
    n_views: sizes.Positive = sizes.derived(lambda js, c: 1)
    n_matrices = sizes.constant(2)

    views = (-1,)

    def see(c: Any) -> Data:
        pixels = c.vision.image()
        first = ops.block(pixels, c.convnext_prefix, run_convnext, part="vision")
        first = Data("stretch to the patches of SigLIP", (first,), ("patches", D_CONVNEXT))
        second = ops.block(pixels, c.encoder_prefix, c.encode, part="vision")
        return ops.block(ops.join(first, second), c.projector_prefix, c.project, part="projector")

    def project(c: Any, x: Data, *places: Data) -> Data:
        x, d = c.widen(x), c.language.d_model
        return ops.class_token(x, "image_newline", d, component="projector", last=True) if c.ends_rows else x

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        x = ops.given("states", "image", D_CONVNEXT)
        head = ops.block(x, c.convnext_prefix + "head.", classify, part="vision")
        return (ops.Unreachable(head, "the code reads the states before ConvNeXt's head"),)


def run_convnext(pixels: Data) -> Data:
    """One square image to vectors of 32 × 32 pixels."""
    x = ops.reshape(ops.cut(pixels, 1, 1), 3)
    width = STAGES[0][0]
    x = ops.convolve_image(x, "stem.0", "embedding", width, 4, stride=4, padding=ops.LEAST, bias=True)
    x = ops.layer_norm(x, "stem.1", EPS)
    for i, (width, n_blocks) in enumerate(STAGES):
        if i:
            x = ops.layer_norm(x, f"stages.{i}.downsample.0", EPS)
            name = f"stages.{i}.downsample.1"
            x = ops.convolve_image(x, name, "mixer", width, 2, stride=2, padding=ops.LEAST, bias=True)
        x = ops.layers(x, f"stages.{i}.blocks.{{layer}}.", [("block", n_blocks)], lambda kind, x: mix_pixels(x))
    return x


def mix_pixels(x: Data) -> Data:
    """What reads neighbours reads each channel alone; then an MLP, scaled."""
    width = x.shape[-1]
    y = ops.layer_norm(ops.convolve_each_channel(x, "conv_dw", width, 7, bias=True), "norm", EPS)
    y = parts.plain_mlp(y, ("mlp.fc1", "mlp.fc2"), "mlp", 4 * width, activation="gelu", bias=True)
    return x + ops.multiply_vector(y, "weight", "other", width)


def classify(x: Data) -> Data:
    return ops.linear(ops.layer_norm(x, "norm", EPS), "fc", "other", N_CLASSES, bias=True)
