"""Gemma 3: Gemma 2 with a norm on every query and key head; five of six layers attend to a sliding window.

From 4B on with a SigLIP encoder, whose patches are pooled, normalized and projected to image tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge, gelu_mlp
from paramcount.architectures.gemma2 import Gemma2, window
from paramcount.flow import Data, block, fused, given, norm
from paramcount.parts.decoders import decoder, sandwich, usual_layer
from paramcount.parts.siglip import SiglipVision, siglip
from paramcount.parts.vision import insert
from paramcount.sizes import ABSENT, Flag, Positive, Words, full_every, hf


def pattern(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    words: tuple[str, ...] = full_every(js.get("sliding_window_pattern", 6))(js, c)
    return words


class Gemma3Text(Gemma2):
    """Source: arXiv:2503.19786, section 2."""

    reference: ClassVar[str] = "Gemma3ForCausalLM"
    base_model: ClassVar[str | None] = "Gemma3TextModel"
    defaults: ClassVar[Mapping[str, Any]] = {"vocab_size": 262208}

    layer_types: Words = hf(absent=pattern, null=ABSENT)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(kind, 1) for kind in c.layer_types], enter=enlarge)


class Gemma3TextOf(Gemma3Text):
    """The language model of a config that has a tower too."""

    section: ClassVar[str | None] = "text_config"


class Gemma3(Gemma3Text):
    """Source: arXiv:2503.19786, section 2; the tower arXiv:2303.15343."""

    reference: ClassVar[str] = "Gemma3ForConditionalGeneration"
    base_model: ClassVar[str | None] = "Gemma3Model"
    section: ClassVar[str | None] = "text_config"

    tie_word_embeddings: Flag = hf("/tie_word_embeddings", absent=True, null=False)
    n_image_tokens: Positive = hf("/mm_tokens_per_image", absent=256)
    vision: SiglipVision

    def forward(c, tokens: Data) -> Data:
        pixels = given("pixels", "patches", c.vision.n_channels, c.vision.patch_size, c.vision.patch_size)
        image = block(pixels, "vision_tower.", lambda pixels: siglip(c.vision, pixels), part="vision")
        image = block(image, "multi_modal_projector.", lambda x: project(c, x), part="projector")
        kinds = [(kind, 1) for kind in c.layer_types]
        head = "language_model.lm_head"
        return decoder(
            c,
            tokens,
            layer,
            kinds,
            prefix="language_model.model.",
            head_name=head,
            enter=lambda x: insert(enlarge(x), image),
        )


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c, x, lambda h: gelu_mlp(c, h), arrange=sandwich, bias=c.attention_bias, qk_norm=True, window=window(c, kind)
    )


def project(c: Any, x: Data) -> Data:
    x = norm(Data("pool", (x,), (c.n_image_tokens, c.vision.d_model)), "mm_soft_emb_norm")
    return fused(x, "mm_input_projection_weight", {"projector": c.d_model}, transposed=True, suffixes=("", ""))[0]
