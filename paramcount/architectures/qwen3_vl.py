"""Qwen 3 VL: Qwen 3, dense or of experts, with positions in time, height and width.

What some layers of the tower see is merged by itself and added behind the first layers of the language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import SerializeAsAny

from paramcount.architectures.qwen3 import Qwen3
from paramcount.architectures.qwen3_moe import Qwen3MoE
from paramcount.flow import Data, Size, Undescribed, block, elementwise, layers, linear, norm, split
from paramcount.parts.decoders import decoder, dense_or_moe, pre_norm, usual_layer
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.qwen_vision import cubes, merge, pixels, tower_attention, widen
from paramcount.parts.stacked import stacked_experts
from paramcount.parts.vision import insert
from paramcount.sizes import ABSENT, Condition, Flag, Indices, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill
from paramcount.sizes.setting_fields import rotary

MLP = ("mlp.linear_fc1", "mlp.linear_fc2")


class Qwen3VLText(Qwen3):
    """Source: arXiv:2505.09388, section 2; Qwen3VLTextDecoderLayer of the reference. In text, the positions in time,
    height and width are equal."""

    reference: ClassVar[str] = "Qwen3VLForConditionalGeneration"
    base_model: ClassVar[str | None] = "Qwen3VLTextModel"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    tie_word_embeddings: Flag = hf(absent=False, null=False)

    rope: ClassVar = rotary(500_000, 128_000)
    layer_types: ClassVar[tuple[str, ...]] = ()  # every layer attends to all tokens


class Qwen3VLMoEText(Qwen3MoE):
    """The experts of a layer are stored as one tensor for each projection, which released files hold [in, out].

    Source: arXiv:2505.09388, section 2; Qwen3VLMoeTextDecoderLayer of the reference.
    """

    reference: ClassVar[str] = "Qwen3VLMoeForConditionalGeneration"
    base_model: ClassVar[str | None] = "Qwen3VLMoeTextModel"
    defaults: ClassVar[Mapping[str, Any]] = {
        "n_heads": 16, "d_ff": 5632, "d_expert": 1408, "n_routed_experts": 60, "n_active_experts": 4,
        "tie_word_embeddings": True,
    }  # fmt: skip

    n_kv_heads: Positive = hf(absent=16)
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)

    rope: ClassVar = rotary(500_000, 128_000)
    norm_topk_prob: ClassVar[bool] = True

    def mixture(c, x: Data) -> Data:
        return mixture(c, x)


class QwenVision(Sizes):
    """The tower, of Qwen 3.5 too."""

    section: ClassVar[str | None] = "vision_config"

    d_model: Positive = hf(absent=1152)
    n_layers: Positive = hf("num_hidden_layers", "depth", absent=27)
    n_heads: Positive = hf("num_attention_heads", "num_heads", absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=4304)
    d_out: Positive = hf("out_hidden_size", absent=3584)
    n_channels: Positive = hf("in_channels", absent=3)
    n_frames: Positive = hf("temporal_patch_size", absent=2)
    patch_size: Positive = hf("patch_size", absent=16)
    merge_size: Positive = hf("spatial_merge_size", absent=2)
    n_positions: Positive = hf("num_position_embeddings", absent=2304)

    def check(c) -> None:
        check_heads_fill(c)


class Qwen3VLVision(QwenVision):
    """Deeper views beside it. `deep_layers`: those whose output is merged too."""

    deep_layers: Indices = hf("deepstack_visual_indexes", absent=(8, 16, 24))


class Qwen3VL(Sizes):
    """Source: modeling_qwen3_vl.py of the reference. `seen_layers`: those of the language model behind which a deep
    view is added.
    """

    reference: ClassVar[str] = "Qwen3VLForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: Qwen3VLVision
    seen_layers: Indices = derived(
        lambda js, c: tuple(range(min(len(c["vision"]["deep_layers"]), c["language"].n_layers)))
    )

    def forward(c, tokens: Data) -> Data:
        image = block(pixels(c.vision), "model.visual.", lambda x: tower(c.vision, x), part="vision")
        image = block(image, "model.visual.", lambda x: project(c.vision, x), part="projector")
        return spoken(c.language, tokens, image, seen=c.seen_layers, prefix="model.language_model.")


class Qwen3VLMoE(Qwen3VL):
    """The same around experts, whose matrices released files hold the other way round."""

    reference: ClassVar[str] = "Qwen3VLMoeForConditionalGeneration"
    transposable: ClassVar[tuple[str, ...]] = (
        ".mlp.experts.gate_up_proj",
        ".mlp.experts.down_proj",
    )  # conversion_mapping.py: check_dims


def spoken(c: Any, tokens: Data, *image: Data, seen: Sequence[int] = (), prefix: str = "model.") -> Data:
    """Token ids to logits. `image`: the merged patches, with those of deeper views."""

    def enter(x: Data) -> Data:
        return insert(x, *image)

    kinds = kinds_of(getattr(c, "dense_layers", None), c.n_layers, seen)
    return decoder(c, tokens, layer, kinds, prefix=prefix, enter=enter if image else None, reads=image if seen else ())


def kinds_of(dense: Sequence[int] | None, n_layers: Size, seen: Sequence[int]) -> list[tuple[tuple[str, bool], Size]]:
    """Whether a layer has experts, and whether a deep view is added behind it.

    `dense`: layers without experts, None for all.
    """
    first = [(("dense" if dense is None or i in dense else "moe", True), 1) for i in seen]
    n = len(first)
    rest = [("dense", n_layers - n)] if dense is None else dense_or_moe([i - n for i in dense if i >= n], n_layers - n)
    return first + [((word, False), number) for word, number in rest]


def layer(c: Any, kind: tuple[str, bool], x: Data, *image: Data) -> Data:
    word, seen = kind
    x = usual_layer(c, x, (lambda h: mixture(c, h)) if word == "moe" else None, bias=c.attention_bias, qk_norm=True)
    return Data(Undescribed("add view", of_prompt=True), (x, *image), x.shape) if seen else x


def mixture(c: Any, x: Data) -> Data:
    weights = c.choose(linear(x, "mlp.gate", "router", c.n_routed_experts))
    return stacked_experts(c, x, weights, "mlp.experts.")


def tower(c: Any, x: Data) -> Data:
    """Pixels to patches behind the last layer, and behind the deeper ones."""
    x = cubes(c, x, bias=True)
    x = elementwise(x, "positions", "pos_embed.weight", "position", c.n_positions, c.d_model)
    x = layers(x, "blocks.{layer}.", [("layer", c.n_layers)], lambda kind, x: tower_layer(c, x))
    views = tuple(Data("states of a layer", (x,), x.shape) for _ in c.deep_layers)
    return Data("join", (x, *views), ("patches", (1 + len(views)) * c.d_model)) if views else x


def tower_layer(c: Any, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: tower_attention(c, h),
        lambda h: plain_mlp(h, MLP, "mlp", c.d_ff, bias=True),
        ("norm1", "norm2"),
        bias=True,
    )


def project(c: Any, x: Data) -> Data:
    """Each set of features through a merger of its own.

    The last layer's features are normalized before patches are merged, the others after.
    """
    last, *views = split(x, *[c.d_model] * (1 + len(c.deep_layers)))
    image = widen(c, merge(c, norm(last, "merger.norm", bias=True)), ("merger.linear_fc1", "merger.linear_fc2"))
    names = [f"deepstack_merger_list.{i}." for i in range(len(views))]
    deep = [
        widen(c, norm(merge(c, view), name + "norm", bias=True), (name + "linear_fc1", name + "linear_fc2"))
        for name, view in zip(names, views)
    ]
    return Data("tuple", (image, *deep), image.shape)
