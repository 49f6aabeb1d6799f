"""Qwen 2 VL and 2.5 VL: Qwen 2 with positions in time, height and width, and a vision encoder.

The encoder takes images and video of any size. That of 2.5 VL has Qwen 2's norms and gated MLP, and all but a few of
its layers attend within one window of the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import SerializeAsAny

from paramcount.architectures.qwen2 import Qwen2
from paramcount.errors import ParamcountError
from paramcount.flow import Data, block, layers, norm
from paramcount.parts.decoders import pre_norm
from paramcount.parts.feed_forward import gated_mlp, plain_mlp
from paramcount.parts.qwen_vision import cubes, merge, pixels, tower_attention, widen
from paramcount.parts.vision import insert
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rotary import sections_fill
from paramcount.sizes.rules import check_heads_fill
from paramcount.sizes.setting_fields import rotary, setting


class Qwen2VLText(Qwen2):
    """Source: arXiv:2409.12191, section 2.1. In text, the positions in time, height and width are equal."""

    reference: ClassVar[str] = "Qwen2VLForConditionalGeneration"
    base_model: ClassVar[str | None] = "Qwen2VLTextModel"
    conditions: ClassVar[tuple[Condition, ...]] = (*Qwen2.conditions, sections_fill(16, 24, 24))
    defaults: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 152064,
        "d_model": 8192,
        "n_layers": 80,
        "n_heads": 64,
        "n_kv_heads": 8,
        "d_ff": 29568,
    }

    d_head: Positive = derived(d_model_per_head)
    d_rope: Positive = derived(lambda js, c: js.get("head_dim") or c["d_head"])  # which the heads do not ask
    tie_word_embeddings: Flag = hf(absent=False, null=False)

    norm_eps: ClassVar = setting("rms_norm_eps", default=1e-5)
    rope: ClassVar = rotary(1_000_000, 32768)

    def check(c) -> None:
        check_heads_fill(c)
        if c.d_rope != c.d_head > 1:
            raise ParamcountError(
                f"= {c.d_rope} for heads of {c.d_head}",
                where="head_dim",
                expected=f"{c.d_head}",
                sizes=(c.d_rope, c.d_head),
            )


class Qwen2_5VLText(Qwen2VLText):
    """Source: arXiv:2502.13923, section 2.1."""

    reference: ClassVar[str] = "Qwen2_5_VLForConditionalGeneration"
    base_model: ClassVar[str | None] = "Qwen2_5_VLTextModel"


class Qwen2VLVision(Sizes):
    """The tower. `d_out`: behind the merger."""

    section: ClassVar[str | None] = "vision_config"

    d_model: Positive = hf("embed_dim", absent=1280)
    n_layers: Positive = hf("num_hidden_layers", "depth", absent=32)
    n_heads: Positive = hf("num_attention_heads", "num_heads", absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = derived(lambda js, c: c["d_model"] * check_no_types(js, "mlp_ratio", 4))
    d_out: Positive = hf("hidden_size", absent=3584)
    n_channels: Positive = hf("in_channels", absent=3)
    n_frames: Positive = hf("temporal_patch_size", absent=2)
    patch_size: Positive = hf("patch_size", absent=14)
    merge_size: Positive = hf("spatial_merge_size", absent=2)

    def check(c) -> None:
        check_heads_fill(c)


class Qwen2_5VLVision(Qwen2VLVision):
    """The same with a gated MLP."""

    defaults: ClassVar[Mapping[str, Any]] = {"d_model": 3584}

    d_model: Positive = hf(absent=3584)
    d_ff: Positive = hf(absent=3420)
    d_out: Positive = hf("out_hidden_size", absent=3584)


class Qwen2VL(Sizes):
    """Source: arXiv:2409.12191, section 2.1."""

    reference: ClassVar[str] = "Qwen2VLForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: Qwen2VLVision

    def forward(c, tokens: Data) -> Data:
        return around(c, tokens, old_layer, norm_bias=True)


class Qwen2_5VL(Sizes):
    """Source: arXiv:2502.13923, section 2.1."""

    reference: ClassVar[str] = "Qwen2_5_VLForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: Qwen2_5VLVision

    def forward(c, tokens: Data) -> Data:
        return around(c, tokens, new_layer, norm_bias=False)


def around(c: Any, tokens: Data, tower_layer: Any, *, norm_bias: bool) -> Data:
    """Images through the tower and the merger, then among the tokens through the language model."""
    eyes = c.vision

    def tower(x: Data) -> Data:
        return layers(
            cubes(eyes, x), "blocks.{layer}.", [("layer", eyes.n_layers)], lambda kind, x: tower_layer(eyes, x)
        )

    image = block(pixels(eyes), "visual.", tower, part="vision")
    image = block(
        image,
        "visual.merger.",
        lambda x: widen(eyes, merge(eyes, norm(x, "ln_q", bias=norm_bias)), ("mlp.0", "mlp.2")),
        part="projector",
    )
    out: Data = c.language.decode(insert(c.language.embed(tokens), image))
    return out


def old_layer(c: Any, x: Data) -> Data:
    names = ("norm1", "norm2")
    return pre_norm(
        x,
        lambda h: tower_attention(c, h),
        lambda h: plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True),
        names,
        bias=True,
    )


def new_layer(c: Any, x: Data) -> Data:
    return pre_norm(
        x, lambda h: tower_attention(c, h), lambda h: gated_mlp(h, "mlp.", "mlp", c.d_ff, bias=True), ("norm1", "norm2")
    )
