"""Qwen 3 VL: Qwen 3, dense or of experts, with positions in time, height and width.

What some layers of the tower see is merged by itself and added behind the first layers of the language model.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from paramcount.architectures.qwen3 import Qwen3
from paramcount.architectures.qwen3_moe import Qwen3MoE
from paramcount.declare import Data, ops, parts, sizes


class Qwen3VLText(Qwen3):
    """Source: arXiv:2505.09388, section 2; Qwen3VLTextDecoderLayer of the reference. In text, the positions in time,
    height and width are equal."""

    reference = "Qwen3VLForConditionalGeneration"
    model_types = ("qwen3_vl_text",)
    gguf = "qwen3vl"
    is_section_type = False
    reference_names = {"model.": ""}
    base_model = "Qwen3VLTextModel"
    conditions = (sizes.padding_in_table(None),)

    tie_word_embeddings: sizes.Flag = sizes.hf(absent=False, null=False)

    rope = sizes.rotary(500_000, 128_000)
    layer_types = ()  # every layer attends to all tokens
    axes = sizes.setting(default=parts.mrope_axes("interleaved", 24, 20, 20))
    norms_heads = True

    def layer(c, x: Data, *places: Any) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, prepare=c.prepare_by(parts.rotation(c, *places)))
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))


class Qwen3VLMoEText(Qwen3MoE):
    """The experts of a layer are stored as one tensor for each projection, which released files hold [in, out].

    Source: arXiv:2505.09388, section 2; Qwen3VLMoeTextDecoderLayer of the reference.
    """

    reference = "Qwen3VLMoeForConditionalGeneration"
    model_types = ("qwen3_vl_moe_text",)
    gguf = "qwen3vlmoe"
    reference_names = {"model.": ""}
    adapts_experts = False
    is_section_type = False
    base_model = "Qwen3VLMoeTextModel"

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)

    rope = sizes.rotary(500_000, 128_000)
    window = None
    norm_topk_prob = True

    axes = sizes.setting(default=parts.mrope_axes("interleaved", 24, 20, 20))

    def mixture(c, x: Data) -> Data:
        weights = c.choose(ops.linear(x, "mlp.gate", "router", c.n_routed_experts))
        return parts.stacked_experts(c, x, weights, "mlp.experts.")


class QwenVision(parts.SquareEncoder):
    """The encoder, of Qwen 3.5 too: LayerNorms, a plain MLP, and positions interpolated from a square grid."""

    n_positions: sizes.Positive = sizes.hf("num_position_embeddings")

    activation = sizes.setting("hidden_act", default="gelu_pytorch_tanh")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        places = parts.places_of(c, pixels)
        positions = ops.lookup_in_grid(places, "pos_embed.weight", c.n_positions, c.d_model)
        return parts.encode(c, parts.embed_image(c, pixels, bias=True) + positions, places)

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + parts.encoder_attention(c, c.norm(x, "norm1"), reads[0])
        return x + parts.encoder_mlp(c, c.norm(x, "norm2"), ("mlp.linear_fc1", "mlp.linear_fc2"))


class Qwen3VLVision(QwenVision):
    """Deeper views beside it. `deep_layers`: those whose output is merged too."""

    config_class = "Qwen3VLVisionConfig"

    merger_names: ClassVar[tuple[str, str, str]] = ("norm", "linear_fc1", "linear_fc2")
    deep_mergers: ClassVar[str] = "deepstack_merger_list"

    deep_layers: sizes.Indices = sizes.hf("deepstack_visual_indexes")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, with those of the deeper views side by side."""
        x = super().forward(pixels)
        if not c.deep_layers:
            return x
        return ops.join(x, ops.hidden_states(x, tuple(i + 1 for i in c.deep_layers), len(c.deep_layers)))

    def merge(c, x: Data) -> tuple[Data, ...]:
        """Each set of features through a merger of its own.

        The last layer's features are normalized before patches are merged, the others after.
        """
        last, *views = ops.split(x, *[c.d_model] * (1 + len(c.deep_layers)))
        norm, first, second = c.merger_names
        image = parts.widen(c, parts.merge(c, c.norm(last, f"merger.{norm}")), (f"merger.{first}", f"merger.{second}"))
        names = [f"{c.deep_mergers}.{i}." for i in range(len(views))]
        return image, *(
            parts.widen(c, c.norm(parts.merge(c, view), name + norm), (name + first, name + second))
            for name, view in zip(names, views)
        )


