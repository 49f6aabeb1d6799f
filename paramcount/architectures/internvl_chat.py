"""InternVL 1.1 to 3.5 as released: the vision encoder and the language model of `llm_config` in config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import SerializeAsAny

from paramcount.architectures.internvl import merge, scaled_layer
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, attend, block, elementwise, given, layers, linear
from paramcount.parts.attentions import fused_qkv, wide_norm
from paramcount.parts.composite import with_language
from paramcount.parts.vision import cut_into_patches
from paramcount.sizes import Condition, Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import one_of
from paramcount.sizes.rules import check_heads_fill


def no_adapters(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """The published code wraps either half in LoRA layers if the config asks for them, which no release does."""
    for key in ("use_backbone_lora", "use_llm_lora"):
        if js.get(key):
            raise ParamcountError(
                f"= {describe_value(js[key])} adds LoRA layers, which are not supported", where=key, expected="0"
            )


class InternViT(Sizes):
    """The sizes of the vision encoder. Source: configuration_intern_vit.py of OpenGVLab/InternViT-6B-448px-V1-5."""

    section: ClassVar[str | None] = "vision_config"
    conditions: ClassVar[tuple[Condition, ...]] = (one_of("norm_type", ("layer_norm", "rms_norm"), "rms_norm"),)

    d_model: Positive = hf(absent=3200)
    n_layers: Positive = hf(absent=48)
    n_heads: Positive = hf(absent=25)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=12800)
    patch_size: Positive = hf("patch_size", absent=14)
    n_patches: Natural = derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)
    qkv_bias: Flag = hf(absent=False)
    qk_norm: Flag = hf("qk_normalization", absent=True)
    norm_bias: Flag = derived(lambda js, c: js.get("norm_type", "rms_norm") == "layer_norm")

    def check(c) -> None:
        check_heads_fill(c)


class InternVLChat(Sizes):
    """Source: arXiv:2312.14238 and arXiv:2404.16821; modeling_internvl_chat.py and modeling_intern_vit.py of
    OpenGVLab/InternVL2-8B. `n_merged`: patches that become one vector.
    """

    reference: ClassVar[str] = "InternVLChatModel of OpenGVLab/InternVL2-8B"
    conditions: ClassVar[tuple[Condition, ...]] = (no_adapters,)

    language: SerializeAsAny[Sizes]
    vision: InternViT
    n_merged: Positive = derived(lambda js, c: int(1 / js.get("downsample_ratio", 0.5)) ** 2)

    def forward(c, tokens: Data) -> Data:
        return with_language(c, tokens, encode_image(c), head=True)

    def body(c, tokens: Data) -> Data:
        return with_language(c, tokens, encode_image(c), head=False)


class H2OVLChat(InternVLChat):
    """Source: modeling_h2ovl_chat.py of h2oai/h2ovl-mississippi-2b: InternVL's layers around H2O Danube."""

    reference: ClassVar[str] = "H2OVLChatModel of h2oai/h2ovl-mississippi-2b"


class SkyworkChat(InternVLChat):
    """Source: arXiv:2504.05599; modeling_skywork_chat.py of Skywork/Skywork-R1V-38B: InternVL's layers."""

    reference: ClassVar[str] = "SkyworkChatModel of Skywork/Skywork-R1V-38B"


def encode_image(c: Any) -> Data:
    """Pixels to vectors of the language model's size."""
    vision = c.vision
    pixels = given("pixels", "patches", 3, vision.patch_size, vision.patch_size)
    image = block(pixels, "vision_model.", lambda x: vision_encoder(vision, x), part="vision")
    return block(image, "mlp1.", lambda x: merge(c, x, ("0", "1", "3")), part="projector")


def vision_encoder(c: Any, x: Data) -> Data:
    x = cut_into_patches(x, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
    x = elementwise(x, "class token", "embeddings.class_embedding", "embedding", 1, 1, c.d_model)
    x = elementwise(x, "positions", "embeddings.position_embedding", "position", 1, c.n_patches + 1, c.d_model)
    names = ("norm1", "norm2", "ls1", "ls2")
    return layers(
        x, "encoder.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: scaled_layer(c, x, attention, names)
    )


def attention(c: Any, x: Data) -> Data:
    q, k, v = fused_qkv(c, x, "attn.qkv", bias=c.qkv_bias)
    if c.qk_norm:
        q, k = wide_norm(q, "attn.q_norm"), wide_norm(k, "attn.k_norm")
    return linear(attend(q, k, v, cached=()), "attn.proj", "output_projection", c.d_model, bias=True)
