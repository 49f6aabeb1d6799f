"""Llama 3.2 Vision: Llama layers, some of which attend to an image through gates instead of to the text."""

from functools import partial
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

RATIOS_OF_FOUR_TILES = [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]]


def joined_width(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """What the projector is made for has to be what the tower gives it."""
    width, found = (len(c["intermediate_layers"]) + 1) * c["d_model"], js.get("vision_output_dim", 7680)
    if found != width:
        raise sizes.make_value_error(found, "vision_output_dim", f"{width}")


def tiles_fit_ratios(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference's own list of aspect ratios is for four tiles."""
    ratios = js.get("supported_aspect_ratios") or RATIOS_OF_FOUR_TILES
    if [list(ratio) for ratio in ratios] == RATIOS_OF_FOUR_TILES and c["n_tiles"] != 4:
        raise sizes.make_value_error(c["n_tiles"], FieldName("n_tiles"), "4, or other supported_aspect_ratios")


def crossing_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The reference asks of each layer whether it is among these, in whatever order.

    Those of a longer model, as it writes them beside fewer layers, are none.
    """
    said = js.get("cross_attention_layers")
    said = list(range(3, 40, 5)) if said is None else said
    if not isinstance(said, (list, tuple)) or not all(type(i) is int and i >= 0 for i in said):
        raise sizes.make_value_error(said, "cross_attention_layers", "non-negative integers")
    return tuple(sorted({i for i in said if i < c["n_layers"]}))


class MllamaVision(sizes.Sizes):
    """The vision tower: two stacks of layers over the patches of up to `n_tiles` tiles."""

    config_class = "MllamaVisionConfig"

    section = "vision_config"
    conditions = (joined_width, tiles_fit_ratios)

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_global_layers: sizes.Natural = sizes.hf("num_global_layers")
    n_heads: sizes.Positive = sizes.hf("attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    n_channels: sizes.Positive = sizes.hf("num_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_patches: sizes.Positive = sizes.derived(lambda js, c: (js.get("image_size", 448) // c["patch_size"]) ** 2)
    n_tiles: sizes.Positive = sizes.hf("max_num_tiles")
    n_aspect_ratios: sizes.Positive = sizes.derived(lambda js, c: len(js.get("supported_aspect_ratios") or [0] * 8))
    intermediate_layers: sizes.Indices = sizes.hf(
        "intermediate_layers_indices", absent=(3, 7, 15, 23, 30), null=sizes.ABSENT
    )

    check = sizes.check_heads_fill


class MllamaText(parts.AttentionDecoder):
    """The language model alone, which attends to an image that it is given.

    The token embedding has eight rows more than the LM head: the image token and padding.

    Source: arXiv:2407.21783, section 7; order of operations: MllamaSelfAttentionDecoderLayer and
    MllamaCrossAttentionDecoderLayer.
    """

    reference = "MllamaForCausalLM"
    model_types = ("mllama_text_model",)
    base_model = "MllamaTextModel"
    rotated = "d_head"
    is_section_type = False
    conditions = (sizes.padding_in_table(128004, more=8),)

    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    cross_attention_layers: sizes.Indices = sizes.derived(crossing_layers)
    tie_word_embeddings: sizes.Flag = sizes.derived(lambda js, c: False)  # whatever the key says

    rope = sizes.rotary(500_000, 131072)

    def embed(c, tokens: Data) -> Data:
        return ops.lookup(tokens, c.prefix + "embed_tokens.weight", "embedding", c.vocab_size + 8, c.d_model)

    def forward(c, tokens: Data) -> Data:
        return c.head(c.transform(c.embed(tokens), ops.given("image", "patches", c.d_model)))

    def kinds(c) -> parts.Kinds:
        crossing = set(c.cross_attention_layers)
        return [("cross" if i in crossing else "self", 1) for i in range(c.n_layers)]

    def layer(c, x: Data, image: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h) if kind == "self" else x + gate(c.cross_attention(h, image), "cross_attn_attn_gate")
        h = c.gated_mlp(c.norm(x, "post_attention_layernorm"))
        return x + (h if kind == "self" else gate(h, "cross_attn_mlp_gate"))

    def cross_attention(c, x: Data, image: Data) -> Data:
        def attend(x: Data, image: Data) -> Data:
            prepare = partial(parts.normalise_heads, c, prefix="")
            return parts.attentions.attention(c, x, "", memory=image, prepare=prepare, mix=ops.attend_to_memory)

        return ops.block(x, "cross_attn.", attend, reads=(image,), part="cross_attention")

    def check(c) -> None:
        if c.tie_word_embeddings:
            raise ParamcountError(
                "= true, but the token embedding has 8 more rows than the LM head",
                where=FieldName("tie_word_embeddings"),
                expected="false",
            )


class MllamaTextOf(MllamaText):
    """The language model of a config that has a vision encoder too."""

    model_types = ("mllama.MllamaForCausalLM",)

    section = "text_config"


class Mllama(MllamaTextOf):
    """The language model with the vision encoder whose images it attends to."""

    reference = "MllamaForConditionalGeneration"
    reference_names = parts.FORMER_PREFIXES
    base_model = "MllamaModel"
    prefix = "language_model.model."
    head_name = "language_model.lm_head"

    vision: MllamaVision

    def forward(c, tokens: Data) -> Data:
        pixels = ops.given("pixels", "patches", c.vision.n_channels, c.vision.patch_size, c.vision.patch_size)
        ratio = ops.given("aspect ratio")
        image = ops.block(
            pixels,
            "vision_model.",
            lambda pixels, ratio: vision(c.vision, pixels, ratio),
            reads=(ratio,),
            part="vision",
        )
        image = ops.block(image, "", c.project, part="projector")
        return c.head(c.transform(c.embed(tokens), image))

    def project(c, x: Data) -> Data:
        return ops.linear(x, "multi_modal_projector", "projector", c.d_model, bias=True)


def gate(x: Data, name: str) -> Data:
    """x times tanh of a learned value, at first 0."""
    return ops.multiply_vector(x, name, "other", 1, function="tanh")


def vision(c: Any, pixels: Data, ratio: Data) -> Data:
    """Pixels to patch vectors: the last layer's beside those of the intermediate layers."""
    d = c.d_model
    patch = ops.Weight("patch_embedding.weight", "embedding", (d, c.n_channels, c.patch_size, c.patch_size))
    x = Data("convolve", (pixels,), ("patches", d), (patch,))
    x = tile_positions(c, x, ratio, "pre_tile_positional_embedding")
    x = ops.elementwise(x, "class token", "class_embedding", "embedding", d)
    x = ops.elementwise(x, "positions", "gated_positional_embedding.embedding", "position", c.n_patches + 1, d)
    x = gated(x, "gated_positional_embedding.gate")
    x = x + lookup_tiles(
        x, ratio, "gated_positional_embedding.tile_embedding", c.n_aspect_ratios + 1, c.n_tiles * (c.n_patches + 1) * d
    )
    x = ops.norm(x, "layernorm_pre", bias=True)
    local = ops.layers(
        x, "transformer.layers.{layer}.", [("local", c.n_layers)], lambda kind, x: vision_layer(c, kind, x)
    )
    x = tile_positions(c, ops.norm(local, "layernorm_post", bias=True), ratio, "post_tile_positional_embedding")
    x = ops.layers(
        x,
        "global_transformer.layers.{layer}.",
        [("global", c.n_global_layers)],
        lambda kind, x: vision_layer(c, kind, x),
    )
    return Data("join", (x, *[local] * len(c.intermediate_layers)), ("patches", (len(c.intermediate_layers) + 1) * d))


def gated(x: Data, name: str) -> Data:
    return ops.elementwise(x, "gate", name, "other", 1)


def tile_positions(c: Any, x: Data, ratio: Data, name: str) -> Data:
    x = x + lookup_tiles(x, ratio, name + ".embedding", c.n_aspect_ratios + 1, c.n_tiles * c.d_model)
    return gated(x, name + ".gate")


def lookup_tiles(x: Data, ratio: Data, name: str, rows: int, width: int) -> Data:
    """A row for each aspect ratio, cut into one vector for each tile (and patch)."""
    row = ops.lookup(ratio, name + ".weight", "position", rows, width)
    return Data("spread", (row,), x.shape)


def vision_layer(c: Any, kind: str, x: Data) -> Data:
    def gate_if_global(y: Data, name: str) -> Data:
        return gate(y, name) if kind == "global" else y

    return parts.pre_norm(
        x,
        lambda h: gate_if_global(
            parts.multi_head(c, h, "self_attn.", ("q_proj", "k_proj", "v_proj", "o_proj"), bias=False),
            "gate_attn",
        ),
        lambda h: gate_if_global(parts.plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True), "gate_ffn"),
        bias=True,
    )
