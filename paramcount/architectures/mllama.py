"""Llama 3.2 Vision: Llama layers, some of which attend to an image through gates instead of to the text."""

from typing import Any

from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import Data, Weight, block, elementwise, given, layers, linear, lookup, multiply_vector, norm
from paramcount.parts.attentions import attention
from paramcount.parts.classic import multi_head
from paramcount.parts.composite import FORMER_PREFIXES
from paramcount.parts.decoder import AttentionDecoder, Kinds
from paramcount.parts.decoders import head, pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Sizes, d_model_per_head, derived, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill
from paramcount.sizes.types import Flag, Indices, Natural, Positive

RATIOS_OF_FOUR_TILES = [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]]


def joined_width(js: ConfigJson, c: FieldValues) -> None:
    """What the projector is made for has to be what the tower gives it."""
    width, found = (len(c["intermediate_layers"]) + 1) * c["d_model"], js.get("vision_output_dim", 7680)
    if found != width:
        raise ParamcountError(f"= {describe_value(found)}", where="vision_output_dim", expected=f"{width}")


def tiles_fit_ratios(js: ConfigJson, c: FieldValues) -> None:
    """The reference's own list of aspect ratios is for four tiles."""
    ratios = js.get("supported_aspect_ratios") or RATIOS_OF_FOUR_TILES
    if [list(ratio) for ratio in ratios] == RATIOS_OF_FOUR_TILES and c["n_tiles"] != 4:
        expected = "4, or other supported_aspect_ratios"
        raise ParamcountError(f"= {c['n_tiles']}", where=FieldName("n_tiles"), expected=expected)


