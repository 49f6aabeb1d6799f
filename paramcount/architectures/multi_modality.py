"""Janus and Janus-Pro as released: SigLIP for images that are read, a VQ-VAE for those that are written, and Llama.

The sizes of the VQ-VAE, and those of the encoder by its name, stand in the authors' code.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.deepseek_vl_v2 import pooled_patches, vision_encoder
from paramcount.architectures.janus import JanusVqVae
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value, make_choice_error

SIGLIP = {  # {name: (d_model, layers, heads, d_ff, patch size)}
    "siglip_so400m_patch14_384": (1152, 27, 16, 4304, 14),
    "siglip_so400m_patch14_224": (1152, 27, 16, 4304, 14),
    "siglip_large_patch16_384": (1024, 24, 16, 4096, 16),
}
CLASSES = {
    "vision_config": "CLIPVisionTower",
    "aligner_config": "MlpProjector",
    "gen_vision_config": "VQ-16",
    "gen_aligner_config": "MlpProjector",
    "gen_head_config": "vision_head",
}
CODES, D_CODE = 16384, 8  # of VQ-16
CODEC_NAMES = (
    ("mid.block_1.", "mid.0."),
    ("mid.attn_1.", "mid.1."),
    ("mid.block_2.", "mid.2."),
    (".block.", ".res."),
    (".down.", ".conv_blocks."),
    (".up.", ".conv_blocks."),
)


def as_released(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The code has other classes too, which no release of Janus names."""
    for section, cls in CLASSES.items():
        block = js.get(section)
        found = block.get("cls") if isinstance(block, Mapping) else None
        if found != cls or not isinstance(block, Mapping) or not isinstance(block.get("params"), Mapping):
            state = "is missing" if found is None else f"= {describe_value(found)} is not supported"
            raise ParamcountError(state, where=f"{section}.cls", expected=f"{cls}, with params", choices=(cls,))
    for section in ("aligner_config", "gen_aligner_config"):
        if (found := js[section]["params"].get("projector_type")) != "mlp_gelu":
            raise ParamcountError(
                f"= {describe_value(found)}", where=f"{section}.params.projector_type", expected="mlp_gelu"
            )


