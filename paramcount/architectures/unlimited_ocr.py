"""Unlimited-OCR: SAM's encoder, whose image CLIP's layers see again, before DeepSeek's layers of plain attention.

While it writes, tokens see the prompt and its image, and the last tokens that they have written.
"""

from typing import Any, ClassVar

from paramcount.architectures.deepseek_v2 import DeepseekV2, in_groups
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

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


def stored_names(encoder: str, inside: str) -> dict[str, str]:
    """The reference's prefixes by those of released files. `encoder`, `inside`: of the second encoder."""
    sam, tower = "model.sam_model.", "model.vision_tower."
    return {
        f"{sam}blocks.": f"{tower}sam_encoder.layers.",
        f"{sam}patch_embed.proj.": f"{tower}sam_encoder.patch_embed.projection.",
        f"{sam}neck.0.": f"{tower}sam_encoder.neck.conv1.",
        f"{sam}neck.2.": f"{tower}sam_encoder.neck.conv2.",
        encoder: f"{tower}vision_encoder.{inside}",
        "model.multi_modal_projector.": "model.multi_modal_projector.",
        "model.": "model.language_model.",
    }


@sizes.options_first
def channels(js: sizes.ConfigJson, c: sizes.FieldValues, at: int, absent: tuple[int, int] = CHANNELS) -> Any:
    found = js.get("downsample_channels")
    found = absent if found is None else found
    if not isinstance(found, (list, tuple)) or len(found) != len(absent):
        raise sizes.make_value_error(found, "vision_config.sam_config.downsample_channels", "two positive integers")
    return found[at]


class UnlimitedOcrSam(parts.SamVision):
    """The image is narrowed to a sixteenth by two convolutions."""

    config_class = "UnlimitedOcrSamVisionConfig"

    section = "vision_config.sam_config"

    d_half: sizes.Positive = sizes.derived(channels(0))
    d_narrow: sizes.Positive = sizes.derived(channels(1))

    def forward(c, pixels: Data) -> Data:
        x = ops.convolve_image(super().forward(pixels), "net_2", "mixer", c.d_half, 3, stride=2)
        return ops.convolve_image(x, "net_3", "mixer", c.d_narrow, 3, stride=2)


class UnlimitedOcrClip(parts.ClipVision):
    """CLIP's encoder without its own patches: it reads vectors of SAM's."""

    config_class = "UnlimitedOcrVisionEncoderConfig"

    section = "vision_config.encoder_config"
    unused_keys = ("num_channels", "projection_dim")

    def encode_again(c, x: Data) -> Data:
        """Vectors of patches to others, [patches, d_model]."""
        x = ops.class_token(x, "embeddings.class_embedding")
        x = ops.add_positions(x, "embeddings.position_embedding.weight", c.n_patches + 1, c.d_model)
        x = c.encode(c.norm(x, "pre_layrnorm"), name="transformer.layers.{layer}.")
        return ops.other_tokens(x)

    def layer(c, x: Data, *reads: Data) -> Data:
        q, k, v = parts.fused_qkv(c, c.norm(x, "layer_norm1"), "self_attn.qkv_proj")  # [n, n_heads, d_head]
        x = x + ops.linear(ops.attend(q, k, v), "self_attn.out_proj", "output_projection", c.d_model, bias=True)
        return x + parts.encoder_mlp(c, c.norm(x, "layer_norm2"))


class OcrSight(parts.SeeingDecoder):
    """An image among the tokens of a decoder: SAM's encoder and the ends of what comes of it. A subclass adds `see`."""

    def see_first(c: Any) -> Data:
        """An image to vectors of SAM's."""
        x = ops.block(c.sam.image(), "model.sam_model.", c.sam.forward, part="vision")
        return ops.rename_weights(x, replaced=SAM_NAMES)

    def project(c: Any, x: Data) -> Data:
        return c.end_image(ops.linear(x, "projector.layers", "projector", c.d_model, bias=True))

    def end_image(c, x: Data) -> Data:
        return ops.class_token(x, "view_seperator", component="projector", last=True)  # spelled so


class OcrDecoder(OcrSight, parts.AttentionDecoder):
    """DeepSeek's layers of plain attention, and an image among the tokens. A subclass adds `see` and the encoders."""

    unused_keys = ("head_dim",)
    modules = {
        ".self_attn.qkv_proj": (".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj"),
        ".projector.layers": (".multi_modal_projector",),
        ".net_2": (".proj.conv1",),
        ".net_3": (".proj.conv2",),
    }
    rotated = "d_head"

    n_kv_heads: sizes.Positive = sizes.hf(null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.first_dense(1)))
    d_expert: sizes.Natural = sizes.hf()
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", "n_routed_experts")
    n_active_experts: sizes.Natural = sizes.hf()
    n_shared_experts: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf("/tie_word_embeddings", absent=False)

    rope = sizes.rotary(positions=32768)
    routed_scale = sizes.setting("routed_scaling_factor", default=1.0)
    n_groups = sizes.setting(default=in_groups("n_group"))
    n_active_groups = sizes.setting(default=in_groups("topk_group"))
    image_token = sizes.setting("/image_token_id", default=128815)
    choose: ClassVar[Any] = DeepseekV2.choose
    kinds = parts.layers_by_mlp

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + parts.shared_mixture(c, h, "mlp.", choose=c.choose, shared_bias=c.mlp_bias)
        return x + c.gated_mlp(h, bias=c.mlp_bias)


class TwiceSeen(OcrSight):
    """CLIP's layers see what SAM's have seen. A subclass has `sam` and `vision`."""

    def see(c: Any) -> Data:
        """An image to vectors of its patches; a learned one ends each row of them, another one the image."""
        x = c.see_first()
        again = ops.block(x, "model.vision_model.", c.vision.encode_again, part="vision")
        return ops.block(ops.join(again, x), "model.", c.project, part="projector")

    def end_image(c, x: Data) -> Data:
        return super().end_image(ops.end_rows(x, "image_newline", "projector"))


class UnlimitedOcr(TwiceSeen, OcrDecoder):
    """Source: modeling_unlimited_ocr.py of the reference."""

    reference = "UnlimitedOcrForConditionalGeneration"
    older_sections = {"language_config": "text_config"}
    reference_names = stored_names("model.vision_model.transformer.", "encoder.")
    base_model = "UnlimitedOcrModel"
    conditions = (
        sizes.padding_in_table(None),
        sizes.attention_words("full_attention", "reference_sliding_attention"),
        sizes.not_null("sliding_window"),
        sizes.groups_by_method(1),
    )

    sam: UnlimitedOcrSam
    vision: UnlimitedOcrClip

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if c.sam.d_narrow != c.vision.d_model:
            raise ParamcountError(
                f"= {c.sam.d_narrow} is not the size of the second encoder",
                where="vision_config.sam_config.downsample_channels.1",
                expected=f"{c.vision.d_model}",
            )
