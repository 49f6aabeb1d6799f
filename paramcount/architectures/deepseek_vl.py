"""DeepSeek-VL: SigLIP before Llama's layers; the larger model sees an image through SAM's encoder, too."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


class DeepseekVL(parts.Multimodal):
    """Source: arXiv:2403.05525, section 3.1; modeling_deepseek_vl.py of the reference."""

    reference = "DeepseekVLForConditionalGeneration"
    sections = sizes.Sections("llama", default_tie=True, default_encoder="siglip_vision_model")
    encoder_prefix = "model.vision_model."
    projector_prefix = "model.aligner."
    projector = ("linear1", "linear2")

    vision: sizes.Tower


def has_a_global_layer(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if not js.get("global_attn_indexes", (2,)):
        raise ParamcountError("= []", where="global_attn_indexes", expected="at least one layer")


class HighResolutionSam(parts.SamVision):
    config_class = "SamVisionConfig"
    section = "high_res_vision_config"
    unused_keys = ("num_pos_feats",)
    conditions = (parts.tower_named("sam_vision_model", "high_res_vision_config"), has_a_global_layer)

    d_ff: sizes.Natural = sizes.hf("mlp_dim", absent=sizes.times_mlp_ratio(4.0), null=sizes.times_mlp_ratio(4.0))

    first_global = sizes.setting(default=lambda config, c: config.get("global_attn_indexes", (2,))[0])

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches beside the states of the first layer that looks at the whole image."""
        x = c.encode_patches(pixels)
        n = ops.Unknown("first global layer") if isinstance(c.first_global, ops.Unknown) else (c.first_global + 1,)
        return ops.join(c.neck(x, "neck."), ops.hidden_states(x, n))


class DeepseekVLHybrid(DeepseekVL):
    """Source: arXiv:2403.05525, section 3.1; modeling_deepseek_vl_hybrid.py of the reference."""

    reference = "DeepseekVLHybridForConditionalGeneration"
    model_types = ("deepseek_vl_hybrid",)
    sections = sizes.Sections(
        "llama",
        default_tie=True,
        other_sections=("vision_config", "high_res_vision_config"),
        default_encoder="siglip_vision_model",
    )
    conditions = (sizes.encoder_has_image_size,)

    high_res_vision: HighResolutionSam
    d_half: sizes.Positive = sizes.derived(lambda js, c: c["language"].d_model // 2)

    def places(c: Any, pixels: Data) -> tuple[Data, ...]:
        """The vectors of the larger encoder."""
        sam, narrow = c.high_res_vision, "model.high_res_vision_proj."
        image = ops.given("high resolution pixels", sam.n_channels, "height", "width")
        both = ops.block(image, "model.high_res_vision_model.vision_encoder.", sam.forward, part="vision")
        last, states = ops.split(both, sam.d_out, sam.d_model)
        states = ops.block(states, "model.high_res_vision_neck.", lambda x: sam.neck(x, ""), part="vision")
        last = ops.block(last, narrow, c.narrow, part="vision")
        states = ops.tie_weights(ops.block(states, narrow, c.narrow, part="vision"), narrow)
        return (last + ops.block(states, "model.", c.scale, part="vision"),)

    def narrow(c: Any, x: Data) -> Data:
        """Patches, stretched to four times as many a side as the other encoder has, to a quarter of that."""
        x = Data("stretch", (x,), x.shape)
        x = ops.convolve_image(x, "conv1", "mixer", 2 * c.high_res_vision.d_out, 3, stride=2)
        return ops.convolve_image(x, "conv2", "mixer", 4 * c.high_res_vision.d_out, 3, stride=2)

    def scale(c: Any, x: Data) -> Data:
        return ops.multiply_vector(x, "high_res_vision_alpha", "other", 1)

    def project(c: Any, x: Data, *places: Data) -> Data:
        low = ops.linear(x, "vision_proj", "projector", c.d_half, bias=True)
        high = ops.linear(places[0], "high_res_vision_proj", "projector", c.d_half, bias=True)
        weights = (
            ops.Weight("proj.weight", "projector", (c.language.d_model, c.language.d_model)),
            ops.Weight("proj.bias", "projector", (c.language.d_model,)),
        )
        return Data(ops.Linear(), (ops.activate(ops.join(high, low), "gelu"),), ("image", c.language.d_model), weights)
