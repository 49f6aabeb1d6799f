"""ModernVBERT and UltraVBERT: a text encoder, some of whose tokens stand for patches of an image."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures import modernbert, ultrabert
from paramcount.declare import Data, ops, parts, sizes


class ModernVBert(parts.Multimodal):
    """Source: arXiv:2510.01149, section 3; ModernVBertModel of the reference."""

    reference = "ModernVBertForMaskedLM"
    sections = sizes.Sections("modernbert", supported_types=("modernbert",))
    task_heads = {
        "ForSequenceClassification": parts.TaskHead(
            parts.task_heads.classify_transformed(is_pooled=True), parts.LABELS
        ),
        "ForTokenClassification": parts.TaskHead(parts.task_heads.classify_transformed(is_pooled=False), parts.LABELS),
    }
    conditions = (sizes.one_of("classifier_pooling", ("cls", "mean"), "cls"),)
    encoder_prefix = "model.vision_model."
    projector_prefix = "model.connector."
    text_prefix: ClassVar[str] = "model."  # of the text encoder alone
    table: ClassVar[str] = modernbert.TABLE
    head_names: ClassVar[tuple[str, str]] = ("projection_head.", "lm_head")

    vision: parts.SiglipVision
    merge_size: sizes.Positive = sizes.hf("pixel_shuffle_factor")

    pooling = sizes.setting("classifier_pooling")

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        language = c.language

        def read(tokens: Data, image: Data) -> Data:
            x = ops.insert(language.look_up(tokens), tokens, image, c.image_token)
            x = language.encode(language.to_first_layer(x))
            return c.predict(x) if head else x

        moved = (c.text_prefix, "model.text_model.")
        return ops.rename_weights(ops.block(tokens, "", read, reads=(c.see(),), part="encoder"), moved=moved)

    def predict(c: Any, x: Data) -> Data:
        """Hidden states to logits."""
        language = c.language
        tied_to = c.table if language.tie_word_embeddings else None
        h: Data = language.transform(x, c.head_names[0])
        bias = getattr(language, "lm_head_bias", False)
        return ops.linear(h, c.head_names[1], "lm_head", language.vocab_size, bias=bias, tied_to=tied_to)

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = ops.merge_squares(x, c.merge_size * c.merge_size)
        return ops.linear(x, "modality_projection", "projector", c.language.d_model)


def has_pooling_head(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    """SigLIP has one unless the config says otherwise, but the default encoder has none."""
    vision = js.get("vision_config")
    return False if vision is None else vision.get("vision_use_head", True)


class UltraVision(parts.SiglipVision):
    config_class = "SiglipVisionConfig"
    pooling_head: sizes.Flag = sizes.derived(has_pooling_head, at_root=True)


class UltraVBert(ModernVBert):
    """Source: UltraVBertModel of the reference."""

    reference = "UltraVBertForMaskedLM"
    model_types = ("ultravbert",)
    sections = sizes.Sections("ultrabert", supported_types=("ultrabert",))
    task_heads = {
        "ForSequenceClassification": parts.TaskHead(parts.task_heads.classify_pooled_as_set, parts.LABELS),
        "ForTokenClassification": parts.TOKENS,
    }
    reference_names = {
        "head.decoder.": "lm_head.",
        "head.": "projection_head.",
    }
    text_prefix = "ultrabert."
    table = ultrabert.TABLE
    head_names = ("head.", "head.decoder")

    vision: UltraVision

    def project(c: Any, x: Data, *places: Data) -> Data:
        """UltraBERT has no norm behind its embeddings, so the projector has one."""
        return ops.rms_norm(super().project(x), "norm", c.language.norm_eps)
