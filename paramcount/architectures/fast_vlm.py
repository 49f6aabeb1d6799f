"""FastVLM: FastViT, two matrices and a language model."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

FAST_VLM = {
    "hidden_size": 3584,
    "vocab_size": 152128,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "num_hidden_layers": 28,
}


def last_layer_is_whole(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    for key, only in (("vision_feature_select_strategy", "full"), ("vision_feature_layer", -1)):
        if (found := js.get(key, only)) != only:
            raise sizes.make_value_error(found, key, str(only))


class FastVlm(parts.Multimodal):
    """Source: arXiv:2412.13303, section 3; modeling_fast_vlm.py of the reference."""

    reference = "FastVlmForConditionalGeneration"
    sections = sizes.Sections("qwen2", tie_rule="either", default_section=FAST_VLM)
    conditions = (last_layer_is_whole,)
    required_keys = ("vision_config.model_args.inference_mode",)
    encoder_prefix = "model.vision_tower.timm_model."

    vision: parts.FastViT
    projector_bias: sizes.Flag = sizes.hf("multimodal_projector_bias")

    image_token = sizes.setting("image_token_index", "image_token_id")
    activation = sizes.setting("projector_hidden_act")

    def project(c: Any, x: Data, *places: Data) -> Data:
        width = c.language.d_model
        weights: tuple[ops.Weight, ...] = (ops.Weight("linear_1.weight", "projector", (width, c.vision.d_projected)),)
        if c.projector_bias:
            weights += (ops.Weight("linear_1.bias", "projector", (width,)),)
        x = Data(ops.Linear(), (x,), (x.shape[0], width), weights)
        return ops.linear(ops.activate(x, c.activation), "linear_2", "projector", width, bias=c.projector_bias)