def tower_size(at: int) -> Any:
    def find(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
        name = js.get("model_name", "siglip_large_patch16_384")
        if name not in SIGLIP:
            raise make_choice_error(name, SIGLIP, where="vision_config.params.model_name")
        return SIGLIP[name][at]

    return sizes.derived(find)


def n_used_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Up to the one that is looked at."""
    n, last = SIGLIP[js.get("model_name", "siglip_large_patch16_384")][1], js.get("select_layer", -2)
    if type(last) is not int or last + n < -1:
        raise sizes.make_value_error(last, "vision_config.params.select_layer", f"an integer, at least {-n - 1}")
    return min(n, n + last + 1 if last <= 0 else last)


class MultiModalityVision(sizes.Sizes):
    section = "vision_config.params"
    unused_keys = ("select_feature", "select_layers", "pixel_mean", "pixel_std", "ckpt_path")

    d_model: sizes.Positive = tower_size(0)
    n_layers: sizes.Natural = sizes.derived(n_used_layers)
    n_heads: sizes.Positive = tower_size(2)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = tower_size(3)
    patch_size: sizes.Positive = tower_size(4)
    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 336) // c["patch_size"]) ** 2)


class Aligner(sizes.Sizes):
    """`hidden`: the places of its matrices in a row of matrices and activations."""

    d_in: sizes.Positive = sizes.hf("input_dim")
    d_out: sizes.Positive = sizes.hf("n_embed")
    places: sizes.Indices = sizes.derived(lambda js, c: tuple(2 * i for i in range(max(js.get("depth", 1), 1))))

    def align(c, x: Data) -> Data:
        for i in c.places:
            x = ops.linear(ops.activate(x, "gelu") if i else x, f"layers.{i}", "projector", c.d_out, bias=True)
        return x


class ReadAligner(Aligner):
    section = "aligner_config.params"


class WrittenAligner(Aligner):
    section = "gen_aligner_config.params"


class WrittenHead(sizes.Sizes):
    section = "gen_head_config.params"

    d_in: sizes.Positive = sizes.hf("n_embed")
    d_hidden: sizes.Positive = sizes.hf("image_token_embed")
    n_codes: sizes.Positive = sizes.hf("image_token_size")

    def score(c, x: Data) -> Data:
        """States of the language model to a score for each code."""
        h = ops.activate(ops.linear(x, "output_mlp_projector", "other", c.d_hidden, bias=True), "gelu")
        return ops.linear(h, "vision_head", "other", c.n_codes, bias=True)


class MultiModalityCodec(JanusVqVae):
    section = "vq"  # which no config.json has: the defaults are the sizes of the code

    d_projected = sizes.constant(None)
    hidden = sizes.constant(())
    d_language = sizes.constant(None)

    def read(c, pixels: Data, prefix: str) -> Data:
        """With a buffer of the codes that training has used."""
        codes = c.reconstruct(pixels, prefix)
        return ops.elementwise(codes, "count codes", "quantize.codebook_used", "other", 65536, role="buffer")


class MultiModality(parts.FormerMultimodal):
    """Source: arXiv:2410.13848, section 3.1; arXiv:2501.17811, section 2.1; modeling_vlm.py of github
    deepseek-ai/Janus. The encoder's pooling is allocated and never read.
    """

    reference = "MultiModalityCausalLM of deepseek-ai/Janus-Pro-7B"
    sections = sizes.Sections(
        "llama",
        section="language_config",
        ignores_model_type=True,
        tie_rule="text",
        other_sections=tuple(CLASSES),
    )
    conditions = (as_released,)
    encoder_prefix = "vision_model.vision_tower."
    projector_prefix = "aligner."

    vision: MultiModalityVision
    aligner: ReadAligner
    codec: MultiModalityCodec
    written_aligner: WrittenAligner
    written_head: WrittenHead
    n_codes: sizes.Positive = sizes.hf("gen_vision_config.params.image_token_size")
    d_code: sizes.Positive = sizes.hf("gen_vision_config.params.n_embed")

    image_token = ops.Unknown("image_token")

    def see(c) -> Data:
        """An image that is read to vectors of the language model's size; beside them stands what writes one."""
        size = c.vision.patch_size
        image = ops.block(ops.given("pixels", "patches", 3, size, size), c.encoder_prefix, c.encode, part="vision")
        image = ops.block(image, c.projector_prefix, c.aligner.align, part="projector")
        pixels, prefix = ops.given("pixels of a written image", 3, "height", "width"), "gen_vision_model."
        codes = ops.block(pixels, prefix, lambda x: c.codec.read(x, prefix), part="vision")
        codes = ops.rename_weights(codes, replaced=CODEC_NAMES)
        vectors = ops.block(codes, "", c.read_codes, part="projector")
        states = ops.given("states of a written image", "image", c.written_head.d_in)
        return ops.bundle(image, vectors, ops.block(states, "gen_head.", c.written_head.score, part="vision"))

    def encode(c, pixels: Data) -> Data:
        return vision_encoder(c.vision, pixels)

    def read_codes(c, codes: Data) -> Data:
        x = ops.lookup(codes, "gen_embed.weight", "embedding", c.n_codes, c.d_code)
        return ops.block(x, "gen_aligner.", c.written_aligner.align)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        x = ops.given("hidden states", "patches", c.vision.d_model)
        name = c.encoder_prefix + "attn_pool."
        pooling = ops.block(x, name, lambda x: pooled_patches(c.vision, x), part="vision")
        return (ops.Unreachable(pooling, "the projector reads the patches, not the pooled vector"),)

    def check(c) -> None:
        d: Any = c.language.d_model  # type: ignore[attr-defined]
        aligner, written = c.aligner, c.written_aligner
        for where, found, expected in (
            ("aligner_config.params.input_dim", aligner.d_in, c.vision.d_model),
            ("aligner_config.params.n_embed", aligner.d_out, d),
            ("gen_vision_config.params.image_token_size", c.n_codes, CODES),
            ("gen_aligner_config.params.input_dim", written.d_in, c.d_code),
            ("gen_aligner_config.params.n_embed", written.d_out, d),
            ("gen_head_config.params.n_embed", c.written_head.d_in, d),
        ):
            if found != expected:
                raise ParamcountError(f"= {found}", where=where, expected=f"{expected}")
