"""Unlimited-OCR: SAM's encoder, whose image CLIP's layers see again, before DeepSeek's layers of plain attention.

While it writes, tokens see the prompt and its image, and the last tokens that they have written.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from paramcount.architectures.deepseek_v2 import DeepseekV2, in_groups
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import (
    Data,
    add_positions,
    attend,
    block,
    class_token,
    convolve_image,
    end_rows,
    join,
    linear,
    other_tokens,
)
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.clip import ClipVision
from paramcount.parts.composite import SeeingDecoder
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_mlp
from paramcount.parts.feed_forward import shared_mixture
from paramcount.parts.sam import SamVision
from paramcount.parts.vision import encoder_mlp
from paramcount.sizes import (
    ConfigJson,
    FieldValues,
    Flag,
    Indices,
    Natural,
    Positive,
    d_model_per_head,
    derived,
    equal_to,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.conditions import attention_words, groups_by_method, not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, first_dense
from paramcount.sizes.rules import check_heads_fill

SAM_NAMES = (
    (".layers.", ".blocks."),
    (".layer_norm", ".norm"),
    (".neck.conv1.", ".neck.0."),
    (".neck.norm1.", ".neck.1."),
    (".neck.conv2.", ".neck.2."),
    (".neck.norm2.", ".neck.3."),
    (".patch_embed.projection.", ".patch_embed.proj."),
)
CHANNELS = (512, 1024)


def channels(at: int, absent: tuple[int, int] = CHANNELS) -> Callable[[ConfigJson, FieldValues], Any]:
    def derive(js: ConfigJson, c: FieldValues) -> Any:
        found = js.get("downsample_channels")
        found = absent if found is None else found
        if not isinstance(found, (list, tuple)) or len(found) != len(absent):
            raise ParamcountError(
                f"= {describe_value(found)}",
                where="vision_config.sam_config.downsample_channels",
                expected="two positive integers",
            )
        return found[at]

    return derive


class UnlimitedOcrSam(SamVision):
    """The image is narrowed to a sixteenth by two convolutions."""

    config_class = "UnlimitedOcrSamVisionConfig"

    section = "vision_config.sam_config"

    d_half: Positive = derived(channels(0))
    d_narrow: Positive = derived(channels(1))

    def forward(c, pixels: Data) -> Data:
        x = convolve_image(super().forward(pixels), "net_2", "mixer", c.d_half, 3, stride=2)
        return convolve_image(x, "net_3", "mixer", c.d_narrow, 3, stride=2)


class UnlimitedOcrClip(ClipVision):
    """CLIP's encoder without its own patches: it reads vectors of SAM's."""

    config_class = "UnlimitedOcrVisionEncoderConfig"

    section = "vision_config.encoder_config"
    unused_keys = ("num_channels", "projection_dim")

    def encode_again(c, x: Data) -> Data:
        """Vectors of patches to others, [patches, d_model]."""
        x = class_token(x, "embeddings.class_embedding")
        x = add_positions(x, "embeddings.position_embedding.weight", c.n_patches + 1, c.d_model)
        x = c.encode(c.norm(x, "pre_layrnorm"), name="transformer.layers.{layer}.")
        return other_tokens(x)

    def layer(c, x: Data, *reads: Data) -> Data:
        q, k, v = fused_qkv(c, c.norm(x, "layer_norm1"), "self_attn.qkv_proj")
        x = x + linear(attend(q, k, v, cached=()), "self_attn.out_proj", "output_projection", c.d_model, bias=True)
        return x + encoder_mlp(c, c.norm(x, "layer_norm2"))


class OcrDecoder(SeeingDecoder, AttentionDecoder):
    """DeepSeek's layers of plain attention, and an image among the tokens. A subclass adds `see`."""

    section = "text_config"
    unused_keys = ("head_dim",)
    modules = {
        ".self_attn.qkv_proj": (".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj"),
        ".projector.layers": (".multi_modal_projector",),
        ".net_2": (".proj.conv1",),
        ".net_3": (".proj.conv2",),
    }
    rotated = "d_head"

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(first_dense(1)))
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_experts", "n_routed_experts")
    n_active_experts: Natural = hf()
    n_shared_experts: Natural = hf()
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf("/tie_word_embeddings", absent=False)

    rope = rotary(positions=32768)
    routed_scale = setting("routed_scaling_factor", default=1.0)
    n_groups = setting(default=in_groups("n_group"))
    n_active_groups = setting(default=in_groups("topk_group"))
    image_token = setting("/image_token_id", default=128815)
    choose: ClassVar[Any] = DeepseekV2.choose
    kinds = layers_by_mlp

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + shared_mixture(c, h, "mlp.", choose=c.choose, shared_bias=c.mlp_bias)
        return x + c.gated_mlp(h, bias=c.mlp_bias)


class UnlimitedOcr(OcrDecoder):
    """Source: modeling_unlimited_ocr.py of the reference."""

    reference = "UnlimitedOcrForConditionalGeneration"
    older_sections = {"language_config": "text_config"}
    reference_names = {
        "model.sam_model.blocks.": "model.vision_tower.sam_encoder.layers.",
        "model.sam_model.patch_embed.proj.": "model.vision_tower.sam_encoder.patch_embed.projection.",
        "model.sam_model.neck.0.": "model.vision_tower.sam_encoder.neck.conv1.",
        "model.sam_model.neck.2.": "model.vision_tower.sam_encoder.neck.conv2.",
        "model.vision_model.transformer.": "model.vision_tower.vision_encoder.encoder.",
        "model.multi_modal_projector.": "model.multi_modal_projector.",
        "model.": "model.language_model.",
    }
    base_model = "UnlimitedOcrModel"
    conditions = (
        padding_in_table(None),
        attention_words("full_attention", "reference_sliding_attention"),
        not_null("sliding_window"),
        groups_by_method(1),
    )

    sam: UnlimitedOcrSam
    vision: UnlimitedOcrClip

    def see(c) -> Data:
        """An image to vectors of its patches; a learned one ends each row of them, another one the image."""
        x = block(c.sam.image(), "model.sam_model.", c.sam.forward, part="vision", renamed=SAM_NAMES)
        again = block(x, "model.vision_model.", c.vision.encode_again, part="vision")
        return block(join(again, x), "model.", c.project, part="projector")

    def project(c, x: Data) -> Data:
        x = end_rows(linear(x, "projector.layers", "projector", c.d_model, bias=True), "image_newline", "projector")
        return class_token(x, "view_seperator", component="projector", last=True)  # spelled so

    def check(c) -> None:
        check_heads_fill(c)
        if c.sam.d_narrow != c.vision.d_model:
            raise ParamcountError(
                f"= {c.sam.d_narrow} is not the size of the second encoder",
                where="vision_config.sam_config.downsample_channels.1",
                expected=f"{c.vision.d_model}",
            )