class Qwen3VL(parts.Composite):
    """Source: modeling_qwen3_vl.py of the reference. `seen_layers`: those of the language model behind which a deep
    view is added.
    """

    reference = "Qwen3VLForConditionalGeneration"
    gguf = "qwen3vl"
    sections = sizes.Sections("qwen3_vl_text", ignores_model_type=True)
    encoder_prefix: ClassVar[str] = "model.visual."

    language: sizes.Sizes
    vision: Qwen3VLVision
    seen_layers: sizes.Indices = sizes.derived(
        lambda js, c: tuple(range(min(len(c["vision"]["deep_layers"]), c["language"].n_layers)))
    )

    image_token: ClassVar[Any] = sizes.setting("image_token_id")

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        pixels = parts.image_of(c.vision)
        image = ops.block(pixels, c.encoder_prefix, c.vision.forward, part="vision")
        image = ops.block(image, c.encoder_prefix, lambda x: side_by_side(*c.vision.merge(x)), part="projector")
        n_deep, d_out = len(c.vision.deep_layers), c.vision.d_out
        first, *deep = ops.split(image, d_out, n_deep * d_out) if n_deep else (image,)
        x = c.insert_sound(ops.insert(c.embed_text(tokens), tokens, first, c.image_token), tokens)
        places = parts.places_in_text(c, tokens, pixels)
        return c.read_text(x, tokens, places, *(ops.reshape(views, n_deep, d_out) for views in deep), head=head)

    def insert_sound(c, x: Data, tokens: Data) -> Data:
        """Embedded tokens with a sound, if the model hears."""
        return x

    def transform(c: Any, x: Data, *reads: Data) -> Data:
        """Embedded tokens to hidden states. `reads`: the tokens, where they stand, and the deep views."""
        language = c.language

        def layer(kind: tuple[str, bool], x: Data, tokens: Data, places: Data, *deep: Data) -> Data:
            word, sees = kind
            x = language.layer(x, places) if language.kinds() is None else language.layer(x, places, word)
            return ops.insert_sum(x, tokens, ops.select_part(deep[0], "layer"), c.image_token) if sees else x

        x = ops.layers(x, "model.layers.{layer}.", kinds_of(language, c.seen_layers), layer, reads=reads)
        return language.last(x)


class Qwen3VLMoE(Qwen3VL):
    """The same around experts, whose matrices released files hold the other way round."""

    reference = "Qwen3VLMoeForConditionalGeneration"
    model_types = ("qwen3_vl_moe",)
    gguf = "qwen3vlmoe"
    sections = sizes.Sections("qwen3_vl_moe_text", ignores_model_type=True)
    transposable = (".mlp.experts.gate_up_proj", ".mlp.experts.down_proj")  # conversion_mapping.py: check_dims


def side_by_side(x: Data, *more: Data) -> Data:
    for other in more:
        x = ops.join(x, other)
    return x


def kinds_of(language: Any, seen: Sequence[int]) -> list[tuple[tuple[str, bool], ops.Size]]:
    """The kind of a layer, such as whether it has experts, and whether a deep view is added behind it."""
    if hasattr(language, "layer_types") and language.layer_types:
        return [((word, i in seen), 1) for i, word in enumerate(language.layer_types)]
    dense, n_layers = getattr(language, "dense_layers", None), language.n_layers
    first = [(("dense" if dense is None or i in dense else "moe", True), 1) for i in seen]
    n = len(first)
    rest = (
        [("dense", n_layers - n)]
        if dense is None
        else parts.dense_or_moe([i - n for i in dense if i >= n], n_layers - n)
    )
    return [*first, *(((word, False), number) for word, number in rest)]