def crossing_layers(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """The reference asks of each layer whether it is among these, in whatever order.

    Those of a longer model, as it writes them beside fewer layers, are none.
    """
    said = js.get("cross_attention_layers")
    said = list(range(3, 40, 5)) if said is None else said
    if not isinstance(said, (list, tuple)) or not all(type(i) is int and i >= 0 for i in said):
        raise ParamcountError(
            f"= {describe_value(said)}", where="cross_attention_layers", expected="non-negative integers"
        )
    return tuple(sorted({i for i in said if i < c["n_layers"]}))


class MllamaVision(Sizes):
    """The vision tower: two stacks of layers over the patches of up to `n_tiles` tiles."""

    config_class = "MllamaVisionConfig"

    section = "vision_config"
    conditions = (joined_width, tiles_fit_ratios)

    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_global_layers: Natural = hf("num_global_layers")
    n_heads: Positive = hf("attention_heads")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf()
    n_channels: Positive = hf("num_channels")
    patch_size: Positive = hf("patch_size")
    n_patches: Positive = derived(lambda js, c: (js.get("image_size", 448) // c["patch_size"]) ** 2)
    n_tiles: Positive = hf("max_num_tiles")
    n_aspect_ratios: Positive = derived(lambda js, c: len(js.get("supported_aspect_ratios") or [0] * 8))
    intermediate_layers: Indices = hf("intermediate_layers_indices", absent=(3, 7, 15, 23, 30), null=ABSENT)

    check = check_heads_fill


class MllamaText(AttentionDecoder):
    """The language model alone, which attends to an image that it is given.

    The token embedding has eight rows more than the LM head: the image token and padding.

    Source: arXiv:2407.21783, section 7; order of operations: MllamaSelfAttentionDecoderLayer and
    MllamaCrossAttentionDecoderLayer.
    """

    reference = "MllamaForCausalLM"
    model_types = ("mllama_text_model",)
    base_model = "MllamaTextModel"
    rotated = "d_head"
    conditions = (padding_in_table(128004, more=8),)

    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf()
    cross_attention_layers: Indices = derived(crossing_layers)
    tie_word_embeddings: Flag = derived(lambda js, c: False)  # whatever the key says

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(500_000, 131072)

    def embed(c, tokens: Data) -> Data:
        return lookup(tokens, c.prefix + "embed_tokens.weight", "embedding", c.vocab_size + 8, c.d_model)

    def forward(c, tokens: Data) -> Data:
        return c.head(c.transform(c.embed(tokens), given("image", "patches", c.d_model)))

    def kinds(c) -> Kinds:
        crossing = set(c.cross_attention_layers)
        return [("cross" if i in crossing else "self", 1) for i in range(c.n_layers)]

    def layer(c, x: Data, image: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h) if kind == "self" else x + gate(c.cross_attention(h, image), "cross_attn_attn_gate")
        h = c.gated_mlp(c.norm(x, "post_attention_layernorm"))
        return x + (h if kind == "self" else gate(h, "cross_attn_mlp_gate"))

    def cross_attention(c, x: Data, image: Data) -> Data:
        def attend(x: Data, image: Data) -> Data:
            return attention(c, x, "", qk_norm=True, memory=image)

        return block(x, "cross_attn.", attend, reads=(image,), part="cross_attention")

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
    reference_names = FORMER_PREFIXES
    base_model = "MllamaModel"
    prefix = "language_model.model."

    vision: MllamaVision

    def forward(c, tokens: Data) -> Data:
        pixels = given("pixels", "patches", c.vision.n_channels, c.vision.patch_size, c.vision.patch_size)
        ratio = given("aspect ratio")
        image = block(
            pixels,
            "vision_model.",
            lambda pixels, ratio: vision(c.vision, pixels, ratio),
            reads=(ratio,),
            part="vision",
        )
        image = block(image, "", c.project, part="projector")
        return c.head(c.transform(c.embed(tokens), image))

    def project(c, x: Data) -> Data:
        return linear(x, "multi_modal_projector", "projector", c.d_model, bias=True)

    def head(c, x: Data) -> Data:
        return head(c, x, "language_model.model.embed_tokens.weight", "language_model.lm_head")


def gate(x: Data, name: str) -> Data:
    """x times tanh of a learned value, at first 0."""
    return multiply_vector(x, name, "other", 1, function="tanh")


def vision(c: Any, pixels: Data, ratio: Data) -> Data:
    """Pixels to patch vectors: the last layer's beside those of the intermediate layers."""
    d = c.d_model
    patch = Weight("patch_embedding.weight", "embedding", (d, c.n_channels, c.patch_size, c.patch_size))
    x = Data("convolve", (pixels,), ("patches", d), (patch,))
    x = tile_positions(c, x, ratio, "pre_tile_positional_embedding")
    x = elementwise(x, "class token", "class_embedding", "embedding", d)
    x = elementwise(x, "positions", "gated_positional_embedding.embedding", "position", c.n_patches + 1, d)
    x = gated(x, "gated_positional_embedding.gate")
    x = x + lookup_tiles(
        x, ratio, "gated_positional_embedding.tile_embedding", c.n_aspect_ratios + 1, c.n_tiles * (c.n_patches + 1) * d
    )
    x = norm(x, "layernorm_pre", bias=True)
    local = layers(x, "transformer.layers.{layer}.", [("local", c.n_layers)], lambda kind, x: vision_layer(c, kind, x))
    x = tile_positions(c, norm(local, "layernorm_post", bias=True), ratio, "post_tile_positional_embedding")
    x = layers(
        x,
        "global_transformer.layers.{layer}.",
        [("global", c.n_global_layers)],
        lambda kind, x: vision_layer(c, kind, x),
    )
    return Data("join", (x, *[local] * len(c.intermediate_layers)), ("patches", (len(c.intermediate_layers) + 1) * d))


def gated(x: Data, name: str) -> Data:
    return elementwise(x, "gate", name, "other", 1)


def tile_positions(c: Any, x: Data, ratio: Data, name: str) -> Data:
    x = x + lookup_tiles(x, ratio, name + ".embedding", c.n_aspect_ratios + 1, c.n_tiles * c.d_model)
    return gated(x, name + ".gate")


def lookup_tiles(x: Data, ratio: Data, name: str, rows: int, width: int) -> Data:
    """A row for each aspect ratio, cut into one vector for each tile (and patch)."""
    row = lookup(ratio, name + ".weight", "position", rows, width)
    return Data("spread", (row,), x.shape)


def vision_layer(c: Any, kind: str, x: Data) -> Data:
    def gate_if_global(y: Data, name: str) -> Data:
        return gate(y, name) if kind == "global" else y

    return pre_norm(
        x,
        lambda h: gate_if_global(
            multi_head(c, h, "self_attn.", ("q_proj", "k_proj", "v_proj", "o_proj"), cached=False, bias=False),
            "gate_attn",
        ),
        lambda h: gate_if_global(plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True), "gate_ffn"),
        bias=True,
    )
